"""The tables of this repository that real Hudi wrote, by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_TESTS = Path(__file__).parents[1]
_CLEANED = _TESTS / "cases" / "clean"


def _archives() -> Iterator[tuple[str, Path]]:
    for archive in sorted((_TESTS / "tables").rglob("*.zip")):
        name = archive.stem
        if not name.endswith("_src"):  # what a bootstrap read
            yield (f"{archive.parent.name}_{name}" if name[0].isdigit() else name), archive
    for archive in sorted(_CLEANED.glob("*/table.zip")):
        yield archive.parent.name, archive


TABLES = dict(_archives())
#: tables made for cleaning; reading, one is much like the other
CLEANED = frozenset(folder.name for folder in _CLEANED.iterdir())
