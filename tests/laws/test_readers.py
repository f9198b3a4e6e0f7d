"""Files that readers need are kept, and nothing else changes; tables of all versions and types."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.planners.clean.planner import plan_clean
from reconciler.planners.compose import plan_table
from reconciler.planners.reader_window import ReaderWindow
from reconciler.planners.recovery.resume_clean import revalidate_clean
from reconciler.plans.model import KEEP_RULES
from reconciler.spec.model import Policy, Readers, TableSpec
from reconciler.state.model import PendingClean
from tests.laws.clean_tables import (
    WRITES,
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

LAW = settings(max_examples=examples(27, many=100), deadline=None)
NOW = datetime(2026, 1, 1, 0, 45, tzinfo=UTC)
windows = st.integers(10, 42).map(
    lambda minute: ReaderWindow(
        reader="a query runs", seconds=60, start=instant_at(minute), zone=UTC
    )
)


def without_cap(retention):
    return replace(retention, max_commits_per_run=None)


def file_pairs(files):
    return set(zip(files.partition.to_pylist(), files.name.to_pylist(), strict=True))


def removed_files(decision):
    return file_pairs(decision.step.files) if decision.step else set()


def plan(retention, state, cutoff, window=None):
    return plan_clean(without_cap(retention), state, cutoff=cutoff, window=window)


def files_still_read(state, window):
    """Return, by plain loops, the files of slices created or superseded since the window began."""
    known = state.completions if state.table_version >= 8 else state.v6_completions
    pending = {
        instant.requested
        for instant in state.timeline.instants
        if instant.action.value in WRITES and not instant.is_completed
    }

    def is_recent(time):
        return time in pending or max(time, known.get(time, time)) >= window.start

    views = [group_slices(state, None if state.table_version < 8 else state.completions)]
    if state.table_version < 8 and state.is_merge_on_read and state.v6_completions:
        views.append(group_slices(state, state.v6_completions))
    found = set()
    for groups in views:
        for group, slices in groups.items():
            for newer, each in zip([None, *slices], slices, strict=False):
                ends = [newer.key] if newer else []
                ends += [state.replaced[group]] if group in state.replaced else []
                if is_recent(each.key) or all(is_recent(end) for end in ends):
                    found |= {(group[0], name) for name in each.files}
    return found


@LAW
@given(tables(), retentions(), cutoffs(), windows)
def test_independent_implementation_keeps_the_same_for_readers(state, retention, cutoff, window):
    without_readers = removed_files(plan(retention, state, cutoff))
    decision = plan(retention, state, cutoff, window)

    assert without_readers - files_still_read(state, window) == removed_files(decision)


@LAW
@given(tables(), retentions(), cutoffs(), windows, windows)
def test_longer_reader_window_removes_a_subset(state, retention, cutoff, one, other):
    longer, shorter = sorted([one, other], key=lambda window: window.start)

    assert removed_files(plan(retention, state, cutoff, longer)) <= removed_files(
        plan(retention, state, cutoff, shorter)
    )
    assert removed_files(plan(retention, state, cutoff, shorter)) <= removed_files(
        plan(retention, state, cutoff)
    )


@LAW
@given(tables(), retentions(), cutoffs(), windows)
def test_kept_and_removed_are_what_the_policy_alone_removes(state, retention, cutoff, window):
    decision = plan_clean(retention, state, cutoff=cutoff, window=window)
    by_policy = expect_clean(state, retention, cutoff).by_policy
    rules = dict(zip(draw_pairs(decision.kept), decision.kept.rule.tolist(), strict=True))
    of_readers = {key for key, rule in rules.items() if KEEP_RULES[rule] == "readers"}

    assert set() == removed_files(decision) & file_pairs(decision.kept)
    assert by_policy == removed_files(decision) | file_pairs(decision.kept)
    assert of_readers <= files_still_read(state, window)


def draw_pairs(files):
    return list(zip(files.partition.to_pylist(), files.name.to_pylist(), strict=True))


@LAW
@given(tables(), retentions(), cutoffs(), windows)
def test_rules_listed_before_readers_take_precedence(state, retention, cutoff, window):
    alone = plan(retention, state, cutoff).kept
    kept = plan(retention, state, cutoff, window).kept
    before = dict(zip(draw_pairs(alone), alone.rule.tolist(), strict=True))
    after = dict(zip(draw_pairs(kept), kept.rule.tolist(), strict=True))

    for key, rule in after.items():
        assert KEEP_RULES[rule] == "readers" or before[key] == rule


@LAW
@given(tables(), retentions(), cutoffs(), windows)
def test_second_clean_removes_nothing(state, retention, cutoff, window):
    first = removed_files(plan(retention, state, cutoff, window))

    assert set() == removed_files(plan(retention, without_files(state, first), cutoff, window))


@LAW
@given(tables(), windows, st.data())
def test_pending_clean_removes_nothing_that_readers_need(state, window, data):
    rows = list_files(state)
    chosen = data.draw(st.lists(st.sampled_from(rows), unique=True)) if rows else []
    names = {}
    for path, name in sorted(chosen):
        names.setdefault(path, []).append(name)
    clean = PendingClean(
        instant=instant_at(50),
        state="INFLIGHT",
        started_ms=0,
        files={path: tuple(found) for path, found in names.items()},
    )
    alone, found = revalidate_clean(state, clean), revalidate_clean(state, clean, window=window)

    assert file_pairs(alone.files) - files_still_read(state, window) == file_pairs(found.files)
    assert set(chosen) == file_pairs(found.files) | file_pairs(found.withheld)


@LAW
@given(tables(), retentions(), st.integers(1, 60))
def test_window_is_never_shorter_than_declared(state, retention, minutes):
    readers = Readers(longest_query=60 * minutes)
    if retention.policy is Policy.HOURS:
        retention = replace(retention, keep=1)
    spec = TableSpec(name="t", path="/t", retention=retention, readers=readers)

    assert () == plan_table(spec, state, NOW).refusals
