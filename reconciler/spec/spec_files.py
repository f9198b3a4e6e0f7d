"""The files to read: spec files that are named or in named folders, and folders beside them."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, Protocol

from reconciler.errors import Problems
from reconciler.lazy_dataclass import dataclass

YAML_ENDINGS: Final = (".yaml", ".yml")

PathKind = Literal["folder", "file", "other"]


class FileTree(Protocol):
    """A tree of files to read specs from: the disk, or a commit.

    Links are followed. Every method raises OSError, FileNotFoundError for a missing path.
    """

    def path_kind(self, path: Path) -> PathKind: ...

    def list_names(self, folder: Path) -> list[str]: ...

    def read_bytes(self, file: Path) -> bytes: ...

    def real_path(self, path: Path) -> str:
        """Return the path with links resolved, equal for two paths of one file. Raises nothing."""


class DiskFiles:
    """The files on the disk."""

    def path_kind(self, path: Path) -> PathKind:
        mode = path.stat().st_mode
        return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"

    def list_names(self, folder: Path) -> list[str]:
        return [entry.name for entry in os.scandir(folder)]

    def read_bytes(self, file: Path) -> bytes:
        return file.read_bytes()

    def real_path(self, path: Path) -> str:
        return os.path.realpath(path)


DISK: Final = DiskFiles()


@dataclass(frozen=True, slots=True)
class SpecFiles:
    """Finds and reads files of a tree. Errors of files go to ``problems``."""

    problems: Problems
    tree: FileTree = DISK

    def find_files(self, paths: Sequence[Path]) -> list[Path]:
        """Return the spec files, each once, in the order of the paths and sorted within a folder.

        Hidden files and folders are skipped, links are followed. A missing path or a folder without
        a spec file is an error: it never means "no tables".
        """
        if not paths:
            self.problems.file_error("specs", "no path given", "name a spec file or folder")
        by_identity: dict[str, Path] = {}
        for path in paths:
            for file in self._find_files_at(path):
                by_identity.setdefault(self.tree.real_path(file), file)
        return list(by_identity.values())

    def find_files_below(self, folder: Path) -> list[Path]:
        """Return the spec files in an existing folder and below it, sorted; there may be none."""
        return sorted(self._iterate_files(folder, set()), key=lambda file: file.parts)

    def read(self, file: Path) -> bytes | None:
        """Return the bytes of a file, None after an error."""
        try:
            return self.tree.read_bytes(file)
        except OSError as error:
            self.report_unreadable(file, error)
            return None

    def find_kind(self, path: Path | str) -> PathKind | None:
        """Return the kind of a path that must exist, None after an error."""
        try:
            return self.tree.path_kind(Path(path))
        except FileNotFoundError:
            self.problems.file_error(path, "does not exist", "check the path")
        except OSError as error:
            self.report_unreadable(path, error, "check the path")
        return None

    def find_parent_folders(self, folder: Path, name: str) -> Iterator[Path]:
        """Yield every folder ``name`` in a folder and its parents, the nearest first.

        The search ends as in ``find_parent_folder``. A path that cannot be read or is no folder is
        an error, because it may hold files that must not be ignored.
        """
        for path in (parent / name for parent in _iterate_parents(folder)):
            try:
                if self.tree.path_kind(path) == "folder":
                    yield path
                else:
                    hint = "move the file into a folder of this name, or rename it"
                    self.problems.file_error(path, "not a folder, so its content is not used", hint)
            except (FileNotFoundError, NotADirectoryError):
                if os.path.islink(path):  # noqa: PTH114
                    self.problems.file_error(path, "broken link", "remove or repair it")
            except OSError as error:
                if os.path.islink(path.parent) and error.errno == errno.ELOOP:  # noqa: PTH114
                    continue  # a link to itself is no folder, and reported where it is read
                hint = "make it readable: its files must not be ignored"
                self.report_unreadable(path, error, hint)

    def _find_files_at(self, path: Path) -> Sequence[Path]:
        kind = self.find_kind(path)
        if kind != "folder":
            return [path] if kind else []
        known = self.problems.errors
        files = self.find_files_below(path)
        if not files and self.problems.errors == known:
            message = "no spec file (*.yaml or *.yml) in this folder"
            hint = "check the path: an empty folder never means 'no tables'"
            self.problems.file_error(path, message, hint)
        return files

    def _iterate_files(self, folder: Path, seen: set[str]) -> Iterator[Path]:
        """Yield every spec file; ``seen`` holds real folders, so that circular links end."""
        real = self.tree.real_path(folder)
        if real in seen:
            return
        seen.add(real)
        try:
            names = self.tree.list_names(folder)
        except OSError as error:
            self.report_unreadable(folder, error)
            return
        for path in (folder / name for name in sorted(names) if not name.startswith(".")):
            try:
                kind = self.tree.path_kind(path)
            except FileNotFoundError:  # a broken link: reading it reports the error
                kind = "file"
            except OSError as error:  # a link to itself
                self.report_unreadable(path, error)
                continue
            if kind == "folder":
                yield from self._iterate_files(path, seen)
            elif path.name.endswith(YAML_ENDINGS) and kind == "file":
                yield path

    def report_unreadable(self, path: Path | str, error: OSError, hint: str = "") -> None:
        """Report that the system refuses to read a path."""
        self.problems.file_error(path, f"cannot be read: {error.strerror or error}", hint)


def find_parent_folder(folder: Path, name: str) -> Path | None:
    """Return the nearest folder ``name`` in a folder or its parents; None if there is none.

    The search ends at the folder with ``.git``, the top of a repository. Symbolic links stay as
    written.
    """
    candidates = (parent / name for parent in _iterate_parents(folder))
    return next((path for path in candidates if os.path.isdir(path)), None)  # noqa: PTH112


def _iterate_parents(folder: Path) -> Iterator[Path]:
    start = Path(os.path.abspath(folder))  # noqa: PTH100 (links stay)
    for parent in (start, *start.parents):
        yield parent
        if os.path.lexists(parent / ".git"):  # a file in worktrees and submodules
            return
