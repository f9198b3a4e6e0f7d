"""Types of columns as Spark compares them, and the casts that keep the order of values."""

from __future__ import annotations

import re
from dataclasses import replace
from enum import Enum
from typing import Any, Final

import pyarrow as pa

from reconciler.index.predicates.syntax import INTEGER_BITS
from reconciler.lazy_dataclass import dataclass

#: whole numbers up to this limit are exact as a double
EXACT_DOUBLE: Final = 1 << 53
#: digits of the decimal that Spark makes of a whole number, by the number's bits
INTEGER_DIGITS: Final = {8: 3, 16: 5, 32: 10, 64: 20}
_DECIMAL: Final = re.compile(r"(?:decimal|dec|numeric)(?:\((\d+)(?:,(\d+))?\))?\Z")


class UnsureError(Exception):
    """It is not certain how Spark compares these values."""


class TypeFamily(Enum):
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


FLOATS: Final = frozenset({TypeFamily.FLOAT, TypeFamily.DOUBLE})
NUMBERS: Final = FLOATS | {TypeFamily.INTEGER, TypeFamily.DECIMAL}
_ARROW_FAMILIES: Final = {
    pa.float32(): TypeFamily.FLOAT,
    pa.float64(): TypeFamily.DOUBLE,
    pa.string(): TypeFamily.TEXT,
    pa.binary(): TypeFamily.BYTES,
    pa.date32(): TypeFamily.DATE,
    pa.bool_(): TypeFamily.BOOLEAN,
}
#: casts that keep a column of the same family as it is
_FAMILIES: Final = {
    "timestamp": TypeFamily.TIMESTAMP,
    "string": TypeFamily.TEXT,
    "binary": TypeFamily.BYTES,
    "date": TypeFamily.DATE,
    "timestamp_ntz": TypeFamily.LOCAL,
    "timestamp_ltz": TypeFamily.TIMESTAMP,
    "boolean": TypeFamily.BOOLEAN,
    "float": TypeFamily.FLOAT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedType:
    """The stored type of a column, and the type after a cast around it.

    ``bits``: width of whole numbers. ``digits``, ``scale``: those of decimals, and of whole numbers
    as decimals.
    """

    stored: TypeFamily
    family: TypeFamily
    bits: int = 0
    stored_scale: int = 0
    digits: int = 0
    scale: int = 0


#: casts between days and times that keep the order
_CALENDAR_CASTS: Final = frozenset(
    {
        (TypeFamily.DATE, TypeFamily.TIMESTAMP),
        (TypeFamily.DATE, TypeFamily.LOCAL),
        (TypeFamily.TIMESTAMP, TypeFamily.DATE),
        (TypeFamily.LOCAL, TypeFamily.DATE),
    }
)


def read_type(kind: Any) -> ComparedType:
    """Return the comparable type of an Arrow type; raises UnsureError for unsupported types."""
    types = pa.types
    if types.is_signed_integer(kind):
        bits = kind.bit_width
        return _stored_type(TypeFamily.INTEGER, bits=bits, digits=INTEGER_DIGITS[bits])
    if types.is_decimal128(kind):
        digits, scale = kind.precision, kind.scale
        return _stored_type(TypeFamily.DECIMAL, stored_scale=scale, digits=digits, scale=scale)
    if types.is_timestamp(kind):
        return _stored_type(TypeFamily.TIMESTAMP if kind.tz else TypeFamily.LOCAL)
    if kind not in _ARROW_FAMILIES:
        raise UnsureError
    return _stored_type(_ARROW_FAMILIES[kind])


def _stored_type(family: TypeFamily, **more: int) -> ComparedType:
    return ComparedType(stored=family, family=family, **more)


def cast_type(column: ComparedType, to: str) -> ComparedType:
    """Return a column cast to a type that holds all its values exactly; else raises UnsureError."""
    is_whole = column.family is TypeFamily.INTEGER
    if is_whole and INTEGER_BITS.get(to, 0) >= column.bits:
        return widen_integer(column, INTEGER_BITS[to])
    is_short = is_whole and 1 << column.bits <= EXACT_DOUBLE
    if to == "double" and (is_short or column.family in FLOATS):
        return replace(column, family=TypeFamily.DOUBLE)
    match = _DECIMAL.match(to)
    if match and column.family in (TypeFamily.INTEGER, TypeFamily.DECIMAL):
        digits, scale = int(match[1] or 10), int(match[2] or 0)
        if scale >= column.scale and digits - scale >= column.digits - column.scale:
            return replace(column, family=TypeFamily.DECIMAL, digits=digits, scale=scale)
    family = _FAMILIES.get(to)
    if family is column.family:
        return column
    if family is not None and (column.family, family) in _CALENDAR_CASTS:
        return replace(column, family=family)
    raise UnsureError


def widen_integer(column: ComparedType, bits: int) -> ComparedType:
    """Return a whole number's type with more bits."""
    return replace(column, bits=bits, digits=INTEGER_DIGITS[bits])
