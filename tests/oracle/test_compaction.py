"""Compactions that real Hudi left, finished by us, in the hands of real Hudi again."""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import replace

import pytest

from reconciler.runtime import current_process
from reconciler.storage.open import open_storage
from tests import our_compaction
from tests.compared_compactions import (
    describe_commit,
    describe_file,
    describe_indexes,
    list_base_files,
)
from tests.crash.compaction_drill import Overtaken
from tests.crash.drill import Killed
from tests.crash.write_drill import act_after, die_at
from tests.oracle import failed_writes
from tests.oracle.hudi import COMPACT_METADATA, HudiFailedError, keep_commits
from tests.oracle.prepared_tables import (
    KINDS,
    assert_hudi_goes_on,
    assert_reads,
    assert_rows_and_listing,
    find_wrongly_listed,
)
from tests.selection import EVERY_CASE, long

pytestmark = pytest.mark.oracle

MOR = [kind for kind in KINDS if kind.merge_on_read]
#: each version once, with and without partitions and indexes, begun by Hudi or not
USUAL = {"0.15.0-mor-inflight", "1.0.2-mor-nopart-requested", "1.2.0-mor-indexes-inflight"}
PLAIN = [kind for kind in MOR if kind.partitioned and not kind.indexes]
#: when a writer wakes up: while we work, after we died of it, after we died and it is completed
WAKING = ("working", "dead", "completed")
#: 1.2 begins its commit to the metadata table with the compaction, and an apply removes that
GONE = r"(compaction\.inflight|metadata/.*\.deltacommit\.requested) does not exist"
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
    ("kind", "where"),
    [
        pytest.param(kind, where)
        if (str(kind), where) == ("0.15.0-mor", "commit")
        else long(kind, where)
        for kind in PLAIN
        for where in ("commit", "deltacommit")
    ],
    ids=str,
)
def test_real_hudi_executes_a_compaction_that_our_apply_died_of(library, tmp_path, kind, where):
    """Our files are there; once the metadata table's commit is there, the markers are gone.

    By the markers Hudi removes our files, without them the next apply does.
    """
    hudi, table = library.table(kind, tmp_path / "t")
    instant = schedule(hudi, table)
    rows = hudi.rows(table)
    our_compaction.make_old(table.path, instant)
    dying, dead = die_at(rf"/[\d_]+\.{where}$"), replace(current_process(), started="before")
    with suppress(Killed):
        our_compaction.apply_here(
            our_compaction.make_plan(table.path),
            storage=lambda ref: dying(open_storage(ref)),
            process=dead,
        )
    ours = {file.name for file in list_base_files(table.path, instant).values()}
    assert ours
    assert (where == "commit") != (table.path / ".hoodie/.temp" / instant).exists()
    (table.path / ".hoodie" / "lock").unlink(missing_ok=True)
    hudi.compact(table, instant)
    assert rows == hudi.rows(table)
    plan = our_compaction.make_plan(table.path)
    assert () == plan.tables[0].steps
    if where == "commit":
        assert 0 == our_compaction.apply_here(plan).exit_code

    assert not ours & {path.name for path in table.path.rglob(f"*_{instant}.parquet")}
    assert_rows_and_listing(hudi, table, rows)


def die():
    raise Killed


def apply_and_wake(hudi, table, instant, when):
    """Apply a plan; the writer of the compaction wakes up, and completes nothing."""

    def wake():
        with pytest.raises(HudiFailedError, match=GONE):
            hudi.complete_compaction(instant)

    plan, dying = our_compaction.make_plan(table.path), act_after(r"/[\d_]+\.commit$", die)
    if when == "working":
        assert 6 == our_compaction.apply_here(plan, rewriter=Overtaken(wake)).exit_code
        return
    more = {"rewriter": Overtaken(die)}
    if when == "completed":
        more = {"storage": lambda ref: dying(open_storage(ref))}
    with pytest.raises(Killed):
        our_compaction.apply_here(plan, **more)
    wake()


@pytest.mark.parametrize(
    ("kind", "when"),
    [
        pytest.param(kind, when)
        if (kind.version, when) == ("1.2.0", "completed")
        else long(kind, when)
        for kind in PLAIN
        for when in WAKING
    ],
    ids=str,
)
def test_a_compactor_of_real_hudi_that_wakes_up_completes_nothing(library, tmp_path, kind, when):
    hudi, table = library.table(kind, tmp_path / "t")
    instant = schedule(hudi, table)
    rows = hudi.rows(table)
    hudi.begin_compaction(table, instant)
    theirs = {file.name for file in list_base_files(table.path, instant).values()}
    our_compaction.make_old(table.path, instant)
    apply_and_wake(hudi, table, instant, when)
    # Hudi has written its own files to the metadata table before it looks at the timeline
    assert ("completed" == when) == bool(find_wrongly_listed(hudi, table))
    more, kind_of_step = (
        (our_compaction.REPAIR, "metadata") if when == "completed" else ("", "resume")
    )
    plan = our_compaction.make_plan(table.path, more=more)
    result = our_compaction.apply_here(plan)

    assert (0, [kind_of_step]) == (result.exit_code, [step.kind for step in plan.tables[0].steps])
    ours = {file.name for file in list_base_files(table.path, instant).values()}
    done = [name for name in table.instants(".commit") if name.startswith(instant)]
    assert (2, 2, set(), 1) == (len(theirs), len(ours), ours & theirs, len(done))
    assert f"{instant}.compaction.inflight" not in table.instants()
    assert_rows_and_listing(hudi, table, rows)
    if EVERY_CASE:
        assert_hudi_goes_on(hudi, table, rows, merge_on_read=True)


@pytest.mark.parametrize("kind", [long(kind) for kind in PLAIN], ids=str)
def test_real_hudi_cannot_execute_it_once_more(library, tmp_path, kind):
    hudi, table = library.table(kind, tmp_path / "t")
    instant = schedule(hudi, table)
    rows = hudi.rows(table)
    our_compaction.finish(table.path, instant)
    with pytest.raises(HudiFailedError):
        hudi.compact(table, instant)

    assert_rows_and_listing(hudi, table, rows)
    assert_hudi_goes_on(hudi, table, rows, merge_on_read=True)


@pytest.mark.parametrize("kind", [long(kind) for kind in PLAIN], ids=str)
def test_real_hudi_takes_it_back_by_a_restore(library, tmp_path, kind):
    hudi, table = library.table(kind, tmp_path / "t")
    hudi.write(table, [("a1", "a", 40)], options=COMPACT_METADATA)  # else Hudi refuses the restore
    pinned = hudi.write(table, [("a1", "a", 41)])
    rows = hudi.rows(table)
    hudi.savepoint(table, pinned)
    instant = hudi.schedule(table, "COMPACT")
    assert instant
    our_compaction.finish(table.path, instant)
    hudi.write(table, [("a1", "a", 60)])
    hudi.restore(table, pinned)

    assert_reads(hudi, table, rows)
    assert_hudi_goes_on(hudi, table, rows, merge_on_read=True)
