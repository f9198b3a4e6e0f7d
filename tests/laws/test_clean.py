"""Laws of cleaning, on tables of every version and type."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reconciler.planners.clean.planner import plan_clean
from reconciler.planners.compose import plan_table
from reconciler.planners.readable_instants import find_earliest_readable
from reconciler.plans.document import dump_plan
from reconciler.plans.plan import Plan
from reconciler.spec.model import Policy, TableSpec
from reconciler.state.model import CompletedClean
from tests.laws.clean_tables import (
    cutoffs,
    expect_clean,
    group_slices,
    instant_at,
    list_files,
    retentions,
    tables,
    without_files,
)
from tests.selection import examples

NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)
LAW = settings(max_examples=examples(20, many=100), deadline=None)


def file_pairs(files):
    return set(zip(files.partition.to_pylist(), files.name.to_pylist(), strict=True))


def removed_files(decision):
    return file_pairs(decision.step.files) if decision.step else set()


def slices_of(state):
    return group_slices(state, None if state.table_version < 8 else state.completions)


@LAW
@given(tables(), retentions(), cutoffs())
def test_independent_implementation_removes_and_keeps_the_same(state, retention, cutoff):
    if state.v6_completions:  # where Hudi 1.x reads other slices, a cap may stop elsewhere
        retention = replace(retention, max_commits_per_run=None)
    decision = plan_clean(retention, state, cutoff=cutoff)
    second = expect_clean(state, retention, cutoff)

    assert second.earliest == decision.expired.earliest
    assert second.removed == removed_files(decision)
    assert second.by_policy - second.removed == file_pairs(decision.kept)


@LAW
@given(tables(), retentions(), cutoffs())
def test_kept_and_removed_are_what_the_policy_alone_removes(state, retention, cutoff):
    decision = plan_clean(retention, state, cutoff=cutoff)

    assert set() == removed_files(decision) & file_pairs(decision.kept)
    assert expect_clean(state, retention, cutoff).by_policy == removed_files(decision) | file_pairs(
        decision.kept
    )
    assert all(decision.kept.because.to_pylist())


@LAW
@given(tables(), retentions(), cutoffs())
def test_no_needed_file_is_removed(state, retention, cutoff):
    decision = plan_clean(retention, state, cutoff=cutoff)
    pinned = {name for savepoint in state.savepoints for name in savepoint.files}
    clustered = {c.base_file for c in state.clusterings}
    bases = {(o.partition, o.file_id): o.base_instant for o in state.compactions}
    taken = removed_files(decision)

    for (path, file_id), slices in slices_of(state).items():
        if (path, file_id) not in state.replaced:
            newest = next((s for s in slices if s.files), None)
            assert newest is None or not taken & {(path, f) for f in newest.files}
        for found in slices:
            if (path, file_id) in bases and found.key >= bases[path, file_id]:
                assert not taken & {(path, f) for f in found.files}
    visible = {(p, f) for (p, _), ss in slices_of(state).items() for s in ss for f in s.files}
    assert taken <= visible
    assert not {name for _, name in taken} & (pinned | clustered)


@LAW
@given(tables(), retentions(), cutoffs(), st.integers(1, 4))
def test_wider_retention_removes_a_subset(state, retention, cutoff, more):
    retention = replace(retention, max_commits_per_run=None)
    wide = replace(retention, keep=retention.keep + more)
    earlier = f"{int(cutoff) - more * 100000:017d}"
    narrow = plan_clean(retention, state, cutoff=cutoff)

    if retention.policy is not Policy.HOURS:
        assert removed_files(plan_clean(wide, state, cutoff=cutoff)) <= removed_files(narrow)
    elif narrow.expired.boundary.policy is not None:  # an idle table keeps everything
        assert removed_files(plan_clean(wide, state, cutoff=earlier)) <= removed_files(narrow)


@LAW
@given(tables(), retentions(), cutoffs())
def test_second_clean_removes_nothing(state, retention, cutoff):
    retention = replace(retention, max_commits_per_run=None)
    first = plan_clean(retention, state, cutoff=cutoff)
    second = plan_clean(retention, without_files(state, removed_files(first)), cutoff=cutoff)

    assert set() == removed_files(second)


@LAW
@given(tables(), retentions(), cutoffs(), st.integers(1, 3))
def test_capped_runs_end_with_nothing_left(state, retention, cutoff, cap):
    assume(not state.v6_completions)
    whole = removed_files(
        plan_clean(replace(retention, max_commits_per_run=None), state, cutoff=cutoff)
    )
    left = set(whole)
    for _ in range(len(whole) + 1):
        decision = plan_clean(replace(retention, max_commits_per_run=cap), state, cutoff=cutoff)
        taken = removed_files(decision)
        if not left:
            break
        assert taken
        assert taken <= left
        left -= taken
        state = without_files(state, taken)

    assert set() == left


@LAW
@given(tables(), retentions())
def test_equal_tables_give_equal_bytes(state, retention):
    spec = TableSpec(name="t", path="/t", retention=retention)
    plans = [
        Plan(created_at=NOW.isoformat(), tool="t", tables=(plan_table(spec, state, NOW),))
        for state in (state, without_files(state, set()))
    ]

    assert dump_plan(plans[0]) == dump_plan(plans[1])
    assert plans[0].tables[0].impact.files_removed <= len(list_files(state))


def state_after_clean(state, gone):
    """Return the state after a clean removed the files and completed."""
    names = {}
    for path, name in sorted(gone):
        names.setdefault(path, []).append(name)
    clean = CompletedClean(
        instant=instant_at(50),
        is_blank=False,
        policy=None,
        earliest_instant_to_retain="",
        last_completed_commit="",
        savepointed=(),
        removed={path: tuple(found) for path, found in names.items()},
        extra={},
    )
    return replace(without_files(state, gone), cleans=(*state.cleans, clean))


def find_first_readable(state, gone):
    """Return the first completed write at which every group's slice still has all its files."""
    for time in sorted({i.requested for i in state.timeline.commits}):
        needed = set()
        for (path, file_id), slices in slices_of(state).items():
            if state.replaced.get((path, file_id), "9") <= time:
                continue
            found = next((s for s in slices if s.key <= time and not s.phantom), None)
            needed |= {(path, name) for name in found.files} if found else set()
        if not needed & gone:
            return time
    return None


@LAW
@given(tables(), retentions(), cutoffs())
def test_earliest_readable_instant_is_right(state, retention, cutoff):
    decision = plan_clean(retention, state, cutoff=cutoff)
    gone = removed_files(decision)

    assert (
        find_first_readable(state, set()),
        find_first_readable(state, gone),
    ) == find_earliest_readable(state, decision.is_removed)
    later = state_after_clean(state, gone)
    nothing = np.zeros(len(later.files), np.bool_)
    assert find_first_readable(state, gone) == find_earliest_readable(later, nothing)[0]
