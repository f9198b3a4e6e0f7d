"""Compactions of ours leave what Hudi's leave of the same plan, field by field."""

from __future__ import annotations

import io
from uuid import uuid4

import fastavro
import pytest

from reconciler.planners.recovery.held_back import measure_held_back
from reconciler.plans.document import dump_plan, load_plan
from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.render.plan_markdown import plan_markdown
from tests.compared_compactions import (
    describe_commit,
    describe_file,
    describe_indexes,
    list_base_files,
)
from tests.crash.clustering_drill import make_drill_of
from tests.crash.compaction_drill import (
    VERSIONS,
    CompactionDrill,
    make_compacting,
    request_compaction,
)
from tests.crash.failed_write_drill import TABLES
from tests.our_compaction import find_timeline
from tests.selection import long

#: Hudi 1.0.2 counts rows whose event time is later than the log record's as updated; other versions
#: and we do not. Hudi 1.2.0 has a size of blocks in place of that of log files.
_DIFFERENT = {"0.15.0": "", "1.0.2": "numUpdateWrites", "1.2.0": "totalLogSizeCompacted"}


def finish(it):
    result = it.apply(it.plan())
    assert 0 == result.exit_code, result.tables
    return it


def without(commit, field):
    """Return the commit without a field of its write statistics."""
    stats = {
        partition: {
            group: {name: value for name, value in stat.items() if name != field}
            for group, stat in groups.items()
        }
        for partition, groups in commit["partitionToWriteStats"].items()
    }
    return {**commit, "partitionToWriteStats": stats}


@pytest.mark.parametrize("version", VERSIONS)
def test_commit_files_and_indexes_equal_hudis(tmp_path, version):
    ours = finish(make_compacting(version, tmp_path / "ours")).table
    hudis = make_compacting(version, tmp_path / "hudis", "done")
    theirs, instant = hudis.table, hudis.instant

    differs = _DIFFERENT[version]
    commits = [without(describe_commit(table, instant), differs) for table in (theirs, ours)]
    assert commits[0] == commits[1]
    files = [list_base_files(table, instant) for table in (theirs, ours)]
    assert files[0].keys() == files[1].keys()
    for group in files[0]:
        assert describe_file(files[0][group]) == describe_file(files[1][group]), group
    assert describe_indexes(theirs, instant) == describe_indexes(ours, instant)


@pytest.mark.parametrize("version", ["v8", long("v6")])
def test_a_plan_beside_a_write_that_began_before_it_equals_hudis(tmp_path, version):
    """The slice of version 8 has only log files, of which a later one is not in the plan."""
    drill = make_drill_of(CompactionDrill, TABLES / f"{version}_mor_overlap.zip", tmp_path / "a")
    rows = drill.rows()
    finish(drill)
    done = make_drill_of(
        CompactionDrill, TABLES / f"{version}_mor_overlap_done.zip", tmp_path / "b"
    )

    assert rows == drill.rows()
    instant = drill.instant
    assert describe_commit(done.table, instant) == describe_commit(drill.table, instant)
    (theirs,), (ours,) = (list_base_files(it.table, instant).values() for it in (done, drill))
    described = [describe_file(file) for file in (theirs, ours)]
    assert described[0]["rows"] == described[1]["rows"]
    assert described[0]["columns"] == described[1]["columns"]


MERGING = sorted(path.stem for path in (TABLES / "merging").glob("*.zip"))
#: evolved schemas, event times, compacted log blocks
USUAL = ("evol_0.15.0", "event_1.2.0")


@pytest.mark.parametrize("name", [one if one in USUAL else long(one) for one in MERGING])
def test_merged_rows_of_every_kind_stay_the_same(tmp_path, name):
    it = make_drill_of(CompactionDrill, TABLES / "merging" / f"{name}.zip", tmp_path / "t")
    before = it.rows()
    request_compaction(it, "20261130000000000")

    finish(it)

    assert before == it.rows()
    slices = open_scan(it.storage, ReadRequest()).slices
    assert not any(slices.column("logs").to_pylist())
    assert it.list_written()


