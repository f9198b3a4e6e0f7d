"""Find the column ranges that a SQL predicate allows.

Supported are comparisons of a column with a literal, BETWEEN, IN, LIKE with a leading text, AND, OR
and parentheses. Any other part allows every value, so the ranges always include all matching rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import reduce
from typing import Final, assert_never

from reconciler.index.predicates.parse import parse
from reconciler.index.predicates.syntax import (
    And,
    Column,
    Compare,
    In,
    Like,
    Operand,
    Or,
    Predicate,
    Sign,
)
from reconciler.index.predicates.syntax import Literal as SqlLiteral
from reconciler.lazy_dataclass import dataclass

BoundValue = str | int | Decimal | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRange:
    """Values from ``low`` to ``high``, both included unless excluded; None is unlimited."""

    low: BoundValue | None = None
    high: BoundValue | None = None
    excludes_low: bool = False
    excludes_high: bool = False


#: by column name in lower case, ranges that all hold
Box = Mapping[str, tuple[ValueRange, ...]]

#: the most alternatives of one query; a query with more counts as unlimited
MAX_BOXES: Final = 64

_ANYTHING: Final[tuple[Box, ...]] = ({},)
_HIGHEST: Final = "\U0010ffff"


def find_boxes(where: str) -> tuple[Box, ...]:
    """Return the alternatives of a predicate; each row for which it is true is in one of them.

    >>> find_boxes("a = 1 and b < 2")
    ({'a': (ValueRange(low=1, high=1, excludes_low=False, excludes_high=False),), \
'b': (ValueRange(low=None, high=2, excludes_low=False, excludes_high=True),)},)
    >>> find_boxes("f(a) > 1")
    ({},)
    """
    return _limit_boxes(_predicate_boxes(parse(where)))


def _limit_boxes(boxes: tuple[Box, ...]) -> tuple[Box, ...]:
    return boxes if len(boxes) <= MAX_BOXES and all(boxes) else _ANYTHING


def _predicate_boxes(predicate: Predicate) -> tuple[Box, ...]:
    """Return the boxes of a predicate; an AND keeps the known ranges of both sides."""
    match predicate:
        case Or(parts=parts):
            return _limit_boxes(tuple(box for part in parts for box in _predicate_boxes(part)))
        case And(parts=parts):
            return reduce(_combine_boxes, map(_predicate_boxes, parts))
        case Compare(left=left, sign=sign, right=right):
            return _column_boxes(left, [_comparison_range(sign, _literal_value(right))])
        case In(operand=operand, values=values):
            literals = map(_literal_value, values)
            return _column_boxes(operand, [_comparison_range(Sign.EQUAL, v) for v in literals])
        case Like(operand=operand, pattern=pattern, escape=escape):
            return _column_boxes(operand, [_prefix_range(_literal_value(pattern), escape)])
        case _:
            return _ANYTHING


def _combine_boxes(left: Sequence[Box], right: Sequence[Box]) -> tuple[Box, ...]:
    if len(left) * len(right) > MAX_BOXES:
        return tuple(left)
    return tuple(
        {**box, **{name: box.get(name, ()) + ranges for name, ranges in other.items()}}
        for box in left
        for other in right
    )


def _column_boxes(operand: Operand, ranges: Sequence[ValueRange | None]) -> tuple[Box, ...]:
    """Return one box per range; a cast column is unlimited, because its values are others."""
    if not isinstance(operand, Column):
        return _ANYTHING
    name = ".".join(operand.parts).lower()
    return tuple({} if span is None else {name: (span,)} for span in ranges)


def _comparison_range(sign: Sign, value: BoundValue | None) -> ValueRange | None:
    if value is None:
        return None
    match sign:
        case Sign.EQUAL | Sign.SAME:
            return ValueRange(low=value, high=value)
        case Sign.BELOW | Sign.AT_MOST:
            return ValueRange(high=value, excludes_high=sign is Sign.BELOW)
        case Sign.ABOVE | Sign.AT_LEAST:
            return ValueRange(low=value, excludes_low=sign is Sign.ABOVE)
        case _:
            assert_never(sign)


def _prefix_range(pattern: BoundValue | None, escape: str) -> ValueRange | None:
    """Return the range of the texts with a pattern's leading text."""
    known = re.match(rf"[^%_{re.escape(escape)}]*", str(pattern))
    begin = known[0] if known else ""
    if not isinstance(pattern, str) or not begin:
        return None
    return ValueRange(low=begin, high=begin if begin == pattern else begin + _HIGHEST)


def _literal_value(literal: SqlLiteral) -> BoundValue | None:
    """Return a literal's value, dates and times as text; None for values without an order."""
    value = literal.value
    if value is None or isinstance(value, bytes | bool | str):
        return None if isinstance(value, bytes) else value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    number = Decimal(str(value))
    return int(number) if number == number.to_integral_value() else number
