"""We and real Hudi write to one merge-on-read table in turns, and each finds what both wrote."""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random

import pytest

from tests.oracle.bundles import TABLE_VERSION
from tests.oracle.hudi import COMPACT_METADATA
from tests.oracle.our_writer import make_spec, read_rows, write
from tests.oracle.test_writes import (
    ALL,
    BY_RECORD_INDEX,
    HIVE,
    LATE,
    OURS,
    VERSIONS,
    Both,
    die,
    hudi_cleans,
    hudi_clusters,
    hudi_deletes,
    hudi_inserts,
    hudi_upserts,
    hudi_upserts_with,
    hudi_writes_and_rolls_it_back,
    is_pending,
    play,
    we_delete,
    we_upsert,
)
from tests.selection import long, take_turn

pytestmark = pytest.mark.oracle


def hudi_compacts(it: Both) -> None:
    if compaction := it.hudi.schedule(it.table, "COMPACT", it.options):
        it.hudi.compact(it.table, compaction)


def hudi_schedules_a_compaction_and_we_write(it: Both) -> None:
    """Our log files go to the slice that the compaction begins."""
    compaction = it.hudi.schedule(it.table, "COMPACT", it.options)
    rows = it.old(3)
    write(it.spec, rows)
    it.put(rows)
    it.assert_right()
    if compaction:
        it.hudi.compact(it.table, compaction)


HUDIS: list[Callable[[Both], None]] = [
    hudi_upserts("BLOOM"),
    hudi_compacts,
    hudi_inserts,
    hudi_deletes,
    hudi_schedules_a_compaction_and_we_write,
    hudi_clusters,
    hudi_cleans,
    hudi_upserts("SIMPLE"),
    hudi_writes_and_rolls_it_back,
]


@pytest.mark.parametrize("version", [long("0.15.0"), long("1.0.2"), "1.2.0"])
def test_hudi_and_we_write_in_turns_to_a_table_that_we_made(real_hudi, tmp_path, version):
    hudi, seed = real_hudi(version), int(os.environ.get("SEED", "1"))
    is_hive = version != "1.0.2"
    table = hudi.table(tmp_path / "t", merge_on_read=True, options=LATE | (HIVE if is_hive else {}))
    spec = make_spec(table, TABLE_VERSION[version], merge_on_read=True, hive_style=is_hive)
    it = Both(hudi=hudi, table=table, spec=spec, random=Random(f"{version} {seed}"))
    rows = it.new(6)
    write(spec, rows)
    it.put(rows)
    it.assert_right()

    play(it, OURS, HUDIS)


@pytest.mark.parametrize("version", [long("0.15.0"), "1.0.2", long("1.2.0")])
def test_hudi_and_we_write_in_turns_to_a_table_with_every_index(real_hudi, tmp_path, version):
    hudi, seed = real_hudi(version), int(os.environ.get("SEED", "1"))
    table = hudi.table(tmp_path / "t", merge_on_read=True, options=LATE | ALL)
    spec = make_spec(table, TABLE_VERSION[version], merge_on_read=True)
    it = Both(hudi=hudi, table=table, spec=spec, random=Random(f"{version} {seed} all"))
    it.options = ALL
    rows = it.new(6)
    hudi.write(table, rows, options=COMPACT_METADATA)
    it.put(rows)
    live = table.metadata_partitions()
    assert {"bloom_filters", "column_stats", "record_index"} < set(live)

    play(it, OURS, [*HUDIS, BY_RECORD_INDEX, BY_RECORD_INDEX])

    assert live == table.metadata_partitions()


#: what was done last before a write dies, and the path that it does not come to change
MARKED = "a marker"
DEATHS = {
    "requested": r"\.hoodie/(timeline/)?\d+\.deltacommit\.inflight$",
    MARKED: r"[abc]/\..*\.log\.",
    "all files": r"\.hoodie/metadata/",
    "metadata told": r"\.hoodie/(timeline/)?\d+(_\d+)?\.deltacommit$",
}


@pytest.mark.parametrize("version", ["0.15.0", long("1.0.2"), long("1.2.0")])
def test_hudi_rolls_back_our_writes_of_logs_that_died(real_hudi, tmp_path, version):
    """Before version 8 with blocks that cancel those of a log file, later by deleting it.

    There the metadata table takes the size of a log file that is rolled back from its marker, 1,
    and lists it even if it was not written: of Hudi's own writes, too. And a reader stops at the
    block of a rollback that is younger than the newest write, which would be an upsert's own.
    """
    hudi = real_hudi(version)
    table = hudi.table(tmp_path / "t", merge_on_read=True, options=LATE)
    spec = make_spec(table, TABLE_VERSION[version], merge_on_read=True)
    it = Both(hudi=hudi, table=table, spec=spec, random=Random(version))
    rows = it.new(6)
    write(spec, rows)
    it.put(rows)

    for done, path in take_turn(DEATHS.items(), of=2, turn=1):
        if (version, done) == ("0.15.0", MARKED):
            continue
        die(it, path)
        instant = table.last_instant()
        assert is_pending(table, instant), done
        hudi.rollback(table, instant)
        assert not is_pending(table, instant), done
        hudi_upserts_with(it, {})
        assert_rows(it)
        rows = it.old(2)
        write(spec, rows)
        it.put(rows)
        assert_rows(it)
    hudi_compacts(it)
    assert_rows(it)


def assert_rows(it: Both) -> None:
    rows = sorted(it.model.values(), key=repr)
    assert rows == read_rows(it.table)
    assert rows == it.hudi.rows(it.table, metadata=True)
    assert rows == it.hudi.rows(it.table, metadata=False)


@pytest.mark.parametrize("version", [*map(long, VERSIONS)])
def test_hudi_merges_our_parquet_blocks_and_finds_rows_by_their_numbers(
    real_hudi, tmp_path, version
):
    hudi = real_hudi(version)
    blocks = {"hoodie.logfile.data.block.format": "parquet"}
    table = hudi.table(tmp_path / "t", merge_on_read=True, options=blocks)
    spec = make_spec(table, TABLE_VERSION[version], merge_on_read=True)
    it = Both(hudi=hudi, table=table, spec=spec, random=Random(version))
    rows = it.new(6)
    hudi.write(table, rows)
    it.put(rows)
    hudi_upserts_with(it, {})
    for act in (we_upsert, we_delete, we_upsert):
        act(it)
    by_number = {"hoodie.merge.use.record.positions": "true"}

    assert_rows(it)
    expected = sorted(it.model.values(), key=repr)
    assert expected == hudi.rows(table, metadata=True, options=by_number)
    hudi_compacts(it)
    assert_rows(it)
