"""Build arithmetic expressions: a column plus a whole number, or an opaque value.

Of an opaque value only its columns are known: it is null if one of them is.
Source: Spark's arithmetic expressions, which are all null if one of their inputs is.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from decimal import Decimal
from itertools import chain
from typing import Any, Final

from reconciler.index.predicates.syntax import (
    NULL,
    Cast,
    Column,
    ColumnSum,
    Compare,
    Literal,
    LiteralKind,
    Not,
    Operand,
    Predicate,
    Sign,
    Strict,
    find_columns,
)
from reconciler.index.predicates.tokens import UnknownSyntaxError
from reconciler.lazy_dataclass import dataclass

_FLIPPED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_COMPARES: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<=>": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">=": operator.ge,
    ">": operator.gt,
}
#: literals that Spark compares as Python does
_EXACT_KINDS: Final = frozenset({LiteralKind.INTEGER, LiteralKind.BOOLEAN})
_BEYOND: Final = 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    """A value that is null if one of its columns is, and always if ``is_null``.

    ``predicate``: the meaning of the value as a predicate, if it is a boolean.
    """

    columns: tuple[Column, ...]
    is_null: bool = False
    predicate: Predicate | None = None


Expression = Operand | Literal | Opaque


def make_opaque(*parts: Expression) -> Opaque:
    """Return the opaque value of an operator applied to ``parts``."""
    return Opaque(columns=_collect_columns(parts), is_null=any(map(is_null, parts)))


def make_sum(left: Expression, sign: str, right: Expression) -> Expression:
    """Return the sum of two expressions; only a column with a whole number is not opaque.

    ``sign``: + or -.

    >>> one = Literal(kind=LiteralKind.INTEGER, value=1, bits=32)
    >>> make_sum(one, "-", Column(parts=("n",)))
    ColumnSum(operand=Column(parts=('n',)), times=-1, plus=1, bits=32)
    """
    times = 1
    if isinstance(left, Literal):
        times, sign = -1 if sign == "-" else 1, "+"
        left, right = right, left
    if isinstance(left, Column | Cast) and isinstance(right, Literal):
        value = right.value
        if right.kind is LiteralKind.INTEGER and right.bits and isinstance(value, int):
            plus = value if sign == "+" else -value
            return ColumnSum(operand=left, times=times, plus=plus, bits=right.bits)
    return make_opaque(left, right)


def negate(operand: Expression) -> Expression:
    if isinstance(operand, Column | Cast):
        return ColumnSum(operand=operand, times=-1, plus=0, bits=0)
    return make_opaque(operand)


def make_comparison(left: Expression, sign: str, right: Expression) -> Predicate:
    """Return a comparison; ``sign``: a value of Sign, or !=.

    Raises UnknownSyntaxError if its result is uncertain.
    """
    if isinstance(left, Literal):
        if isinstance(right, Literal):
            return _compare_literals(left, sign, right)
        left, right, sign = right, left, _FLIPPED.get(sign, sign)
    if not isinstance(right, Literal) or isinstance(left, Opaque):
        if sign == "<=>":
            raise UnknownSyntaxError
        return NULL if is_null(left) or is_null(right) else make_strict(left, right)
    if sign == "!=":
        return Not(operand=Compare(left=left, sign=Sign.EQUAL, right=right))
    return Compare(left=left, sign=Sign(sign), right=right)


def _compare_literals(left: Literal, sign: str, right: Literal) -> Literal:
    """Return the truth value of a comparison without columns; ``sign``: as in make_comparison.

    Raises UnknownSyntaxError unless both are whole numbers, both booleans, or one is null.
    """
    if NULL in (left, right) and sign != "<=>":
        return NULL
    if left.kind is not right.kind or left.kind not in _EXACT_KINDS:
        raise UnknownSyntaxError
    return Literal(kind=LiteralKind.BOOLEAN, value=_COMPARES[sign](left.value, right.value))


def make_strict(*parts: Expression) -> Predicate:
    """Return a predicate that is null if one of its parts is.

    Raises UnknownSyntaxError if no part has a column, or if a literal exceeds the range of long:
    compared with those, Spark returns a result for nulls too.
    """
    for part in parts:
        if isinstance(part, Literal):
            if not fits_long(part):
                raise UnknownSyntaxError
        elif not _collect_columns([part]):
            raise UnknownSyntaxError
    return Strict(columns=_collect_columns(parts))


def fits_long(literal: Literal) -> bool:
    """Return whether a literal is not a number outside the range of long."""
    value = literal.value
    return not isinstance(value, int | float | Decimal) or -_BEYOND <= value < _BEYOND


def is_null(part: Expression) -> bool:
    """Return whether an expression is null for every row."""
    return part.is_null if isinstance(part, Opaque) else part == NULL


def _collect_columns(parts: Iterable[Expression]) -> tuple[Column, ...]:
    columns = (part.columns if isinstance(part, Opaque) else find_columns(part) for part in parts)
    return tuple(dict.fromkeys(chain.from_iterable(columns)))
