"""Tables with a history, which real Hudi made, copied for every test."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.oracle.hudi import (
    COMPACT_METADATA,
    FEW_GROUPS,
    INDEXES,
    NOTHING_BY_ITSELF,
    SMALL_FILTERS,
    HudiTable,
    RealHudi,
    directory_listing,
    keep_commits,
)
from tests.oracle.kept_tables import KeptTable

RECORD_INDEX = {**INDEXES, **FEW_GROUPS, "hoodie.index.type": "RECORD_INDEX"}


@dataclass(frozen=True, kw_only=True)
class TableKind:
    """The kind of a table: Hudi version, table type and indexes."""

    version: str
    merge_on_read: bool = False
    partitioned: bool = True
    indexes: bool = False

    def list_values(self) -> tuple[object, ...]:
        """What cases of several kinds are combined by."""
        return self.version, self.merge_on_read, self.partitioned, self.indexes

    def __str__(self) -> str:
        words = [self.version, "mor" if self.merge_on_read else "cow"]
        words += ["nopart"] * (not self.partitioned) + ["indexes"] * self.indexes
        return "-".join(words)


KINDS = [
    TableKind(version=version, merge_on_read=mor, partitioned=partitioned, indexes=indexes)
    for version in ("0.15.0", "1.0.2", "1.2.0")
    for mor in (False, True)
    for partitioned, indexes in ((True, False), (True, True), (False, False))
]
PLAIN = [kind for kind in KINDS if kind.partitioned and not kind.indexes]


def write_history(hudi: RealHudi, path: Path, kind: TableKind) -> HudiTable:
    """Write two partitions with many updates, one with a replaced group, and compactions."""
    table = hudi.table(
        path,
        merge_on_read=kind.merge_on_read,
        partitioned=kind.partitioned,
        options=RECORD_INDEX if kind.indexes else SMALL_FILTERS,
    )
    hudi.write(table, [("a1", "a", 1), ("a2", "a", 1), ("b1", "b", 1), ("c1", "c", 1)])
    hudi.write(table, [("a1", "a", 2), ("b1", "b", 2)])
    _compact(hudi, table, kind)
    if kind.partitioned and kind.indexes:  # 1.2.0 dies of an insert_overwrite with bloom filters
        hudi.delete_partition(table, "c")
        hudi.write(table, [("c9", "c", 3)])
    elif kind.partitioned:
        hudi.write(table, [("c9", "c", 3)], "insert_overwrite")
    hudi.write(table, [("a1", "a", 4), ("b1", "b", 4)])
    _compact(hudi, table, kind)
    hudi.write(table, [("a1", "a", 5)])
    hudi.write(table, [("b1", "b", 6)])
    return table


def _compact(hudi: RealHudi, table: HudiTable, kind: TableKind) -> None:
    if kind.merge_on_read:
        instant = hudi.schedule(table, "COMPACT")
        assert instant
        hudi.compact(table, instant)


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A Hudi version, and a name for what else a history knows."""

    version: str
    name: str = ""

    def __str__(self) -> str:
        return "-".join(filter(None, (self.version, self.name)))


Story = Callable[[RealHudi, Path, Any], HudiTable]


def name_kept(kind: Any, story: Story) -> KeptTable:
    """Return the archive of a history."""
    name = f"{story.__name__}-{kind}"
    return KeptTable(name=name, made_by=story, arguments=(kind, NOTHING_BY_ITSELF))


class PreparedTables:
    """Unpacks or makes each history once; returns copies."""

    def __init__(self, real_hudi: Callable[[str], RealHudi], folder: Path) -> None:
        self._real_hudi, self._folder = real_hudi, folder
        self._made: dict[str, HudiTable] = {}

    def table(
        self, kind: Any, path: Path, story: Story = write_history
    ) -> tuple[RealHudi, HudiTable]:
        """Return Hudi of the kind's version, and a copy of the table at the path.

        ``kind``: what the story gets; it has a version, and its text tells it from others.
        """
        hudi, kept = self._real_hudi(kind.version), name_kept(kind, story)
        if kept.name not in self._made:
            home = self._folder / kept.name / "t"
            home.parent.mkdir()
            facts = kept.unpack(home) or kept.record(
                home, {"options": dict(story(hudi, home, kind).options)}
            )
            self._made[kept.name] = HudiTable(path=home, **facts)
        made = self._made[kept.name]
        copy_table(made.path, path)
        return hudi, made.at(path)


