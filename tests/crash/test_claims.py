"""What the requested file of a clean claims: Hudi's archiver takes the boundary from there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.hudi.timeline.clean import CleanerPlan
from tests.crash.drill import CASES, Drill, Killed, list_traces, make_drill
from tests.crash.test_moves import NEW, OLD, put, timeline_folder
from tests.storage_wrappers import FaultyStorage, StorageFault

#: before every instant of the tables
PENDING = "20200101000000000"


@pytest.fixture(params=[OLD, NEW])
def it(request, tmp_path) -> Drill:
    """A table with two partitions and history to remove."""
    return make_drill(
        CASES / request.param / "table.zip", tmp_path / "t", retention="fileVersions: 1"
    )


def requested(it: Drill) -> CleanerPlan:
    (path,) = timeline_folder(it).glob("*.clean.requested")
    return CleanerPlan.parse(path.read_bytes(), path.name)


def test_a_clean_claims_nothing_after_a_pending_replacement(it):
    put(it, f"{PENDING}.replacecommit.requested")
    result = it.apply(it.plan())

    assert result.exit_code == 0
    assert (
        requested(it).earliest_instant
        == it.state().cleans[-1].earliest_instant_to_retain
        == PENDING
    )


def test_a_clean_that_is_finished_later_claims_what_is_true_then(it):
    plan = it.plan()
    with pytest.raises(Killed):
        it.apply(plan, around=lambda s: FaultyStorage(s, StorageFault(at=6), Killed()))
    before = requested(it)
    put(it, f"{PENDING}.replacecommit.requested")
    result = it.apply(plan)

    assert (result.exit_code, before.earliest_instant) == (0, None)
    assert requested(it) == replace(before, earliest_instant=PENDING)
    assert it.state().cleans[-1].earliest_instant_to_retain == PENDING
    assert list_traces(it.table) == []
