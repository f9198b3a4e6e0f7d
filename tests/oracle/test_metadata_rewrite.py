"""Real Hudi goes on with a table whose rows were moved into new files without it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.transaction.metadata.rewrite_sync import find_listing_differences
from reconciler.transaction.metadata.sync import apply_sync
from tests.manual_clustering import FILE_IDS, ManualClustering
from tests.oracle.hudi import COMPACT_METADATA, INDEXES, directory_listing, keep_commits
from tests.oracle.prepared_tables import Variant
from tests.selection import long

pytestmark = pytest.mark.oracle
VERSIONS = ("0.15.0", "1.0.2", "1.2.0")
RECORD_INDEX = {"hoodie.index.type": "RECORD_INDEX"}
ALL = {
    "0.15.0": ["bloom_filters", "column_stats", "files", "record_index"],
    "1.0.2": ["bloom_filters", "column_stats", "files", "partition_stats", "record_index"],
    "1.2.0": ["bloom_filters", "column_stats", "files", "partition_stats", "record_index"],
}
#: what to ask for, and the same of a row: id, p, ts, x, n
FILTERS = {
    "n < 2": lambda row: row[4] < 2,
    "n > 2 and p = 'a'": lambda row: row[4] > 2 and row[1] == "a",
    "id = 'a2' or x > 'v5'": lambda row: row[0] == "a2" or row[3] > "v5",
}


def write_small_files(hudi, path, variant):
    """Write four small files in two partitions."""
    table = hudi.table(path, options=INDEXES | RECORD_INDEX)
    compact = COMPACT_METADATA if variant.name == "compacted" else {}
    hudi.write(table, [("a1", "a", 1), ("b1", "b", 1)], "insert")
    hudi.write(table, [("a2", "a", 2), ("a3", "a", 3)], "insert", compact)
    hudi.write(table, [("a4", "a", 4)], "insert", compact)
    return table


@pytest.fixture
def made(library):
    """``made(version, kind, path)``: a copy of a table with four small files in two partitions."""

    def copy(version, kind, path):
        return library.table(Variant(version=version, name=kind), path, write_small_files)

    return copy


def assert_right(hudi, table, rows):
    assert directory_listing(table.path) == hudi.listing(table)
    assert rows == hudi.rows(table)
    assert rows == hudi.rows(table, metadata=True)
    for where, is_wanted in FILTERS.items():
        assert [*filter(is_wanted, rows)] == hudi.rows(table, where=where, metadata=True), where


def with_row(rows, *row):
    """The rows with another one of its key."""
    return sorted([*(other for other in rows if other[0] != row[0]), [*row]])


def clustered(table, **how):
    """Partition a in one file; the work, and what was planned of the metadata table."""
    work = ManualClustering(table.path, ["a"]).begin().write(**how)
    planned = work.sync()
    work.complete()

    assert 3 == len(work.replaced["a"])
    assert {} == find_listing_differences(work.storage, work.properties, work.timeline, work.added)
    return work, planned


@pytest.mark.parametrize("version", ["0.15.0", long("1.0.2"), "1.2.0"])
def test_hudi_reads_skips_writes_compacts_and_cleans_on(made, tmp_path, version):
    hudi, table = made(version, "compacted", tmp_path / "t")
    rows = hudi.rows(table)
    _work, planned = clustered(table)

    assert () == planned.dropped_partitions
    assert ALL[version] == table.metadata_partitions()
    assert_right(hudi, table, rows)

    # the record index leads an update into the new file, whose group goes on
    instant = hudi.write(table, [("a2", "a", 6)])
    group = FILE_IDS.format(0)
    assert [instant] == [
        name.rpartition("_")[2].removesuffix(".parquet")
        for name in directory_listing(table.path)["a"]
        if name.startswith(group) and not name.startswith(f"{group}_0-0-0_")
    ]
    # a narrow new file: the bounds of its partition are computed anew from those of the files
    hudi.write(table, [("a9", "a", 50)], "insert")
    rows = with_row(with_row(rows, "a2", "a", 6, "v6", 6.0), "a9", "a", 50, "v50", 50.0)
    assert_right(hudi, table, rows)

    for ts in (7, 8):
        hudi.write(table, [("a1", "a", ts), ("b1", "b", ts)], options=COMPACT_METADATA)
    rows = with_row(with_row(rows, "a1", "a", 8, "v8", 8.0), "b1", "b", 8, "v8", 8.0)
    assert_right(hudi, table, rows)
    bases = {path.parent.name for path in (table.path / ".hoodie/metadata").rglob("*.hfile")}
    assert {"files", "column_stats", "record_index"} <= bases

    hudi.clean(table, keep_commits(1))
    assert_right(hudi, table, rows)
    assert not [n for n in directory_listing(table.path)["a"] if n.startswith(f"{group}_0-0-0_")]


@pytest.mark.parametrize("version", ["0.15.0", "1.2.0"])
def test_hudi_goes_on_without_what_was_dropped_and_builds_it_anew(
    made, monkeypatch, tmp_path, version
):
    hudi, table = made(version, "logs", tmp_path / "t")
    rows = hudi.rows(table)
    monkeypatch.setattr("reconciler.hudi.metadata.sync_decisions.MAX_RECORDS", 1)
    _work, planned = clustered(table, bloom=False, columns=["id"])

    assert [name for name in ALL[version] if name != "files"] == [*planned.dropped_partitions]
    assert ["files"] == table.metadata_partitions()
    assert_right(hudi, table, rows)

    hudi.write(table, [("a2", "a", 6)])
    hudi.write(table, [("a3", "a", 7)], options=COMPACT_METADATA)
    rows = with_row(with_row(rows, "a2", "a", 6, "v6", 6.0), "a3", "a", 7, "v7", 7.0)

    assert ALL[version] == table.metadata_partitions()
    assert_right(hudi, table, rows)


@pytest.mark.parametrize("version", ["1.2.0"])
def test_hudi_goes_on_with_what_was_kept(made, tmp_path, version):
    hudi, table = made(version, "logs", tmp_path / "t")
    rows = hudi.rows(table)
    clustered(table, columns=["id"])

    assert ["bloom_filters", "files", "record_index"] == table.metadata_partitions()

    hudi.write(table, [("a2", "a", 6)])
    rows = with_row(rows, "a2", "a", 6, "v6", 6.0)

    assert ALL[version] == table.metadata_partitions()
    assert_right(hudi, table, rows)


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_skips_files_by_the_ranges_that_we_wrote(made, tmp_path, version):
    """So the tests above see something: a wrong range loses the file's rows."""
    hudi, table = made(version, "logs", tmp_path / "t")
    work = ManualClustering(table.path, ["a"]).begin().write()
    (file,) = work.added["a"]
    wrong = [
        replace(found, least=-2.0, greatest=-1.0) if found.column == "n" else found
        for found in file.ranges
    ]
    work.added["a"] = [replace(file, ranges=tuple(wrong))]
    work.sync()
    work.complete()

    assert ["a3", "a4"] == [row[0] for row in hudi.rows(table, where="n > 2")]
    assert [] == hudi.rows(table, where="n > 2", metadata=True)


@pytest.mark.parametrize(("version", "done"), [("0.15.0", None), ("1.2.0", 5)])
def test_a_second_attempt_is_as_good_as_one(made, tmp_path, version, done):
    hudi, table = made(version, "logs", tmp_path / "t")
    rows = hudi.rows(table)
    work = ManualClustering(table.path, ["a"]).begin().write()
    first = work.plan().sync
    apply_sync(work.storage, replace(first, writes=first.writes[:done]))
    again = work.sync()
    work.complete()

    assert len(first.writes[:done]) == len(again.sync.cleanup)
    assert_right(hudi, table, rows)
    hudi.write(table, [("a1", "a", 6)], options=COMPACT_METADATA)
    assert_right(hudi, table, with_row(rows, "a1", "a", 6, "v6", 6.0))
