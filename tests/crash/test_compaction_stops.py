"""A compaction that nobody finishes is finished once, wherever an apply dies."""

from __future__ import annotations

from itertools import product

import pytest

from tests.crash.compaction_drill import STATES, VERSIONS, die_everywhere, get_step, make_compacting
from tests.crash.failed_write_drill import list_unlisted
from tests.selection import long

FINISHED = [".commit", ".compaction.requested"]
#: both layouts and states once; 1.0.2 is in the tests with real Hudi
USUAL = {("0.15.0", "requested"), ("1.2.0", "inflight")}
EVERY = [one if one in USUAL else long(*one) for one in product(VERSIONS, STATES)]
#: of this one an apply is killed in every run of the tests
KILLED = {("1.2.0", "inflight")}


def get_outcome(result):
    (outcome,) = result.tables[0].outcomes
    return outcome


@pytest.mark.parametrize(("version", "state"), EVERY)
def test_a_compaction_is_finished_and_planned_no_more(tmp_path, version, state):
    it = make_compacting(version, tmp_path, state)
    rows, plan = it.rows(), it.plan()
    step = get_step(plan)

    result = it.apply(plan)

    outcome = get_outcome(result)
    assert (0, "resume", "completed") == (result.exit_code, outcome.kind, outcome.how)
    assert (it.instant, 3, 3) == (
        outcome.instant,
        outcome.rewritten.slices,
        outcome.rewritten.files_after,
    )
    assert (it.instant, 3) == (step.instant, len(step.groups))
    assert rows == it.rows()
    assert (FINISHED, 3) == (it.list_states(), len(it.list_written()))
    assert ([], set()) == (it.list_leftovers(), list_unlisted(it))
    assert () == it.plan().tables[0].steps
    again = it.apply(plan)
    assert (0, "nothing") == (again.exit_code, get_outcome(again).how)


@pytest.mark.parametrize(
    ("version", "state"),
    [one if one in KILLED else long(*one) for one in product(VERSIONS, STATES)],
)
@pytest.mark.parametrize("how", ["before", long("after")])
def test_wherever_the_apply_stops_the_next_one_finishes_it(tmp_path, version, state, how):
    it = make_compacting(version, tmp_path / "first", state)
    rows = it.rows()
    stops = die_everywhere(it, tmp_path, how, of=48, turn=len(state) + len(version), at_least=20)
    for at, copy, result in stops:
        assert 0 == result.exit_code, (at, result.tables)
        copy.apply(copy.plan())
        assert () == copy.plan().tables[0].steps, at
        assert (rows, FINISHED) == (copy.rows(), copy.list_states()), at
        assert (3, [], set()) == (
            len(copy.list_written()),
            copy.list_leftovers(),
            list_unlisted(copy),
        ), at
