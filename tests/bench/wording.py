"""Write numbers, goals and verdicts of benches the same in the terminal and on the page."""

from __future__ import annotations

from tests.bench.figures import BYTES, CPU, MEMORY, WALL, Comparison, Figure, Goal
from tests.bench.versions import OURS

#: units whose spread over the turns is shown
_SPREAD = (WALL, CPU)


def format_value(value: float) -> str:
    """Return a number with three digits that count, thousands apart.

    >>> [format_value(value) for value in (0, 0.0312, 1.5, 48.12, 31234.4)]
    ['0', '0.031', '1.50', '48.1', '31 234']
    """
    if value == int(value):
        return f"{int(value):,}".replace(",", " ")
    for least, digits in ((100, 0), (10, 1), (0.1, 2)):
        if abs(value) >= least:
            return f"{value:,.{digits}f}".replace(",", " ")
    return f"{value:.3f}"


def format_figure(figure: Figure) -> str:
    """Return a figure's value, with the least and the greatest turn if they differ.

    >>> format_figure(Figure(what="w", system="s", unit="wall s", turns=(2.5, 2.0, 3.5)))
    '2.50 (2 to 3.50)'
    """
    value = format_value(figure.value)
    least, greatest = (format_value(edge) for edge in (min(figure.turns), max(figure.turns)))
    if figure.unit not in _SPREAD or least == greatest:
        return value
    return f"{value} ({least} to {greatest})"


def describe_goal(goal: Goal) -> str:
    """Return what a goal allows.

    >>> describe_goal(Goal(what="plan", unit="CPU s", limit=5))
    'at most 5 CPU s'
    """
    if goal.baseline is None:
        unit = goal.unit if goal.unit in (WALL, CPU, MEMORY, BYTES) else ""
        return f"at most {format_value(goal.limit)} {unit}".rstrip()
    what = f"“{goal.baseline.what}”" if goal.baseline.what else ""
    whose = " or ".join(goal.baseline.systems) or ("" if what else "the best peer")
    whole = " of ".join(part for part in (what, whose) if part)
    return f"at most {goal.limit:g} times {whole}"


def describe_verdict(row: Comparison) -> str:
    """Return ``met``, ``MISSED``, that a goal's baseline is missing, and if a peer does better."""
    absent = "" if row.goal is None else "not measured"
    verdict = {True: "met", False: "MISSED", None: absent}[row.is_met]
    worse = "slower" if row.figure.unit in (WALL, CPU) else "more"
    return ", ".join(part for part in (verdict, worse if row.is_slower else "") if part)


def describe_baseline(row: Comparison) -> str:
    """Return the value that a row's figure is compared with, and whose it is."""
    if row.baseline is None:
        return ""
    whose = row.baseline.system
    if row.baseline.what != row.figure.what:
        whose = f"“{row.baseline.what}”" + ("" if whose == OURS else f" of {whose}")
    return f"{format_value(row.baseline.value)} ({whose})"


def describe_ratio(row: Comparison) -> str:
    return "" if row.ratio is None else f"{row.ratio:.2f}"


def describe_worst(row: Comparison) -> str:
    return "" if row.worst is None else f"{row.worst:.2f}"
