"""Which files are read: those named, and every YAML file of the folders named."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, Protocol

from reconciler.diagnostics import Place, Problems

_ENDINGS: Final = (".yaml", ".yml")

Kind = Literal["folder", "file", "other"]


class Files(Protocol):
    """Where specs are read from: the disk, or the same places at another time.

    Links are followed. Everything raises OSError: FileNotFoundError where nothing is.
    """

    def kind(self, path: Path) -> Kind: ...

    def names(self, folder: Path) -> list[str]: ...

    def read(self, file: Path) -> bytes: ...

    def real(self, path: Path) -> str:
        """Equal for two paths of one file; raises nothing."""


class Disk:
    """The files as they are now."""

    def kind(self, path: Path) -> Kind:
        mode = path.stat().st_mode
        return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"

    def names(self, folder: Path) -> list[str]:
        return [entry.name for entry in os.scandir(folder)]

    def read(self, file: Path) -> bytes:
        return file.read_bytes()

    def real(self, path: Path) -> str:
        return os.path.realpath(path)


DISK: Final = Disk()


def spec_files(paths: Sequence[Path], problems: Problems, files: Files = DISK) -> list[Path]:
    """The files, each once, in the order of the paths and sorted within a folder.

    Hidden files and folders are passed over, links are followed. A path that is not there, or a
    folder without a spec file, is an error: it is never taken for "no tables".
    """
    if not paths:
        problems.error(Place("specs"), "", "no path is given", "name a spec file or folder")
    found: dict[str, Path] = {}
    for path in paths:
        for file in _files_at(path, problems, files):
            found.setdefault(files.real(file), file)
    return list(found.values())


def files_below(folder: Path, problems: Problems, files: Files = DISK) -> list[Path]:
    """The spec files in a folder that is there and in those below it, sorted; it may have none."""
    return sorted(_below(folder, set(), problems, files), key=lambda file: file.parts)


def read(file: Path, problems: Problems, files: Files = DISK) -> bytes | None:
    """The bytes, None after an error that names the file."""
    try:
        return files.read(file)
    except OSError as error:
        problems.error(Place(str(file)), "", _why(error))
        return None


def _files_at(path: Path, problems: Problems, files: Files) -> Iterator[Path]:
    try:
        is_folder = files.kind(path) == "folder"
    except OSError as error:
        problem = "does not exist" if isinstance(error, FileNotFoundError) else _why(error)
        problems.error(Place(str(path)), "", problem, "check the path")
        return
    if is_folder:
        found = files_below(path, problems, files)
        if not found:
            problems.error(
                Place(str(path)),
                "",
                "holds no spec file (*.yaml or *.yml)",
                "an empty folder is never taken for 'no tables'",
            )
        yield from found
    else:
        yield path


def _below(folder: Path, seen: set[str], problems: Problems, files: Files) -> Iterator[Path]:
    """Every spec file; ``seen`` holds real folders, so that links in a circle end."""
    real = files.real(folder)
    if real in seen:
        return
    seen.add(real)
    try:
        names = files.names(folder)
    except OSError as error:
        problems.error(Place(str(folder)), "", _why(error))
        return
    for name in sorted(names):
        if name.startswith("."):
            continue
        try:
            kind = files.kind(folder / name)
        except FileNotFoundError:  # a link to nowhere: whoever reads it says so
            kind = "file"
        except OSError as error:  # a link to itself: nobody knows what it was meant to be
            problems.error(Place(str(folder / name)), "", _why(error))
            continue
        if kind == "folder":
            yield from _below(folder / name, seen, problems, files)
        elif name.endswith(_ENDINGS) and kind == "file":
            yield folder / name


def _why(error: OSError) -> str:
    return f"cannot be read: {error.strerror or error}"
