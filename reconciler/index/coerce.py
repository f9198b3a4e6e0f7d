"""Where a literal lies among a column's values, once Spark has made both of one type.

Spark compares in a common type; every cast of a column that is understood here keeps its order, so
a literal becomes two cuts among the column's own values: below the first lie the values less than
it, beyond the second those greater, between them those equal. Where Spark's two dialects (ANSI or
not) differ, where a cast may yield null or is of the column's text, nothing is known.
Sources: Spark's TypeCoercion, AnsiTypeCoercion, DecimalPrecision, UTF8String.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pyarrow as pa

from reconciler.index.temporal import (
    MICROS_A_DAY,
    Zone,
    day_begin,
    days_around,
    days_of,
    local_micros_of,
    micros_of,
    midnight,
)
from reconciler.index.values import HIGHEST, LOWEST, Cut, after, before, first_number
from reconciler.predicates.syntax import Kind, Literal
from reconciler.predicates.tokens import MOST_DIGITS

_WHOLE_TEXT: Final = re.compile(r"[+-]?[0-9]{1,19}\Z")
_NUMBER_TEXT: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?\Z")
#: whole numbers up to here are a float, a double
_EXACT_FLOAT: Final = 1 << 24
_EXACT_DOUBLE: Final = 1 << 53
_LONG: Final = 1 << 63
#: digits that Spark gives the decimal of a whole number, by its bits
_DIGITS: Final = {8: 3, 16: 5, 32: 10, 64: 20}
_INTEGERS: Final = {"tinyint": 8, "byte": 8, "smallint": 16, "short": 16, "int": 32, "integer": 32,
                    "bigint": 64, "long": 64}  # fmt: skip
_DECIMAL: Final = re.compile(r"(?:decimal|dec|numeric)(?:\((\d+)(?:,(\d+))?\))?\Z")


class UnsureError(Exception):
    """How Spark compares here is not known for sure."""


class Family(Enum):
    INTEGER = "integer"
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL = "decimal"
    TEXT = "text"
    BYTES = "bytes"
    DATE = "date"
    TIMESTAMP = "timestamp"
    LOCAL = "local"
    BOOLEAN = "boolean"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A column's type as it is stored, and the type that a cast around it makes of it.

    ``bits`` of whole numbers; ``digits``, ``scale`` of decimals and of whole numbers as decimals.
    """

    stored: Family
    family: Family
    bits: int = 0
    stored_scale: int = 0
    digits: int = 0
    scale: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a literal lies among a column's values; None: it is NaN, beyond all other values."""

    at: tuple[Cut, Cut] | None


#: casts between days and times that keep their order, and the literals that lists of them hold
_CALENDAR: Final = {
    (Family.DATE, Family.TIMESTAMP): Kind.TIMESTAMP,
    (Family.DATE, Family.LOCAL): Kind.TIMESTAMP_NTZ,
    (Family.TIMESTAMP, Family.DATE): Kind.DATE,
    (Family.LOCAL, Family.DATE): Kind.DATE,
}


def seen(kind: Any) -> Seen:
    """A column of an Arrow type; raises UnsureError for one that has no order here."""
    types = pa.types
    if types.is_signed_integer(kind):
        bits = kind.bit_width
        return _plain(Family.INTEGER, bits=bits, digits=_DIGITS[bits])
    if types.is_decimal128(kind):
        scale = kind.scale
        return _plain(Family.DECIMAL, stored_scale=scale, digits=kind.precision, scale=scale)
    if types.is_timestamp(kind):
        return _plain(Family.TIMESTAMP if kind.tz else Family.LOCAL)
    for is_kind, family in (
        (types.is_float32, Family.FLOAT),
        (types.is_float64, Family.DOUBLE),
        (types.is_string, Family.TEXT),
        (types.is_binary, Family.BYTES),
        (types.is_date32, Family.DATE),
        (types.is_boolean, Family.BOOLEAN),
    ):
        if is_kind(kind):
            return _plain(family)
    raise UnsureError


def _plain(family: Family, **more: int) -> Seen:
    return Seen(stored=family, family=family, **more)


def cast(column: Seen, to: str) -> Seen:
    """A column as another type that holds all its values exactly; else raises UnsureError."""
    if to in _INTEGERS and column.family is Family.INTEGER and _INTEGERS[to] >= column.bits:
        return widened(column, _INTEGERS[to])
    is_short = column.family is Family.INTEGER and 1 << column.bits <= _EXACT_DOUBLE
    if to == "double" and (is_short or column.family in (Family.FLOAT, Family.DOUBLE)):
        return replace(column, family=Family.DOUBLE)
    match = _DECIMAL.match(to)
    if match and column.family in (Family.INTEGER, Family.DECIMAL):
        digits, scale = int(match[1] or 10), int(match[2] or 0)
        if scale >= column.scale and digits - scale >= column.digits - column.scale:
            return replace(column, family=Family.DECIMAL, digits=digits, scale=scale)
    same = {
        "timestamp": Family.TIMESTAMP,
        "string": Family.TEXT,
        "binary": Family.BYTES,
        "date": Family.DATE,
        "timestamp_ntz": Family.LOCAL,
        "timestamp_ltz": Family.TIMESTAMP,
        "boolean": Family.BOOLEAN,
        "float": Family.FLOAT,
    }
    family = same.get(to)
    if family is column.family:
        return column
    if family is not None and (column.family, family) in _CALENDAR:
        return replace(column, family=family)
    raise UnsureError


