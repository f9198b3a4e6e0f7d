"""Which files are read: those named, and every YAML file of the folders named."""

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
    """Where specs are read from: the disk, or the same places at another time.

    Links are followed. Everything raises OSError: FileNotFoundError where nothing is.
    """

    def path_kind(self, path: Path) -> PathKind: ...

    def list_names(self, folder: Path) -> list[str]: ...

    def read_bytes(self, file: Path) -> bytes: ...

    def real_path(self, path: Path) -> str:
        """Equal for two paths of one file; raises nothing."""


class DiskFiles:
    """The files as they are now."""

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
    """The files, each once, in the order of the paths and sorted within a folder.

    Hidden files and folders are passed over, links are followed. A path that is not there, or a
    folder without a spec file, is an error: it is never taken for "no tables".
    """
    if not paths:
        problems.error(
            SourcePosition("specs"), "", "no path is given", "name a spec file or folder"
        )
    found: dict[str, Path] = {}
    for path in paths:
        for file in _files_at(path, problems, files):
            found.setdefault(files.real_path(file), file)
    return list(found.values())


def find_files_below(folder: Path, problems: Problems, files: FileTree = DISK) -> list[Path]:
    """The spec files in a folder that is there and in those below it, sorted; it may have none."""
    return sorted(_iterate_files(folder, set(), problems, files), key=lambda file: file.parts)


def read_file(file: Path, problems: Problems, files: FileTree = DISK) -> bytes | None:
    """The bytes, None after an error that names the file."""
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
                "holds no spec file (*.yaml or *.yml)",
                "an empty folder is never taken for 'no tables'",
            )
        yield from found
    else:
        yield path


def _iterate_files(
    folder: Path, seen: set[str], problems: Problems, files: FileTree
) -> Iterator[Path]:
    """Every spec file; ``seen`` holds real folders, so that links in a circle end."""
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
        except FileNotFoundError:  # a link to nowhere: whoever reads it says so
            kind = "file"
        except OSError as error:  # a link to itself: nobody knows what it was meant to be
            problems.error(SourcePosition(str(folder / name)), "", _describe_os_error(error))
            continue
        if kind == "folder":
            yield from _iterate_files(folder / name, seen, problems, files)
        elif name.endswith(_ENDINGS) and kind == "file":
            yield folder / name


def _describe_os_error(error: OSError) -> str:
    return f"cannot be read: {error.strerror or error}"
