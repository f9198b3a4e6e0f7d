"""Which layouts declared queries ask for, and which of those that were tried is best; pure.

Columns come from what the queries bound: an order of rows by anything else helps none of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
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
from reconciler.plans.model import Note
from reconciler.spec.model import Query

Curve = Literal["kd-tree", "hilbert", "z-order", "linear"]

#: of equally good layouts the first one is proposed
CURVES: Final[tuple[Curve, ...]] = ("kd-tree", "hilbert", "z-order", "linear")
#: columns that are put together, and sets of columns that are tried
MAX_COLUMNS: Final = 4
MAX_SETS: Final = 8
#: a rewrite has to save this much of what is read today, as for groups that lie as declared
LEAST_SAVING: Final = 0.1
NEGLIGIBLE_DIFFERENCE: Final = 0.02

_META: Final = "_hoodie_"
_PAIR: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryColumns:
    """What queries want of a table.

    ``columns``: those that a layout may order rows by, the one that most queries bound first.
    ``sets``: per query the ones that it bounds in every alternative, in the same order. ``index_columns``:
    columns, or fields of structs with dots, whose statistics leave out files. ``explain``: what of
    the queries helps nothing, and why.
    """

    columns: tuple[str, ...]
    sets: tuple[tuple[str, ...], ...]
    index_columns: tuple[str, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutCandidate:
    """One way to lay rows out. ``mapping``: what is tried is ``rank``; a spec may say otherwise."""

    columns: tuple[str, ...]
    curve: Curve
    mapping: Literal["rank", "direct"] = "rank"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryReads:
    """Files and bytes that a query reads; a base file with its log files counts as one."""

    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutTrial:
    """A layout that was tried, and what each query reads of the table then.

    ``errors``: the relative half-width of each prediction. ``table_bytes``: bytes of the table then.
    """

    candidate: LayoutCandidate
    reads: tuple[QueryReads, ...]
    errors: tuple[float, ...]
    table_bytes: int

    @property
    def bytes(self) -> int:
        """What all queries read together."""
        return sum(one.bytes for one in self.reads)


def find_query_columns(
    queries: Sequence[Query], schema: Any, partition_columns: Collection[str]
) -> QueryColumns:
    """What the queries want of a table with these columns.

    ``schema``: an Arrow schema; ``partition_columns``: columns that are the same in all rows of a partition,
    so that no order within it is of any use. A name counts in whatever case, as in Spark.
    """
    looking = _ColumnLookup(
        schema=schema, partition_columns=frozenset(name.lower() for name in partition_columns)
    )
    sets, notes = [], []
    for query in queries:
        found = [looking.orderable_columns(box) for box in find_boxes(query.where)]
        common = set(found[0]).intersection(*found[1:])
        sets.append([name for name in found[0] if name in common])
        notes += list(looking.explain(query, is_bound=bool(common)))
    columns = _sort_by_frequency(sets)
    return QueryColumns(
        columns=columns,
        sets=tuple(tuple(sorted(names, key=columns.index)) for names in sets),
        index_columns=_sort_by_frequency([looking.indexed_columns(query) for query in queries]),
        notes=tuple(notes),
    )


def warn_of_unknown_columns(queries: Iterable[Query], schema: Any) -> Iterator[Note]:
    """What queries ask for that a table with these columns does not have."""
    for query in queries:
        for unknown in find_unknown_names(query.where, schema):
            yield Note("columns", f"query {query.name!r}: {unknown.message}")


def list_candidates(wanted: QueryColumns) -> tuple[LayoutCandidate, ...]:
    """The layouts to try: sets of columns that queries bound, along every curve.

    At most MOST_SETS sets of at most MOST_COLUMNS columns. On a single column all curves are one
    line, of which the tree alone heeds the queries; ``linear`` tells the columns' order.
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


