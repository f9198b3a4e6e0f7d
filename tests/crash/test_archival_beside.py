"""What changes between the review of an archival and its apply, and what others have left."""

from __future__ import annotations

import json
import os

import pytest

from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.timeline.instant import COMMITS
from reconciler.plans.document import dump_plan, load_plan
from tests.crash.archival_drill import USUAL, make_drill
from tests.crash.drill import NOW
from tests.selection import long

DAY_S = 24 * 3600


@pytest.fixture(params=[long(USUAL[0]), USUAL[1]])
def it(tmp_path, request):
    return make_drill(request.param, tmp_path / "it")


def get_step(plan):
    (step,) = plan.tables[0].steps
    return step


def find_folder(it):
    return it.table / load_properties(it.storage).timeline_folder


def list_commits(it):
    timeline = load_timeline(it.storage, load_properties(it.storage))
    return [one for one in timeline.instants if one.action in COMMITS and one.is_completed]


def set_age(path, seconds):
    moment = NOW.timestamp() - seconds
    os.utime(path, (moment, moment))


def test_a_savepoint_after_the_review_keeps_its_commit_and_later_ones(it):
    plan = it.plan()
    named = [one for one in get_step(plan).instants if one.action in COMMITS]
    (find_folder(it) / f"{named[1].instant}.savepoint.inflight").write_bytes(b"")
    (told,) = it.apply(plan).tables
    (outcome,) = told.outcomes

    assert 4 == told.exit_code
    assert [named[1].instant] == [one.requested for one in list_commits(it)][:1]
    assert {one.instant for one in named[1:]} <= {one.instant for one in outcome.archived.left}


def test_a_commit_before_reviewed_ones_leaves_no_hole(it):
    plan = it.plan()
    first, second, *_ = list_commits(it)
    late = str(int(first.requested) + 1)
    folder = find_folder(it)
    for path in [*folder.glob(f"{first.requested}*")]:
        copy = path.name.replace(first.requested, late, 1)
        if load_properties(it.storage).layout == 2:
            copy = copy.replace(str(first.completed), str(int(first.completed) + 1))
        (folder / copy).write_bytes(path.read_bytes())
    (told,) = it.apply(plan).tables
    left = [one.requested for one in list_commits(it)]

    assert 4 == told.exit_code
    assert [late, second.requested] == left[:2]
    assert "hole" in told.outcomes[0].archived.left[0].because


def test_a_pending_write_refuses_an_archival_without_a_lock(tmp_path):
    it = make_drill(USUAL[0], tmp_path / "it", lock="none")
    plan = it.plan()
    before = it.active()
    (find_folder(it) / "20261130000000000.commit.requested").write_bytes(b"")
    (told,) = it.apply(plan).tables

    assert (3, ["lock"]) == (told.exit_code, [note.rule for note in told.refusals])
    assert before[0] <= it.active()[0]


def test_leftovers_of_others_go_once_they_are_a_day_old(it):
    hoodie = it.table / ".hoodie"
    done = list_commits(it)[-1].requested
    (hoodie / ".heartbeat").mkdir(exist_ok=True)
    for name, age in (("20250101000000000", 2 * DAY_S), ("20250101000000001", 60)):
        (hoodie / ".heartbeat" / name).write_bytes(b"")
        set_age(hoodie / ".heartbeat" / name, age)
    markers = hoodie / ".temp" / done / "a"
    markers.mkdir(parents=True)
    (markers / "x.parquet.marker.CREATE").write_bytes(b"")
    for path in (markers / "x.parquet.marker.CREATE", markers, markers.parent):
        set_age(path, 2 * DAY_S)
    plan = it.plan()
    paths = [one.path for one in get_step(plan).leftovers]
    (told,) = it.apply(plan).tables

    assert [".hoodie/.heartbeat/20250101000000000", f".hoodie/.temp/{done}"] == paths
    assert (0, 2) == (told.exit_code, told.outcomes[0].archived.leftovers)
    assert ["20250101000000001"] == [path.name for path in (hoodie / ".heartbeat").iterdir()]
    assert not (hoodie / ".temp" / done).exists()


def test_a_leftover_that_is_used_again_stays(it):
    hoodie = it.table / ".hoodie"
    (hoodie / ".heartbeat").mkdir(exist_ok=True)
    beat = hoodie / ".heartbeat" / "20250101000000000"
    beat.write_bytes(b"")
    set_age(beat, 2 * DAY_S)
    plan = it.plan()
    set_age(beat, 0)
    (told,) = it.apply(plan).tables

    assert 0 == told.exit_code
    assert beat.exists()


def test_a_damaged_instant_is_named_and_nothing_is_archived(it):
    plan, archived = it.plan(), it.archived()
    first = get_step(plan).instants[0].instant
    (file,) = (path for path in find_folder(it).glob(f"{first}*commit") if "." in path.name)
    time = file.stat().st_mtime
    file.write_bytes(file.read_bytes()[:100])
    os.utime(file, (time, time))  # version 6 takes it for the time of completion
    (told,) = it.apply(plan).tables

    assert 1 == told.exit_code
    assert file.name in told.error
    assert archived[0] == it.archived()[0]
    assert file.exists()


def test_a_plan_names_every_instant_and_no_other_path(it):
    plan = it.plan()
    document = json.loads(dump_plan(plan))
    (step,) = document["tables"][0]["steps"]

    assert {"archive"} == {step["kind"]}
    assert step["instants"] == [
        {"instant": one.instant, "action": one.action} for one in get_step(plan).instants
    ]
    assert get_step(plan) == get_step(load_plan(dump_plan(plan), "x"))


def test_files_of_an_unknown_instant_hold_the_timeline_where_they_are(it):
    first, second, third, *_ = list_commits(it)
    time = str(int(second.requested) + 1)
    (it.table / "a" / f"orphan-0_0-1-1_{time}.parquet").write_bytes(b"")
    plan = it.plan()
    step, (warning,) = get_step(plan), plan.tables[0].warnings
    it.apply(plan)

    assert ("unknownFiles", second.requested) == (step.bound.rule, step.bound.instant)
    assert f"files of {time}" in warning.because
    assert [second, third] == list_commits(it)[:2]
    assert first not in list_commits(it)


def test_the_newest_clean_is_read_from_its_metadata_if_its_plan_is_damaged(tmp_path):
    it = make_drill(USUAL[0], tmp_path / "it")
    steps = it.plan().tables[0].steps
    cleans = sorted(find_folder(it).glob("*.clean.requested"))
    cleans[-1].write_bytes(b"")

    assert steps == it.plan().tables[0].steps


def test_an_unreadable_newest_clean_holds_everything(tmp_path):
    it = make_drill(USUAL[0], tmp_path / "it")
    for path in find_folder(it).glob("*.clean*"):
        path.write_bytes(b"")
    (table,) = it.plan().tables

    assert table.error is None
    assert [()] == [step.instants for step in table.steps]
    assert "nothing tells what clean" in table.warnings[0].because