def widened(column: Seen, bits: int) -> Seen:
    """A whole number as one of more bits."""
    return replace(column, bits=bits, digits=_DIGITS[bits])


def place(column: Seen, literal: Literal, zone: Zone) -> Place:
    """Where one literal, compared by a sign, lies; raises UnsureError. It is not null."""
    value: Any
    if (column.stored, column.family) in _CALENDAR:
        return _cast_time(column, literal, zone)
    match column.stored:
        case Family.DATE:
            return _day(literal, zone)
        case Family.TIMESTAMP:
            value = _micros(literal, zone)
        case Family.LOCAL:
            value = _local_micros(literal)
        case Family.TEXT:
            value = _of_kind(literal, Kind.STRING).encode()
        case Family.BYTES:
            value = _of_kind(literal, Kind.BINARY)
        case Family.BOOLEAN:
            value = _truth(literal)
        case _:
            return _number(column, literal, scale=_scale(literal), in_double=False)
    return _point(value)


def places(column: Seen, literals: list[Literal], zone: Zone) -> tuple[list[Place], bool]:
    """Where the literals of one list lie, none null, and whether they are all that it matches.

    A list has one type: a double makes doubles of all, and text makes text of all, the column
    included. The text of a number or a day is a text that stands for it, so what equals it then
    is among what equals it as a number or a day, but not the other way round.
    """
    kinds = {literal.kind for literal in literals}
    if (column.stored, column.family) in _CALENDAR:
        if kinds - {_CALENDAR[column.stored, column.family]}:
            raise UnsureError
        return [place(column, one, zone) for one in literals], True
    is_number = column.stored in (Family.INTEGER, Family.DECIMAL, Family.FLOAT, Family.DOUBLE)
    if is_number:
        is_float = column.family in (Family.FLOAT, Family.DOUBLE)
        is_double = Kind.DOUBLE in kinds
        if Kind.FLOAT in kinds and not (is_float or is_double) and len(kinds) > 1:
            raise UnsureError
        has_float = Kind.FLOAT in kinds or column.stored is Family.FLOAT
        if has_float and Kind.STRING in kinds and len(kinds) > 1:
            raise UnsureError  # a float's text is that of another double
        most = max(map(_scale, literals), default=0)
        found = [_number(column, one, scale=most, in_double=is_double) for one in literals]
        return found, Kind.STRING not in kinds
    if Kind.STRING in kinds and column.stored is Family.DATE:
        return [place(column, one, zone) for one in literals], False
    if len(kinds) > 1 or (Kind.STRING in kinds and column.stored is not Family.TEXT):
        raise UnsureError
    return [place(column, one, zone) for one in literals], True


def _truth(literal: Literal) -> int | None:
    """Of more texts Spark makes truth values too, and of the rest null, or an error."""
    if literal.kind is Kind.STRING:
        return {"true": 1, "false": 0}.get(str(literal.value))
    return int(_of_kind(literal, Kind.BOOLEAN))


def _of_kind(literal: Literal, kind: Kind) -> Any:
    if literal.kind is not kind:
        raise UnsureError
    return literal.value


def _point(value: Any) -> Place:
    if value is None:
        raise UnsureError
    return Place(at=(before(value), after(value)))


# numbers


def _scale(literal: Literal) -> int:
    value = literal.value
    return -int(value.as_tuple().exponent) if isinstance(value, Decimal) else 0


def _number(column: Seen, literal: Literal, *, scale: int, in_double: bool) -> Place:
    """``scale``: the greatest of all decimals that the column is compared with."""
    value = literal.value
    if literal.kind is Kind.STRING and isinstance(value, str):
        value = _number_of_text(column, value.strip(" "))
    elif literal.kind not in (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT, Kind.DOUBLE):
        raise UnsureError
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise UnsureError
    number: float | Decimal = value
    if isinstance(number, float) and math.isnan(number):
        return Place(at=None)
    if column.family in (Family.FLOAT, Family.DOUBLE):
        number = _as_double(column, literal.kind, number, in_double=in_double)
    elif in_double:
        number = float(number)
    elif literal.kind is Kind.FLOAT and column.family is Family.INTEGER:
        if not -_EXACT_FLOAT < number < _EXACT_FLOAT:
            raise UnsureError  # compared as floats or as doubles
    elif not isinstance(number, float):
        _check_digits(column, number, scale)
    return Place(at=_cuts(column, number))


