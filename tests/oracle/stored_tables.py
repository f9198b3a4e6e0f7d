"""The tables of this repository that real Hudi wrote, by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_TESTS = Path(__file__).parents[1]
_CLEANED = _TESTS / "cases" / "clean"
#: tables for their timelines alone, whose data files are empty
_WITHOUT_ROWS = _TESTS / "tables" / "archival"


def _archives() -> Iterator[tuple[str, Path]]:
    for archive in sorted((_TESTS / "tables").rglob("*.zip")):
        name = archive.stem
        has_rows = not name.endswith("_src")  # what a bootstrap read
        if has_rows and archive.parent != _WITHOUT_ROWS:
            yield (f"{archive.parent.name}_{name}" if name[0].isdigit() else name), archive
    for archive in sorted(_CLEANED.glob("*/table.zip")):
        yield archive.parent.name, archive


TABLES = dict(_archives())
#: tables made for cleaning; readers treat them alike
CLEANED = frozenset(folder.name for folder in _CLEANED.iterdir())
#: those of them that have something on their timeline that no table made for reading has, by
#: table version and table type; `test_tables` checks that
READ_FROM_CLEANED = frozenset(
    {
        "cow_empty_clean_plan__0.15.0",
        "cow_empty_clean_plan__1.0.2",
        "cow_empty_clean_plan__1.2.0",
        "cow_inflight_replace__1.2.0",
        "cow_insert_overwrite__1.0.2",
        "cow_insert_overwrite_table__1.2.0",
        "cow_insert_partitions_incr__1.0.2",
        "cow_late_clustering__1.0.2",
        "cow_nonpart_replace__0.15.0",
        "cow_nonpart_replace__1.0.2",
        "cow_pending_clustering__1.0.2",
        "cow_restored__1.0.2",
        "cow_restored__1.2.0",
        "cow_two_deletes__1.0.2",
        "mor_delete_partition__0.15.0",
        "mor_delete_partition__1.0.2",
        "mor_insert_overwrite__0.15.0",
        "mor_pending_logcompaction__0.15.0",
        "mor_pending_logcompaction__1.2.0",
        "mor_savepoint__1.2.0",
    }
)
#: the tables that `./ci/test` reads
READ = tuple(name for name in TABLES if name not in CLEANED or name in READ_FROM_CLEANED)
