"""Bring the conditions of a scan to the form in which queries are compared and proposed; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Final

from reconciler.event_logs.predicate_text import list_literals, write_shape
from reconciler.index.predicates.syntax import (
    And,
    ColumnSum,
    Compare,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Predicate,
    Strict,
    Unknown,
    find_columns,
)

#: columns that Hudi adds; conditions on them are its own, or those of incremental readers
_META: Final = "_hoodie_"

SortKey = tuple[tuple[str, int | float | Decimal | str | bytes], ...]


def simplify(predicates: Iterable[Predicate]) -> Predicate | None:
    """Return what is known of predicates that all hold; None if nothing is.

    Unknown conjuncts are left out: no statistics can use them. So are tests that a column is not
    null, which Spark adds to comparisons and joins.
    """
    parts = [flatten(predicate) for predicate in predicates]
    conjuncts = dict.fromkeys(
        part for conjunct in parts for part in _list_conjuncts(conjunct) if _is_useful(part)
    )
    if not conjuncts:
        return None
    return And(parts=tuple(conjuncts)) if len(conjuncts) > 1 else next(iter(conjuncts))


def flatten(predicate: Predicate) -> Predicate:
    """Return the predicate without an AND directly in an AND, or an OR directly in an OR."""
    match predicate:
        case And(parts=parts):
            flat = [flatten(part) for part in parts]
            return And(parts=tuple(one for part in flat for one in _list_conjuncts(part)))
        case Or(parts=parts):
            flat = [flatten(part) for part in parts]
            return Or(parts=tuple(one for part in flat for one in _list_disjuncts(part)))
        case Not(operand=operand):
            return Not(operand=flatten(operand))
        case _:
            return predicate


def make_shape_key(predicate: Predicate) -> str:
    """Return a text that is equal for predicates that differ in values and in order only."""
    return _make_key(flatten(predicate))


def make_sort_key(predicate: Predicate) -> SortKey:
    """Return what orders predicates of one shape by their values."""
    parts = sorted(_list_conjuncts(predicate), key=_make_key)
    values = [values for part in parts for values in list_literals(part)]
    return tuple(
        key
        for group in values
        for key in (("", len(group)), *(_make_value_key(value) for value in group))
    )


def _make_value_key(literal: Literal) -> tuple[str, int | float | Decimal | str | bytes]:
    return literal.kind.value, 0 if literal.value is None else literal.value


def _make_key(predicate: Predicate) -> str:
    match predicate:
        case And(parts=parts):
            return f"({' and '.join(sorted(map(_make_key, parts)))})"
        case Or(parts=parts):
            return f"({' or '.join(sorted(map(_make_key, parts)))})"
        case Not(operand=operand):
            return f"not {_make_key(operand)}"
        case _:
            return write_shape(predicate).lower()


def _list_conjuncts(predicate: Predicate) -> Iterator[Predicate]:
    yield from predicate.parts if isinstance(predicate, And) else (predicate,)


def _list_disjuncts(predicate: Predicate) -> Iterator[Predicate]:
    yield from predicate.parts if isinstance(predicate, Or) else (predicate,)


def _is_useful(conjunct: Predicate) -> bool:
    is_test = isinstance(conjunct, Not) and isinstance(conjunct.operand, IsNull)
    return not is_test and is_known(conjunct) and not _names_meta_column(conjunct)


def is_known(predicate: Predicate) -> bool:
    """Return whether every part of a predicate is known."""
    match predicate:
        case And(parts=parts) | Or(parts=parts):
            return all(map(is_known, parts))
        case Not(operand=operand):
            return is_known(operand)
        case Compare(left=left):
            return not isinstance(left, ColumnSum)
        case In(operand=operand) | IsNull(operand=operand) | Like(operand=operand):
            return not isinstance(operand, ColumnSum)
        case Strict() | Unknown() | ColumnSum():
            return False
        case _:
            return True


def _names_meta_column(predicate: Predicate) -> bool:

    return any(column.parts[0].lower().startswith(_META) for column in find_columns(predicate))
