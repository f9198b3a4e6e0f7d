"""Other writers come between the announcement of a clustering and its end."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from reconciler.executor.result import ApplyResult, StepOutcome
from reconciler.hudi.codecs import avro_container
from reconciler.hudi.codecs.avro_binary import load_schema_text
from reconciler.hudi.timeline.commit import WriteFootprint
from reconciler.hudi.timeline.plans import ClusteringPlan
from reconciler.hudi.timeline.write_commit import WriteCommit
from reconciler.transaction.instants import format_instant, parse_instant_ms
from tests.crash.clustering_drill import (
    OURS,
    ClusteringDrill,
    list_leftovers,
    make_clustering_drill,
)
from tests.crash.drill import Killed, TestClock, list_data_files, list_unlisted
from tests.crash.test_moves import Hook, age, put, timeline_folder
from tests.storage_wrappers import FaultyStorage, StorageFault

TABLES = Path(__file__).parents[1] / "tables"
#: an instant after every one of ours, and when it ends; no clock is wrong by so little
TIME, END = "20261201000100000", "20261201000100009"


@pytest.fixture(params=["v6_keygen", "v9_keygen"])
def it(request, tmp_path) -> ClusteringDrill:
    """Three partitions with a group each, nothing pending."""
    return make_clustering_drill(TABLES / f"{request.param}.zip", tmp_path / "t")


def is_old(it: ClusteringDrill) -> bool:
    return timeline_folder(it).name == ".hoodie"


def base_of(it: ClusteringDrill, partition: str) -> str:
    """The name of the base file of the only group that a partition had before us."""
    names = [path.stem for path in (it.table / partition).glob("*.parquet")]
    return max(name for name in names if name.rpartition("_")[2] < OURS) + ".parquet"


def commit(it: ClusteringDrill, stats, *, done: bool, time: str = TIME) -> None:
    """A commit with these write statistics, pending or completed."""
    record = {"partitionToWriteStats": stats, "operationType": "UPSERT", "extraMetadata": {}}
    data = (
        json.dumps(record).encode()
        if is_old(it)
        else avro_container.encode_container(COMMIT, record)
    )
    put(it, f"{time}.commit.requested")
    put(it, f"{time}.inflight", data)
    if done:
        put(it, f"{time}.commit" if is_old(it) else f"{time}_{END}.commit", data)


COMMIT = "HoodieCommitMetadata.avsc"
INSERTS = {"fileId": "", "numInserts": 3}


def update(it: ClusteringDrill, partition: str, *, done: bool) -> None:
    """A write to the group of a partition; when it is done its rows are those that were there."""
    base = base_of(it, partition)
    file_id = base.split("_")[0]
    stat = {"fileId": file_id, "numInserts": 0}
    if done:
        name = f"{file_id}_9-9-9_{TIME}.parquet"
        shutil.copy(it.table / partition / base, it.table / partition / name)
        stat["path"] = f"{partition}/{name}"
    commit(it, {partition: [stat]}, done=done)


def partitions(it: ClusteringDrill) -> list[str]:
    return it.plan().tables[0].steps[0].groups.partition.to_pylist()


def interrupted(
    it: ClusteringDrill, act, *, ending: str = ".inflight", after: bool = True
) -> ApplyResult:
    """An apply into which something comes, after our clustering is inflight."""
    return it.apply(it.plan(), around=lambda s: Hook(s, ending, act, after=after))


def only(result: ApplyResult) -> StepOutcome:
    (table,) = result.tables
    assert table.error is None
    (outcome,) = table.outcomes
    return outcome


def whys(outcome: StepOutcome) -> list[str]:
    return [left.because for left in outcome.rewritten.left]


@pytest.mark.parametrize("done", [True, False], ids=["completed", "pending"])
def test_a_group_that_was_written_to_meanwhile_is_left_and_the_rest_is_done(it, done):
    rows, (first, *rest) = it.rows(), partitions(it)
    before = list_data_files(it.table)
    result = interrupted(it, lambda: update(it, first, done=done))
    outcome = only(result)

    assert (result.exit_code, outcome.how) == (4, "completed")
    assert (len(rest), [first]) == (
        outcome.rewritten.groups,
        [left.partition for left in outcome.rewritten.left],
    )
    assert f"commit {TIME} " in whys(outcome)[0]
    assert rows == it.rows()
    new = list_data_files(it.table) - before
    assert {path.rpartition("/")[0] for path in new if TIME not in path} == set(rest)
    assert [] == list_leftovers(it.table, outcome.instant)


@pytest.mark.parametrize(
    ("stats", "says"),
    [
        (None, "which file groups it writes to is not known"),
        ({}, "which file groups it writes to is not known"),
        ("inserts", "brings new records to its partition"),
    ],
    ids=["without a profile", "with an empty one", "with new records everywhere"],
)
def test_nothing_is_published_while_a_write_may_go_anywhere(it, stats, says):
    rows, before, known = it.rows(), list_data_files(it.table), partitions(it)
    stats = {path: [INSERTS] for path in known} if stats == "inserts" else stats

    def act():
        if stats is None:
            put(it, f"{TIME}.commit.requested")
        else:
            commit(it, stats, done=False)

    result = interrupted(it, act)
    outcome = only(result)

    assert (result.exit_code, outcome.how, outcome.instant) == (4, "undone", None)
    assert all(says in why for why in whys(outcome))
    assert len(known) == len(whys(outcome))
    assert (rows, before) == (it.rows(), list_data_files(it.table))
    assert [] == [left for left in list_leftovers(it.table) if TIME not in left]


def write_onto(it: ClusteringDrill, partition: str, instant: str, time: str) -> None:
    """A completed write that drops the first row of a file that an instant has made."""
    (made,) = (it.table / partition).glob(f"*_{instant}.parquet")
    file_id = made.name.split("_")[0]
    name = f"{file_id}_9-9-9_{time}.parquet"
    rows = pq.read_table(made, partitioning=None)
    pq.write_table(rows.slice(1), it.table / partition / name)
    stat = {"fileId": file_id, "path": f"{partition}/{name}"}
    commit(it, {partition: [stat]}, done=True, time=time)


def test_partitions_that_are_not_quiet_when_the_plan_is_applied_are_left(tmp_path):
    """They were when it was reviewed."""
    table = TABLES / "clustering/orders.zip"
    it = make_clustering_drill(table, tmp_path / "t", target="120MiB, quiet: 1d")
    rows, plan = it.rows(), it.plan()
    (applied,) = it.apply(plan, now=datetime(2026, 11, 21, 22, tzinfo=UTC)).tables
    (outcome,) = applied.outcomes

    assert ("nothing", 3) == (outcome.how, len(plan.tables[0].steps[0].groups))
    assert {"its partition was written by 20261121210336964, less than 1d ago (files.quiet)"} == {
        group.because for group in outcome.rewritten.left
    }
    assert rows == it.rows()


def test_a_write_that_took_its_time_before_us_and_is_announced_after_us_is_read(it):
    """As Hudi before 1.1 does: its query may be planned, or run, between the two."""
    rows, (first, *_) = it.rows(), partitions(it)
    time = format_instant(it.clock.ms - 50 * 60_000, UTC)
    outcome = only(it.apply(it.plan()))
    write_onto(it, first, outcome.instant, time)

    assert "completed" == outcome.how
    assert len(rows) - 1 == len(it.rows())


@pytest.mark.parametrize(("hours", "minutes"), [(1, 15), (2, 30), (24, 60)])
def test_the_time_of_a_clustering_is_no_further_back_than_a_retention_by_hours_allows(
    it, hours, minutes
):
    it.spec = replace(it.spec, document={**it.spec.document, "retention": {"hours": hours}})
    outcome = only(it.apply(it.plan()))

    back = it.clock.ms - parse_instant_ms(outcome.instant, UTC)
    assert minutes * 60_000 < back < minutes * 60_000 + 1000


class Telling(TestClock):
    """Something happens while the first pause is slept; ``slept`` are the seconds of all."""

    def __init__(self, act):
        super().__init__()
        self.act, self.slept = act, []

    def sleep(self, seconds):
        super().sleep(seconds)
        self.slept.append(seconds)
        if len(self.slept) == 1:
            self.act()


def beat(it: ClusteringDrill, time: str, *, age_s: float) -> None:
    """A heartbeat of a write that was so long ago."""
    path = it.table / ".hoodie/.heartbeat" / time
    path.parent.mkdir(exist_ok=True)
    path.touch()
    age(it, path, seconds=age_s)


@pytest.mark.parametrize("moment", [".inflight", "lock"], ids=["to publish", "to announce"])
def test_a_write_that_has_just_been_announced_is_waited_for_until_it_says_where_it_goes(it, moment):
    rows, (first, *rest) = it.rows(), partitions(it)
    it.clock = Telling(lambda: update(it, first, done=False))
    hook = partial(Hook, ending=moment, act=lambda: put(it, f"{TIME}.commit.requested"), after=True)
    result = it.apply(it.plan(), around=hook, lock_wait_s=60)
    outcome = only(result)

    assert (4, "completed", len(rest)) == (
        result.exit_code,
        outcome.how,
        outcome.rewritten.groups,
    )
    assert [first] == [left.partition for left in outcome.rewritten.left]
    assert "is pending and writes to its file group" in whys(outcome)[0]
    assert [0.2] == it.clock.slept
    assert rows == it.rows()


def test_a_write_that_says_nothing_is_waited_for_no_longer_than_for_a_lock(it):
    known = partitions(it)
    it.clock = Telling(lambda: None)
    result = it.apply(
        it.plan(),
        around=lambda s: Hook(
            s, ".inflight", lambda: put(it, f"{TIME}.commit.requested"), after=True
        ),
        lock_wait_s=10,
    )
    outcome = only(result)

    assert (4, "undone", len(known)) == (result.exit_code, outcome.how, len(whys(outcome)))
    assert pytest.approx([0.2, 0.4, 0.8, 1.6, 2, 2, 2, 2]) == it.clock.slept
    assert [] == [left for left in list_leftovers(it.table) if TIME not in left]


def test_an_apply_with_two_clusterings_waits_no_longer_than_for_one(it):
    plan = it.plan()
    with pytest.raises(Killed):
        it.apply(plan, around=lambda s: Hook(s, ".marker.CREATE", die, after=True))
    put(it, f"{TIME}.commit.requested")
    it.clock = Telling(lambda: None)
    (table,) = it.apply(plan, lock_wait_s=10).tables

    assert ["undone", "nothing"] == [outcome.how for outcome in table.outcomes]
    assert pytest.approx([0.2, 0.4, 0.8, 1.6, 2, 2, 2, 2]) == it.clock.slept


def own_hearts_beat(it: ClusteringDrill, *, age_s: float) -> None:
    """As the store dates them, which has a clock of its own."""
    for path in (it.table / ".hoodie/.heartbeat").iterdir():
        age(it, path, seconds=age_s)


@pytest.mark.parametrize(
    ("age_s", "begun", "how"),
    [(3601, False, "completed"), (3590, False, "undone"), (3601, True, "undone")],
    ids=["dead", "alive", "dead after it began"],
)
def test_a_write_that_died_before_it_began_holds_up_nothing(it, age_s, begun, how):
    rows = it.rows()

    def act():
        put(it, f"{TIME}.commit.requested")
        if begun:
            put(it, f"{TIME}.inflight")
        own_hearts_beat(it, age_s=0)
        beat(it, TIME, age_s=age_s)

    outcome = only(interrupted(it, act))

    assert how == outcome.how
    assert rows == it.rows()


def test_a_write_is_not_dead_because_our_clock_is_fast(it):
    def act():
        put(it, f"{TIME}.commit.requested")
        own_hearts_beat(it, age_s=3600)
        beat(it, TIME, age_s=3660)

    assert "undone" == only(interrupted(it, act)).how


@pytest.mark.parametrize(("age_s", "how"), [(301, "completed"), (299, "undone")])
def test_no_write_is_dead_before_five_minutes_whatever_the_spec_says(it, age_s, how):
    said = {**it.spec.document["concurrency"], "staleAfter": "30s"}
    it.spec = replace(it.spec, document={**it.spec.document, "concurrency": said})

    def act():
        put(it, f"{TIME}.commit.requested")
        own_hearts_beat(it, age_s=0)
        beat(it, TIME, age_s=age_s)

    assert how == only(interrupted(it, act)).how


def test_a_write_without_a_heartbeat_may_be_alive_however_old_it_is(it):
    def act():
        put(it, f"{TIME}.commit.requested")
        age(it, timeline_folder(it) / f"{TIME}.commit.requested", seconds=10**6)

    assert "undone" == only(interrupted(it, act)).how


def test_a_resume_waits_for_a_write_that_was_just_announced_too(it):
    rows, plan = it.rows(), it.plan()
    with pytest.raises(Killed):
        it.apply(plan, around=lambda s: Hook(s, ".marker.CREATE", die, after=True))
    first, *rest = plan.tables[0].steps[0].groups.partition.to_pylist()
    put(it, f"{TIME}.commit.requested")
    it.clock = Telling(lambda: update(it, first, done=False))
    outcome = only(it.apply(plan_of_resume(it), lock_wait_s=60))

    assert ("completed", len(rest)) == (outcome.how, outcome.rewritten.groups)
    assert [0.2] == it.clock.slept
    assert rows == it.rows()


def test_markers_say_where_a_pending_write_is(it):
    first, second, *_ = known = partitions(it)
    base = base_of(it, second)

    def act():
        update(it, first, done=False)
        folder = it.table / ".hoodie/.temp" / TIME / second
        folder.mkdir(parents=True)
        name = f"{base.split('_')[0]}_9-9-9_{TIME}.parquet.marker.MERGE"
        (folder / name).touch()

    outcome = only(interrupted(it, act))

    assert sorted([first, second]) == sorted(left.partition for left in outcome.rewritten.left)
    assert len(known) - 2 == outcome.rewritten.groups


def test_markers_of_the_timeline_server_say_it_too(it):
    first, second, *_ = partitions(it)
    base = base_of(it, second)

    def act():
        update(it, first, done=False)
        folder = it.table / ".hoodie/.temp" / TIME
        folder.mkdir(parents=True)
        line = f"{second}/{base.split('_')[0]}_9-9-9_{TIME}.parquet.marker.MERGE\n"
        (folder / "MARKERS0").write_text(line)
        (folder / "MARKERS.type").write_text("TIMELINE_SERVER_BASED")

    outcome = only(interrupted(it, act))

    assert sorted([first, second]) == sorted(left.partition for left in outcome.rewritten.left)


def test_a_write_that_came_before_the_announcement_is_seen_then(it):
    first, *rest = partitions(it)
    plan = it.plan()
    result = it.apply(
        plan, around=lambda s: Hook(s, "lock", lambda: update(it, first, done=True), after=False)
    )
    outcome = only(result)
    (requested,) = timeline_folder(it).glob(f"{outcome.instant}.*.requested")
    announced = ClusteringPlan.parse(requested.read_bytes(), "x")

    assert sorted(rest) == sorted(group.slices[0].partition for group in announced.groups)
    assert [first] == [left.partition for left in outcome.rewritten.left]


def test_without_a_lock_any_pending_write_stops_it(it):
    plan = it.copy(it.folder.parent / "unlocked", lock="none")
    reviewed = plan.plan()
    rows = plan.rows()
    result = plan.apply(
        reviewed,
        around=lambda s: Hook(
            s, ".inflight", lambda: commit(plan, {"x": [{"fileId": "y"}]}, done=False), after=True
        ),
    )

    assert (4, "undone") == (result.exit_code, only(result).how)
    assert all("there is no lock" in why for why in whys(only(result)))
    again = plan.apply(reviewed)
    assert (3, ["lock"]) == (again.exit_code, [n.rule for n in again.tables[0].refusals])
    assert rows == plan.rows()


# --- somebody else does our clustering ------------------------------------------------------------


def requested_of(it: ClusteringDrill) -> Path:
    (path,) = timeline_folder(it).glob("2026113023000*.requested")
    return path


def take_over(it: ClusteringDrill) -> None:
    """As Hudi does it: files by marker away, the plan again, under the same instant, completed."""
    requested = requested_of(it)
    instant = requested.name.split(".")[0]
    plan = ClusteringPlan.parse(requested.read_bytes(), "x")
    temp = it.table / ".hoodie/.temp" / instant
    for marker in temp.rglob("*.marker.CREATE"):
        name = marker.relative_to(temp).as_posix().removesuffix(".marker.CREATE")
        (it.table / name).unlink(missing_ok=True)
    shutil.rmtree(temp, ignore_errors=True)
    put(it, requested.name.replace("requested", "inflight"))
    written, replaced = {}, {}
    for number, group in enumerate(plan.groups):
        (given,) = group.slices
        folder = it.table / given.partition
        name = f"7a4e-{number}-0_1-1-1_{instant}.parquet"
        shutil.copy(folder / given.base_file, folder / name)
        stat = {
            "fileId": f"7a4e-{number}-0",
            "path": f"{given.partition}/{name}",
            "numWrites": 1,
            "totalWriteBytes": (folder / name).stat().st_size,
        }
        written[given.partition], replaced[given.partition] = [stat], [given.file_id]
    done = f"{instant}.replacecommit" if is_old(it) else f"{instant}_{END}.replacecommit"
    version = 6 if is_old(it) else 9
    put(
        it,
        done,
        WriteCommit(stats_by_partition=written, operation="CLUSTER", replaced=replaced).encode(
            version=version
        ),
    )


def test_what_another_writer_has_completed_is_adopted_and_our_files_go(it):
    rows, lock = it.rows(), []

    class AtTheEnd(Hook):
        """The second time that the lock is taken is to publish."""

        def _intercept(self, call, act, torn=None):  # noqa: ARG002
            if call.method == "create" and call.paths[0].endswith("lock"):
                lock.append(call)
                if len(lock) == 2:
                    take_over(it)
            return act()

    result = it.apply(it.plan(), around=lambda s: AtTheEnd(s, "", lambda: None, after=True))
    outcome = only(result)
    (done,) = timeline_folder(it).glob(f"{outcome.instant}*.replacecommit")
    named = {"/".join(file) for file in WriteFootprint.parse(done.read_bytes(), "x").files}

    assert (0, "adopted") == (result.exit_code, outcome.how)
    assert rows == it.rows()
    assert named == {path for path in list_data_files(it.table) if f"_{outcome.instant}." in path}
    assert [] == list_leftovers(it.table)


@pytest.mark.parametrize("how", ["before", "after"])
def test_what_another_writer_finished_after_our_death_is_left_alone(it, how):
    rows, plan = it.rows(), it.plan()
    with pytest.raises(Killed):
        it.apply(plan, around=lambda s: Hook(s, ".inflight", die, after=how == "after"))
    take_over(it)
    result = it.apply(it.plan())

    assert rows == it.rows()
    assert [] == list_leftovers(it.table)
    assert 0 == result.exit_code


def die():
    raise Killed


def test_one_that_another_writer_has_begun_is_not_ours_any_more(it):
    plan = it.plan()
    with pytest.raises(Killed):
        it.apply(plan, around=lambda s: Hook(s, ".requested", die, after=True))
    inflight = requested_of(it).with_name(requested_of(it).name.replace("requested", "inflight"))
    inflight.touch()
    age(it, inflight, seconds=3599)
    result = it.apply(it.plan())

    assert 6 == result.exit_code
    assert "another writer has begun to execute our clustering" in result.tables[0].error
    assert [] == [path for path in list_data_files(it.table) if "_20261201" in path]
    age(it, inflight, seconds=3601)
    assert 0 == it.apply(it.plan()).exit_code
    assert [] == list_leftovers(it.table)


def test_one_that_was_rolled_back_for_another_try_is_ours_again_when_nobody_tries(it):
    rows = it.rows()
    with pytest.raises(Killed):
        it.apply(it.plan(), around=lambda s: Hook(s, ".marker.CREATE", die, after=True))
    requested = requested_of(it)
    instant = requested.name.split(".")[0]
    (timeline_folder(it) / requested.name.replace("requested", "inflight")).unlink()
    rolled = rollback_of(it, instant)
    age(it, rolled, seconds=3599)
    early = it.apply(it.plan())
    age(it, rolled, seconds=3601)
    late = it.apply(it.plan())

    assert (6, 0) == (early.exit_code, late.exit_code)
    assert ("completed", instant) == (only(late).how, only(late).instant)
    assert rows == it.rows()
    assert [] == list_leftovers(it.table, instant)


def rollback_of(it: ClusteringDrill, instant: str) -> Path:
    """A completed rollback of a pending instant, which leaves its request as it was."""
    names = json.loads(load_schema_text("HoodieRollbackPlan.avsc"))
    action = "replacecommit" if is_old(it) else "clustering"
    told = {"instantToRollback": {"commitTime": instant, "action": action}}
    plan = {field["name"]: told.get(field["name"]) for field in names["fields"]}
    data = avro_container.encode_container("HoodieRollbackPlan.avsc", plan)
    for state in ("requested", "inflight"):
        put(it, f"{TIME}.rollback.{state}", data if state == "requested" else b"")
    done = f"{TIME}.rollback" if is_old(it) else f"{TIME}_{END}.rollback"
    put(it, done, b"")
    return timeline_folder(it) / done


def test_one_whose_owner_lives_is_not_touched(it):
    plan = it.plan()
    with pytest.raises(Killed):
        it.apply(plan, around=lambda s: FaultyStorage(s, StorageFault(at=6), Killed()), pid=7)
    result = it.apply(it.plan(), living=frozenset({7}))

    assert 6 == result.exit_code
    assert "is the work of ann on here, process 7" in result.tables[0].error


def test_a_pending_one_is_cut_down_to_what_still_holds(it):
    rows, plan = it.rows(), it.plan()
    with pytest.raises(Killed):
        it.apply(plan, around=lambda s: Hook(s, ".marker.CREATE", die, after=True))
    first, *rest = plan.tables[0].steps[0].groups.partition.to_pylist()
    update(it, first, done=True)
    outcome = only(result := it.apply(plan_of_resume(it)))
    announced = ClusteringPlan.parse(requested_of(it).read_bytes(), "x")

    assert (4, "resume", "completed") == (result.exit_code, outcome.kind, outcome.how)
    assert len(rest) == outcome.rewritten.groups
    assert sorted(rest) == sorted(group.slices[0].partition for group in announced.groups)
    assert rows == it.rows()
    assert [] == list_leftovers(it.table, outcome.instant)


def test_a_pending_one_of_which_nothing_holds_is_undone(it):
    rows, plan = it.rows(), it.plan()
    with pytest.raises(Killed):
        it.apply(plan, around=lambda s: Hook(s, ".marker.CREATE", die, after=True))
    put(it, f"{TIME}.commit.requested")
    outcome = only(result := it.apply(plan_of_resume(it)))

    assert (4, "undone") == (result.exit_code, outcome.how)
    assert rows == it.rows()
    assert [] == [left for left in list_leftovers(it.table) if TIME not in left]


def plan_of_resume(it: ClusteringDrill):
    """A plan of the resume alone."""
    plan = it.plan()
    (table,) = plan.tables
    steps = tuple(step for step in table.steps if step.kind == "resume")
    assert 1 == len(steps)
    return replace(plan, tables=(replace(table, steps=steps),))


def test_half_a_file_of_a_write_that_died_is_not_looked_at(it):
    folder = it.table / partitions(it)[0]
    base = folder / base_of(it, partitions(it)[0])
    half = folder / f"{'0' * 8}-0000-0000-0000-{'0' * 12}-0_0-0-0_{TIME}.parquet"
    half.write_bytes(base.read_bytes()[:99])
    result = it.apply(it.plan())

    assert 0 == result.exit_code


def test_without_a_lock_what_is_ours_is_finished_although_it_is_pending(tmp_path):
    it = make_clustering_drill(TABLES / "indexed/1.2.0.zip", tmp_path / "t", lock="none")
    rows = it.rows()
    with pytest.raises(Killed):
        it.apply(it.plan(), around=lambda s: FaultyStorage(s, StorageFault(at=5), Killed()))
    outcome = only(result := it.apply(plan_of_resume(it)))

    assert (0, "resume", "completed") == (result.exit_code, outcome.kind, outcome.how)
    assert rows == it.rows()
    assert [] == list_leftovers(it.table)


@pytest.mark.parametrize("name", ["indexed/0.15.0", "indexed/1.2.0"])
def test_what_the_metadata_table_was_told_of_one_that_is_undone_goes_too(name, tmp_path):
    it = make_clustering_drill(TABLES / f"{name}.zip", tmp_path / "t")
    rows, listed, files = it.rows(), list_unlisted(it), list_data_files(it.table)
    told = metadata_instants(it)
    with pytest.raises(Killed):
        it.apply(it.plan(), around=lambda s: Hook(s, ".replacecommit", die, after=False))
    pending = metadata_instants(it) - told
    put(it, f"{TIME}.deltacommit.requested")
    outcome = only(it.apply(plan_of_resume(it)))

    assert 1 == len({path.name[:17] for path in pending})
    assert "undone" == outcome.how
    assert told == metadata_instants(it)
    assert (rows, listed, files) == (it.rows(), list_unlisted(it), list_data_files(it.table))


def metadata_instants(it: ClusteringDrill) -> set[Path]:
    """What is on the metadata table's timeline."""
    hoodie = it.table / ".hoodie/metadata/.hoodie"
    return {path for path in hoodie.rglob("2026*") if path.is_file()}
