"""Locate a literal among a column's values as Spark compares them.

Spark casts both sides to a common type. Every cast of a column that this module supports keeps the
order of values, so a literal becomes two cuts among the column's own values. Values below the first
cut are less than the literal, values beyond the second are greater, values between them are equal.
The result is unknown if Spark's two dialects (ANSI or not) differ, if a cast may yield null, and if
a cast goes through the text of the column.
Sources: Spark's TypeCoercion, AnsiTypeCoercion, DecimalPrecision, UTF8String.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np

from reconciler.index.compared_types import (
    CALENDAR_CASTS,
    EXACT_DOUBLE,
    FLOATS,
    NUMBERS,
    ComparedType,
    TypeFamily,
    UnsureError,
)
from reconciler.index.predicates.syntax import Literal, LiteralKind
from reconciler.index.predicates.tokens import MAX_DIGITS
from reconciler.index.temporal import (
    MICROS_A_DAY,
    SessionZone,
    day_start,
    find_days_around,
    parse_days,
    parse_local_micros,
    parse_micros,
    unambiguous_day_start,
)
from reconciler.index.value_sets import (
    HIGHEST,
    LOWEST,
    Cut,
    cut_after,
    cut_before,
    find_first_number,
)

_WHOLE_TEXT: Final = re.compile(r"[+-]?[0-9]{1,19}\Z")
_NUMBER_TEXT: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?\Z")
#: whole numbers up to this limit are exact as a float
_EXACT_FLOAT: Final = 1 << 24
_LONG: Final = 1 << 63


#: the cuts just before and just after a literal; None for NaN, which is beyond all values
LiteralCuts = tuple[Cut, Cut] | None


def locate_literal(column: ComparedType, literal: Literal, zone: SessionZone) -> LiteralCuts:
    """Return the position of a literal other than null in a comparison; raises UnsureError."""
    value: Any
    if (column.stored, column.family) in CALENDAR_CASTS:
        return _locate_cast_time(column, literal, zone)
    match column.stored:
        case TypeFamily.DATE:
            return _locate_day(literal, zone)
        case TypeFamily.TIMESTAMP:
            value = _literal_micros(literal, zone)
        case TypeFamily.LOCAL:
            value = _literal_micros(literal, None)
        case TypeFamily.TEXT:
            value = _require_kind(literal, LiteralKind.STRING).encode()
        case TypeFamily.BYTES:
            value = _require_kind(literal, LiteralKind.BINARY)
        case TypeFamily.BOOLEAN:
            value = _truth_value(literal)
        case _:
            return _locate_number(column, literal, scale=_literal_scale(literal), in_double=False)
    return _single_value(value)


def locate_literals(
    column: ComparedType, literals: list[Literal], zone: SessionZone
) -> tuple[list[LiteralCuts], bool]:
    """Return the positions of a list's literals, and whether the list matches nothing else.

    No literal is null. A list has one type: one double turns all values into doubles, one text
    turns all values into text, the column included. Two equal texts of numbers or days are also
    equal as numbers or days, but equal numbers or days may have different texts.
    """
    kinds = {literal.kind for literal in literals}
    is_all, has_text = True, LiteralKind.STRING in kinds
    if (column.stored, column.family) in CALENDAR_CASTS:
        if kinds - {CALENDAR_CASTS[column.stored, column.family]}:
            raise UnsureError
    elif column.stored in NUMBERS:
        return _locate_numbers(column, literals, kinds), not has_text
    elif column.stored is TypeFamily.DATE and has_text:
        is_all = False
    elif len(kinds) > 1 or (has_text and column.stored is not TypeFamily.TEXT):
        raise UnsureError
    return [locate_literal(column, literal, zone) for literal in literals], is_all


def _locate_numbers(
    column: ComparedType, literals: list[Literal], kinds: set[LiteralKind]
) -> list[LiteralCuts]:
    in_double = LiteralKind.DOUBLE in kinds
    has_float = LiteralKind.FLOAT in kinds
    if has_float and not (column.family in FLOATS or in_double) and len(kinds) > 1:
        raise UnsureError
    has_float |= column.stored is TypeFamily.FLOAT
    if has_float and LiteralKind.STRING in kinds and len(kinds) > 1:
        raise UnsureError  # the text of a float stands for another double
    scale = max(map(_literal_scale, literals), default=0)
    return [
        _locate_number(column, literal, scale=scale, in_double=in_double) for literal in literals
    ]


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
    return cut_before(value), cut_after(value)


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


# days and times


def _locate_cast_time(column: ComparedType, literal: Literal, zone: SessionZone) -> LiteralCuts:
    """Locate a literal among days cast to times, or among times cast to days."""
    is_local = TypeFamily.LOCAL in (column.stored, column.family)
    if column.family is not TypeFamily.DATE:
        micros = _literal_micros(literal, None if is_local else zone)
        return _days_around(micros, "UTC" if is_local else zone)
    cuts = _locate_day(literal, zone) or ()
    place = "UTC" if is_local else zone
    begins = [unambiguous_day_start(day + is_after, place) for _, day, is_after in cuts]
    if None in begins:
        raise UnsureError
    return cut_before(begins[0]), cut_before(begins[1])


def _locate_day(literal: Literal, zone: SessionZone) -> LiteralCuts:
    match literal.kind:
        case LiteralKind.DATE | LiteralKind.STRING:
            return _single_value(parse_days(str(literal.value)))
        case LiteralKind.TIMESTAMP_NTZ:
            micros = _literal_micros(literal, None)
            if micros is None:
                raise UnsureError
            day, rest = divmod(micros, MICROS_A_DAY)
            return cut_after(day) if rest else cut_before(day), cut_after(day)
        case LiteralKind.TIMESTAMP:
            return _days_around(_literal_micros(literal, zone), zone)
        case _:
            raise UnsureError


def _days_around(micros: int | None, zone: SessionZone) -> LiteralCuts:
    """Return the position of an instant among the beginnings of days."""
    days = None if micros is None else find_days_around(micros, zone)
    if days is None:
        raise UnsureError
    return cut_before(days[0]), cut_before(days[1])


def _literal_micros(literal: Literal, zone: SessionZone | None) -> int | None:
    """Return a time in microseconds; ``zone`` None: a time without zone."""
    text = str(literal.value)
    match literal.kind:
        case LiteralKind.DATE:
            days = parse_days(text)
            return None if days is None else day_start(days, "UTC" if zone is None else zone)
        case LiteralKind.TIMESTAMP_NTZ:
            local = parse_local_micros(text)
            # a time in a skipped or repeated hour of the zone is the same instant
            return local if zone is None or local is None else parse_micros(text, zone)
        case LiteralKind.STRING if zone is None:
            return parse_local_micros(text)
        case LiteralKind.STRING | LiteralKind.TIMESTAMP if zone is not None:
            return parse_micros(text, zone)
        case _:
            return None
