"""Sizes, durations and percentages as text, and back.

Every parser raises ValueError with a message that says what to write instead. Formatting is exact
but for rounded sizes: parsing the result gives the same value.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

_BINARY: Final = {"KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4}
_DECIMAL: Final = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZES: Final = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
SIZE_UNITS: Final = {"B": 1, **_DECIMAL, **_BINARY}
DURATION_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}

MAX_SIZE: Final = 2**63 - 1
MAX_DURATION: Final = 1000 * 365 * 86400
"""A thousand years; dates do not reach much further."""

_NUMBER_AND_UNIT: Final = re.compile(r"([0-9]{1,30}(?:\.[0-9]{1,30})?) ?([A-Za-z]*)")
_PERCENT: Final = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,30})?) ?%")


def parse_size(text: str) -> int:
    """Return the bytes of a size.

    >>> parse_size("120MiB"), parse_size("1.5 kB"), parse_size("7B")
    (125829120, 1500, 7)
    """
    number, factor = _split_quantity(text, "size", SIZE_UNITS, example="120MiB")
    size = Decimal(number) * factor
    if size != int(size):
        raise ValueError(f"{text!r} is not a whole number of bytes")
    if size > MAX_SIZE:
        raise ValueError(f"{text!r} is more than {MAX_SIZE} bytes")
    return int(size)


def format_size(size: int) -> str:
    """Return the size in the largest unit that divides it.

    >>> format_size(125829120), format_size(1500000), format_size(1), format_size(0)
    ('120MiB', '1500kB', '1B', '0B')
    """
    for units in (_BINARY, _DECIMAL):
        for unit, factor in reversed(units.items()):
            if size and size % factor == 0:
                return f"{size // factor}{unit}"
    return f"{size}B"


def format_rounded_size(size: int) -> str:
    """Return bytes for people, in the largest unit that leaves a number of at least one.

    >>> format_rounded_size(1), format_rounded_size(1023), format_rounded_size(1536)
    ('1 byte', '1023 bytes', '1.5 KiB')
    """
    amount, unit = float(size), 0
    while unit + 1 < len(_SIZES) and amount >= (1024 if unit == 0 else 1023.95):
        amount, unit = amount / 1024, unit + 1
    if unit == 0:
        return "1 byte" if size == 1 else f"{size} bytes"
    return f"{amount:.1f} {_SIZES[unit]}"


def parse_duration(text: str) -> int:
    """Return the seconds of a duration.

    >>> parse_duration("90m"), parse_duration("7d")
    (5400, 604800)
    """
    number, factor = _split_quantity(text, "duration", DURATION_UNITS, example="24h")
    if "." in number:
        raise ValueError(f"{text!r} is not a whole number; use a smaller unit, such as 90m")
    seconds = int(number) * factor
    if seconds > MAX_DURATION:
        raise ValueError(f"{text!r} is more than a thousand years")
    return seconds


def format_duration(seconds: int) -> str:
    """Return the duration in the largest unit that divides it.

    >>> format_duration(5400), format_duration(604800), format_duration(61), format_duration(0)
    ('90m', '7d', '61s', '0s')
    """
    for unit, factor in reversed(DURATION_UNITS.items()):
        if seconds and seconds % factor == 0:
            return f"{seconds // factor}{unit}"
    return f"{seconds}s"


def parse_percent(text: str) -> float:
    """Return the share of a percentage: above 0 and at most 1.

    >>> parse_percent("5%"), parse_percent("12.5%"), parse_percent("100%")
    (0.05, 0.125, 1.0)
    """
    match = _PERCENT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a percentage; write a number and %, such as 5%")
    share = float(Decimal(match[1]) / 100)
    if not 0 < share <= 1:
        raise ValueError(f"{text!r} is not above 0% and at most 100%")
    return share


def format_percent(share: float) -> str:
    """Return the share as an exact percentage.

    >>> format_percent(0.05), format_percent(1.0), format_percent(1 / 3)
    ('5%', '100%', '33.33333333333333%')
    """
    percent = Decimal(repr(share)) * 100
    text = f"{percent:f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "%"


def _split_quantity(
    text: str, kind: str, units: dict[str, int], *, example: str
) -> tuple[str, int]:
    """Return the number of a size or duration as text, and the factor of its unit."""
    match = _NUMBER_AND_UNIT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a {kind}; write a number with a unit, such as {example}")
    number, unit = match.groups()
    if unit not in units:
        problem = "no known unit; write" if unit else "no unit; add"
        better = f"{number}{example.lstrip('0123456789')}"
        raise ValueError(f"{text!r} has {problem} one of {', '.join(units)}, such as {better}")
    return number, units[unit]
