"""Metadata partitions that reconciler builds anew are those that real Hudi builds anew."""

from __future__ import annotations

import shutil

import pytest

import reconciler
from reconciler.storage.open import open_storage
from tests.crash.drill import Killed
from tests.metadata_lies import MetadataLiar
from tests.oracle.hudi import INDEXES, SMALL_FILTERS, directory_listing, keep_commits
from tests.oracle.our_clean import apply_here
from tests.oracle.rebuilt_metadata import (
    check_rebuild,
    check_that_hudi_goes_on,
    lie_about_files,
    repair,
    write_spec,
)
from tests.oracle.test_metadata_verification import verify
from tests.selection import long
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageFault

pytestmark = pytest.mark.oracle
#: with the default numbers of file groups
OPTIONS = {**INDEXES, **SMALL_FILTERS}
KEEP = keep_commits(1)


def write_history(hudi, table):
    """Write, update and delete rows in three partitions, and clean old files."""
    hudi.write(table, [(f"{p}{n}", p, 1) for p in "abc" for n in range(4)], options=OPTIONS)
    hudi.write(table, [("a1", "a", 2), ("b1", "b", 2), ("d1", "d", 2)], options=OPTIONS)
    hudi.write(table, [("a2", "a", 3)], "delete", options=OPTIONS)
    hudi.clean(table, {**KEEP, **OPTIONS})
    hudi.write(table, [("a3", "a", 4), ("c1", "c", 4)], options=OPTIONS)


@pytest.mark.parametrize(
    ("version", "merge_on_read"),
    [
        long("1.2.0", True),
        long("0.15.0", False),
        long("0.15.0", True),
        long("1.0.2", False),
        long("1.0.2", True),
        long("1.2.0", False),
    ],
)
def test_a_rebuilt_metadata_table_has_the_records_of_real_hudi(
    version, merge_on_read, real_hudi, tmp_path
):
    hudi = real_hudi(version)
    table = hudi.table(tmp_path / "t", merge_on_read=merge_on_read)
    write_history(hudi, table)

    compared = check_rebuild(hudi, table, tmp_path, OPTIONS, ("e1", "e", 9))

    assert len(compared) > 40  # of every kind
    check_that_hudi_goes_on(hudi, table, OPTIONS, [("a1", "a", 9), ("e1", "e", 9)], KEEP)


URLENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
#: partition values, and options of the table; nested folders come from a slash
PARTITIONS = {
    "nested": (("2026/01/02", "2026/01/03", "2027/x.y"), {}),
    "encoded": (("a b/ü", "v.1,2", "x=%41"), URLENCODED),
    "hive": (("a", "b c", "d.1"), HIVE),
    "none": (("a", "b", "c"), {}),
}


def write_unusual_history(hudi, table, values, *, has_partitions):
    """Write, make a savepoint, empty a partition, and leave replaced file groups uncleaned."""
    one, two, three = values
    hudi.write(
        table, [(f"{n}", p, 1) for n, p in enumerate([one, two, three] * 2)], options=OPTIONS
    )
    hudi.write(table, [("0", one, 2), ("1", two, 2)], options=OPTIONS)
    hudi.savepoint(table, table.last_instant())
    if has_partitions:
        hudi.write(table, [("1", two, 4), ("4", two, 4)], "delete", options=OPTIONS)
    clustering = hudi.schedule(table, "CLUSTER", options=OPTIONS)
    assert clustering
    hudi.cluster(table, clustering)
    hudi.write(table, [("2", three, 5)], options=OPTIONS)


@pytest.mark.parametrize(
    ("version", "kind", "merge_on_read"),
    [
        ("1.2.0", "encoded", True),
        *(
            long(version, kind, kind != "nested")
            for version in ("0.15.0", "1.0.2", "1.2.0")
            for kind in PARTITIONS
            if (version, kind) != ("1.2.0", "encoded")
        ),
    ],
)
def test_metadata_of_unusual_tables_is_rebuilt(version, kind, merge_on_read, real_hudi, tmp_path):
    hudi = real_hudi(version)
    values, options = PARTITIONS[kind]
    has_partitions = kind != "none"
    table = hudi.table(
        tmp_path / "t", merge_on_read=merge_on_read, partitioned=has_partitions, options=options
    )
    write_unusual_history(hudi, table, values, has_partitions=has_partitions)
    if merge_on_read:
        assert hudi.schedule(table, "COMPACT")
        hudi.write(table, [("2", values[2], 6)], options=OPTIONS)

    row = ("9", values[1], 9)
    check_rebuild(hudi, table, tmp_path, OPTIONS, row, has_pending_plan=merge_on_read)

    rows = [("2", values[2], 9), ("9", values[1], 9)]
    check_that_hudi_goes_on(hudi, table, OPTIONS, rows, KEEP)
    if merge_on_read:
        pending = table.instants(".compaction.requested")[-1]
        hudi.compact(table, pending.split(".")[0])
        assert hudi.rows(table, metadata=False) == hudi.rows(table, metadata=True)
        assert directory_listing(table.path) == hudi.listing(table)
        assert () == verify(table).differences


