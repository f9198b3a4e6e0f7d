"""Answers about tables of real Hudi agree with the plan, for every file, instant and partition."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import reconciler
from reconciler.hudi.load import load_archived_instants, load_properties
from reconciler.hudi.timeline.instant import COMMITS, Action, Instant, State
from reconciler.planners.answers.planned_table import PlannedTable
from reconciler.planners.answers.search import search_name
from reconciler.planners.clean.explanations import LOGS_OF_LATER_SLICES
from reconciler.planners.clean.planner import find_logs_of_later_slices
from reconciler.planners.compose import plan_table
from reconciler.plans.model import Note
from reconciler.plans.step_items import list_items
from reconciler.status.answers import explain_name
from reconciler.storage.open import open_storage
from tests.selection import long
from tests.trees import unpack
from tests.unit.planners import cow
from tests.unit.planners.cow import stamp

CASES = Path(__file__).parents[1] / "cases" / "clean"
COVERING = (
    "cow_basic__1.2.0",
    "cow_savepoint__0.15.0",
    "cow_pending_clustering__1.0.2",
    "cow_inflight_middle__1.0.2",
    "mor_pending_compaction__1.1.1",
    "cow_pending_clean__1.1.1",
    "cow_delete_partition__1.2.0",
)
OTHERS = sorted(path.name for path in CASES.iterdir() if path.name not in COVERING)
NOW = datetime(2026, 11, 22, tzinfo=UTC)
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: table
  timezone: {zone}
  retention: {{{retention}}}
  concurrency: {{lock: {{provider: filesystem, path: .hoodie}}}}
{more}"""
POLICY = """\
apiVersion: reconciler/v1
kind: Policy
metadata: {name: careful}
spec: {maxFilesRemoved: 0}
"""


def planned(folder, scenario, retention="commits: 2", more="", zone="UTC", policy=""):
    unpack(CASES / scenario / "table.zip", folder / "table", hollow=True)
    text = SPEC.format(retention=retention, more=more, zone=zone)
    (folder / "t.yaml").write_text(text)
    if policy:
        (folder / "policy.yaml").write_text(policy)
    [spec] = reconciler.load_specs(folder)
    state = reconciler.observe(spec, now=NOW)
    return PlannedTable(spec, state, plan_table(spec, state, NOW), NOW)


def ask(table, name, archived=()):
    return search_name(table, name, lambda: archived)


def paths_of(table, *kinds):
    items = [list_items(step) for step in table.plan.steps if step.kind in kinds]
    return {path for listed in items if listed.noun == "file" for path in listed.path.to_pylist()}


@pytest.mark.parametrize("scenario", [*COVERING, *map(long, OTHERS)])
def test_every_answer_agrees_with_the_plan(scenario, tmp_path):
    table = planned(tmp_path, scenario)
    going = paths_of(table, "clean", "resume", "orphans", "rollback")
    kept = set(list_items(table.plan.kept).path.to_pylist())
    view = table.view
    for row in range(len(table.state.files)):
        path, _ = table.state.files.locate_file(row)
        [answer] = [one for one in ask(table, path).answers if one.kind == "file"]
        place = view.row_slice[row]

        assert path == answer.name
        assert ("goes" == answer.verdict) == (path in going), answer
        assert ("kept" == answer.verdict) == (path in kept - going), answer
        if answer.verdict == "newest":
            assert view.is_newest[place]
        assert answer.facts
    for instant in table.state.timeline.instants:
        answers = ask(table, instant.requested).answers

        assert f"{instant.requested}.{instant.action}" in {one.name for one in answers}
    for partition in table.state.partitions:
        [answer] = [one for one in ask(table, partition or ".").answers if one.kind == "partition"]

        assert partition or answer.name == "."


def facts(table, name):
    [answer] = ask(table, name).answers
    return answer, {fact.about: fact.because for fact in answer.facts}


def test_a_file_that_goes_has_the_whole_chain(tmp_path):
    table = planned(tmp_path, "cow_basic__1.2.0")
    name = "290ec5d7-b9a4-4437-a535-30a3a27c0604-0_0-13-10_20261121044032551.parquet"
    answer, about = facts(table, name)

    assert ("goes", f"a/{name}") == (answer.verdict, answer.name)
    assert {
        "file": "a base file of 424.5 KiB",
        "write": "commit 20261121044032551 of its name is completed",
        "group": "file group 290ec5d7-b9a4-4437-a535-30a3a27c0604-0 has 6 file slices",
        "slice": "file slice 20261121044032551 is superseded by 20261121044052550",
        "retention": "the slice is past it",
        "clean": "superseded by 20261121044052550, which is itself older than the earliest "
        "instant to retain 20261121044107655 (2 commits)",
    } == about


def test_a_file_that_a_savepoint_pins_names_it(tmp_path):
    table = planned(tmp_path, "cow_savepoint__0.15.0")
    [savepoint] = table.state.savepoints
    kept = list_items(table.plan.kept).path.to_pylist()

    assert kept
    for path in kept:
        answer, about = facts(table, path)
        assert "kept" == answer.verdict
        assert f"savepoint {savepoint.instant} pins its file slice" == about["savepoint"]


