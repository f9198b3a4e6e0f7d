"""Compactions that real Hudi left, finished by us, in the hands of real Hudi again."""

from __future__ import annotations

import shutil
from contextlib import suppress

import pytest

from reconciler.storage.open import open_storage
from tests import our_compaction
from tests.compared_compactions import (
    describe_commit,
    describe_file,
    describe_indexes,
    list_base_files,
)
from tests.crash.drill import Killed
from tests.crash.write_drill import die_at
from tests.oracle import failed_writes
from tests.oracle.hudi import keep_commits
from tests.oracle.prepared_tables import KINDS, assert_hudi_goes_on, assert_rows_and_listing
from tests.selection import EVERY_CASE, long

pytestmark = pytest.mark.oracle

MOR = [kind for kind in KINDS if kind.merge_on_read]
#: each version once, with and without partitions and indexes, begun by Hudi or not
USUAL = {"0.15.0-mor-inflight", "1.0.2-mor-nopart-requested", "1.2.0-mor-indexes-inflight"}
READ_OPTIMIZED = {"hoodie.datasource.query.type": "read_optimized"}
INCREMENTAL = {
    "hoodie.datasource.query.type": "incremental",
    "hoodie.datasource.read.begin.instanttime": "0",
}


def choose(kind, state):
    """Return the case of a kind; it is long if others prove as much."""
    return pytest.param(kind, state) if f"{kind}-{state}" in USUAL else long(kind, state)


def schedule(hudi, table):
    """Have Hudi plan a compaction, with deletions before and a write to its slices after."""
    hudi.write(table, [("a2", "a", 9)], "delete")
    instant = hudi.schedule(table, "COMPACT")
    assert instant
    hudi.write(table, [("b1", "b", 8), ("a1", "a", 8)])
    return instant


def describe(path, instant):
    """Return the commit, files and indexes of a compaction, without known differences.

    Each version of Hudi counts some figures in its own way; ``test_compactions`` names them.
    """
    commit = describe_commit(path, instant)
    for groups in commit["partitionToWriteStats"].values():
        for stat in groups.values():
            for figure in ("totalLogSizeCompacted", "numUpdateWrites", "numInserts"):
                stat.pop(figure)
    files = list_base_files(path, instant)
    described = {group: describe_file(file) for group, file in files.items()}
    return commit, described, describe_indexes(path, instant)


@pytest.mark.parametrize(
    ("kind", "state"),
    [choose(kind, state) for kind in MOR for state in ("requested", "inflight")],
    ids=str,
)
def test_after_our_compaction_real_hudi_reads_the_same_rows_and_goes_on(
    library, tmp_path, kind, state
):
    hudi, table = library.table(kind, tmp_path / "t")
    instant = schedule(hudi, table)
    rows = hudi.rows(table)
    hudis = table.at(tmp_path / "hudis")
    shutil.copytree(table.path, hudis.path, copy_function=shutil.copy2)
    hudi.compact(hudis, instant)
    if state == "inflight":
        shutil.rmtree(table.path)
        shutil.copytree(hudis.path, table.path, copy_function=shutil.copy2)
        failed_writes.remove_completed(table, instant)
    our_compaction.finish(table.path, instant)

    assert describe(hudis.path, instant) == describe(table.path, instant)
    for query in (READ_OPTIMIZED, INCREMENTAL):
        assert hudi.rows(hudis, options=query) == hudi.rows(table, options=query)
    assert_rows_and_listing(hudi, table, rows)
    if EVERY_CASE:
        assert_hudi_goes_on(hudi, table, rows, merge_on_read=True)
        return
    hudi.write(table, [("a1", "a", 50)])
    hudi.compact(table, hudi.schedule(table, "COMPACT"))
    hudi.clean(table, keep_commits(1))
    assert_rows_and_listing(hudi, table, [["a1", "a", 50, "v50", 50.0], *rows[1:]])


@pytest.mark.parametrize(
    "kind",
    [
        kind if str(kind) == "0.15.0-mor" else long(kind)
        for kind in MOR
        if kind.partitioned and not kind.indexes
    ],
    ids=str,
)
def test_real_hudi_executes_a_compaction_that_our_apply_died_of(library, tmp_path, kind):
    """Our files, markers and metadata table entries are there, and the commit is not."""
    hudi, table = library.table(kind, tmp_path / "t")
    instant = schedule(hudi, table)
    rows = hudi.rows(table)
    our_compaction.make_old(table.path, instant)
    dying = die_at(r"/\d+(_\d+)?\.commit$")
    with suppress(Killed):
        our_compaction.apply_here(
            our_compaction.make_plan(table.path), storage=lambda ref: dying(open_storage(ref))
        )
    ours = {file.name for file in list_base_files(table.path, instant).values()}
    (table.path / ".hoodie" / "lock").unlink(missing_ok=True)
    hudi.compact(table, instant)

    assert ours
    assert not ours & {file.name for file in list_base_files(table.path, instant).values()}
    assert_rows_and_listing(hudi, table, rows)
    assert () == our_compaction.make_plan(table.path).tables[0].steps
