"""Which slices of small merge-on-read tables are compacted, in which order, and why."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from reconciler.hudi.table.properties import compute_checksum
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.planners.compact.planner import plan_compaction
from reconciler.planners.picture import TablePicture
from reconciler.plans.groups import rewrites_from_json
from reconciler.spec.compaction import Compaction, CompactionBudget, CompactionTrigger
from reconciler.spec.model import Concurrency, Lock, TableSpec
from reconciler.spec.partition_filter import PartitionFilter
from reconciler.state.model import PendingClusteringSlice, PendingCompactionGroup
from tests.unit.planners.cow import base, stamp, table

PROPERTIES = {
    "hoodie.table.name": "t",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.version": "9",
}
PROPERTIES["hoodie.table.checksum"] = str(compute_checksum(PROPERTIES))
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def deltacommit(hour, state=State.COMPLETED):
    done = f"{stamp(hour)[:-1]}5" if state is State.COMPLETED else None
    return Instant(stamp(hour), Action.DELTACOMMIT, state, done)


def compacted(hour):
    return Instant(stamp(hour), Action.COMMIT, State.COMPLETED, f"{stamp(hour)[:-1]}5")


def log(group, hour, version=1):
    return f".{group}_{stamp(hour)}.log.{version}_0-0-0"


#: three slices: g has two log files, h one, i none; f has only log files
FILES = {
    "a": [base("g", 0), log("g", 1), log("g", 2), base("h", 0), log("h", 2)],
    "b": [base("i", 0), log("f", 1)],
}
WRITES = [deltacommit(hour) for hour in range(3)]


def make_state(files=None, instants=None, **more):
    more = {"table_type": "MERGE_ON_READ", "properties": PROPERTIES, **more}
    return table(files or FILES, instants or WRITES, **more)


def plan(state=None, now=NOON, clustered=None, lock="filesystem", timezone="UTC", **declared):
    compaction = Compaction(**{"after_delta_commits": 1, **declared})
    concurrency = Concurrency(lock=Lock(provider=lock))
    spec = TableSpec(name="t", path="/t", timezone=timezone, compaction=compaction)
    spec = replace(spec, concurrency=concurrency, document={})
    picture = TablePicture(spec, make_state() if state is None else state, now)
    return plan_compaction(picture, clustered)


def list_slices(part):
    """Return the file ids of the step."""
    return [] if part.step is None else part.step.groups.file_id.to_pylist()


def find_untouched(part):
    return {one.rule: one.slices for one in part.step.untouched}


def test_without_the_block_nothing_is_planned():
    spec = TableSpec(name="t", path="/t", document={})

    assert plan_compaction(TablePicture(spec, make_state())) is None


def test_every_slice_with_log_files_is_compacted_alone_with_its_bytes_and_reason():
    part = plan()
    groups = part.step.groups

    assert (["a", "a", "b"], ["g", "h", "f"]) == (
        groups.partition.to_pylist(),
        groups.file_id.to_pylist(),
    )
    assert [base("g", 0), base("h", 0), None] == groups.base.to_pylist()
    assert [[log("g", 1), log("g", 2)], [log("h", 2)], [log("f", 1)]] == groups.logs.to_pylist()
    assert ([30, 20, 10], [1, 1, 1]) == (groups.bytes.tolist(), groups.outputs.tolist())
    reason = "3 deltacommits (compaction.afterDeltaCommits: 1)"
    assert [
        f"2 log files of 20 B on a base file of 10 B become 1 base file: {reason}",
        f"1 log file of 10 B on a base file of 10 B becomes 1 base file: {reason}",
        f"1 log file of 10 B becomes 1 base file: {reason}",
    ] == groups.because.to_pylist()
    assert [("a", 2, 3, 30, 50, 20), ("b", 1, 1, 10, 10, 3)] == [
        (e.partition, e.slices, e.log_files, e.log_bytes, e.bytes, e.expected_bytes)
        for e in part.step.expected
    ]
    (finding,) = part.findings
    assert ("compaction.afterDeltaCommits", 1, 3) == (
        finding.field,
        finding.desired,
        finding.actual,
    )
    assert "3 file slices with 4 log files of 40 B, 67 % of their bytes" == finding.because


@pytest.mark.parametrize(
    ("instants", "declared", "said"),
    [
        (WRITES, 3, None),
        (WRITES, 4, "3 deltacommits (compaction.afterDeltaCommits: 4)"),
        (
            [*WRITES[:1], compacted(1), deltacommit(2)],
            2,
            f"1 deltacommit since compaction {stamp(1)} (compaction.afterDeltaCommits: 2)",
        ),
        ([*WRITES[:1], compacted(1), deltacommit(2)], 1, None),
        ([deltacommit(0), deltacommit(1, State.INFLIGHT), deltacommit(2)], 3, "2 deltacommits"),
    ],
)
def test_deltacommits_count_since_the_newest_completed_compaction(instants, declared, said):
    files = {"a": [base("g", 0), log("g", 2)]}
    part = plan(make_state(files, instants), after_delta_commits=declared)

    assert ([] if said else ["g"]) == list_slices(part)
    if said:
        (note,) = part.warnings
        assert "nothingToDo" == note.rule
        assert f"no compaction: 1 file slice: {said}" in note.because
        assert () == part.findings


@pytest.mark.parametrize(
    ("when", "slices", "said"),
    [
        ({"log_share_above": 0.5}, ["g", "f"], "more than 50% of the bytes are in log files"),
        ({"log_files_above": 1}, ["g"], "there is more than 1 log file"),
        ({"older_than": 10 * 3600 + 1}, ["g", "f"], "the oldest log file is older than 36001s"),
        ({"older_than": 11 * 3600}, [], None),
        ({"log_share_above": 0.9, "log_files_above": 1}, ["g", "f"], None),
    ],
)
def test_with_conditions_any_of_them_makes_a_slice_due(when, slices, said):
    part = plan(when=CompactionTrigger(**when))

    assert slices == list_slices(part)
    if said:
        assert said in part.step.groups.because[0].as_py()
    if slices:
        assert 3 - len(slices) == find_untouched(part)["when"]
        assert all(finding.field.startswith("compaction.when.") for finding in part.findings)


def test_both_reasons_of_a_slice_are_given():
    part = plan(when=CompactionTrigger(log_share_above=0.5, log_files_above=1))

    assert (
        "2 log files of 20 B on a base file of 10 B become 1 base file: more than 50% of the "
        "bytes are in log files (compaction.when.logShareAbove) and there is more than 1 log file "
        "(compaction.when.logFilesAbove)" == part.step.groups.because[0].as_py()
    )


def test_the_age_of_log_files_needs_the_zone_of_the_timeline():
    state = make_state(timezone=None)
    part = plan(state, timezone=None, when=CompactionTrigger(older_than=3600))

    (note,) = part.refusals
    assert ("zone", "compact", None) == (note.rule, note.step, part.step)


def test_in_version_6_a_log_file_is_as_old_as_the_first_write_after_its_base_file():
    files = {"a": [base("g", 0), f".g_{stamp(0)}.log.1_0-0-0"]}
    state = make_state(files, [deltacommit(0), deltacommit(9)], table_version=6, completions={})
    ages = [plan(state, when=CompactionTrigger(older_than=hours * 3600)) for hours in (2, 4)]

    assert [["g"], []] == [list_slices(part) for part in ages]


@pytest.mark.parametrize(
    ("order", "groups", "slices"),
    [("logBytes", 1, ["g"]), ("oldest", 2, ["g", "f"]), ("logBytes", 2, ["g", "h"])],
)
def test_a_budget_of_slices_takes_the_first_in_the_declared_order(order, groups, slices):
    part = plan(order=order, budget=CompactionBudget(groups=groups))

    assert slices == list_slices(part)
    assert {"budget": 3 - groups} == find_untouched(part)
    (note,) = part.warnings
    verb = f"wait{'s' * (groups == 2)}"
    assert f"{verb} for another run, after 1 more deltacommit: compaction.budget" in note.because


@pytest.mark.parametrize(
    ("rewrite", "slices"), [(1, ["g"]), (40, ["g"]), (41, ["g", "h"]), (71, ["g", "h", "f"])]
)
def test_a_budget_of_bytes_is_used_up_by_what_is_read_and_written_as_in_hudi(rewrite, slices):
    """g reads 30 and writes 10, h reads 20 and writes 10: the slice that exceeds it is taken."""
    assert slices == list_slices(plan(budget=CompactionBudget(rewrite=rewrite)))


def test_what_a_clustering_of_the_same_plan_rewrites_is_left_to_it():
    slices = [{"fileId": "g", "base": base("g", 0), "logs": [log("g", 1), log("g", 2)]}]
    group = {"partition": "a", "outputs": 1, "bytes": 1, "because": "", "slices": slices}
    part = plan(clustered=rewrites_from_json([group]))

    assert (["h", "f"], {"clustering": 1}) == (list_slices(part), find_untouched(part))


def test_several_slices_that_one_compaction_holds_are_spoken_of_together():
    held = [
        PendingCompactionGroup(
            instant=stamp(5),
            action=Action.COMPACTION,
            partition="a",
            file_id=group,
            base_instant=stamp(0),
        )
        for group in "gh"
    ]
    part = plan(make_state(compactions=tuple(held)), partitions=PartitionFilter(exclude=("b",)))

    (note,) = part.warnings
    said = f"2 file slices: compaction {stamp(5)} is going to rewrite their file groups"
    assert said in note.because


def test_partitions_and_pending_services_are_left_alone():
    held = [
        PendingCompactionGroup(
            instant=stamp(5),
            action=Action.LOGCOMPACTION,
            partition="a",
            file_id="g",
            base_instant=stamp(0),
        )
    ]
    clustered = PendingClusteringSlice(
        instant=stamp(6), partition="a", file_id="h", base_file=base("h", 0), log_files=()
    )
    state = make_state(compactions=tuple(held), clusterings=(clustered,))
    part = plan(state)
    without_b = plan(partitions=PartitionFilter(exclude=("b",)))

    assert (["f"], {"pendingLogCompaction": 1, "pendingClustering": 1}) == (
        list_slices(part),
        find_untouched(part),
    )
    assert (["g", "h"], {"partition": 1}) == (list_slices(without_b), find_untouched(without_b))


@pytest.mark.parametrize(("version", "slices"), [(6, []), (8, ["g"]), (9, ["g"])])
def test_only_in_version_6_a_pending_write_holds_compactions_back(version, slices):
    name = log("g", 1) if version > 6 else f".g_{stamp(0)}.log.1_0-0-0"
    instants = [deltacommit(0), deltacommit(1), deltacommit(2, State.INFLIGHT)]
    state = make_state({"a": [base("g", 0), name]}, instants, table_version=version)
    if version == 6:
        state = replace(state, completions={})
    part = plan(state)

    assert slices == list_slices(part)
    assert 1 == len(part.findings)
    if not slices:
        (note,) = part.warnings
        assert "pendingWrite" == note.rule
        assert f"deltacommit {stamp(2)} is pending, and in table version 6" in note.because


def test_a_pending_log_file_is_no_log_file_of_the_slice():
    instants = [deltacommit(0), deltacommit(1), deltacommit(2, State.INFLIGHT)]
    part = plan(make_state({"a": [base("g", 0), log("g", 1), log("g", 2)]}, instants))

    assert [[log("g", 1)]] == part.step.groups.logs.to_pylist()


def test_slices_of_bootstrapped_files_are_left_to_hudi():
    skeleton = "g_0-0-0_00000000000001.parquet"
    instants = [Instant("00000000000001", Action.COMMIT, State.COMPLETED, None), *WRITES]
    part = plan(make_state({"a": [skeleton, log("g", 1)]}, instants))

    (note,) = part.warnings
    assert (None, "nothingToDo") == (part.step, note.rule)
    assert "its base file is a bootstrap skeleton" in note.because


@pytest.mark.parametrize(
    ("more", "lock", "rule", "said"),
    [
        ({"table_type": "COPY_ON_WRITE"}, "filesystem", "compaction", "is copy-on-write"),
        ({}, "none", "lock", "a compaction needs a lock"),
        (
            {"properties": {**PROPERTIES, "hoodie.table.cdc.enabled": "true"}},
            "filesystem",
            "compaction",
            "no compaction: the table keeps change logs",
        ),
        (
            {"properties": {**PROPERTIES, "hoodie.record.merge.mode": "CUSTOM"}},
            "filesystem",
            "compaction",
            "merge mode CUSTOM is not supported",
        ),
    ],
)
def test_a_table_that_cannot_be_compacted_here_is_refused_by_name(more, lock, rule, said):
    part = plan(make_state(**more), lock=lock)

    (note,) = part.refusals
    assert (None, rule, "compact") == (part.step, note.rule, note.step)
    assert said in note.because
