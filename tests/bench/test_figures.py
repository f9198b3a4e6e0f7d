"""Tests of figures, goals and how systems compare."""

from __future__ import annotations

import pytest

from tests.bench.figures import (
    BEST_PEER,
    CPU,
    MEMORY,
    WALL,
    Baseline,
    Comparison,
    Figure,
    Goal,
    Measure,
    collect_figures,
    compare,
    cost_measures,
    unmeasured,
)
from tests.bench.jobs import Run, take_turns
from tests.bench.meter import Cost
from tests.bench.versions import OURS, SPARK


def figure(system: str, *turns: float, what: str = "write", unit: str = CPU) -> Figure:
    return Figure(what=what, system=system, unit=unit, turns=turns)


def goal(limit: float, baseline: Baseline | None = None, what: str = "write") -> Goal:
    return Goal(what=what, unit=CPU, limit=limit, baseline=baseline)


def only_row(figures: list[Figure], *goals: Goal) -> Comparison:
    (row,) = compare(figures, goals)
    return row


def test_the_median_of_the_turns_counts_but_the_maximum_of_memory():
    assert 3 == figure("Hudi", 9, 1, 3).value
    assert 9 == figure("Hudi", 9, 1, 3, unit=MEMORY).value


def test_measures_of_turns_become_figures_by_work_system_and_unit():
    cost = [Cost(wall=2, cpu=4, megabytes=8), Cost(wall=3, cpu=5, megabytes=7)]
    taken = [("Hudi", one) for of in cost for one in cost_measures("write", of)]

    assert (
        figure("Hudi", 2, 3, unit=WALL),
        figure("Hudi", 4, 5, unit=CPU),
        figure("Hudi", 8, 7, unit=MEMORY),
    ) == collect_figures(taken)


def test_a_figure_of_ours_is_compared_with_the_best_peer_and_not_with_the_floor():
    row = only_row([figure(OURS, 6, 5), figure("Hudi", 20), figure("Delta", 10), figure(SPARK, 1)])

    assert ("Delta", 0.55, 0.6, None) == (row.baseline.system, row.ratio, row.worst, row.is_met)


@pytest.mark.parametrize(
    ("baseline", "limit", "is_met"),
    [
        (BEST_PEER, 0.5, True),
        (BEST_PEER, 0.49, False),
        (None, 5, True),
        (None, 4.9, False),
        (Baseline(systems=(SPARK,)), 5, True),
        (Baseline(systems=(SPARK,)), 4.9, False),
        (Baseline(systems=("Hudi", "Delta")), 0.5, True),
        (Baseline(systems=("Hudi",)), 0.24, False),
        (Baseline(what="first"), 0.25, True),
        (Baseline(what="first"), 0.24, False),
        (Baseline(systems=("Iceberg",)), 9, None),
    ],
)
def test_a_goal_limits_a_value_or_its_ratio_to_what_it_names(baseline, limit, is_met):
    figures = [
        figure(OURS, 5),
        figure("Hudi", 20),
        figure("Delta", 10),
        figure(SPARK, 1),
        figure(OURS, 20, what="first"),
    ]
    rows = [row for row in compare(figures, [goal(limit, baseline)]) if row.goal]

    assert [is_met] == [row.is_met for row in rows]


def test_the_best_peer_is_shown_beside_a_goal_that_names_another_baseline():
    figures = [figure(OURS, 5), figure("Delta", 4), figure(SPARK, 1)]
    floor, peer = compare(figures, [goal(6, Baseline(systems=(SPARK,)))])

    assert (SPARK, False) == (floor.baseline.system, floor.is_slower)
    assert ("Delta", True) == (peer.baseline.system, peer.is_slower)


def test_a_peer_that_needs_nothing_is_better_without_a_ratio():
    row = only_row([figure(OURS, 1), figure("Delta", 0)], goal(0.5, BEST_PEER))

    assert (None, True, False) == (row.ratio, row.is_slower, row.is_met)


def test_a_goal_that_nothing_was_measured_for_is_named():
    missing = goal(5, what="read")

    assert (missing,) == unmeasured([figure(OURS, 5)], [goal(5), missing])


def quick_run(monkeypatch, turns: int) -> Run:
    monkeypatch.setattr("tests.bench.jobs.psutil.cpu_percent", lambda _: 25.0)
    return Run(turns=turns)


def test_systems_take_turns_and_the_load_before_each_is_kept(monkeypatch):
    order = []

    def measure(system: str):
        order.append(system)
        return [Measure(what="write", unit=CPU, value=len(order))]

    run = quick_run(monkeypatch, 2)
    found = take_turns(run, {name: lambda name=name: measure(name) for name in ("a", "b")})

    assert ["a", "b", "a", "b"] == order
    assert (figure("a", 1, 3), figure("b", 2, 4)) == found
    assert [0.25] * 4 == run.log.busy


def test_a_peer_that_fails_is_left_out_with_a_note_and_ours_ends_the_job(monkeypatch):
    def fail():
        raise SystemExit("no network")

    run = quick_run(monkeypatch, 2)

    assert () == take_turns(run, {"Delta": fail})
    assert ["Delta failed in turn 1: no network"] == run.log.notes
    with pytest.raises(SystemExit, match="no network"):
        take_turns(run, {OURS: fail})
