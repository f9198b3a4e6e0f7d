"""We and real Hudi write to one merge-on-read table in turns, and each finds what both wrote."""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random

import pytest

from tests.oracle.bundles import TABLE_VERSION
from tests.oracle.hudi import COMPACT_METADATA
from tests.oracle.our_writer import make_spec, write
from tests.oracle.test_writes import (
    ALL,
    BY_RECORD_INDEX,
    HIVE,
    LATE,
    OURS,
    VERSIONS,
    Both,
    hudi_cleans,
    hudi_clusters,
    hudi_deletes,
    hudi_inserts,
    hudi_upserts,
    hudi_writes_and_rolls_it_back,
    play,
)

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


@pytest.mark.parametrize("version", VERSIONS)
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


@pytest.mark.parametrize("version", VERSIONS)
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
