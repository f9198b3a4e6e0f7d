"""A compaction that an apply plans is made once, wherever the apply dies or a writer comes."""

from __future__ import annotations

import re

import pytest

from reconciler.plans.compact_step import CompactStep
from reconciler.plans.model import ClusterStep, ResumeStep
from tests.crash.compaction_drill import VERSIONS, Overtaken, die_everywhere, make_compacting
from tests.crash.failed_write_drill import list_unlisted
from tests.our_compaction import find_timeline
from tests.scheduled_compactions import read_plan
from tests.selection import long

BLOCK = "  compaction: {afterDeltaCommits: 1}\n"
#: slices with log files since Hudi's own compaction
SLICES = 2
#: both layouts; 1.0.2 is in the tests with real Hudi
USUAL = ("0.15.0", "1.2.0")
EVERY = [one if one in USUAL else long(one) for one in VERSIONS]


def make(version, folder, **said):
    """A table on which Hudi has run a compaction, and written two log files after it."""
    return make_compacting(version, folder, "done", **{"more": BLOCK, **said})


def list_compactions(it):
    """Return the compactions that came to the timeline after Hudi's, with their states."""
    names = sorted(entry.name for entry in find_timeline(it.table).iterdir())
    found = {name.partition(".")[0] for name in names if ".compaction.requested" in name}
    _hudis, *ours = sorted(found)
    return [
        (one, sorted(re.sub(r"^\d+(_\d+)?", "", name) for name in names if name.startswith(one)))
        for one in ours
    ]


def list_written(it, instant):
    return [p for p in it.table.rglob(f"*_{instant}.parquet") if ".hoodie" not in p.parts]


def find_step(plan, kind=CompactStep):
    return next(step for step in plan.tables[0].steps if isinstance(step, kind))


def assert_compacted_once(it, rows):
    """Assert that one compaction is complete, nothing is left, and rows are as before."""
    ((instant, states),) = list_compactions(it)
    assert rows == it.rows()
    assert [".commit", ".compaction.requested"] == states
    assert SLICES == len(list_written(it, instant))
    assert ([], set()) == (it.list_leftovers(), list_unlisted(it))
    assert () == it.plan().tables[0].steps
    return instant


@pytest.mark.parametrize("version", EVERY)
def test_a_planned_compaction_is_made_and_planned_no_more(tmp_path, version):
    it = make(version, tmp_path)
    rows, plan = it.rows(), it.plan()
    step = find_step(plan)

    result = it.apply(plan)

    (outcome,) = result.tables[0].outcomes
    assert (0, "compact", "completed") == (result.exit_code, outcome.kind, outcome.how)
    instant = assert_compacted_once(it, rows)
    assert (instant, SLICES, SLICES) == (
        outcome.instant,
        outcome.rewritten.slices,
        outcome.rewritten.files_after,
    )
    requested = find_timeline(it.table) / f"{instant}.compaction.requested"
    written = read_plan(requested.read_bytes())
    assert sorted(step.groups.file_id.to_pylist()) == sorted(
        one["fileId"] for one in written["operations"]
    )
    assert plan.digest == written["extraMetadata"]["reconciler.plan.digest"]
    again = it.apply(plan)
    assert (0, SLICES) == (again.exit_code, again.tables[0].outcomes[0].rewritten.gone)


@pytest.mark.parametrize("version", ["1.0.2", *map(long, ("0.15.0", "1.2.0"))])
def test_a_clustering_of_the_same_apply_takes_its_slices_and_the_compaction_the_rest(
    tmp_path, version
):
    sizes = "  files: {target: 120MiB, when: {smallFileShareAbove: 0.9}}\n"
    it = make(version, tmp_path, more=sizes + BLOCK)
    rows, plan = it.rows(), it.plan()
    clustered, compacted = find_step(plan, ClusterStep), find_step(plan)
    assert {"a"} == {*clustered.groups.partition.to_pylist()}
    assert ["b"] == compacted.groups.partition.to_pylist()
    assert ["clustering"] == [one.rule for one in compacted.untouched]

    result = it.apply(plan)

    kinds = [(outcome.kind, outcome.how) for outcome in result.tables[0].outcomes]
    assert (0, [("cluster", "completed"), ("compact", "completed")]) == (result.exit_code, kinds)
    assert rows == it.rows()
    assert ([], set()) == (it.list_leftovers(), list_unlisted(it))


@pytest.mark.parametrize("version", ["1.2.0", *map(long, ("0.15.0", "1.0.2"))])
@pytest.mark.parametrize("how", ["before", long("after")])
def test_wherever_the_apply_stops_the_next_one_finishes_or_repeats_it(tmp_path, version, how):
    it = make(version, tmp_path / "first")
    rows = it.rows()
    stops = die_everywhere(it, tmp_path, how, of=9, turn=len(version), at_least=15)
    for at, copy, result in stops:
        assert 0 == result.exit_code, (at, result.tables)
        copy.apply(copy.plan())
        assert_compacted_once(copy, rows)


