"""Propose the queries of a spec from what was asked of its table; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from typing import Final

from reconciler.event_logs.normal_form import is_known, make_shape_key, simplify
from reconciler.event_logs.workload import ObservedQuery, ObservedTable, ReadCounts
from reconciler.index.predicates.parse import parse
from reconciler.lazy_dataclass import dataclass
from reconciler.prices import DAYS_A_MONTH
from reconciler.spec.model import Query

#: proposed queries of a table, unless told otherwise; the command line repeats it
DEFAULT_LIMIT: Final = 10
_MAX_NAME: Final = 60
_PERIODS: Final = (("day", 1.0), ("week", 7.0), ("month", DAYS_A_MONTH))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedQuery:
    """A query to declare, and what was observed of it."""

    query: Query
    observed: ObservedQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryProposal:
    """The queries of a table from its logs.

    ``new``: to declare, those that read most first. ``declared``: queries of the spec that were
    asked, by their names. ``others``: shapes beyond the limit, with their counts together.
    """

    table: ObservedTable
    days: float
    new: tuple[ProposedQuery, ...] = ()
    declared: tuple[tuple[str, ObservedQuery], ...] = ()
    others: int = 0
    other_counts: ReadCounts = field(default_factory=ReadCounts)

    def describe_runs(self, observed: ObservedQuery) -> str:
        """Return how often a query was asked, as a spec writes it."""
        return format_runs(observed.runs, self.days)

    def add_to(self, queries: Sequence[Query]) -> tuple[Query, ...]:
        """Return declared queries with the new ones; those that were asked get their runs."""
        runs = {name: format_runs(found.runs, self.days) for name, found in self.declared}
        known = (
            replace(query, runs=runs[query.name])
            if query.runs is None and query.name in runs
            else query
            for query in queries
        )
        return (*known, *(proposed.query for proposed in self.new))


def propose_queries(
    table: ObservedTable, declared: Sequence[Query], days: float, limit: int = DEFAULT_LIMIT
) -> QueryProposal:
    """Return the queries to declare for a table, at most ``limit``.

    A query of the shape of a declared one is not proposed: the declared one stays as it is.
    """
    names_by_shape: dict[str, str] = {}
    for query in declared:
        if key := _find_shape(query.where):
            names_by_shape.setdefault(key, query.name)
    asked, new = [], []
    for observed in table.queries:
        name = names_by_shape.get(_find_shape(observed.where) or "")
        if name is None:
            new.append(observed)
        else:
            asked.append((name, observed))
    taken = {query.name for query in declared}
    others = new[limit:]
    return QueryProposal(
        table=table,
        days=days,
        new=tuple(_propose(observed, days, taken) for observed in new[:limit]),
        declared=tuple(asked),
        others=len(others),
        other_counts=ReadCounts(
            runs=sum(query.runs for query in others), bytes=sum(query.bytes for query in others)
        ),
    )


def format_runs(runs: int, days: float) -> str:
    """Return how often a query runs, as a spec writes it.

    >>> format_runs(40, 1), format_runs(7, 28), format_runs(1, 60), format_runs(100, 3)
    ('40/day', '1.8/week', '0.51/month', '33/day')
    """
    period, length = next(
        ((name, length) for name, length in _PERIODS if runs / days * length >= 1), _PERIODS[-1]
    )
    rate = runs / days * length
    number = f"{rate:.0f}" if rate >= 10 else f"{rate:.2g}"  # noqa: PLR2004 - two digits
    return f"{number}/{period}"


def _propose(observed: ObservedQuery, days: float, taken: set[str]) -> ProposedQuery:
    name = _choose_name(observed.shape, taken)
    taken.add(name)
    query = Query(name=name, where=observed.where, runs=format_runs(observed.runs, days))
    return ProposedQuery(query=query, observed=observed)


def _choose_name(shape: str, taken: Iterable[str]) -> str:
    """Return a name that no other query has.

    >>> _choose_name("customer = ?", {"customer = ?"})
    'customer = ? (2)'
    """
    short = shape if len(shape) <= _MAX_NAME else f"{shape[: _MAX_NAME - 1].rstrip()}…"
    numbers = range(2, 2 + len(set(taken)))
    names = (short, *(f"{short} ({number})" for number in numbers))
    return next(name for name in names if name not in taken)


def _find_shape(where: str) -> str | None:
    """Return the shape of a condition; None if it has parts that cannot be compared."""
    predicate = parse(where)
    known = simplify([predicate]) if is_known(predicate) else None
    return None if known is None else make_shape_key(known)
