"""What a query's SQL predicate bounds: ranges of columns, where it is made of plain comparisons.

Understood are comparisons of a column with a literal, BETWEEN, IN, LIKE with a leading text, AND,
OR and parentheses. Anything else bounds nothing, so what is read stays a superset of the rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Final, assert_never

from reconciler.predicates.parse import parse
from reconciler.predicates.syntax import (
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
from reconciler.predicates.syntax import Literal as Said

Literal = str | int | Decimal | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Values from ``low`` to ``high``, both included unless said; None is no bound."""

    low: Literal | None = None
    high: Literal | None = None
    above: bool = False
    below: bool = False


#: ranges of one column that hold together; by the column's name in lower case
Box = Mapping[str, tuple[Range, ...]]

#: alternatives of one query; more are taken for no bound at all
MOST_BOXES: Final = 64

_ANYTHING: Final[tuple[Box, ...]] = ({},)
_HIGHEST: Final = "\U0010ffff"


def boxes_of(where: str) -> tuple[Box, ...]:
    """The alternatives of a predicate; a row that it is true for is in one of them.

    >>> boxes_of("a = 1 and b < 2")
    ({'a': (Range(low=1, high=1, above=False, below=False),), \
'b': (Range(low=None, high=2, above=False, below=True),)},)
    >>> boxes_of("f(a) > 1")
    ({},)
    """
    return _few(_boxes(parse(where)))


def _few(found: tuple[Box, ...]) -> tuple[Box, ...]:
    return found if len(found) <= MOST_BOXES and all(found) else _ANYTHING


def _boxes(predicate: Predicate) -> tuple[Box, ...]:
    """An AND keeps what is understood on either side."""
    match predicate:
        case Or(parts=parts):
            return _few(tuple(box for part in parts for box in _boxes(part)))
        case And(parts=parts):
            return reduce(_both, map(_boxes, parts))
        case Compare(left=left, sign=sign, right=right):
            return _boxed(left, [_range(sign, _plain(right))])
        case In(of=of, values=values):
            return _boxed(of, [_range(Sign.EQUAL, _plain(one)) for one in values])
        case Like(of=of, pattern=pattern, escape=escape):
            return _boxed(of, [_beginning(_plain(pattern), escape)])
        case _:
            return _ANYTHING


def _both(left: Sequence[Box], right: Sequence[Box]) -> tuple[Box, ...]:
    if len(left) * len(right) > MOST_BOXES:
        return tuple(left)
    return tuple(
        {**one, **{name: one.get(name, ()) + ranges for name, ranges in other.items()}}
        for one in left
        for other in right
    )


def _boxed(of: Operand, ranges: Sequence[Range | None]) -> tuple[Box, ...]:
    """A box a range; the values of a column that is cast are others."""
    if not isinstance(of, Column):
        return _ANYTHING
    name = ".".join(of.parts).lower()
    return tuple({} if one is None else {name: (one,)} for one in ranges)


def _range(sign: Sign, value: Literal | None) -> Range | None:
    if value is None:
        return None
    match sign:
        case Sign.EQUAL | Sign.SAME:
            return Range(low=value, high=value)
        case Sign.BELOW | Sign.AT_MOST:
            return Range(high=value, below=sign is Sign.BELOW)
        case Sign.ABOVE | Sign.AT_LEAST:
            return Range(low=value, above=sign is Sign.ABOVE)
        case _:
            assert_never(sign)


def _beginning(pattern: Literal | None, escape: str) -> Range | None:
    """Text that begins as a pattern does."""
    known = re.match(rf"[^%_{re.escape(escape)}]*", str(pattern))
    begin = known[0] if known else ""
    if not isinstance(pattern, str) or not begin:
        return None
    return Range(low=begin, high=begin if begin == pattern else begin + _HIGHEST)


def _plain(said: Said) -> Literal | None:
    """Numbers exactly, days and times as their text; None for what has no place in an order."""
    value = said.value
    if value is None or isinstance(value, bytes | bool | str):
        return None if isinstance(value, bytes) else value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    number = Decimal(str(value))
    return int(number) if number == number.to_integral_value() else number