@pytest.mark.parametrize("version", EVERY)
def test_what_fails_while_nobody_has_seen_it_is_undone(tmp_path, version):
    it = make(version, tmp_path)
    rows, plan = it.rows(), it.plan()

    result = it.apply(plan, rewriter=Overtaken(lambda: None, fails=True))

    assert 1 == result.exit_code
    assert ([], rows) == (list_compactions(it), it.rows())
    assert ([], set()) == (it.list_leftovers(), list_unlisted(it))
    assert 0 == it.apply(plan).exit_code
    assert_compacted_once(it, rows)


def begin_write(it, instant):
    """Announce a write of another writer."""
    timeline = find_timeline(it.table)
    (timeline / f"{instant}.deltacommit.requested").write_bytes(b"")
    (timeline / f"{instant}.deltacommit.inflight").write_bytes(b"{}")


@pytest.mark.parametrize(("version", "stays"), [("0.15.0", True), ("1.2.0", False)])
def test_in_version_6_a_request_that_a_writer_may_have_seen_stays_and_is_finished(
    tmp_path, version, stays
):
    it = make(version, tmp_path)
    rows, plan = it.rows(), it.plan()
    instant = "20301231000000000"

    result = it.apply(plan, rewriter=Overtaken(lambda: begin_write(it, instant), fails=True))

    assert (1, stays) == (result.exit_code, bool(list_compactions(it)))
    for file in find_timeline(it.table).glob(f"{instant}*"):
        file.unlink()
    if stays:
        step = find_step(it.plan(), ResumeStep)
        assert "was left requested by an earlier apply" in step.because
    assert 0 == it.apply(plan).exit_code
    assert_compacted_once(it, rows)


def test_slices_that_changed_since_the_review_are_left_and_named(tmp_path):
    it = make("1.2.0", tmp_path)
    plan = it.plan()
    step = find_step(plan)
    name = step.groups.logs[0].as_py()[0]
    newest = max(p.name for p in find_timeline(it.table).glob("*.deltacommit"))
    later = f"{int(newest.partition('_')[0]) + 1}"
    partition = step.groups.partition[0].as_py()
    old = it.table / partition / name
    old.with_name(re.sub(r"_\d{17}\.", f"_{later}.", name)).write_bytes(old.read_bytes())
    completed = find_timeline(it.table) / newest
    for suffix in ("deltacommit.requested", "deltacommit.inflight"):
        (completed.parent / f"{later}.{suffix}").write_bytes(b"")
    (completed.parent / f"{later}_{int(later) + 9}.deltacommit").write_bytes(completed.read_bytes())
    it.forget_metadata()

    result = it.apply(plan)

    (outcome,) = result.tables[0].outcomes
    assert (4, 1) == (result.exit_code, outcome.rewritten.slices)
    (left,) = outcome.rewritten.left
    assert "other log files than were reviewed" in left.because


@pytest.mark.parametrize("version", ["0.15.0", long("1.2.0")])
def test_in_version_6_a_write_that_began_since_the_review_holds_the_compaction_back(
    tmp_path, version
):
    it = make(version, tmp_path)
    rows, plan = it.rows(), it.plan()
    begin_write(it, "20261130000000000")

    result = it.apply(plan)

    held = version == "0.15.0"
    assert (4 if held else 0) == result.exit_code
    assert (not held) == bool(list_compactions(it))
    if held:
        (outcome,) = result.tables[0].outcomes
        assert "is pending, and in table version 6" in outcome.rewritten.left[0].because
    assert rows == it.rows()


@pytest.mark.parametrize("damage", ["cut", "flip"])
@pytest.mark.parametrize("version", ["1.2.0", long("0.15.0")])
def test_a_damaged_log_file_leaves_the_table_as_it_was(tmp_path, version, damage):
    it = make(version, tmp_path)
    plan = it.plan()
    groups = find_step(plan).groups
    log = it.table / groups.partition[0].as_py() / groups.logs[0].as_py()[0]
    data = bytearray(log.read_bytes())
    if damage == "cut":
        del data[len(data) // 2 :]
    else:
        data[len(data) // 2] ^= 0xFF
    log.write_bytes(bytes(data))

    result = it.apply(plan)

    assert result.exit_code in (4, 5), result.tables
    (outcome,) = result.tables[0].outcomes
    told = [note.because for note in outcome.warnings]
    told += [left.because for left in outcome.rewritten.left]
    assert any(log.name in text for text in told)
    made = [p for instant, _ in list_compactions(it) for p in list_written(it, instant)]
    assert all(log.parent != path.parent for path in made)
    assert (1 if result.exit_code == 4 else 0) == len(made)
    assert [] == it.list_leftovers()
