"""Parse the values that Spark's plans write without quotes, by the type of their column; pure.

Source: Literal.toString of Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Final
from zoneinfo import ZoneInfo

from reconciler.index.predicates.syntax import NULL, Literal, LiteralKind

INTEGERS: Final = frozenset({"tinyint", "smallint", "int", "bigint"})
_INT_BITS, _LONG_BITS = 32, 64
_INTEGER: Final = re.compile(r"-?[0-9]{1,19}")
_DECIMAL: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:E[+-]?[0-9]{1,3})?")
_DOUBLE: Final = re.compile(r"-?[0-9]+\.[0-9]+(?:E-?[0-9]{1,3})?|-?Infinity|NaN")
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?")
_BYTES: Final = re.compile(r"0x(?:[0-9A-F]{2})*")
#: a text with this may be an expression: an attribute, a call without arguments, or a mark
_EXPRESSION: Final = re.compile(r"#[0-9]|^[\w.]+\(\)$|\(redacted\)")


class UnknownValueError(Exception):
    """The text is not certainly a value of the type."""


def parse_literal(text: str, kind: str | None, zone: ZoneInfo | None) -> Literal:
    """Return the value of a text. ``kind``: the type by its name in a schema, None if unknown.

    A value of an unknown type becomes a text, as which Spark compares it equally. ``zone``: that
    of the session, in which Spark writes timestamps. Raises UnknownValueError.

    >>> parse_literal("12.50", "decimal(10,2)", None).value
    Decimal('12.50')
    >>> parse_literal("2026-07-01 12:00:00", "timestamp", ZoneInfo("Europe/Berlin")).value
    '2026-07-01 10:00:00Z'
    """
    if kind in INTEGERS:
        return _parse_integer(text)
    if kind is not None and kind.startswith("decimal"):
        return _parse_decimal(text)
    if kind == "timestamp":
        return _parse_timestamp(text, zone)
    parse = _PARSERS.get(kind)
    if parse is None:
        raise UnknownValueError
    return parse(text)


def parse_list_literal(text: str, kind: str | None, zone: ZoneInfo | None) -> Literal:
    """Return an element of a list, which may be null. Raises UnknownValueError."""
    if text != "null":
        return parse_literal(text, kind, zone)
    if kind in (None, "string", "binary"):  # it may be the text null
        raise UnknownValueError
    return NULL


def is_text(kind: str | None) -> bool:
    """Return whether any text may be a value of a type."""
    return kind in (None, "string")


def _parse_integer(text: str) -> Literal:
    if not _INTEGER.fullmatch(text):
        raise UnknownValueError
    value = int(text)
    bits = _INT_BITS if -(1 << 31) <= value < 1 << 31 else _LONG_BITS
    if not -(1 << 63) <= value < 1 << 63:
        raise UnknownValueError
    return Literal(kind=LiteralKind.INTEGER, value=value, bits=bits)


def _parse_decimal(text: str) -> Literal:
    if not _DECIMAL.fullmatch(text):
        raise UnknownValueError
    try:
        return Literal(kind=LiteralKind.DECIMAL, value=Decimal(text))
    except InvalidOperation:
        raise UnknownValueError from None


def _parse_double(text: str) -> Literal:
    if not _DOUBLE.fullmatch(text):
        raise UnknownValueError
    return Literal(kind=LiteralKind.DOUBLE, value=float(text))


def _parse_float(text: str) -> Literal:
    if not _DOUBLE.fullmatch(text):
        raise UnknownValueError
    return Literal(kind=LiteralKind.FLOAT, value=float(text))


def _parse_boolean(text: str) -> Literal:
    if text not in ("true", "false"):
        raise UnknownValueError
    return Literal(kind=LiteralKind.BOOLEAN, value=text == "true")


def _parse_day(text: str) -> Literal:
    if not _DAY.fullmatch(text):
        raise UnknownValueError
    return Literal(kind=LiteralKind.DATE, value=text)


def _parse_local_time(text: str) -> Literal:
    if not _TIME.fullmatch(text):
        raise UnknownValueError
    return Literal(kind=LiteralKind.TIMESTAMP_NTZ, value=text)


def _parse_timestamp(text: str, zone: ZoneInfo | None) -> Literal:
    """Return a timestamp in UTC. A time that the zone has twice, or never, is unknown."""
    if zone is None or not _TIME.fullmatch(text):
        raise UnknownValueError
    try:
        local = datetime.fromisoformat(text)
    except ValueError:
        raise UnknownValueError from None
    offsets = {local.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1)}
    if len(offsets) > 1 or local.year < 1900:  # noqa: PLR2004 - Java's old offsets have seconds
        raise UnknownValueError
    moment = local.replace(tzinfo=zone).astimezone(UTC)
    fraction = f".{moment.microsecond:06d}".rstrip("0").rstrip(".")
    return Literal(kind=LiteralKind.TIMESTAMP, value=f"{moment:%Y-%m-%d %H:%M:%S}{fraction}Z")


def _parse_text(text: str) -> Literal:
    if _EXPRESSION.search(text):
        raise UnknownValueError
    return Literal(kind=LiteralKind.STRING, value=text)


def _parse_bytes(text: str) -> Literal:
    if not _BYTES.fullmatch(text):
        raise UnknownValueError
    return Literal(kind=LiteralKind.BINARY, value=bytes.fromhex(text[2:]))


def _parse_any(text: str) -> Literal:
    """Return the value of a column of unknown type, such as a partition column, as a text."""
    if not text or _TIME.fullmatch(text) or _BYTES.fullmatch(text):
        raise UnknownValueError
    return _parse_text(text)


_PARSERS: Final[dict[str | None, Callable[[str], Literal]]] = {
    None: _parse_any,
    "binary": _parse_bytes,
    "boolean": _parse_boolean,
    "date": _parse_day,
    "double": _parse_double,
    "float": _parse_float,
    "string": _parse_text,
    "timestamp_ntz": _parse_local_time,
}
