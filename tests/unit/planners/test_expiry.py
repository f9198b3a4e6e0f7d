"""Which partitions are past their retention, why, and which ones stay."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.planners.compose import plan_table
from reconciler.planners.expiry.planner import choose_counted_files
from reconciler.spec.guard_policy import GuardPolicy
from reconciler.spec.model import Clustering, ClusteringTrigger, PartitionRetention, TableSpec
from reconciler.state.model import PendingClusteringSlice, PendingCompactionGroup, Savepoint
from tests.unit.planners.cow import base, commit, stamp, table

NOW = datetime(2024, 1, 2, tzinfo=UTC)
DAY = 86_400
DAYS = ("d=2023-12-01", "d=2023-12-02", "d=2023-12-31", "d=2024-01-01")


def spec(older_than=DAY, by="d=%Y-%m-%d", keep_latest=None, **more):
    retention = PartitionRetention(older_than=older_than, by=by, keep_latest=keep_latest)
    return TableSpec(name="t", path="/t", partition_retention=retention, **more)


def days(*paths, hours=(0,), **more):
    """Return a table of partitions with a file group each, written at some hours."""
    names = {path: [base(f"g{n}", hour) for hour in hours] for n, path in enumerate(paths)}
    return table(names, [commit(hour) for hour in hours], **more)


def plan(state, now=NOW, **declared):
    return plan_table(spec(**declared), state, now)


def paths(made):
    return [part.path for step in made.steps for part in step.partitions]


def warnings(made, rule):
    return [note.because for note in made.warnings if note.rule == rule]


def test_days_are_past_it_once_their_last_moment_is():
    state = days(*DAYS)

    assert list(DAYS[:3]) == paths(plan(state))
    assert list(DAYS[:2]) == paths(plan(state, NOW - timedelta(microseconds=1)))
    assert list(DAYS[:2]) == paths(plan(state, older_than=DAY + 1))


def test_the_spec_says_the_zone_of_dates():
    state = days(*DAYS)
    ahead = spec(timezone="Asia/Tokyo")

    assert list(DAYS[:3]) == paths(plan_table(ahead, state, NOW - timedelta(hours=9)))
    assert "zone" not in {note.rule for note in plan_table(ahead, state, NOW).warnings}


def test_each_partition_says_what_goes_and_why():
    [step] = plan(days(*DAYS[:2], hours=(0, 3))).steps
    first = step.partitions[0]

    assert ("2023-12-01", 1, 10, None) == (first.date, first.files, first.bytes, first.rows)
    assert stamp(3) == first.last_commit
    assert "d=2023-12-01 ended 31 days ago (retention.partitions.olderThan: 1d)" == first.because


def test_the_drift_has_the_count_and_the_oldest():
    [found] = plan(days(*DAYS)).drift

    assert ("retention.partitions", "1d", "31 days") == (found.field, found.desired, found.actual)
    assert "3 partitions are past it, the oldest d=2023-12-01" == found.because


def test_without_a_date_a_partition_stays_and_is_named():
    made = plan(days(*DAYS[:2], "d=unknown"))

    assert list(DAYS[:2]) == paths(made)
    assert [
        (
            "partition d=unknown has no date by retention.partitions.by: d=%Y-%m-%d: it is never "
            "deleted"
        )
    ] == warnings(made, "partitionDate")


def test_a_pattern_that_fits_nowhere_is_doubted():
    made = plan(days(*DAYS), by="dt=%Y-%m-%d")

    assert [] == paths(made)
    assert "for example d=2023-12-01; correct the pattern" in warnings(made, "partitionDate")[0]


def test_the_latest_partitions_stay():
    made = plan(days(*DAYS[:2], "d=unknown"), keep_latest=1)

    assert [DAYS[0]] == paths(made)
    assert [
        (
            "partition d=2023-12-02 past retention.partitions.olderThan stays as the newest "
            "(retention.partitions.keepLatest: 1)"
        )
    ] == warnings(made, "keepLatest")
    assert [] == paths(plan(days(*DAYS), keep_latest=9))


def test_encoded_folders_are_decoded():
    encoded = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
    state = days("2023%2F12%2F01", properties=encoded)

    assert ["2023%2F12%2F01"] == paths(plan(state, by="%Y/%m/%d"))
    assert [] == paths(plan(replace(state, properties={}), by="%Y/%m/%d"))


def test_by_last_commit_the_newest_write_counts():
    names = {"a": [base("g", 0), base("g", 5)], "b": [base("h", 3)], "c": [base("i", 2)]}
    state = table(names, [commit(hour) for hour in (0, 2, 3, 5)], replaced={("c", "i"): stamp(5)})
    at = NOW + timedelta(hours=4)
    made = plan(state, at, by="lastCommit")

    assert ["b"] == paths(made)
    [step] = made.steps
    assert (None, stamp(3)) == (step.partitions[0].date, step.partitions[0].last_commit)
    assert "its newest write 20240101030000000 was 25 hours ago" in step.partitions[0].because
    exactly = datetime(2024, 1, 2, 3, tzinfo=UTC)
    assert [] == paths(plan(state, exactly, by="lastCommit"))
    assert ["b"] == paths(plan(state, exactly + timedelta(milliseconds=1), by="lastCommit"))


def test_log_files_of_version_6_are_dated_by_the_timeline():
    log = f".g_{stamp(1)}.log.1_0-0-0"
    state = table(
        {"a": [base("g", 1), log], "b": [base("h", 1)]},
        [commit(1), commit(4)],
        table_version=6,
        table_type="MERGE_ON_READ",
        written_partitions={stamp(4): frozenset({"a"})},
    )
    at = NOW + timedelta(hours=2)

    assert ["b"] == paths(plan(state, at, by="lastCommit"))
    archived = replace(state, written_partitions={})
    [step] = plan(archived, at, by="lastCommit").steps
    assert [stamp(1), stamp(1)] == [part.last_commit for part in step.partitions]


def pending(action):
    return Instant(stamp(9), action, State.INFLIGHT)


@pytest.mark.parametrize("kind", ["compaction", "clustering", "write"])
def test_pending_work_keeps_its_partition_for_now(kind):
    state = days(*DAYS[:2])
    if kind == "compaction":
        work = PendingCompactionGroup(
            instant=stamp(9),
            action=Action.COMPACTION,
            partition=DAYS[0],
            file_id="g0",
            base_instant=stamp(0),
        )
        state = replace(state, compactions=(work,))
    if kind == "clustering":
        given = PendingClusteringSlice(
            instant=stamp(9), partition=DAYS[0], file_id="g0", base_file=None, log_files=()
        )
        state = replace(state, clusterings=(given,))
    if kind == "write":
        names = {DAYS[0]: [base("g0", 0), base("g0", 9)], DAYS[1]: [base("g1", 0)]}
        state = table(names, [commit(0), pending(Action.COMMIT)])
    made = plan(state)

    assert [DAYS[1]] == paths(made)
    [note] = warnings(made, "pendingWork")
    assert f"partition {DAYS[0]} past retention.partitions stays for now: " in note
    assert f"{stamp(9)} is pending" in note


def test_a_savepoint_is_named_and_keeps_no_partition():
    files = frozenset({base("g0", 0)})
    saved = Savepoint(instant=stamp(0), completed=True, files=files)
    [step] = plan(days(*DAYS[:2], savepoints=(saved,))).steps

    assert [True, False] == ["savepoint" in part.because for part in step.partitions]


def test_a_table_without_partitions_is_refused():
    flat = table({"": [base("g", 0)]}, [commit(0)], partition_fields=())
    [note] = plan(flat).refusals

    assert ("partitions", "deletePartition") == (note.rule, note.step)
    assert "the table has no partitions" in note.because


def test_without_a_zone_nothing_is_planned():
    made = plan(days(*DAYS, timezone=None))

    assert ((), {"zone"}) == (made.steps, {note.rule for note in made.refusals})
    assert "retention.partitions needs the timeline's time zone" in made.refusals[0].because


def test_clusterings_leave_such_partitions_alone():
    clustering = Clustering(columns=(), when=ClusteringTrigger(always=True), after_commits=0)
    made = plan_table(spec(clustering=clustering), days(DAYS[0], DAYS[3]), NOW)

    assert ["deletePartition"] == [s.kind for s in made.steps if s.kind != "cluster"]
    rewritten = [
        p for s in made.steps if s.kind == "cluster" for p in s.groups.partition.to_pylist()
    ]
    assert DAYS[0] not in rewritten


def test_rows_are_shown_where_they_were_counted():
    state = days(*DAYS[:2])
    files = choose_counted_files(state, 1, spec=spec(), now=NOW)

    assert {DAYS[0]: [(f"{DAYS[0]}/{base('g0', 0)}", 10)]} == files
    [step] = plan(state.with_facts(partition_rows={DAYS[0]: 7})).steps
    assert [7, None] == [part.rows for part in step.partitions]


@pytest.mark.parametrize(
    ("limit", "refused"),
    [
        ({"max_partitions_removed": 1}, "lets a plan delete 1 partition, but this one deletes 2"),
        ({"max_partitions_removed": 2}, None),
        ({"protected_partitions": ("d=2023-12-*",)}, "protects partition d=2023-12-01 and 1 more"),
        ({"protected_partitions": ("/d=2022.*/",)}, None),
    ],
)
def test_policies_limit_what_is_deleted(limit, refused):
    guarded = spec(guarded_by=(GuardPolicy(name="gold", **limit),))
    made = plan_table(guarded, days(*DAYS[:2]), NOW)

    assert list(DAYS[:2]) == paths(made)
    assert ["deletePartition"] * bool(refused) == [note.step for note in made.refusals]
    assert all(refused in note.because for note in made.refusals)
