"""Locate a literal among a column's values as Spark compares them.

Spark casts both sides to a common type. Every cast of a column that this module supports keeps the
order of values, so a literal becomes two cuts among the column's own values. Values below the first
cut are less than the literal, values beyond the second are greater, values between them are equal.
The result is unknown if Spark's two dialects (ANSI or not) differ, if a cast may yield null, and if
a cast goes through the text of the column. Of lists of days and times, both results are known.
Sources: Spark's TypeCoercion, AnsiTypeCoercion, DecimalPrecision, UTF8String.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np

from reconciler.index.coerce_times import TIMES, locate_time, match_times
from reconciler.index.compared_types import (
    EXACT_DOUBLE,
    FLOATS,
    NUMBERS,
    ComparedType,
    TypeFamily,
    UnsureError,
)
from reconciler.index.predicates.syntax import Literal, LiteralKind
from reconciler.index.predicates.tokens import MAX_DIGITS
from reconciler.index.temporal import SessionZone
from reconciler.index.value_sets import (
    HIGHEST,
    LOWEST,
    NO_VALUES,
    Cut,
    Span,
    ValueSet,
    cut_after,
    cut_before,
    find_first_number,
    make_value_set,
    span_value,
)

_WHOLE_TEXT: Final = re.compile(r"[+-]?[0-9]{1,19}\Z")
_NUMBER_TEXT: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?\Z")
#: whole numbers up to this limit are exact as a float
_EXACT_FLOAT: Final = 1 << 24
_LONG: Final = 1 << 63


#: the cuts just before and just after a literal; None for NaN, which is beyond all values
LiteralCuts = Span | None


def locate_literal(column: ComparedType, literal: Literal, zone: SessionZone) -> LiteralCuts:
    """Return the position of a literal other than null in a comparison; raises UnsureError."""
    value: Any
    if column.stored in TIMES:
        return locate_time(column, literal, zone)
    match column.stored:
        case TypeFamily.TEXT:
            value = _require_kind(literal, LiteralKind.STRING).encode()
        case TypeFamily.BYTES:
            value = _require_kind(literal, LiteralKind.BINARY)
        case TypeFamily.BOOLEAN:
            value = _truth_value(literal)
        case _:
            return _locate_number(column, literal, scale=_literal_scale(literal), in_double=False)
    return _single_value(value)


def match_literals(
    column: ComparedType, literals: list[Literal], zone: SessionZone
) -> tuple[ValueSet, ValueSet]:
    """Return the values that a list matches in both of Spark's dialects, and in any of them.

    No literal is null; raises UnsureError. A list has one type: one double turns all values into
    doubles, one text turns all values into text, the column included. In ANSI mode, the text takes
    the type of the others instead.
    """
    if column.stored in TIMES:
        return match_times(column, literals, zone)
    kinds = {literal.kind for literal in literals}
    has_text = LiteralKind.STRING in kinds
    if column.stored in NUMBERS:
        found = _make_set(_locate_numbers(column, literals, kinds))
        # equal texts are equal numbers, but equal numbers may have different texts
        return NO_VALUES if has_text else found, found
    if len(kinds) > 1 or (has_text and column.stored is not TypeFamily.TEXT):
        raise UnsureError
    found = _make_set(locate_literal(column, literal, zone) for literal in literals)
    return found, found


def _make_set(positions: Iterable[LiteralCuts]) -> ValueSet:
    """Return the set of the values at some positions."""
    known = list(positions)
    values = make_value_set(cuts for cuts in known if cuts is not None)
    return values.union(ValueSet(nan=None in known))


def _locate_numbers(
    column: ComparedType, literals: list[Literal], kinds: set[LiteralKind]
) -> list[LiteralCuts]:
    in_double = LiteralKind.DOUBLE in kinds
    has_float = LiteralKind.FLOAT in kinds
    if has_float and not (column.family in FLOATS or in_double) and len(kinds) > 1:
        _check_floats(column, literals)
    has_float |= column.stored is TypeFamily.FLOAT
    if has_float and LiteralKind.STRING in kinds and len(kinds) > 1:
        raise UnsureError  # the text of a float stands for another double
    scale = max(map(_literal_scale, literals), default=0)
    return [
        _locate_number(column, literal, scale=scale, in_double=in_double) for literal in literals
    ]


def _check_floats(column: ComparedType, literals: list[Literal]) -> None:
    """Raise UnsureError unless whole numbers equal the same literals as floats and as doubles."""
    if column.family is not TypeFamily.INTEGER:
        raise UnsureError
    for literal in literals:
        value = literal.value
        if not isinstance(value, (int, float)) or not -_EXACT_FLOAT < value < _EXACT_FLOAT:
            raise UnsureError


def _truth_value(literal: Literal) -> int | None:
    """Return 1 or 0 for a boolean literal, None for a text other than "true" and "false".

    Spark casts further texts to booleans, and the rest to null or an error.
    """
    if literal.kind is LiteralKind.STRING:
        return {"true": 1, "false": 0}.get(str(literal.value))
    return int(_require_kind(literal, LiteralKind.BOOLEAN))


def _require_kind(literal: Literal, kind: LiteralKind) -> Any:
    if literal.kind is not kind:
        raise UnsureError
    return literal.value


def _single_value(value: Any) -> LiteralCuts:
    if value is None:
        raise UnsureError
    return span_value(value)


# numbers


def _literal_scale(literal: Literal) -> int:
    value = literal.value
    return -int(value.as_tuple().exponent) if isinstance(value, Decimal) else 0


def _locate_number(
    column: ComparedType, literal: Literal, *, scale: int, in_double: bool
) -> LiteralCuts:
    """Locate a number; ``scale``: the greatest of all decimals in the comparison."""
    value = literal.value
    if literal.kind is LiteralKind.STRING and isinstance(value, str):
        value = _parse_number(column, value.strip(" "))
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise UnsureError
    number: float | Decimal = value
    if isinstance(number, float) and math.isnan(number):
        return None
    if column.family in FLOATS:
        number = _to_double(column, literal.kind, number, in_double=in_double)
    elif in_double:
        number = float(number)
    elif literal.kind is LiteralKind.FLOAT and column.family is TypeFamily.INTEGER:
        if not -_EXACT_FLOAT < number < _EXACT_FLOAT:
            raise UnsureError  # compared as floats or as doubles
    elif not isinstance(number, float):
        _check_digits(column, number, scale)
    return _number_cuts(column, number)


def _parse_number(column: ComparedType, text: str) -> int | float:
    if column.family is TypeFamily.INTEGER:
        half = 1 << (column.bits - 1)
        if not _WHOLE_TEXT.match(text) or not -half <= int(text) < half:
            raise UnsureError
        return int(text)
    if not _NUMBER_TEXT.match(text) or math.isinf(float(text)):
        raise UnsureError
    return float(text)


def _to_double(
    column: ComparedType, kind: LiteralKind, value: float | Decimal, *, in_double: bool
) -> float:
    """Return the literal as a double; raises UnsureError if Spark may compare as floats.

    Spark compares a float column with whole numbers and text as floats or as doubles, depending on
    the dialect, and with everything else as doubles.
    """
    double = float(value)
    is_float = column.family is TypeFamily.FLOAT and kind in (
        LiteralKind.INTEGER,
        LiteralKind.STRING,
    )
    if is_float and not in_double:
        with np.errstate(over="ignore"):
            near = float(np.float32(double))
        if near != double or (kind is LiteralKind.INTEGER and double != value):
            raise UnsureError
    return double


def _check_digits(column: ComparedType, value: int | Decimal, scale: int) -> None:
    """Raise UnsureError unless Spark's common decimal type holds both sides.

    Spark replaces values that do not fit with null. A literal outside the range of long, compared
    with a whole number, even makes Spark return a result for nulls.
    """
    if column.family is TypeFamily.INTEGER and not -_LONG <= value < _LONG:
        raise UnsureError
    scale = max(scale, column.scale)
    if column.family is TypeFamily.INTEGER and not scale:
        return
    digits = len(str(abs(int(value))))
    if max(column.digits - column.scale, digits) + scale > MAX_DIGITS:
        raise UnsureError


def _number_cuts(column: ComparedType, value: float | Decimal) -> tuple[Cut, Cut]:
    """Return the cuts around a number among the stored numbers."""
    if column.stored in FLOATS:
        double = float(value)
        with np.errstate(over="ignore"):
            is_held = column.stored is TypeFamily.DOUBLE or float(np.float32(double)) == double
        return cut_before(double), cut_after(double) if is_held else cut_before(double)
    one = 10**column.stored_scale
    if isinstance(value, float) and (one > 1 or abs(value) >= EXACT_DOUBLE):
        return _double_cuts(column, value, one)
    exact = Fraction(value) * one
    floor = math.floor(exact)
    return cut_before(floor) if floor == exact else cut_after(floor), cut_after(floor)


def _double_cuts(column: ComparedType, value: float, one: int) -> tuple[Cut, Cut]:
    """Return the cuts among numbers that Java first rounds to the nearest double."""
    most = _LONG if column.stored is TypeFamily.INTEGER else 10**MAX_DIGITS
    first = find_first_number(lambda at: at / one >= value, most)
    beyond = find_first_number(lambda at: at / one > value, most)
    return _integer_cut(first, most), _integer_cut(beyond, most)


def _integer_cut(first: int, most: int) -> Cut:
    if first <= -most:
        return LOWEST
    return HIGHEST if first > most else cut_before(first)
