"""We and real Hudi write to one merge-on-read table in turns, and each finds what both wrote."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from reconciler.errors import ReconcilerError, UnsupportedError
from reconciler.reader.model import ReadRequest
from reconciler.storage.open import open_storage
from reconciler.verification.verify import verify_metadata
from tests.manual_clustering import add_milliseconds
from tests.oracle.bundles import TABLE_VERSION, VERSIONS
from tests.oracle.clustered_tables import list_completed
from tests.oracle.failed_writes import fail_write
from tests.oracle.hudi import COMPACT_METADATA
from tests.oracle.our_services import apply_block, we_archive, we_clean, we_cluster, we_compact
from tests.oracle.our_writer import make_spec, read_rows, write
from tests.oracle.test_secondary_index import OPTIONS, SETTINGS
from tests.oracle.test_writes import (
    ALL,
    BY_RECORD_INDEX,
    HIVE,
    LATE,
    OURS,
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
    we_delete_a_partition,
    we_insert,
    we_overwrite_a_partition,
    we_upsert,
)
from tests.selection import long, rounds, take_turn

pytestmark = pytest.mark.oracle
ROUNDS = rounds("ROUNDS", few=2, many=20)


def choose_versions(*usual: str) -> list[Any]:
    """Return every version of Hudi; those that are not usual are long."""
    return [version if version in usual else long(version) for version in VERSIONS]


READ_OPTIMIZED = {"hoodie.datasource.query.type": "read_optimized"}
INCREMENTAL = {"hoodie.datasource.query.type": "incremental"}
#: where Hudi's incremental reads begin
BEGIN = "hoodie.datasource.read.begin.instanttime"


@dataclass
class BothOfLogs(Both):
    """A merge-on-read table of two writers, each of whose reads finds what both wrote.

    ``seen``: the newest row at the last look; ``moment``: the newest write then, as incremental
    reads name it.
    """

    seen: int = 0
    moment: str = ""

    def assert_right(self) -> None:
        has_metadata = bool(self.table.metadata_partitions())
        if has_metadata:
            super().assert_right()
        rows = sorted(self.model.values(), key=repr)
        assert rows == read_rows(self.table)
        assert rows == self.hudi.rows(self.table, metadata=False)
        found = self.hudi.rows(self.table, metadata=has_metadata, options=READ_OPTIMIZED)
        assert read_rows(self.table, ReadRequest(kind="readOptimized")) == found
        new = [row for row in rows if row[2] > self.seen]
        if self.moment and new:
            # 1.0 reads what completed at that time, too
            is_open = self.hudi.version != "1.0.2"
            begin = self.moment if is_open else add_milliseconds(self.moment, 1)
            since = INCREMENTAL | {BEGIN: begin}
            assert new == self.hudi.rows(self.table, metadata=has_metadata, options=since)
        if has_metadata:
            self.assert_verified()
        self.seen = self.ts
        self.moment = max(moment for _requested, moment in list_completed(self.table))

    def assert_verified(self) -> None:
        """Find nothing in the metadata table that differs from the files."""
        found = verify_metadata(open_storage(str(self.table.path)), None).differences
        assert () == tuple(found)


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


def hudi_schedules_a_compaction_and_we_replace(it: Both) -> None:
    """The compaction completes after its file groups were replaced."""
    compaction = it.hudi.schedule(it.table, "COMPACT", it.options)
    it.random.choice([we_overwrite_a_partition, we_delete_a_partition])(it)
    it.assert_right()
    if compaction:
        it.hudi.compact(it.table, compaction)


def hudi_schedules_a_clustering_and_we_write(it: Both) -> None:
    """New rows go elsewhere, and rows that the clustering rewrites cannot be changed."""
    clustering = it.hudi.schedule(it.table, "CLUSTER", it.options)
    if clustering and it.model:
        with pytest.raises(ReconcilerError, match="a pending clustering will rewrite it"):
            write(it.spec, [it.row(key, key[0]) for key in it.model])
    we_insert(it)
    it.assert_right()
    if clustering:
        it.hudi.cluster(it.table, clustering)


def hudi_dies_and_we_write(it: Both) -> None:
    """Our log files lie beside those of the dead write until Hudi rolls it back, and after that.

    Before version 8 Hudi then lists those with the size of their markers, which we repair.
    """
    rows = it.old(3)
    instant = fail_write(it.hudi, it.table, [*rows, *it.new(1)], it.options)
    newer = [it.row(row[0], row[1]) for row in rows]
    write(it.spec, newer)
    it.put(newer)
    assert_rows(it)
    it.hudi.rollback(it.table, instant)
    assert_rows(it)
    if it.hudi.version == "0.15.0":
        apply_block(it, "metadata: {verify: each-apply, repair: rebuild}")
    it.assert_right()
    we_upsert(it)


SERVICES: list[Callable[[Both], None]] = [we_compact, we_clean, we_cluster]
HUDIS: list[Callable[[Both], None]] = [
    hudi_upserts("BLOOM"),
    hudi_compacts,
    hudi_inserts,
    hudi_deletes,
    hudi_schedules_a_compaction_and_we_write,
    hudi_schedules_a_compaction_and_we_replace,
    hudi_schedules_a_clustering_and_we_write,
    hudi_dies_and_we_write,
    hudi_clusters,
    hudi_cleans,
    hudi_upserts("SIMPLE"),
    hudi_writes_and_rolls_it_back,
]


@pytest.mark.parametrize("version", choose_versions("1.2.0"))
def test_hudi_and_we_write_in_turns_to_a_table_that_we_made(real_hudi, tmp_path, version):
    hudi, seed = real_hudi(version), int(os.environ.get("SEED", "1"))
    is_hive = version != "1.0.2"
    table = hudi.table(tmp_path / "t", merge_on_read=True, options=LATE | (HIVE if is_hive else {}))
    spec = make_spec(table, TABLE_VERSION[version], merge_on_read=True, hive_style=is_hive)
    it = BothOfLogs(hudi=hudi, table=table, spec=spec, random=Random(f"{version} {seed}"))
    rows = it.new(6)
    write(spec, rows)
    it.put(rows)
    it.assert_right()

    play(it, [*OURS, *SERVICES], HUDIS, ROUNDS)


@pytest.mark.parametrize("version", choose_versions("1.0.2"))
def test_hudi_and_we_write_in_turns_to_a_table_with_every_index(real_hudi, tmp_path, version):
    hudi, seed = real_hudi(version), int(os.environ.get("SEED", "1"))
    table = hudi.table(tmp_path / "t", merge_on_read=True, options=LATE | ALL)
    spec = make_spec(table, TABLE_VERSION[version], merge_on_read=True)
    it = BothOfLogs(hudi=hudi, table=table, spec=spec, random=Random(f"{version} {seed} all"))
    it.options = ALL
    rows = it.new(6)
    hudi.write(table, rows, options=COMPACT_METADATA)
    it.put(rows)
    live = table.metadata_partitions()
    assert {"bloom_filters", "column_stats", "record_index"} < set(live)

    play(it, [*OURS, *SERVICES], [*HUDIS, BY_RECORD_INDEX, BY_RECORD_INDEX], ROUNDS)

    assert live == table.metadata_partitions()


@pytest.mark.parametrize("version", choose_versions())
def test_hudi_and_we_write_in_turns_to_a_table_without_metadata_table(real_hudi, tmp_path, version):
    hudi, seed = real_hudi(version), int(os.environ.get("SEED", "1"))
    off = {"hoodie.metadata.enable": "false"}
    table = hudi.table(tmp_path / "t", merge_on_read=True, options=off)
    spec = make_spec(table, TABLE_VERSION[version], merge_on_read=True)
    it = BothOfLogs(hudi=hudi, table=table, spec=spec, random=Random(f"{version} {seed} off"))
    it.options = off
    rows = it.new(6)
    hudi.write(table, rows)
    it.put(rows)

    play(it, [*OURS, *SERVICES], HUDIS, ROUNDS)

    assert [] == table.metadata_partitions()


def hudi_archives(it: Both) -> None:
    it.hudi.archive(it.table, it.options)


@pytest.mark.parametrize("version", choose_versions())
def test_hudi_and_we_archive_writes_of_logs(real_hudi, tmp_path, version):
    hudi, seed = real_hudi(version), int(os.environ.get("SEED", "1"))
    table = hudi.table(tmp_path / "t", merge_on_read=True, options=ALL)
    spec = make_spec(table, TABLE_VERSION[version], merge_on_read=True)
    it = BothOfLogs(hudi=hudi, table=table, spec=spec, random=Random(f"{version} {seed} archive"))
    it.options = ALL | COMPACT_METADATA  # Hudi archives nothing that this table may need
    rows = it.new(6)
    hudi.write(table, rows, options=it.options)
    it.put(rows)
    hudis = [hudi_archives, hudi_archives, hudi_cleans, hudi_upserts("BLOOM"), hudi_compacts]

    play(it, [we_upsert, we_upsert, we_delete, we_insert, we_archive, *SERVICES[:2]], hudis, ROUNDS)

    assert any(table.path.glob(".hoodie/**/archived/?*")) or any(table.timeline.glob("history/?*"))


@dataclass
class WithSecondaryIndex(BothOfLogs):
    """A table with a secondary index of the column x."""

    def create_index(self) -> None:
        self.hudi.sql("drop table if exists t")
        self.hudi.sql(f"create table t using hudi location '{self.table.path}'")
        for name, value in SETTINGS.items():
            self.hudi.sql(f"set {name}={value}")
        self.hudi.sql("create index by_x on t (x)")
        assert "secondary_index_by_x" in self.table.metadata_partitions()

    def assert_right(self) -> None:
        super().assert_right()
        some = [row for row in sorted(self.model.values()) if row[3]][::2]
        texts = ", ".join(f"'{row[3]}'" for row in some)
        assert some == self.hudi.rows(self.table, metadata=True, where=f"x in ({texts})")


def our_write_is_refused(it: Both) -> None:
    with pytest.raises(UnsupportedError, match="secondary index by_x, which would miss the rows"):
        we_upsert(it)


@pytest.mark.parametrize("version", choose_versions()[1:])
def test_hudi_writes_and_we_keep_a_table_with_a_secondary_index(real_hudi, tmp_path, version):
    hudi, seed = real_hudi(version), int(os.environ.get("SEED", "1"))
    table = hudi.table(tmp_path / "t", merge_on_read=True, options=LATE | OPTIONS)
    spec = make_spec(table, TABLE_VERSION[version], merge_on_read=True)
    it = WithSecondaryIndex(hudi=hudi, table=table, spec=spec, random=Random(f"{version} {seed} x"))
    it.options = OPTIONS
    rows = it.new(6)
    hudi.write(table, rows)
    it.put(rows)
    it.create_index()
    live = table.metadata_partitions()
    hudis = [act for act in HUDIS if not act.__name__.endswith(("we_write", "we_replace"))]

    play(it, [*SERVICES, *SERVICES, our_write_is_refused], hudis, ROUNDS)

    assert live == table.metadata_partitions()


#: what was done last before a write dies, and the path that it does not come to change
MARKED = "a marker"
DEATHS = {
    "requested": r"\.hoodie/(timeline/)?\d+\.deltacommit\.inflight$",
    MARKED: r"[abc]/\..*\.log\.",
    "all files": r"\.hoodie/metadata/",
    "metadata told": r"\.hoodie/(timeline/)?\d+(_\d+)?\.deltacommit$",
}


@pytest.mark.parametrize("version", choose_versions("0.15.0"))
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


@pytest.mark.parametrize("version", choose_versions())
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
