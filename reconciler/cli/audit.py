"""The audit file of ``apply --audit``, and the actor and commit that its lines name."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from reconciler import runtime
from reconciler.cli.environment import find_environment_name, git_environment
from reconciler.errors import StorageError, UsageError
from reconciler.executor.origin import Origin
from reconciler.spec.spec_files import find_parent_folder

#: CI variables that name the user who started a job; the first that is set counts
_ACTORS: Final = (
    "GITHUB_TRIGGERING_ACTOR",
    "GITHUB_ACTOR",
    "GITLAB_USER_LOGIN",
    "BUILD_USER_ID",
    "AIRFLOW_CTX_DAG_OWNER",
)
_COMMITS: Final = ("GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT")
_COMMIT: Final = re.compile("[0-9a-f]{7,64}(?:-dirty)?")
_MAX_LENGTH: Final = 200
_GIT_S: Final = 30
_FILE_MODE: Final = 0o640


class AuditFile:
    """A file that only grows. A line is written at once and whole, or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.is_dir():
            raise StorageError(str(path), "is a folder; name a file for audit lines")
        if not path.parent.is_dir():
            raise StorageError(str(path.parent), "does not exist; create the folder first")
        self.append(b"")  # fails before the work if lines could not be appended after it

    def append(self, line: bytes) -> None:
        """Append a line; StorageError if it cannot be written whole, as on a full disk."""
        try:
            file = os.open(
                self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE
            )
            try:
                _append_line(file, line)
            finally:
                os.close(file)
        except OSError as error:
            reason = error.strerror or str(error)
            raise StorageError(str(self.path), f"cannot append an audit line: {reason}") from None


def _append_line(file: int, line: bytes) -> None:
    if not line:
        return
    with suppress(OSError):  # some file systems have no locks; the line is written whole anyway
        fcntl.flock(file, fcntl.LOCK_EX)  # else the end may be the middle of another run's line
    end = 0
    with suppress(OSError):  # a pipe or a device has no end
        end = os.fstat(file).st_size
    if end and os.pread(file, 1, end - 1) != b"\n":  # a run was killed, or the disk was full
        line = b"\n" + line
    if os.write(file, line) != len(line):
        raise OSError(None, "only a part was written; is the disk full?")
    with suppress(OSError):  # a pipe or a device cannot be synchronised
        os.fsync(file)


def find_actor(given: str | None, environ: Mapping[str, str], user: str) -> str:
    """Return the user who runs the apply: as given, else as CI says, else this process's user."""
    if given is not None and (not given.strip() or not given.isprintable()):
        raise UsageError("--actor: the name is empty or has line breaks")
    known = next((environ[name] for name in _ACTORS if environ.get(name)), user)
    return _to_one_line(given or known)


def find_spec_commit(
    given: str | None, paths: Sequence[Path] | None, environ: Mapping[str, str]
) -> str | None:
    """Return the commit of the specs: as given, else from git or CI; None if unknown."""
    if given is not None:
        if not _COMMIT.fullmatch(given):
            raise UsageError(f"--spec-commit {given}: expected 7 to 64 hexadecimal digits")
        return given
    commit = _find_git_commit(paths[0], paths) if paths else None
    if commit is not None:
        return commit
    of_ci = next((environ[name] for name in _COMMITS if environ.get(name)), "")
    return of_ci if _COMMIT.fullmatch(of_ci) else None


def _find_git_commit(path: Path, paths: Sequence[Path]) -> str | None:
    """Return HEAD, with -dirty if specs, policies or environments have uncommitted changes."""
    folder = path if path.is_dir() else path.parent
    head = _run_git(folder, "rev-parse", "--verify", "HEAD^{commit}")
    if head is None or not _COMMIT.fullmatch(head.strip()):
        return None
    around = (find_parent_folder(folder, name) for name in ("policies", "environments"))
    files = [str(path.absolute()) for path in (*paths, *around) if path is not None]
    changed = _run_git(folder, "status", "--porcelain", "--untracked-files=all", "--", *files)
    return head.strip() + ("-dirty" if changed is None or changed.strip() else "")


def _run_git(folder: Path, *arguments: str) -> str | None:
    """Return git's output, None if it fails or is missing. It runs no program of the repository."""
    import subprocess  # noqa: PLC0415 (few commands need it)

    command = ["git", "-C", str(folder), "--no-optional-locks", "-c", "core.fsmonitor=false"]
    try:
        done = subprocess.run(  # noqa: S603 (fixed arguments, paths after --)
            [*command, *arguments],
            capture_output=True,
            check=False,
            timeout=_GIT_S,
            stdin=subprocess.DEVNULL,
            env=git_environment(),
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None


def _to_one_line(name: str) -> str:
    """Return the name as one short line."""
    return "".join(c if c.isprintable() else " " for c in name).strip()[:_MAX_LENGTH]


def find_origin(
    actor: str | None, commit: str | None, paths: Sequence[Path] | None, env: str | None
) -> Origin:
    """Return who runs the apply and from which specs; ``paths``: the spec files, None without."""
    return Origin(
        actor=find_actor(actor, runtime.environment(), runtime.user_name()),
        spec_commit=find_spec_commit(commit, paths, runtime.environment()),
        environment=find_environment_name(env),
    )