def test_a_file_of_a_pending_clustering_names_it(tmp_path):
    table = planned(tmp_path, "cow_pending_clustering__1.0.2", "commits: 1")
    [instant] = {one.instant for one in table.state.clusterings}
    slices = {one.base_file for one in table.state.clusterings}
    _, about = facts(table, min(slices))

    assert f"pending clustering {instant} reads its file slice" == about["pendingClustering"]


def test_a_file_that_a_clean_removed_names_the_clean(tmp_path):
    table = planned(tmp_path, "cow_delete_partition_then_clean_again__1.2.0")
    clean = next(clean for clean in table.state.cleans if any(clean.removed.values()))
    partition, names = next(item for item in clean.removed.items() if item[1])
    answer, about = facts(table, names[0])

    assert ("removed", f"{partition}/{names[0]}") == (answer.verdict, answer.name)
    assert about["clean"].startswith(f"clean {clean.instant} removed it by KEEP_LATEST_")


def test_an_instant_says_what_keeps_it_active(tmp_path):
    table = planned(tmp_path, "cow_basic__1.2.0", more="  timeline: {keep: 4..5}\n")
    first, last = table.state.timeline.commits[0], table.state.timeline.commits[-1]
    gone, _ = facts(table, first.requested)
    stays, about = facts(table, last.requested)

    assert ("goes", "active") == (gone.verdict, stays.verdict)
    assert "timeline.keep is 4..5, and 6 commits are active" == about["timeline"]
    assert "a read as of it works, also after the plan" == about["reads"]


def test_an_archived_instant_is_looked_for_only_if_none_is_active(tmp_path):
    table = planned(tmp_path, "cow_basic__1.2.0")
    first = table.state.timeline.commits[0]

    def fail():
        raise AssertionError

    assert search_name(table, first.requested, fail).answers
    assert search_name(table, "a", fail).answers
    [answer] = ask(table, "0", [type(first)("0", first.action, first.state)]).answers
    assert ("archived", "0.commit") == (answer.verdict, answer.name)


def test_an_archived_instant_has_the_name_of_its_file_too(tmp_path):
    table = planned(tmp_path, "cow_archived__1.2.0")
    storage = open_storage(table.spec.path)
    archived = list(load_archived_instants(storage, load_properties(storage)))
    first = next(one for one in archived if one.action in COMMITS)
    names = (
        f"{first.requested}.{first.action}",
        f".hoodie/timeline/{first.requested}_{first.completed}.{first.action}",
        f".hoodie/timeline/{first.requested}.{first.action}.requested",
    )

    for name in names:
        [answer] = ask(table, name, archived).answers
        assert ("archived", f"{first.requested}.{first.action}") == (answer.verdict, answer.name)


def test_an_instant_of_the_metadata_table_is_not_one_of_the_table(tmp_path):
    table = planned(tmp_path, "cow_basic__1.2.0")
    time = table.state.timeline.commits[0].requested

    assert ask(table, f".hoodie/timeline/{time}.commit").answers
    assert () == ask(table, f".hoodie/metadata/.hoodie/timeline/{time}.deltacommit").answers


def test_a_write_before_a_gap_of_reads_says_so(tmp_path):
    table = planned(tmp_path, "cow_savepoint__0.15.0", "commits: 1")
    [savepoint] = table.state.savepoints
    readable = table.readable
    gone = [time for time, (_, is_left) in readable.items() if not is_left]
    assert any(time > savepoint.instant for time in gone)

    for time, (before, after) in readable.items():
        [about] = [
            fact.because
            for answer in ask(table, time).answers
            for fact in answer.facts
            if fact.about == "reads"
        ]
        assert after == ("also after the plan" in about)
        assert before != ("no read as of it works" in about)


def test_what_a_policy_refuses_stays(tmp_path):
    table = planned(tmp_path, "cow_delete_partition__1.2.0", "commits: 1", policy=POLICY)
    going = paths_of(table, "clean")
    folders = {path for step in table.plan.steps for path in step.delete_partitions}

    assert going
    assert folders
    for path in going:
        answer, about = facts(table, path)
        assert "refused" == answer.verdict
        assert answer.summary.startswith("stays: step clean is refused: policy careful")
        assert about["refusal"].endswith("[maxFilesRemoved]")
    for path in folders:
        answer, about = facts(table, path)
        assert ("stays", True) == (answer.verdict, "refusal" in about)


def test_logs_that_hudi_1x_reads_with_a_later_slice_say_so(tmp_path):
    table = planned(tmp_path, "mor_timeline_touched__1.2.0_v6", "commits: 1", "  compaction: {}\n")
    is_later = find_logs_of_later_slices(table.view, table.clean.expired)
    rows = np.flatnonzero(is_later).tolist()

    assert rows
    for row in rows:
        answer, about = facts(table, table.state.files.locate_file(row)[0])
        assert f"stays: {LOGS_OF_LATER_SLICES}" == answer.summary
        assert LOGS_OF_LATER_SLICES == about["completionTimes"]


