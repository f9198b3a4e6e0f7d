"""The tables of this repository that real Hudi wrote, by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_TESTS = Path(__file__).parents[1]


def _archives() -> Iterator[tuple[str, Path]]:
    for archive in sorted((_TESTS / "tables").rglob("*.zip")):
        if not archive.stem.endswith("_src"):  # what a bootstrap read
            yield archive.stem, archive
    for archive in sorted((_TESTS / "cases" / "clean").glob("*/table.zip")):
        yield archive.parent.name, archive


TABLES = dict(_archives())
