"""Which files are read: those named, and every YAML file of the folders named."""

from __future__ import annotations

import os
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
        problems.error(Place(str(file)), "", f"cannot be read: {error.strerror or error}")
        return None


def _files_at(path: Path, problems: Problems) -> Iterator[Path]:
    if path.is_dir():
        files = sorted(_below(path, set(), problems), key=lambda file: file.parts)
        if not files:
            problems.error(
                Place(str(path)),
                "",
                "holds no spec file (*.yaml or *.yml)",
                "an empty folder is never taken for 'no tables'",
            )
        yield from files
    elif path.exists():
        yield path
    else:
        problems.error(Place(str(path)), "", "does not exist", "check the path")


def _below(folder: Path, seen: set[str], problems: Problems) -> Iterator[Path]:
    """Every spec file; ``seen`` holds real folders, so that links in a circle end."""
    real = os.path.realpath(folder)
    if real in seen:
        return
    seen.add(real)
    try:
        entries = list(os.scandir(folder))
    except OSError as error:
        problems.error(Place(str(folder)), "", f"cannot be listed: {error.strerror or error}")
        return
    for entry in sorted(entries, key=lambda entry: entry.name):
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from _below(folder / entry.name, seen, problems)
        elif entry.name.endswith(_ENDINGS):
            yield folder / entry.name