def _number_of_text(column: Seen, text: str) -> int | float:
    if column.family is Family.INTEGER:
        half = 1 << (column.bits - 1)
        if not _WHOLE_TEXT.match(text) or not -half <= int(text) < half:
            raise UnsureError
        return int(text)
    if not _NUMBER_TEXT.match(text) or math.isinf(float(text)):
        raise UnsureError
    return float(text)


def _as_double(column: Seen, kind: Kind, value: float | Decimal, *, in_double: bool) -> float:
    """Floats meet whole numbers and text as floats or as doubles, all else as doubles."""
    found = float(value)
    is_float = column.family is Family.FLOAT and kind in (Kind.INTEGER, Kind.STRING)
    if is_float and not in_double:
        with np.errstate(over="ignore"):
            near = float(np.float32(found))
        if near != found or (kind is Kind.INTEGER and found != value):
            raise UnsureError
    return found


def _check_digits(column: Seen, value: int | Decimal, scale: int) -> None:
    """That Spark's common decimal holds both sides: it makes null of what it does not.

    Beside a whole number, one beyond all longs makes it answer for nulls too.
    """
    if column.family is Family.INTEGER and not -_LONG <= value < _LONG:
        raise UnsureError
    scale = max(scale, column.scale)
    if column.family is Family.INTEGER and not scale:
        return
    digits = len(str(abs(int(value))))
    if max(column.digits - column.scale, digits) + scale > MOST_DIGITS:
        raise UnsureError


def _cuts(column: Seen, value: float | Decimal) -> tuple[Cut, Cut]:
    """Among the stored numbers."""
    if column.stored in (Family.FLOAT, Family.DOUBLE):
        double = float(value)
        with np.errstate(over="ignore"):
            is_held = column.stored is Family.DOUBLE or float(np.float32(double)) == double
        return before(double), after(double) if is_held else before(double)
    one = 10**column.stored_scale
    if isinstance(value, float) and (one > 1 or abs(value) >= _EXACT_DOUBLE):
        return _double_cuts(column, value, one)
    exact = Fraction(value) * one
    floor = math.floor(exact)
    return (before(floor), after(floor)) if floor == exact else (after(floor), after(floor))


def _double_cuts(column: Seen, value: float, one: int) -> tuple[Cut, Cut]:
    """Among numbers that are rounded to a double first, as Java does, to the nearest."""
    most = _LONG if column.stored is Family.INTEGER else 10**MOST_DIGITS
    first = first_number(lambda at: at / one >= value, most)
    beyond = first_number(lambda at: at / one > value, most)
    return _cut(first, most), _cut(beyond, most)


def _cut(first: int, most: int) -> Cut:
    if first <= -most:
        return LOWEST
    return HIGHEST if first > most else before(first)


# days and times


def _cast_time(column: Seen, literal: Literal, zone: Zone) -> Place:
    """Among days that are made times, or times of which the day is taken."""
    if column.family is not Family.DATE:
        is_local = column.family is Family.LOCAL
        micros = _local_micros(literal) if is_local else _micros(literal, zone)
        around = None if micros is None else days_around(micros, "UTC" if is_local else zone)
        if around is None:
            raise UnsureError
        return Place(at=(before(around[0]), before(around[1])))
    cuts = _day(literal, zone).at
    zone = "UTC" if column.stored is Family.LOCAL else zone
    begins = [day_begin(day + is_after, zone) for _, day, is_after in cuts or ()]
    if None in begins:
        raise UnsureError
    return Place(at=(before(begins[0]), before(begins[1])))


def _day(literal: Literal, zone: Zone) -> Place:
    text = str(literal.value)
    match literal.kind:
        case Kind.DATE | Kind.STRING:
            return _point(days_of(text))
        case Kind.TIMESTAMP_NTZ:
            micros = local_micros_of(text)
            if micros is None:
                raise UnsureError
            day, rest = divmod(micros, MICROS_A_DAY)
            return Place(at=(after(day) if rest else before(day), after(day)))
        case Kind.TIMESTAMP:
            micros = micros_of(text, zone)
            around = None if micros is None else days_around(micros, zone)
            if around is None:
                raise UnsureError
            return Place(at=(before(around[0]), before(around[1])))
        case _:
            raise UnsureError


def _micros(literal: Literal, zone: Zone) -> int | None:
    text = str(literal.value)
    match literal.kind:
        case Kind.TIMESTAMP | Kind.STRING:
            return micros_of(text, zone)
        case Kind.DATE:
            days = days_of(text)
            return None if days is None else midnight(days, zone)
        case Kind.TIMESTAMP_NTZ:
            # one in a zone's skipped or doubled hour is the same instant
            return micros_of(text, zone) if local_micros_of(text) is not None else None
        case _:
            return None


def _local_micros(literal: Literal) -> int | None:
    text = str(literal.value)
    match literal.kind:
        case Kind.TIMESTAMP_NTZ | Kind.STRING:
            return local_micros_of(text)
        case Kind.DATE:
            days = days_of(text)
            return None if days is None else days * MICROS_A_DAY
        case _:
            return None
