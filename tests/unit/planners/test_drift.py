"""Facts about where a table differs from its spec."""

from __future__ import annotations

import pytest

from reconciler.planners.drift import ExcessSlices, find_drift
from reconciler.spec.model import Policy, Retention, TableSpec
from tests.unit.planners.cow import stamp, upserts


def spec(policy, keep):
    return TableSpec(name="t", path="/t", retention=Retention(policy=policy, keep=keep))


def test_no_retention_is_no_drift():

    assert () == find_drift(TableSpec(name="t", path="/t"), upserts(3), None)


def test_a_table_within_its_retention_does_not_differ():

    assert () == find_drift(spec(Policy.COMMITS, 3), upserts(3), None)


@pytest.mark.parametrize(
    ("policy", "keep", "field", "actual"),
    [
        (Policy.COMMITS, 2, "retention.commits", 7),  # commits at and after the oldest excess
        (Policy.HOURS, 24, "retention.hours", 30),  # six hours beyond the window
        (Policy.FILE_VERSIONS, 3, "retention.fileVersions", 8),
    ],
)
def test_excess_is_told_in_the_units_of_the_policy(policy, keep, field, actual):
    excess = ExcessSlices(slices=2, files=5, oldest=stamp(1), versions=8, cutoff=stamp(7))
    (found,) = find_drift(spec(policy, keep), upserts(8), excess)

    assert (field, keep, actual) == (found.field, found.desired, found.actual)
    assert f"2 file slices in 5 files exceed it, the oldest of {stamp(1)}" == found.because


def test_hours_of_an_instant_that_is_no_time_are_not_counted():
    excess = ExcessSlices(slices=1, files=1, oldest="00000000000001", versions=1, cutoff=stamp(7))
    (found,) = find_drift(spec(Policy.HOURS, 24), upserts(8), excess)

    assert 24 == found.actual
