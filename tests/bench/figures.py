"""What benches measure, what they aim at, and how the systems compare: pure functions.

A figure is one number of one system, with the value of each turn. Smaller is better in every unit.
A goal is a limit of one of our figures, as it is or relative to others of the same job.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.bench.meter import Cost
from tests.bench.versions import FLOORS, OURS

WALL: Final = "wall s"
CPU: Final = "CPU s"
MEMORY: Final = "peak MB"
FILES: Final = "files"
BYTES: Final = "MB of files"
WRITTEN: Final = "bytes written per byte"
SMALL: Final = "small files in a partition"
SHARE: Final = "share of bytes read"
REQUESTS: Final = "requests"
#: in the order of the columns of tables
UNITS: Final = (WALL, CPU, MEMORY, FILES, BYTES, WRITTEN, SMALL, SHARE, REQUESTS)
#: units of which the greatest turn counts, not the median
_WORST: Final = frozenset({MEMORY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One number of one turn: of what work, and in which unit."""

    what: str
    unit: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number of one system with the value of each turn."""

    what: str
    system: str
    unit: str
    turns: tuple[float, ...]

    @property
    def value(self) -> float:
        """Return the median of the turns, or the maximum for memory."""
        return max(self.turns) if self.unit in _WORST else statistics.median(self.turns)


def decode_figures(found: Iterable[Mapping[str, Any]]) -> tuple[Figure, ...]:
    """Return figures from what JSON makes of them."""
    return tuple(Figure(**{**one, "turns": tuple(one["turns"])}) for one in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What a goal is relative to: the best of ``systems``, for ``what`` or the goal's own.

    Without ``systems``: the best peer, or our own system if ``what`` is given.
    """

    systems: tuple[str, ...] = ()
    what: str | None = None


#: the best of all peers at the same work
BEST_PEER: Final = Baseline()


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The greatest value that a figure may have, or its ratio to a baseline."""

    what: str
    unit: str
    limit: float
    baseline: Baseline | None = None
    system: str = OURS


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One of our figures beside its baseline and its goal, as a row of the table of ratios.

    ``ratio`` is to the baseline's value; ``worst``: our greatest turn to the baseline's least.
    ``limit`` is of the ratio if the goal has a baseline, else of the value.
    """

    figure: Figure
    baseline: Figure | None
    goal: Goal | None

    @property
    def ratio(self) -> float | None:
        return _divide(self.figure.value, self.baseline.value) if self.baseline else None

    @property
    def worst(self) -> float | None:
        if self.baseline is None:
            return None
        return _divide(max(self.figure.turns), min(self.baseline.turns))

    @property
    def is_met(self) -> bool | None:
        """Return whether the goal is met; None without a goal or without its baseline."""
        if self.goal is None:
            return None
        if self.goal.baseline is None:
            return self.figure.value <= self.goal.limit
        if self.baseline is None:
            return None
        return self.figure.value <= self.goal.limit * self.baseline.value

    @property
    def is_slower(self) -> bool:
        """Return whether the row's baseline is a peer that does better than we do."""
        if self.baseline is None or not is_peer(self.baseline.system):
            return False
        return self.figure.value > self.baseline.value


def is_ours(system: str) -> bool:
    return system.split(",", 1)[0] == OURS


def is_peer(system: str) -> bool:
    """Return whether a system does the same work; a floor does less."""
    return not is_ours(system) and system.split(",", 1)[0] not in FLOORS


def cost_measures(what: str, cost: Cost) -> list[Measure]:
    """Return the three numbers of a cost."""
    values = {WALL: cost.wall, CPU: cost.cpu, MEMORY: cost.megabytes}
    return [Measure(what=what, unit=unit, value=value) for unit, value in values.items()]


def collect_figures(taken: Iterable[tuple[str, Measure]]) -> tuple[Figure, ...]:
    """Return the figures of measures with their systems, in the order of their first turns."""
    turns: dict[tuple[str, str, str], list[float]] = {}
    for system, one in taken:
        turns.setdefault((one.what, system, one.unit), []).append(one.value)
    return tuple(
        Figure(what=what, system=system, unit=unit, turns=tuple(values))
        for (what, system, unit), values in turns.items()
    )


def compare(figures: Sequence[Figure], goals: Sequence[Goal]) -> tuple[Comparison, ...]:
    """Return a row for every goal that was measured, and for every other figure with a peer."""
    at = {(one.what, one.system, one.unit): one for one in figures}
    rows = []
    for one in figures:
        if not is_ours(one.system):
            continue
        own = [goal for goal in goals if (goal.what, goal.system, goal.unit) == _key(one)]
        rows += [
            Comparison(figure=one, baseline=_find_baseline(at, goal), goal=goal) for goal in own
        ]
        peer = best_peer(figures, one.what, one.unit)
        if peer is not None and not any(row.baseline == peer for row in rows if row.figure == one):
            rows.append(Comparison(figure=one, baseline=peer, goal=None))
    return tuple(rows)


def unmeasured(figures: Sequence[Figure], goals: Sequence[Goal]) -> tuple[Goal, ...]:
    """Return the goals that nothing was measured for."""
    keys = {_key(one) for one in figures}
    return tuple(goal for goal in goals if (goal.what, goal.system, goal.unit) not in keys)


def best_peer(figures: Sequence[Figure], what: str, unit: str) -> Figure | None:
    """Return the least figure of the peers at this work."""
    found = [one for one in figures if (one.what, one.unit) == (what, unit) and is_peer(one.system)]
    return min(found, key=lambda one: one.value, default=None)


def _key(figure: Figure) -> tuple[str, str, str]:
    return figure.what, figure.system, figure.unit


def _find_baseline(at: Mapping[tuple[str, str, str], Figure], goal: Goal) -> Figure | None:
    if goal.baseline is None:
        return None
    what = goal.baseline.what or goal.what
    systems = goal.baseline.systems
    if not systems and goal.baseline.what is not None:
        systems = (goal.system,)
    if not systems:
        return best_peer(list(at.values()), what, goal.unit)
    found = [at[key] for system in systems if (key := (what, system, goal.unit)) in at]
    return min(found, key=lambda one: one.value, default=None)


def _divide(value: float, by: float) -> float | None:
    return value / by if by else None