def copy_table(source: Path, target: Path) -> None:
    """Copy a table with its times: version 6 takes completion times from them."""
    shutil.copytree(source, target, copy_function=shutil.copy2)


def assert_rows_and_listing(hudi: RealHudi, table: HudiTable, rows: list[list[Any]]) -> None:
    """Check that Hudi reads exactly these rows by every lookup, and that its listing is right."""
    assert_reads(hudi, table, rows)
    assert {} == find_wrongly_listed(hudi, table)


def find_wrongly_listed(
    hudi: RealHudi, table: HudiTable
) -> dict[tuple[str, str], tuple[int | None, int | None]]:
    """Return files with their sizes in the folder and in the metadata table where these differ.

    None: it is not there. A partition without files equals a missing one.
    """
    if not table.metadata_partitions():
        return {}
    there, listed = _flatten(directory_listing(table.path)), _flatten(hudi.listing(table))
    return {
        path: (there.get(path), listed.get(path))
        for path in there.keys() | listed.keys()
        if there.get(path) != listed.get(path)
    }


def _flatten(listing: Mapping[str, Mapping[str, int]]) -> dict[tuple[str, str], int]:
    return {(path, name): size for path, files in listing.items() for name, size in files.items()}


def assert_still_correct(hudi: RealHudi, table: HudiTable, rows: list[list[Any]]) -> None:
    """As `assert_rows_and_listing`, between two steps of a test that ends with that.

    One read is spared: of all rows, from the files that the metadata table lists. Where these are
    the files that are there, it gives what the read without a metadata table gave.
    """
    young = [row for row in rows if row[2] >= 4]

    assert rows == hudi.rows(table)
    assert young == hudi.rows(table, metadata=True, where="ts >= 4 and n > 3.5")
    assert directory_listing(table.path) == hudi.listing(table)


def assert_reads(hudi: RealHudi, table: HudiTable, rows: list[list[Any]]) -> None:
    """Check that Hudi reads exactly these rows, with and without metadata table, filtered too."""
    young = [row for row in rows if row[2] >= 4]

    assert rows == hudi.rows(table)
    assert rows == hudi.rows(table, metadata=True)
    assert young == hudi.rows(table, metadata=True, where="ts >= 4 and n > 3.5")


def assert_hudi_goes_on(
    hudi: RealHudi, table: HudiTable, rows: list[list[Any]], *, merge_on_read: bool
) -> None:
    """Check that Hudi upserts, compacts metadata, clusters, cleans and archives after us."""
    hudi.write(table, [("a1", "a", 50), ("z1", "a", 50)], options=COMPACT_METADATA)
    new = [["a1", "a", 50, "v50", 50.0], ["z1", "a", 50, "v50", 50.0]]
    rows = sorted([row for row in rows if row[0] != "a1"] + new, key=repr)
    assert_still_correct(hudi, table, rows)
    if merge_on_read:
        compaction = hudi.schedule(table, "COMPACT")
        assert compaction
        hudi.compact(table, compaction)
        assert_still_correct(hudi, table, rows)
    clustering = hudi.schedule(table, "CLUSTER")
    assert clustering
    hudi.cluster(table, clustering)
    assert_still_correct(hudi, table, rows)
    hudi.clean(table, keep_commits(1))
    assert_still_correct(hudi, table, rows)
    hudi.archive(table)
    assert_still_correct(hudi, table, rows)
    hudi.write(table, [("z1", "a", 51)])
    rows = [["z1", "a", 51, "v51", 51.0] if row[0] == "z1" else row for row in rows]
    assert_rows_and_listing(hudi, table, rows)
