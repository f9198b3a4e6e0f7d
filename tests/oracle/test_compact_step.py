"""Compactions that applies plan: the slices and files of real Hudi's, and Hudi after them."""

from __future__ import annotations

import shutil

import pytest

from tests import our_compaction
from tests.applying import apply_here
from tests.compared_compactions import describe_file, describe_indexes, list_base_files
from tests.crash.compaction_drill import Overtaken
from tests.oracle.hudi import keep_commits
from tests.oracle.prepared_tables import (
    KINDS,
    SMALL_FILTERS,
    assert_hudi_goes_on,
    assert_rows_and_listing,
)
from tests.our_compaction import find_timeline
from tests.scheduled_compactions import read_plan
from tests.selection import EVERY_CASE, long

pytestmark = pytest.mark.oracle

MOR = [kind for kind in KINDS if kind.merge_on_read]
#: each version once, with and without partitions and indexes
USUAL = {"0.15.0-mor", "1.0.2-mor-nopart", "1.2.0-mor-indexes"}
BLOCK = "  compaction: {afterDeltaCommits: 1}\n"
READ_OPTIMIZED = {"hoodie.datasource.query.type": "read_optimized"}
INCREMENTAL = {
    "hoodie.datasource.query.type": "incremental",
    "hoodie.datasource.read.begin.instanttime": "0",
}


def compact(path):
    """Plan and apply a compaction, and return its instant."""
    plan = our_compaction.make_plan(path, more=BLOCK)
    result = apply_here(plan)
    (table,) = result.tables
    (outcome,) = table.outcomes
    assert (0, "compact", "completed") == (result.exit_code, outcome.kind, outcome.how), table
    assert ((), ()) == (outcome.warnings, outcome.differences)
    return outcome.instant


def list_operations(path, instant):
    """Return the operations of a compaction's plan, without their order."""
    plan = read_plan((find_timeline(path) / f"{instant}.compaction.requested").read_bytes())
    return sorted(plan["operations"], key=lambda one: (one["partitionPath"], one["fileId"]))


def describe(path, instant):
    """Return plan, files and indexes of a compaction."""
    files = list_base_files(path, instant)
    described = {group: describe_file(file) for group, file in files.items()}
    return list_operations(path, instant), described, describe_indexes(path, instant)


@pytest.mark.parametrize(
    "kind", [kind if str(kind) in USUAL else long(kind) for kind in MOR], ids=str
)
def test_our_compaction_is_hudis_and_hudi_goes_on_after_it(library, tmp_path, kind):
    hudi, table = library.table(kind, tmp_path / "t")
    hudi.write(table, [("a2", "a", 9)], "delete")
    rows = hudi.rows(table)
    hudis = table.at(tmp_path / "hudis")
    shutil.copytree(table.path, hudis.path, copy_function=shutil.copy2)
    scheduled = hudi.schedule(hudis, "COMPACT")
    hudi.compact(hudis, scheduled)

    instant = compact(table.path)

    assert describe(hudis.path, scheduled) == describe(table.path, instant)
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


@pytest.mark.parametrize("version", ["1.2.0", *map(long, ("0.15.0", "1.0.2"))])
def test_real_hudi_executes_a_compaction_that_our_apply_has_only_requested(
    library, tmp_path, version
):
    """Whoever finishes it, every row is there once; what Hudi has finished is not repeated."""
    kind = next(one for one in MOR if one.version == version)
    hudi, table = library.table(kind, tmp_path / "t")
    rows = hudi.rows(table)
    plan = our_compaction.make_plan(table.path, more=BLOCK)
    kept = tmp_path / "kept"
    with pytest.raises(KeyboardInterrupt):
        apply_here(plan, rewriter=CopyBefore(table.path, kept))
    requested = table.at(kept)
    (instant,) = list_pending(kept)
    hudi.compact(requested, instant)

    assert_rows_and_listing(hudi, requested, rows)
    again = our_compaction.make_plan(kept, more=BLOCK)
    assert () == again.tables[0].steps
    assert_rows_and_listing(hudi, table, rows)
    assert [] == list_pending(table.path)


class CopyBefore:
    """Copies a table as it is when the workers begin, and is interrupted."""

    def __init__(self, path, to):
        self.path, self.to = path, to

    def compact(self, *args, **kwargs):
        del args, kwargs
        shutil.copytree(self.path, self.to, copy_function=shutil.copy2)
        (self.to / ".hoodie" / "lock").unlink(missing_ok=True)
        raise KeyboardInterrupt


def list_pending(path):
    names = [file.name for file in find_timeline(path).iterdir()]
    requested = {name.partition(".")[0] for name in names if name.endswith("compaction.requested")}
    done = {name.partition(".")[0].partition("_")[0] for name in names if name.endswith(".commit")}
    return sorted(requested - done)


@pytest.mark.parametrize("version", ["0.15.0", *map(long, ("1.0.2", "1.2.0"))])
def test_rows_that_real_hudi_rolls_back_while_we_compact_do_not_come_back(
    library, tmp_path, version
):
    kind = next(one for one in MOR if one.version == version)
    hudi, table = library.table(kind, tmp_path / "t")
    # 0.15 refuses to roll back a write that the metadata table has compacted
    hudi.write(table, [("a2", "a", 60)])
    rows = hudi.rows(table)
    undone = hudi.write(table, [("a1", "a", 70), ("b1", "b", 70)])
    plan = our_compaction.make_plan(table.path, more=BLOCK)

    result = apply_here(plan, rewriter=Overtaken(lambda: hudi.rollback(table, undone)))

    assert 6 == result.exit_code, result.tables
    assert rows == hudi.rows(table)
    again = apply_here(our_compaction.make_plan(table.path, more=BLOCK))
    assert 0 == again.exit_code, again.tables
    assert_rows_and_listing(hudi, table, rows)


@pytest.mark.parametrize("version", ["1.2.0", *map(long, ("0.15.0", "1.0.2"))])
def test_of_rows_with_equal_keys_a_compaction_merges_each_as_hudis_does(
    real_hudi, tmp_path, version
):
    """Inserts that are not combined bring them. Hudi's compactions leave no row as it was."""
    hudi = real_hudi(version)
    table = hudi.table(
        tmp_path / "t",
        merge_on_read=True,
        options={**SMALL_FILTERS, "hoodie.combine.before.insert": "false"},
    )
    twice = [("k0", "a", 1), ("k0", "a", 2), ("k1", "a", 1), ("k2", "a", 1), ("k2", "a", 1)]
    hudi.write(table, twice, "bulk_insert")
    hudi.write(table, [("k0", "a", 7)])
    hudi.write(table, [("k2", "a", 7)], "delete")
    hudis = table.at(tmp_path / "hudis")
    shutil.copytree(table.path, hudis.path, copy_function=shutil.copy2)
    hudi.compact(hudis, hudi.schedule(hudis, "COMPACT"))

    compact(table.path)

    rows = [["k0", "a", 7, "v7", 7.0], ["k0", "a", 7, "v7", 7.0], ["k1", "a", 1, "v1", 1.0]]
    assert rows == hudi.rows(hudis)
    assert_rows_and_listing(hudi, table, rows)