def test_no_clean_is_due_names_the_trigger_and_not_another_block(tmp_path):
    retention = "commits: 1, afterCommits: 99"
    table = planned(tmp_path, "mor_compacted__1.2.0", retention, "  compaction: {}\n")
    past = table.clean.expired.by_policy[table.view.row_slice]
    answers = [
        ask(table, table.state.files.locate_file(row)[0]).answers[0]
        for row in np.flatnonzero(past).tolist()
    ]

    assert {"retained"} == {answer.verdict for answer in answers}
    assert all("(retention.afterCommits: 99)" in answer.summary for answer in answers)


def test_a_slice_that_ended_too_late_says_when(tmp_path):
    spec = replace(planned(tmp_path, "cow_basic__1.2.0").spec, path="/t")
    swap = Instant(stamp(4), Action.REPLACECOMMIT, State.COMPLETED, stamp(5))
    names = {"a": [cow.base("g", 0), *(cow.base("h", hour) for hour in (1, 2, 3))]}
    writes = [*map(cow.commit, range(4)), swap]
    state = cow.table(names, writes, replaced={("a", "g"): stamp(4)})
    table = PlannedTable(spec, state, plan_table(spec, state, NOW), NOW)
    why = f"its file group was replaced at {stamp(4)}, which is not before {stamp(3)}"
    answer, about = facts(table, cow.base("g", 0))

    assert stamp(3) == table.clean.expired.earliest
    assert f"{why}: the slice is not past it" == about["retention"]
    assert f"stays: it is not past the retention of 2 commits: {why}" == answer.summary
    answer, about = facts(table, cow.base("h", 2))
    assert f"it was superseded at {stamp(3)}, which is not before {stamp(3)}" in answer.summary


def test_a_partition_names_its_oldest_files_of_other_slices(tmp_path):
    table = planned(tmp_path, "cow_basic__1.2.0")
    named = [fact.because for fact in ask(table, "a").answers[0].facts if fact.about == "files"]
    files = sorted(name for name in table.state.files.name.to_pylist() if name in named)

    assert named[2:] == ["5 files (2.1 MiB) of other slices:", *files]
    assert 5 == len(files)


def test_of_many_files_of_other_slices_ten_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr("reconciler.planners.answers.partition_facts._MAX_NAMED", 2)
    [answer] = ask(planned(tmp_path, "cow_basic__1.2.0"), "a").answers
    named = [fact.because for fact in answer.facts if fact.about == "files"]

    assert 6 == len(named)
    assert "and 3 more files" == named[-1]


def test_a_note_that_names_an_instant_is_no_warning(tmp_path):
    table = planned(tmp_path, "cow_basic__1.2.0")
    instant = table.state.timeline.commits[-1].requested
    idle = Note("nothingToDo", f"no clustering: no commits since {instant}")
    table = replace(table, plan=replace(table.plan, warnings=(idle,)))
    _, about = facts(table, instant)

    assert f"{idle.because} [nothingToDo]" == about["note"]
    assert "warning" not in about


def test_both_schemes_of_s3_name_one_path(tmp_path):
    table = planned(tmp_path, "cow_basic__1.2.0")
    path, _ = table.state.files.locate_file(0)
    spec = replace(table.spec, path="s3://lake/t")

    def name_answers(url):
        found = explain_name(spec, table.state, NOW, url, open_storage)
        return [answer.name for answer in found.answers]

    for url in (f"s3a://lake/t/{path}", f"S3://lake//t/{path}"):
        assert [path] == name_answers(url)
    assert [] == name_answers(f"s3a://pond/t/{path}")


def test_a_misspelt_name_has_near_names(tmp_path):
    table = planned(tmp_path, "cow_basic__1.2.0")
    time = table.state.timeline.commits[0].requested
    found = ask(table, f"{time[:-1]}9")
    file = ask(table, "290ec5d7-b9a4-4437-a535-30a3a27c0604-0_0-13-10_20261121044032559.parquet")

    assert ((), True) == (found.answers, time in found.near)
    assert [time[:8]] * 3 == [name[:8] for name in ask(table, time[:8]).near]
    assert "a/290ec5d7-b9a4-4437-a535-30a3a27c0604-0_0-13-10_20261121044032551.parquet" in file.near


def test_a_path_may_begin_with_the_location_of_the_table(tmp_path):
    table = planned(tmp_path, "cow_basic__1.2.0")
    path, _ = table.state.files.locate_file(0)

    for name in (path, f"./{path}", f"{table.spec.path}/{path}"):
        assert [path] == [answer.name for answer in ask(table, name).answers]
    assert () == ask(table, f"nowhere/{path}").answers


def test_a_refused_plan_is_part_of_the_answer(tmp_path):
    table = planned(tmp_path, "cow_basic__1.2.0", "hours: 1", zone="Asia/Kolkata")
    answer, about = facts(table, table.state.files.locate_file(0)[0])

    assert table.plan.is_blocked
    assert "retained" == answer.verdict
    assert "refusal" in about