def test_partial_updates_are_refused_by_name_and_the_plan_stays(tmp_path):
    it = make_drill_of(CompactionDrill, TABLES / "v8_mor_partial.zip", tmp_path / "t")
    request_compaction(it, "20261130000000000")

    result = it.apply(it.plan())

    (outcome,) = result.tables[0].outcomes
    (warning,) = outcome.warnings
    assert (5, "failed") == (result.exit_code, outcome.how)
    assert "is a partial update, which is not supported" in warning.because
    assert ([".compaction.requested"], [], []) == (
        it.list_states(),
        it.list_written(),
        it.list_leftovers(),
    )


def test_ranges_that_hudi_had_left_too_narrow_are_no_fault_of_an_apply(tmp_path):
    """Hudi 1.0.2 computes partition_stats of log files without their pending compaction's base."""
    more = "  metadata: {verify: each-apply, repair: report}\n"
    it = make_compacting("1.0.2", tmp_path / "t", more=more)
    plan = it.plan()
    assert any("partition_stats" in note.because for note in plan.tables[0].warnings)

    result = it.apply(plan)

    _, verified = result.tables[0].outcomes
    assert (0, ()) == (result.exit_code, verified.differences)


@pytest.mark.parametrize("decoded", [False, True])
def test_a_plan_that_was_changed_after_the_review_is_not_executed(tmp_path, decoded):
    it = make_compacting("1.2.0", tmp_path / "t")
    (requested,) = find_timeline(it.table).glob("*.compaction.requested")
    whole = requested.read_bytes()
    write_operations(requested, lambda operations: operations[:1])
    plan = it.plan()
    plan = load_plan(dump_plan(plan), "plan.json") if decoded else plan
    requested.write_bytes(whole)

    result = it.apply(plan)

    assert 6 == result.exit_code
    assert "compacts other files now than those that were reviewed" in result.tables[0].error
    assert ([".compaction.requested"], []) == (it.list_states(), it.list_written())


def write_operations(requested, change):
    """Change the operations of a compaction plan on the timeline."""
    reader = fastavro.reader(io.BytesIO(requested.read_bytes()))
    (plan,) = reader
    data = io.BytesIO()
    fastavro.writer(
        data, reader.writer_schema, [{**plan, "operations": change(plan["operations"])}]
    )
    requested.write_bytes(data.getvalue())


def test_a_compaction_holds_back_the_files_that_it_reads(tmp_path):
    it = make_compacting("1.2.0", tmp_path / "t")
    (step,) = it.plan().tables[0].steps
    logs = step.groups.logs.to_pylist()
    read = [
        *filter(None, step.groups.base.to_pylist()),
        *(name for names in logs for name in names),
    ]

    held = measure_held_back(it.instant, it.state(), None)

    assert (len(logs), len(read)) == (held.groups, held.files) == (3, 9)


def test_a_compaction_that_the_plan_finishes_needs_nobody_else_and_skips_no_group(tmp_path):
    it = make_compacting("1.2.0", tmp_path / "t", commits="1")
    plan = it.plan()
    (note,) = [note for note in plan.tables[0].warnings if note.rule == "pendingWrite"]

    assert f"pending compaction {it.instant} limits the earliest instant" in note.because
    assert note.because.endswith(": a step of this plan ends it, and the next plan cleans further")
    page = plan_markdown(plan)
    assert "Nothing is removed or rewritten that this plan does not name." in page
    assert "its group is skipped" not in page


def test_what_a_compactor_has_written_so_far_is_no_damaged_file(tmp_path):
    more = "  clustering: {columns: [ts], when: {overlapAbove: 1}}\n"
    it = make_compacting("1.2.0", tmp_path / "t", pending="{compaction: report}", more=more)
    for group in it.state().pending_compactions[0].operations:
        new = it.table / group.partition / f"{group.file_id}_9-9-9_{it.instant}.parquet"
        new.write_bytes(b"PAR1")
        (new.parent / f"{uuid4()}-0_9-9-8_{group.base_instant}.parquet").write_bytes(b"")
    (table,) = it.plan().tables

    (note,) = [note.because for note in table.warnings if note.rule == "damagedFile"]
    assert it.instant not in note
    assert "_9-9-8_" in note
