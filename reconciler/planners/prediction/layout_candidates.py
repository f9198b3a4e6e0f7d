"""Propose layouts for declared queries and choose the best one that was tried; pure.

Columns come from the predicates of the queries; ordering rows by other columns does not help them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import combinations, permutations
from typing import Any, Final, Literal

from reconciler.index.model import indexed_type
from reconciler.index.predicate_columns import (
    check_name,
    find_predicate_columns,
    find_unknown_names,
)
from reconciler.index.predicates.parse import parse
from reconciler.index.predicates.syntax import find_columns
from reconciler.layout.curves.query_boxes import Box, find_boxes
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.model import Note
from reconciler.spec.model import Query

Curve = Literal["kd-tree", "hilbert", "z-order", "linear"]

#: the first one is proposed if several are equally good
CURVES: Final[tuple[Curve, ...]] = ("kd-tree", "hilbert", "z-order", "linear")
#: limits of the columns in a set and of the sets that are tried
MAX_COLUMNS: Final = 4
MAX_SETS: Final = 8
#: least share of the bytes read today that a rewrite must save, as for clustered groups
MIN_SAVING: Final = 0.1
NEGLIGIBLE_DIFFERENCE: Final = 0.02

_META: Final = "_hoodie_"
_PAIR: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryColumns:
    """The columns of a table that queries filter on.

    ``columns``: those that can order rows, the most frequent first. ``sets``: per query, those on
    which every OR branch filters. ``index_columns``: columns, or fields of structs with dots, whose
    statistics can skip files. ``notes``: parts of the queries that do not help, and why.
    """

    columns: tuple[str, ...]
    sets: tuple[tuple[str, ...], ...]
    index_columns: tuple[str, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutCandidate:
    """A layout to try. ``mapping``: ``rank``, unless a spec declares otherwise."""

    columns: tuple[str, ...]
    curve: Curve
    mapping: Literal["rank", "direct"] = "rank"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryReads:
    """Files and bytes that a query reads; a base file with its log files counts as one file."""

    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutTrial:
    """A layout that was tried, and what each query would read.

    ``errors``: relative half-width of each prediction. ``table_bytes``: size of the new table.
    """

    candidate: LayoutCandidate
    reads: tuple[QueryReads, ...]
    errors: tuple[float, ...]
    table_bytes: int

    @property
    def bytes(self) -> int:
        """Return the bytes that all queries read together, each once."""
        return sum(read.bytes for read in self.reads)


def find_query_columns(
    queries: Sequence[Query], schema: Any, partition_columns: Collection[str]
) -> QueryColumns:
    """Return the columns that the queries filter on.

    ``schema``: the table's Arrow schema. ``partition_columns``: columns with one value per
    partition, which cannot order its rows. Names ignore case, as in Spark.
    """
    lookup = _ColumnLookup(
        schema=schema, partition_columns=frozenset(name.lower() for name in partition_columns)
    )
    sets, notes = [], []
    for query in queries:
        columns_by_box = [lookup.orderable_columns(box) for box in find_boxes(query.where)]
        common = set(columns_by_box[0]).intersection(*columns_by_box[1:])
        sets.append([name for name in columns_by_box[0] if name in common])
        notes += list(lookup.explain(query, is_bound=bool(common)))
    columns = _sort_by_frequency(sets)
    return QueryColumns(
        columns=columns,
        sets=tuple(tuple(sorted(names, key=columns.index)) for names in sets),
        index_columns=_sort_by_frequency([lookup.indexed_columns(query) for query in queries]),
        notes=tuple(notes),
    )


def warn_of_unknown_columns(queries: Iterable[Query], schema: Any) -> Iterator[Note]:
    """Warn of names in queries that the table does not have."""
    for query in queries:
        for unknown in find_unknown_names(query.where, schema):
            yield Note("columns", f"query {query.name!r}: {unknown.message}")


def list_candidates(wanted: QueryColumns) -> tuple[LayoutCandidate, ...]:
    """Return the layouts to try: sets of columns that queries filter on, along every curve.

    There are at most MAX_SETS sets of at most MAX_COLUMNS columns. On one column all curves are the
    same line, except that a kd-tree adapts to queries. For ``linear`` the order of columns matters.
    """
    tried: list[LayoutCandidate] = []
    for columns in _column_sets(wanted):
        curves = CURVES if len(columns) > 1 else ("kd-tree", "linear")
        for curve in curves:
            ways = [columns]
            if curve == "linear" and len(columns) == _PAIR:
                ways = list(permutations(columns))
            tried += [LayoutCandidate(columns=way, curve=curve) for way in ways]
    return tuple(tried)


def weigh_queries(queries: Sequence[Query]) -> tuple[float, ...]:
    """Return how much the bytes of each query count: how often it runs in a day.

    A query that does not say it counts as one that runs once a day, and all count alike if none
    does.

    >>> often = Query(name="a", where="a = 1", runs="40/day")
    >>> weigh_queries([often, Query(name="b", where="b = 1")])
    (40.0, 1.0)
    """
    return tuple(1.0 if query.runs_per_day is None else query.runs_per_day for query in queries)


def sum_bytes(reads: Iterable[QueryReads], weights: Sequence[float] = ()) -> float:
    """Return the bytes that queries read together; ``weights``: of each, or all count alike."""
    if not weights:
        return sum(read.bytes for read in reads)
    return sum(read.bytes * weight for read, weight in zip(reads, weights, strict=True))


def rank_trials(
    trials: Iterable[LayoutTrial],
    declared: LayoutCandidate | None = None,
    weights: Sequence[float] = (),
) -> tuple[LayoutTrial, ...]:
    """Return the trials, best first: by bytes read, then fewer columns, then order of CURVES.

    A difference below NEGLIGIBLE_DIFFERENCE is ignored, because file sizes are not known better.
    Among equally good trials the ``declared`` layout is first, which avoids a useless rewrite.
    ``weights`` are those of ``sum_bytes``.
    """
    sums = [(sum_bytes(trial.reads, weights), trial) for trial in trials]
    sums.sort(key=lambda pair: pair[0])
    tried = [trial for _, trial in sums]
    good = [trial for read, trial in sums if read <= (1 + NEGLIGIBLE_DIFFERENCE) * sums[0][0]]

    def key(trial: LayoutTrial) -> tuple[bool, int, int]:
        one = trial.candidate
        return one != declared, len(one.columns), CURVES.index(one.curve)

    return (*sorted(good, key=key), *tried[len(good) :])


def choose_trial(
    current: Sequence[QueryReads], trials: Sequence[LayoutTrial], weights: Sequence[float] = ()
) -> LayoutTrial | None:
    """Return the best trial if it saves enough for a rewrite, else None.

    ``trials``: best first. So a proposal is never worse than today in the same simulation.
    """
    before = sum_bytes(current, weights)
    if not trials or not before:
        return None
    return trials[0] if sum_bytes(trials[0].reads, weights) <= (1 - MIN_SAVING) * before else None


def _sort_by_frequency(sets: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """Return the names, the most frequent first and otherwise in their order."""
    counts: dict[str, int] = {}
    for names in sets:
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    return tuple(sorted(counts, key=lambda name: -counts[name]))


def _column_sets(found: QueryColumns) -> list[tuple[str, ...]]:
    """Return the sets of columns to try: all, those of each query, single ones, pairs."""
    leading = found.columns[:MAX_COLUMNS]
    together = [leading[:size] for size in range(len(leading), 1, -1)]
    of_queries = [names[:MAX_COLUMNS] for names in found.sets if names]
    of_queries.sort(key=lambda names: -of_queries.count(names))
    singles = [(name,) for name in leading]
    several = dict.fromkeys([*together[:1], *of_queries, *singles, *together[1:]])
    several |= dict.fromkeys(combinations(leading, _PAIR))
    return list(several)[:MAX_SETS]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ColumnLookup:
    """Finds columns of a table by their names in queries; partition columns are lower case."""

    schema: Any
    partition_columns: frozenset[str]

    def orderable_columns(self, box: Box) -> list[str]:
        """Return the columns of a box that can order rows, as the table spells them."""
        fields = (self._find_field(name) for name in box)
        return [
            field.name
            for field in fields
            if field is not None
            and field.name.lower() not in self.partition_columns
            and indexed_type(field.type) is not None
        ]

    def indexed_columns(self, query: Query) -> tuple[str, ...]:
        """Return the columns of the query that the index can have statistics of."""
        return tuple(
            name
            for name in find_predicate_columns(parse(query.where), self.schema)
            if name.lower() not in self.partition_columns and not name.startswith(_META)
        )

    def explain(self, query: Query, *, is_bound: bool) -> Iterator[Note]:
        """Yield which parts of a query do not help; ``is_bound``: every branch has a filter."""
        parts = dict.fromkeys(column.parts for column in find_columns(parse(query.where)))
        notes_of_columns = [note for part in parts for note in self._explain_column(query, part)]
        yield from notes_of_columns
        if is_bound or notes_of_columns:
            return
        if parts and all(part[0].lower() in self.partition_columns for part in parts):
            because = "filters only on partition columns, whose folders are skipped by name already"
        else:
            helps = "is tried for" if self.indexed_columns(query) else "and no index helps"
            because = (
                f"does not filter on a column in every OR branch, so no layout {helps} it; compare "
                "a column with a value in each branch, as in customer_id = 42"
            )
        yield Note("queries", f"query {query.name!r} {because}")

    def _find_field(self, name: str) -> Any:
        """Return the top-level column of this name in any case, or None."""
        fields = [field for field in self.schema if field.name.lower() == name.lower()]
        return fields[0] if len(fields) == 1 else None

    def _explain_column(self, query: Query, parts: Sequence[str]) -> Iterator[Note]:
        field, name = self._find_field(parts[0]), ".".join(parts)
        unknown = check_name(parts, self.schema)
        if unknown is not None:
            because = unknown.message
        elif field is None:
            return
        elif len(parts) > 1:
            because = f"{name} is a field of a struct, but only whole columns can order rows"
        elif indexed_type(field.type) is None:
            because = f"{name} is of type {field.type}, which has no order"
        else:
            return
        yield Note("columns", f"query {query.name!r}: {because}")
