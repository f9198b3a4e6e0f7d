"""The spec files to read: files that are named, and the YAML files of folders that are named."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, Protocol

from reconciler.errors import Problems, SourcePosition

_ENDINGS: Final = (".yaml", ".yml")

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


def find_spec_files(
    paths: Sequence[Path], problems: Problems, files: FileTree = DISK
) -> list[Path]:
    """Return the files, each once, in the order of the paths and sorted within a folder.

    Hidden files and folders are skipped, links are followed. A missing path or a folder without a
    spec file is an error: it never means "no tables".
    """
    if not paths:
        problems.error(SourcePosition("specs"), "", "no path given", "name a spec file or folder")
    found: dict[str, Path] = {}
    for path in paths:
        for file in _files_at(path, problems, files):
            found.setdefault(files.real_path(file), file)
    return list(found.values())


def find_files_below(folder: Path, problems: Problems, files: FileTree = DISK) -> list[Path]:
    """Return the spec files in an existing folder and below it, sorted; there may be none."""
    return sorted(_iterate_files(folder, set(), problems, files), key=lambda file: file.parts)


def read_file(file: Path, problems: Problems, files: FileTree = DISK) -> bytes | None:
    """Return the bytes of a file, None after an error."""
    try:
        return files.read_bytes(file)
    except OSError as error:
        problems.error(SourcePosition(str(file)), "", _describe_os_error(error))
        return None


def _files_at(path: Path, problems: Problems, files: FileTree) -> Iterator[Path]:
    try:
        is_folder = files.path_kind(path) == "folder"
    except OSError as error:
        problem = (
            "does not exist" if isinstance(error, FileNotFoundError) else _describe_os_error(error)
        )
        problems.error(SourcePosition(str(path)), "", problem, "check the path")
        return
    if is_folder:
        found = find_files_below(path, problems, files)
        if not found:
            problems.error(
                SourcePosition(str(path)),
                "",
                "no spec file (*.yaml or *.yml) in this folder",
                "check the path: an empty folder never means 'no tables'",
            )
        yield from found
    else:
        yield path


def _iterate_files(
    folder: Path, seen: set[str], problems: Problems, files: FileTree
) -> Iterator[Path]:
    """Yield every spec file; ``seen`` holds real folders, so that circular links end."""
    real = files.real_path(folder)
    if real in seen:
        return
    seen.add(real)
    try:
        names = files.list_names(folder)
    except OSError as error:
        problems.error(SourcePosition(str(folder)), "", _describe_os_error(error))
        return
    for name in sorted(names):
        if name.startswith("."):
            continue
        try:
            kind = files.path_kind(folder / name)
        except FileNotFoundError:  # a broken link: reading it reports the error
            kind = "file"
        except OSError as error:  # a link to itself
            problems.error(SourcePosition(str(folder / name)), "", _describe_os_error(error))
            continue
        if kind == "folder":
            yield from _iterate_files(folder / name, seen, problems, files)
        elif name.endswith(_ENDINGS) and kind == "file":
            yield folder / name


def _describe_os_error(error: OSError) -> str:
    return f"cannot be read: {error.strerror or error}"
