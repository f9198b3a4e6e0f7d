"""Which files are read: those named, and every YAML file of the folders named."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from reconciler.diagnostics import Place, Problems

_ENDINGS: Final = (".yaml", ".yml")


def spec_files(paths: Sequence[Path], problems: Problems) -> list[Path]:
    """The files, each once, in the order of the paths and sorted within a folder.

    Hidden files and folders are passed over, links are followed. A path that is not there, or a
    folder without a spec file, is an error: it is never taken for "no tables".
    """
    if not paths:
        problems.error(Place("specs"), "", "no path is given", "name a spec file or folder")
    found: dict[str, Path] = {}
    for path in paths:
        for file in _files_at(path, problems):
            found.setdefault(os.path.realpath(file), file)
    return list(found.values())


def read(file: Path, problems: Problems) -> bytes | None:
    """The bytes, None after an error that names the file."""
    try:
        return file.read_bytes()
    except OSError as error:
        problems.error(Place(str(file)), "", _why(error))
        return None


def _files_at(path: Path, problems: Problems) -> Iterator[Path]:
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except OSError as error:
        problem = "does not exist" if isinstance(error, FileNotFoundError) else _why(error)
        problems.error(Place(str(path)), "", problem, "check the path")
        return
    if is_folder:
        files = sorted(_below(path, set(), problems), key=lambda file: file.parts)
        if not files:
            problems.error(
                Place(str(path)),
                "",
                "holds no spec file (*.yaml or *.yml)",
                "an empty folder is never taken for 'no tables'",
            )
        yield from files
    else:
        yield path


def _below(folder: Path, seen: set[str], problems: Problems) -> Iterator[Path]:
    """Every spec file; ``seen`` holds real folders, so that links in a circle end."""
    real = os.path.realpath(folder)
    if real in seen:
        return
    seen.add(real)
    try:
        entries = list(os.scandir(folder))
    except OSError as error:
        problems.error(Place(str(folder)), "", _why(error))
        return
    for entry in sorted(entries, key=lambda entry: entry.name):
        if entry.name.startswith("."):
            continue
        try:
            is_folder, is_file = entry.is_dir(), entry.is_file() or entry.is_symlink()
        except OSError as error:  # a link to itself: nobody knows what it was meant to be
            problems.error(Place(str(folder / entry.name)), "", _why(error))
            continue
        if is_folder:
            yield from _below(folder / entry.name, seen, problems)
        elif entry.name.endswith(_ENDINGS) and is_file:
            yield folder / entry.name


def _why(error: OSError) -> str:
    return f"cannot be read: {error.strerror or error}"
