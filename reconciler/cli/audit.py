"""The file that ``apply --audit`` appends to, and who and what its lines name."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from reconciler import runtime
from reconciler.cli.environment import find_environment_name
from reconciler.errors import StorageError, UsageError
from reconciler.executor.origin import Origin
from reconciler.spec.parent_folders import find_parent_folder

#: who started a job, in what CI says; the first that is set
_ACTORS: Final = (
    "GITHUB_TRIGGERING_ACTOR",
    "GITHUB_ACTOR",
    "GITLAB_USER_LOGIN",
    "BUILD_USER_ID",
    "AIRFLOW_CTX_DAG_OWNER",
)
_COMMITS: Final = ("GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT")
_COMMIT: Final = re.compile("[0-9a-f]{7,64}(?:-dirty)?")
_LONGEST: Final = 200
_GIT_S: Final = 30
#: what a hook of git has set for its own repository
_GIT_HOOK_VARIABLES: Final = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"})
_FILE_MODE: Final = 0o640


class AuditFile:
    """A file that only grows: a line is written at once, whole and for good, or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.is_dir():
            raise StorageError(str(path), "is a folder; name the file to append audit lines to")
        if not path.parent.is_dir():
            raise StorageError(str(path.parent), "is not there; make the folder of the audit file")
        self.append(b"")  # says before the work what would stop its record

    def append(self, line: bytes) -> None:
        """Raises StorageError where the line can't be written whole, as on a full disk."""
        try:
            file = os.open(
                self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE
            )
            try:
                _append_line(file, line)
            finally:
                os.close(file)
        except OSError as error:
            said = error.strerror or str(error)
            raise StorageError(str(self.path), f"takes no audit line: {said}") from None


def _append_line(file: int, line: bytes) -> None:
    if not line:
        return
    with suppress(OSError):  # not every file system has locks; the line is written whole anyway
        fcntl.flock(file, fcntl.LOCK_EX)  # or the end that we look at is another run's middle
    end = 0
    with suppress(OSError):  # a pipe or a device has no end to look at
        end = os.fstat(file).st_size
    if end and os.pread(file, 1, end - 1) != b"\n":  # a run died, or the disk was full
        line = b"\n" + line
    if os.write(file, line) != len(line):
        raise OSError(None, "it was written in part only; is the disk full?")
    with suppress(OSError):  # what is no file on a disk can't be synchronised
        os.fsync(file)


def find_actor(given: str | None, environ: Mapping[str, str], user: str) -> str:
    """Who has a plan applied: as given, else as CI says, else this process's user."""
    if given is not None and (not given.strip() or not given.isprintable()):
        raise UsageError("--actor: a name is one line with something in it")
    found = next((environ[name] for name in _ACTORS if environ.get(name)), user)
    return _to_one_line(given or found)


def find_spec_commit(
    given: str | None, paths: Sequence[Path] | None, environ: Mapping[str, str]
) -> str | None:
    """The commit of the specs at the paths: as given, else as git or CI says; None if unknown."""
    if given is not None:
        if not _COMMIT.fullmatch(given):
            raise UsageError(f"--spec-commit {given}: write it as 7 to 64 hexadecimal digits")
        return given
    found = _find_git_commit(paths[0], paths) if paths else None
    if found is not None:
        return found
    said = next((environ[name] for name in _COMMITS if environ.get(name)), "")
    return said if _COMMIT.fullmatch(said) else None


def _find_git_commit(path: Path, paths: Sequence[Path]) -> str | None:
    """HEAD, and whether the specs, policies or environments are not as it has them."""
    folder = path if path.is_dir() else path.parent
    head = _run_git(folder, "rev-parse", "--verify", "HEAD^{commit}")
    if head is None or not _COMMIT.fullmatch(head.strip()):
        return None
    around = (find_parent_folder(folder, name) for name in ("policies", "environments"))
    files = [str(each.absolute()) for each in (*paths, *around) if each is not None]
    changed = _run_git(folder, "status", "--porcelain", "--untracked-files=all", "--", *files)
    return head.strip() + ("-dirty" if changed is None or changed.strip() else "")


def _run_git(folder: Path, *arguments: str) -> str | None:
    """What git says; None where it fails or is not there. It runs no program of the repository."""
    environ = {
        key: value for key, value in runtime.environment().items() if key not in _GIT_HOOK_VARIABLES
    }
    import subprocess  # noqa: PLC0415 (not for every command)

    command = ["git", "-C", str(folder), "--no-optional-locks", "-c", "core.fsmonitor=false"]
    try:
        done = subprocess.run(  # noqa: S603 (arguments are ours, paths after --)
            [*command, *arguments],
            capture_output=True,
            check=False,
            timeout=_GIT_S,
            stdin=subprocess.DEVNULL,
            env=environ,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None


def _to_one_line(name: str) -> str:
    """The name as one short line."""
    return "".join(c if c.isprintable() else " " for c in name).strip()[:_LONGEST]


def find_origin(
    named: str | None, commit: str | None, paths: Sequence[Path] | None, env: str | None
) -> Origin:
    """Who has a plan applied from what; ``paths`` are the specs', None where there are none."""
    return Origin(
        actor=find_actor(named, runtime.environment(), runtime.user_name()),
        spec_commit=find_spec_commit(commit, paths, runtime.environment()),
        environment=find_environment_name(env),
    )
