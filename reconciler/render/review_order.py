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

from reconciler.plans.model import TablePlan
from reconciler.render import words

_ALL_TENTHS = 10


def sort_by_risk(tables: Iterable[TablePlan]) -> list[TablePlan]:
    """The tables in the order in which people should look at them."""
    return sorted(tables, key=_sort_key)


def _sort_key(table: TablePlan) -> tuple[bool, int, int, int, int, int, str]:
    impact = table.impact
    return (
        not table.refusals,
        -_tenths_of_bytes(table),
        -_tenths_of_time_travel(table),
        -impact.bytes_removed,
        -impact.files_removed,
        -impact.bytes_rewritten,
        table.name,
    )


def _tenths_of_bytes(table: TablePlan) -> int:
    whole = 0 if table.observed is None else table.observed.bytes
    return _count_tenths(table.impact.bytes_removed, whole)


def _tenths_of_time_travel(table: TablePlan) -> int:
    """Tenths of the time travel that go: all of it where nothing can be read as of then."""
    impact = table.impact
    last = None if table.observed is None else table.observed.last_completed
    before = words.time_between(impact.earliest_readable_before, last)
    if before is None or impact.earliest_readable_before == impact.earliest_readable_after:
        return 0
    after = words.time_between(impact.earliest_readable_after, last)
    whole = before.total_seconds()
    return _count_tenths(whole - (0 if after is None else after.total_seconds()), whole)


def _count_tenths(part: float, whole: float) -> int:
    """How many tenths of the whole a part is, rounded down.

    >>> _tenths(1, 10), _tenths(19, 100), _tenths(5, 5), _tenths(7, 5), _tenths(1, 0)
    (1, 1, 10, 10, 0)
    """
    return min(_ALL_TENTHS, max(0, int(_ALL_TENTHS * part // whole))) if whole else 0
