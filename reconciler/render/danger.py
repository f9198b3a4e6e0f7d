"""Which table a reader of a plan should look at first.

Most dangerous first, by the first of these that differs:

1. a blocked table before one that would change: somebody asked for what a guardrail forbids;
2. the share of the table's bytes that goes, in tenths;
3. the share of the time travel that goes, in tenths;
4. the bytes removed, then the files, then the bytes rewritten, then the name.

Tenths, so that two tables that lose about as much of themselves are told apart by what they lose.
"""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.plan.model import TablePlan
from reconciler.render import words

_ALL = 10


def most_dangerous_first(tables: Iterable[TablePlan]) -> list[TablePlan]:
    """The tables in the order in which people should look at them."""
    return sorted(tables, key=_harmlessness)


def _harmlessness(table: TablePlan) -> tuple[bool, int, int, int, int, int, str]:
    impact = table.impact
    return (
        not table.refusals,
        -_bytes_lost(table),
        -_time_lost(table),
        -impact.bytes_removed,
        -impact.files_removed,
        -impact.bytes_rewritten,
        table.name,
    )


def _bytes_lost(table: TablePlan) -> int:
    whole = 0 if table.observed is None else table.observed.bytes
    return _tenths(table.impact.bytes_removed, whole)


def _time_lost(table: TablePlan) -> int:
    """Tenths of the time travel that go: all of it where nothing can be read as of then."""
    impact = table.impact
    last = None if table.observed is None else table.observed.last_completed
    before = words.between(impact.earliest_readable_before, last)
    if before is None or impact.earliest_readable_before == impact.earliest_readable_after:
        return 0
    after = words.between(impact.earliest_readable_after, last)
    whole = before.total_seconds()
    return _tenths(whole - (0 if after is None else after.total_seconds()), whole)


def _tenths(part: float, whole: float) -> int:
    """How many tenths of the whole a part is, rounded down.

    >>> _tenths(1, 10), _tenths(19, 100), _tenths(5, 5), _tenths(7, 5), _tenths(1, 0)
    (1, 1, 10, 10, 0)
    """
    return min(_ALL, max(0, int(_ALL * part // whole))) if whole else 0