@pytest.mark.parametrize("version", [long("0.15.0"), long("1.0.2"), long("1.2.0")])
def test_metadata_of_a_table_without_rows_is_rebuilt(version, real_hudi, tmp_path):
    hudi = real_hudi(version)
    table = hudi.table(tmp_path / "t")
    hudi.write(table, [("a1", "a", 1), ("b1", "b", 1)], options=OPTIONS)
    hudi.write(table, [("a1", "a", 2), ("b1", "b", 2)], "delete", options=OPTIONS)
    hudi.clean(table, {**KEEP, **OPTIONS})
    assert [] == hudi.rows(table)

    check_rebuild(hudi, table, tmp_path, OPTIONS, ("e1", "e", 9))

    check_that_hudi_goes_on(hudi, table, OPTIONS, [("a1", "a", 9), ("e1", "e", 9)], KEEP)


@pytest.mark.parametrize(
    ("version", "lie"),
    [
        long("1.2.0", "files"),
        long("1.2.0", "ranges"),
        long("0.15.0", "files"),
        long("0.15.0", "ranges"),
        long("1.0.2", "files"),
        long("1.0.2", "ranges"),
    ],
)
def test_hudi_goes_on_with_a_table_whose_rebuild_was_stopped(version, lie, real_hudi, tmp_path):
    hudi = real_hudi(version)
    whole = hudi.table(tmp_path / "t")
    write_history(hudi, whole)
    live, rows = whole.metadata_partitions(), hudi.rows(whole)
    if lie == "files":
        lie_about_files(whole)
    else:
        base = max(whole.path.glob("a/*.parquet"), key=lambda path: path.name.split("_")[-1])
        MetadataLiar(whole.path).set_range("a", base.name, "ts", 5000, 6000)
    before = tmp_path / "before"
    shutil.copytree(whole.path, before)
    counted = []

    def apply(around):
        plan = reconciler.plan(reconciler.load_specs(write_spec(whole, tmp_path)))
        return apply_here(plan, storage=lambda ref: around(open_storage(ref)))

    apply(lambda storage: counted.append(RecordingStorage(storage)) or counted[-1])
    calls = [call for call in counted[0].calls if call.mutates]
    first = next(at for at, call in enumerate(calls) if "hoodie.properties" in call.paths[0])
    stops = range(first + 3, len(calls) + 1)  # when they were taken out of the properties

    for at in stops[4::9]:
        shutil.rmtree(whole.path)
        shutil.copytree(before, whole.path)
        fault = StorageFault(at=at, mode="before")
        with pytest.raises(Killed):
            apply(lambda storage, fault=fault: FaultyStorage(storage, fault, Killed()))
        (whole.path / ".hoodie/lock").unlink(missing_ok=True)  # of this process, which goes on

        is_unlisted = "column_stats" not in whole.metadata_partitions()
        assert rows == hudi.rows(whole, metadata=False) == hudi.rows(whole, metadata=True), at
        hudi.write(whole, [("a1", "a", 9), ("e1", "e", 9)], options=OPTIONS)
        assert live == whole.metadata_partitions(), at
        assert hudi.rows(whole, metadata=False) == hudi.rows(whole, metadata=True), at
        assert directory_listing(whole.path) == hudi.listing(whole), at
        if version == "0.15.0" and lie == "ranges" and is_unlisted:
            # it names the old files by absolute paths in an index that it adds to a metadata table
            assert {"missing"} == {one.kind for one in verify(whole).differences}, at
            repair(whole, tmp_path)
        assert () == verify(whole).differences, at
