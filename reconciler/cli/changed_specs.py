"""``--changed-since``: which specs changed since HEAD branched off from a commit.

The same paths are read from that commit and from the disk, and both are compared.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Final

from reconciler import canonical_json
from reconciler.cli.environment import git_environment
from reconciler.errors import Problems, ReconcilerError, UsageError
from reconciler.lazy_dataclass import dataclass
from reconciler.spec.guard_policy import GuardPolicy
from reconciler.spec.load import LoadedSpecs
from reconciler.spec.model import TableSpec
from reconciler.spec.spec_files import DISK, FileTree, PathKind, SpecFiles

_FOLDER, _LINK, _SUBMODULE = b"40000", b"120000", b"160000"
#: no other repository's objects, no network access, and messages in English
_GIT_SETTINGS: Final = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_MAX_LINKS: Final = 40
_OBJECT_ID: Final = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecChanges:
    """Tables whose spec changed, and tables whose spec was removed.

    ``unknown`` is the reason if the comparison failed; then every table counts as changed.
    """

    changed: frozenset[str]
    removed: tuple[TableSpec, ...] = ()
    unknown: str | None = None


def find_changes(
    ref: str,
    paths: Sequence[Path],
    now: LoadedSpecs,
    read: Callable[[Sequence[Path], FileTree], LoadedSpecs],
) -> SpecChanges:
    """Return how ``now`` differs from what the paths declared where HEAD and ``ref`` branched.

    ``read`` loads specs from given files; it is not asked for paths that did not exist then. Only
    git objects on this machine are read. Raises UsageError if ``ref`` is no commit or the paths are
    in no repository, and ReconcilerError if the clone lacks the history.
    """
    everything = frozenset(spec.name for spec in now.tables)
    with _open_commit(ref, paths) as files:
        existing = [path for path in paths if SpecFiles(Problems(), files).find_files([path])]
        if not existing:
            return SpecChanges(changed=everything)
        before = read(existing, files)
    errors = before.problems.errors
    if errors:
        return SpecChanges(changed=everything, unknown=str(errors[0]))
    known = {spec.name: _spec_fingerprint(spec) for spec in before.tables}
    return SpecChanges(
        changed=frozenset(
            spec.name for spec in now.tables if known.get(spec.name) != _spec_fingerprint(spec)
        ),
        removed=tuple(spec for spec in before.tables if spec.name not in everything),
    )


def _spec_fingerprint(spec: TableSpec) -> tuple[bytes, list[GuardPolicy]]:
    """Return everything that affects a table; its document has path and storage options too."""
    guards = [_narrow_policy(policy, spec.name) for policy in spec.guarded_by]
    return canonical_json.to_bytes(dict(spec.document)), guards


def _narrow_policy(policy: GuardPolicy, name: str) -> GuardPolicy:
    """Return the part of a policy that concerns one table."""
    return replace(
        policy,
        protected=tuple(glob for glob in policy.protected if fnmatchcase(name, glob)),
        waivers=tuple(waiver for waiver in policy.waivers if waiver.table == name),
    )


# --- git -----------------------------------------------------------------------------------------


@contextmanager
def _open_commit(ref: str, paths: Sequence[Path]) -> Iterator[FileTree]:
    """Open the files of the commit where HEAD and ``ref`` branched."""
    if ref.startswith("-"):
        raise UsageError(f"--changed-since {ref}: expected a branch, tag or commit, not an option")
    top = _find_repository(ref, paths)
    base = _find_base_tree(ref, top)
    with _open_object_reader(top) as objects:
        yield _CommitAndDisk(_CommittedFiles(top, objects, base))


def _find_repository(ref: str, paths: Sequence[Path]) -> Path:
    """Return the repository that all paths are in."""
    tops: dict[str, Path] = {}
    for path in paths:
        folder = path if path.is_dir() else path.parent
        answer = _run_git(folder, "rev-parse", "--show-toplevel")
        if answer.returncode:
            is_outside = b"not a git rep" in answer.stderr
            why = "is in no git repository" if is_outside else _error_text(answer)
            raise UsageError(f"--changed-since {ref}: {path}: {why}")
        tops[os.fsdecode(answer.stdout.removesuffix(b"\n"))] = path
    if len(tops) > 1:
        one, other, *_ = tops.values()
        raise UsageError(
            f"--changed-since {ref}: {one} and {other} are in different git repositories; give "
            "paths of one repository"
        )
    return Path(next(iter(tops)))


def _find_base_tree(ref: str, top: Path) -> str:
    """Return the tree of the commit where HEAD and ``ref`` branched."""
    output = _run_git(top, "rev-parse", "--is-shallow-repository").stdout
    deepen = (
        "; this clone is shallow: fetch all of it (fetch-depth: 0, or git fetch --unshallow)"
        if output.strip() == b"true"
        else ""
    )
    tips = []
    for name in (ref, "HEAD"):
        tips.append(_find_object_id(top, f"{name}^{{commit}}"))
        if not tips[-1]:
            hint = deepen or "; fetch it first" * (name != "HEAD")
            raise UsageError(f"--changed-since {ref}: {name} is not a commit of {top}{hint}")
    parted = _run_git(top, "merge-base", *tips).stdout.decode().split()
    tree = _find_object_id(top, f"{parted[0]}^{{tree}}") if parted else ""
    if not tree:
        raise ReconcilerError(
            f"--changed-since {ref}: {ref} and HEAD have no commit in common{deepen}"
        )
    return tree


def _find_object_id(top: Path, name: str) -> str:
    """Return the id of the object that a name means, "" if there is none."""
    object_id = _run_git(top, "rev-parse", "--verify", "--quiet", name).stdout.decode().strip()
    return object_id if _OBJECT_ID.fullmatch(object_id) else ""


def _run_git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(  # noqa: S603 (no shell; no argument can become an option)
            _git_command(folder, *arguments),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            env=git_environment(**_GIT_SETTINGS),
        )
    except FileNotFoundError:
        raise ReconcilerError("--changed-since needs git, which is not installed") from None
    except OSError as error:
        raise ReconcilerError(f"--changed-since: git does not run: {error.strerror}") from None


def _git_command(folder: Path, *arguments: str) -> list[str]:
    return ["git", "--no-pager", "--no-replace-objects", "-C", str(folder), *arguments]


def _error_text(process: subprocess.CompletedProcess[bytes]) -> str:
    lines = process.stderr.decode(errors="replace").strip().splitlines()
    return f"git: {lines[0] if lines else f'exit code {process.returncode} without a message'}"


@contextmanager
def _open_object_reader(top: Path) -> Iterator[Callable[[str], bytes]]:
    """Yield a function that reads an object by its id; git gets no other input."""
    with subprocess.Popen(  # noqa: S603 (no shell, no argument of others)
        _git_command(top, "cat-file", "--batch"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=git_environment(**_GIT_SETTINGS),
    ) as process:
        requests, answers = process.stdin, process.stdout
        assert requests is not None
        assert answers is not None
        try:
            yield lambda name: _read_object(requests, answers, name)
        finally:
            with suppress(OSError):  # git has ended already
                requests.close()


def _read_object(requests: IO[bytes], answers: IO[bytes], name: str) -> bytes:
    with suppress(OSError):  # git has ended; reading its answer fails below
        requests.write(f"{name}\n".encode())
        requests.flush()
    head = answers.readline().split()
    if len(head) != 3:  # noqa: PLR2004 (id, type and size; else "missing")
        raise OSError(0, f"git object {name} is not in this clone")
    return answers.read(int(head[2]) + 1)[:-1]


@dataclass(frozen=True, slots=True)
class _TreeEntry:
    mode: bytes
    id: str


class _CommittedFiles:
    """The files of one commit, at the paths where they are checked out."""

    def __init__(self, top: Path, read: Callable[[str], bytes], tree: str) -> None:
        self._top, self._read = str(top), read
        self._root = _TreeEntry(_FOLDER, tree)
        self._trees: dict[str, Mapping[str, _TreeEntry]] = {}
        self._reals: dict[str, str] = {}

    def path_kind(self, path: Path) -> PathKind:
        _, entry = self._resolve_path(path)
        if entry.mode == _FOLDER:
            return "folder"
        return "other" if entry.mode == _SUBMODULE else "file"

    def list_names(self, folder: Path) -> list[str]:
        _, entry = self._resolve_path(folder)
        return list(self._list_entries(entry))

    def read_bytes(self, file: Path) -> bytes:
        _, entry = self._resolve_path(file)
        if entry.mode in (_FOLDER, _SUBMODULE):
            raise IsADirectoryError(0, "is a folder")
        return self._read(entry.id)

    def real_path(self, path: Path) -> str:
        try:
            return "/".join(self._resolve_path(path)[0])
        except OSError:
            return str(path)

    def _resolve_path(self, path: Path) -> tuple[list[str], _TreeEntry]:
        """Return the parts and entry of a path with links followed, within the repository."""
        todo = list(reversed(self._path_parts(path)))
        above = [("", self._root)]
        links = 0
        while todo:
            name = todo.pop()
            if name == "..":
                above.pop()
                if not above:
                    raise _not_found()
                continue
            entry = self._list_entries(above[-1][1]).get(name)
            if entry is None:
                raise _not_found()
            if entry.mode != _LINK:
                above.append((name, entry))
                continue
            links += 1
            target = os.fsdecode(self._read(entry.id))
            if target.startswith("/") or links > _MAX_LINKS:
                raise _not_found()
            todo += [part for part in reversed(target.split("/")) if part not in ("", ".")]
        return [name for name, _ in above[1:]], above[-1][1]

    def holds(self, path: Path) -> bool:
        """Return whether a path is in the repository, in that commit or not."""
        return self._find_parts(path) is not None

    def _path_parts(self, path: Path) -> tuple[str, ...]:
        parts = self._find_parts(path)
        if parts is None:
            raise _not_found()
        return parts

    def _find_parts(self, path: Path) -> tuple[str, ...] | None:
        """Return the parts of a path below the top folder of the repository.

        They begin at the first folder of the path that is in the repository. Git knows nothing of
        paths outside it, which give None.
        """
        start = Path(os.path.abspath(path))  # noqa: PTH100 (links stay)
        for folder in (*reversed(start.parents), start):
            real = self._real_folder(str(folder))
            if real == self._top or real.startswith(f"{self._top.rstrip('/')}/"):
                return (*Path(real).relative_to(self._top).parts, *start.relative_to(folder).parts)
        return None

    def _real_folder(self, folder: str) -> str:
        if folder not in self._reals:
            self._reals[folder] = os.path.realpath(folder)
        return self._reals[folder]

    def _list_entries(self, folder: _TreeEntry) -> Mapping[str, _TreeEntry]:
        if folder.mode != _FOLDER:
            raise _not_found()
        if folder.id not in self._trees:
            self._trees[folder.id] = dict(_parse_tree(self._read(folder.id), len(folder.id) // 2))
        return self._trees[folder.id]


@dataclass(frozen=True, slots=True)
class _CommitAndDisk:
    """The files of a commit; those outside its repository, such as policies, are on the disk."""

    commit: _CommittedFiles

    def path_kind(self, path: Path) -> PathKind:
        return self._choose_tree(path).path_kind(path)

    def list_names(self, folder: Path) -> list[str]:
        return self._choose_tree(folder).list_names(folder)

    def read_bytes(self, file: Path) -> bytes:
        return self._choose_tree(file).read_bytes(file)

    def real_path(self, path: Path) -> str:
        return self._choose_tree(path).real_path(path)

    def _choose_tree(self, path: Path) -> FileTree:
        return self.commit if self.commit.holds(path) else DISK


def _parse_tree(tree: bytes, id_bytes: int) -> Iterator[tuple[str, _TreeEntry]]:
    """Yield names and entries of a tree object: ``mode SP name NUL id``, one after the other."""
    at = 0
    while at < len(tree):
        end = tree.index(b"\0", at)
        mode, _, name = tree[at:end].partition(b" ")
        at = end + 1 + id_bytes
        yield os.fsdecode(name), _TreeEntry(mode, tree[end + 1 : at].hex())


def _not_found() -> OSError:
    return FileNotFoundError(2, "does not exist in that commit")