def rank_trials(
    trials: Iterable[LayoutTrial], declared: LayoutCandidate | None = None
) -> tuple[LayoutTrial, ...]:
    """Trials by the bytes that are read; those as good as the best by columns, then as CURVES has.

    A difference of ALIKE is none: sizes of files are known no better. So what is ``declared`` comes
    before what is no better: to change it would have the table written anew for nothing.
    """
    tried = sorted(trials, key=lambda trial: trial.bytes)
    good = [one for one in tried if one.bytes <= (1 + NEGLIGIBLE_DIFFERENCE) * tried[0].bytes]

    def key(trial: LayoutTrial) -> tuple[bool, int, int]:
        one = trial.candidate
        return one != declared, len(one.columns), CURVES.index(one.curve)

    return (*sorted(good, key=key), *tried[len(good) :])


def choose_trial(
    current: Sequence[QueryReads], trials: Sequence[LayoutTrial]
) -> LayoutTrial | None:
    """The first of the trials, which come best first, where it is worth a rewrite.

    So what is proposed is never worse than today by the same simulation.
    """
    before = sum(one.bytes for one in current)
    if not trials or not before or trials[0].bytes > (1 - LEAST_SAVING) * before:
        return None
    return trials[0]


def _sort_by_frequency(sets: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """The names, those in most sets first and else as they come."""
    counts: dict[str, int] = {}
    for names in sets:
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    return tuple(sorted(counts, key=lambda name: -counts[name]))


def _column_sets(found: QueryColumns) -> list[tuple[str, ...]]:
    """Sets of columns to try: all together, those of the queries, each alone, any two."""
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
    """Finds columns of a table by what queries call them; ``partition_columns``: names in lower case."""

    schema: Any
    partition_columns: frozenset[str]

    def orderable_columns(self, box: Box) -> list[str]:
        """The columns that a box bounds and rows can be ordered by, as the table spells them."""
        found = (self._find_field(name) for name in box)
        return [
            field.name
            for field in found
            if field is not None
            and field.name.lower() not in self.partition_columns
            and indexed_type(field.type) is not None
        ]

    def indexed_columns(self, query: Query) -> tuple[str, ...]:
        """Columns that the index can have statistics of and the query is compared with."""
        return tuple(
            name
            for name in find_predicate_columns(parse(query.where), self.schema)
            if name.lower() not in self.partition_columns and not name.startswith(_META)
        )

    def explain(self, query: Query, *, is_bound: bool) -> Iterator[Note]:
        """What of a query helps nothing; ``is_bound``: some columns bound all of it."""
        parts = dict.fromkeys(column.parts for column in find_columns(parse(query.where)))
        said = [note for one in parts for note in self._explain_column(query, one)]
        yield from said
        if is_bound or said:
            return
        if parts and all(one[0].lower() in self.partition_columns for one in parts):
            because = "is about partitions alone, which are left out by their names as it is"
        else:
            helps = "is tried for" if self.indexed_columns(query) else "and no index helps"
            because = (
                f"bounds no column in every alternative, so no layout {helps} it; "
                "compare one with a value, as in customer_id = 42"
            )
        yield Note("queries", f"query {query.name!r} {because}")

    def _find_field(self, name: str) -> Any:
        """The column of the top level that is called so, whatever the case; else None."""
        found = [field for field in self.schema if field.name.lower() == name.lower()]
        return found[0] if len(found) == 1 else None

    def _explain_column(self, query: Query, parts: Sequence[str]) -> Iterator[Note]:
        field, name = self._find_field(parts[0]), ".".join(parts)
        unknown = check_name(parts, self.schema)
        if unknown is not None:
            because = unknown.message
        elif field is None:
            return
        elif len(parts) > 1:
            because = f"{name} is a field of a struct, and rows can be ordered by whole columns"
        elif indexed_type(field.type) is None:
            because = f"{name} is of type {field.type}, which has no order"
        else:
            return
        yield Note("columns", f"query {query.name!r}: {because}")
