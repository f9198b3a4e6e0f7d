"""The order in which a reviewer should look at the tables of a plan.

The riskiest table is first, by the first of these that differs:

1. blocked tables before tables to change, because the spec asks for what a guardrail forbids;
2. the share of the table's bytes that is removed or deleted with its partition, in tenths;
3. the share of the time travel that is lost, in tenths;
4. the bytes removed, then the files, then the bytes rewritten, then the name.

Tenths make tables with similar shares equal, so that the absolute figures decide.
"""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.plans.model import TablePlan
from reconciler.render import words
from reconciler.render.plan_summary import sum_deleted_bytes

_ALL_TENTHS = 10


def sort_by_risk(tables: Iterable[TablePlan]) -> list[TablePlan]:
    """Return the tables, the riskiest first."""
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
    return _count_tenths(table.impact.bytes_removed + sum_deleted_bytes(table), whole)


def _tenths_of_time_travel(table: TablePlan) -> int:
    """Return the tenths of the time travel that are lost; ten if nothing can be read any more."""
    impact = table.impact
    last = None if table.observed is None else table.observed.window_end
    before = words.time_between(impact.earliest_readable_before, last)
    if before is None or impact.earliest_readable_before == impact.earliest_readable_after:
        return 0
    after = words.time_between(impact.earliest_readable_after, last)
    whole = before.total_seconds()
    return _count_tenths(whole - (0 if after is None else after.total_seconds()), whole)


def _count_tenths(part: float, whole: float) -> int:
    """Return the number of tenths that a part is of the whole, rounded down.

    >>> [_count_tenths(*pair) for pair in [(1, 10), (19, 100), (5, 5), (7, 5), (1, 0)]]
    [1, 1, 10, 10, 0]
    """
    return min(_ALL_TENTHS, max(0, int(_ALL_TENTHS * part // whole))) if whole else 0
