"""Laws of simulated retentions: to keep more of a history never keeps less of the table."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.planners.compose import plan_table
from reconciler.planners.retention_simulation import RetentionChoice, simulate_retentions
from reconciler.spec.model import Policy, Retention, TableSpec
from tests.laws.clean_tables import retentions, tables
from tests.selection import examples

NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)
LAW = settings(max_examples=examples(8, many=200), deadline=None)
SPEC = TableSpec(name="t", path="/t", timezone="UTC")


def choices(policy, *kept):
    return [RetentionChoice(policy=policy, keep=keep) for keep in kept]


@LAW
@given(tables(), st.sampled_from(Policy), st.sets(st.integers(1, 12), min_size=2, max_size=4))
def test_to_keep_more_never_keeps_fewer_bytes_nor_a_shorter_time(state, policy, kept):
    curve = simulate_retentions(SPEC, state, NOW, choices(policy, *kept))
    points = [point for point in curve.points if point.problem is None]

    assert sorted(kept) == [point.keep for point in curve.points]
    for less, more in pairwise(points):
        assert less.bytes_kept <= more.bytes_kept
        assert less.commits <= more.commits
        if less.earliest_readable is not None:
            assert more.earliest_readable <= less.earliest_readable


@LAW
@given(tables(), st.sampled_from(Policy), st.integers(1, 12))
def test_kept_and_removed_bytes_are_those_of_the_table(state, policy, keep):
    curve = simulate_retentions(SPEC, state, NOW, choices(policy, keep))

    assert int(state.files.size.sum()) == curve.bytes
    for point in curve.points:
        if point.problem is None:
            assert curve.bytes == point.bytes_kept + point.bytes_removed
            assert curve.newest_bytes <= point.bytes_kept
            assert point.commits <= curve.commits
            assert point.older_commits <= curve.commits + curve.older_commits


@LAW
@given(tables(), retentions())
def test_a_point_is_what_the_plan_of_its_retention_does(state, declared):
    retention = Retention(policy=declared.policy, keep=declared.keep)
    spec = replace(SPEC, retention=declared)
    [point] = simulate_retentions(spec, state, NOW, choices(declared.policy, declared.keep)).points
    plan = plan_table(replace(SPEC, retention=retention), state, NOW)

    assert point.is_declared
    if not plan.is_blocked:
        assert (plan.impact.files_removed, plan.impact.bytes_removed) == (
            point.files_removed,
            point.bytes_removed,
        )
        if not point.older_commits:  # a plan names the earliest write, even before a gap
            assert plan.impact.earliest_readable_after == point.earliest_readable
