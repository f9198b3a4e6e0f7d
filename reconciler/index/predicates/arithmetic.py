"""What arithmetic makes of columns: a sum that is understood, or no more than when it is null.

Source: Spark's arithmetic expressions, all of which are null where one of their inputs is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from reconciler.index.predicates.syntax import (
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

_FLIPPED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_BEYOND: Final = 1 << 63
_NULL: Final = Literal(kind=LiteralKind.NULL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    """A value that is null where one of its columns is, and always where ``is_null``.

    ``predicate``: what a truth value says of rows, where it is one.
    """

    columns: tuple[Column, ...]
    is_null: bool = False
    predicate: Predicate | None = None


Expression = Operand | Literal | Opaque


def make_opaque(*parts: Expression) -> Opaque:
    """Of values that an operator joins."""
    return Opaque(columns=_collect_columns(parts), is_null=any(map(is_null, parts)))


def make_sum(left: Expression, sign: str, right: Expression) -> Expression:
    """``sign``: +, - or ||; understood is a column and a whole number.

    >>> one = Literal(kind=Kind.INTEGER, value=1, bits=32)
    >>> summed(one, "-", Column(parts=("n",)))
    Sum(of=Column(parts=('n',)), times=-1, plus=1, bits=32)
    """
    times = 1
    if isinstance(left, Literal) and sign != "||":
        times, sign = -1 if sign == "-" else 1, "+"
        left, right = right, left
    if isinstance(left, Column | Cast) and isinstance(right, Literal) and sign != "||":
        value = right.value
        if right.kind is LiteralKind.INTEGER and right.bits and isinstance(value, int):
            plus = value if sign == "+" else -value
            return ColumnSum(of=left, times=times, plus=plus, bits=right.bits)
    return make_opaque(left, right)


def negate(operand: Expression) -> Expression:
    return (
        ColumnSum(of=operand, times=-1, plus=0, bits=0)
        if isinstance(operand, Column | Cast)
        else make_opaque(operand)
    )


def make_comparison(left: Expression, sign: str, right: Expression) -> Predicate:
    """``sign``: one of Sign's, or !=. Raises NotPlainError where nothing is sure."""
    if isinstance(left, Literal):
        left, right, sign = right, left, _FLIPPED.get(sign, sign)
    if isinstance(left, Literal):
        raise UnknownSyntaxError
    if not isinstance(right, Literal) or isinstance(left, Opaque):
        if sign == "<=>":
            raise UnknownSyntaxError
        return _NULL if is_null(left) or is_null(right) else make_strict(left, right)
    if sign == "!=":
        return Not(of=Compare(left=left, sign=Sign.EQUAL, right=right))
    return Compare(left=left, sign=Sign(sign), right=right)


def make_strict(*parts: Expression) -> Predicate:
    """Parts of which one that is null makes null of all; raises NotPlainError where none may be.

    Beside numbers beyond all longs Spark answers for nulls too, and a computed one may be such.
    """
    for part in parts:
        if isinstance(part, Literal):
            if not fits_long(part):
                raise UnknownSyntaxError
        elif not _collect_columns([part]):
            raise UnknownSyntaxError
    return Strict(columns=_collect_columns(parts))


def fits_long(literal: Literal) -> bool:
    """Whether it is no number that is beyond all longs."""
    value = literal.value
    return not isinstance(value, int | float | Decimal) or -_BEYOND <= value < _BEYOND


def is_null(part: Expression) -> bool:
    """Whether it is null whatever the row."""
    return part.is_null if isinstance(part, Opaque) else part == _NULL


def _collect_columns(parts: Iterable[Expression]) -> tuple[Column, ...]:
    found: dict[Column, None] = {}
    for part in parts:
        of = part.columns if isinstance(part, Opaque) else find_columns(part)
        found |= dict.fromkeys(of)
    return tuple(found)
