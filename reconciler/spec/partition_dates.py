"""Dates in partition paths: the patterns of ``retention.partitions.by``. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import MAXYEAR, datetime, timedelta, tzinfo
from functools import cache
from typing import Final

from reconciler.errors import did_you_mean, quote_value
from reconciler.lazy_dataclass import dataclass

#: in place of a pattern: the age of a partition is that of its newest write
LAST_COMMIT: Final = "lastCommit"

_TOKEN: Final = re.compile(r"%.?|\*|[^%*]+", re.DOTALL)
#: parts of a date from the longest to the shortest, with how the text of a period shows them
_PARTS: Final = {"%Y": "%Y", "%m": "-%m", "%d": "-%d", "%H": "T%H"}
_NAMES: Final = {"%Y": "year", "%m": "month", "%d": "day", "%H": "hour"}
_EXAMPLE: Final = "dt=%Y-%m-%d"


@dataclass(frozen=True, slots=True)
class Period:
    """The time that a partition holds. ``end``: its first moment after it, on the wall clock."""

    text: str
    end: datetime

    def find_end_s(self, zone: tzinfo) -> float:
        """Return the end in epoch seconds; of an hour that occurs twice, the later one."""
        return max(self.end.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1))


@dataclass(frozen=True, slots=True)
class DatePattern:
    """A compiled pattern. ``parts``: the parts of a date that it has, in the order of _PARTS."""

    expression: re.Pattern[str]
    parts: tuple[str, ...]

    def find_period(self, path: str) -> Period | None:
        """Return the time that a partition holds by its path; None if the path has no such date."""
        match = self.expression.fullmatch(path)
        if match is None:
            return None
        numbers = [int(match[_NAMES[part]]) for part in self.parts]
        year, month, day, hour = (*numbers, *(1, 1, 1, 0)[len(numbers) :])
        try:
            start = datetime(year, month, day, hour)  # noqa: DTZ001 (the zone comes with find_end_s)
        except ValueError:
            return None
        text = start.strftime("".join(_PARTS[part] for part in self.parts[1:]))
        return Period(f"{year:04d}{text}", _find_end(start, self.parts[-1]))


def find_date_pattern_problem(text: str) -> str | None:
    """Check what a spec says about the age of partitions.

    >>> [find_date_pattern_problem(by) for by in ("lastCommit", "dt=%Y-%m-%d", "*/y=%Y/m=%m")]
    [None, None, None]
    >>> find_date_pattern_problem("dt=%Y-%d")
    "'dt=%Y-%d' has a day (%d) without a month (%m)"
    >>> find_date_pattern_problem("dt=YYYY-MM-dd")
    "'dt=YYYY-MM-dd' has no date; write a pattern such as dt=%Y-%m-%d, or lastCommit"
    """
    if text == LAST_COMMIT:
        return None
    tokens = _TOKEN.findall(text)
    unknown = next((t for t in tokens if t[0] == "%" and t not in (*_PARTS, "%%")), None)
    if unknown is not None:
        known = ", ".join(f"{part} ({_NAMES[part]})" for part in _PARTS)
        return f"{quote_value(text)}: {unknown} is no part of a date; write {known}, or %% for %"
    parts = [part for part in _PARTS if part in tokens]
    if not parts:
        if did_you_mean(text, [LAST_COMMIT]):
            return f"{quote_value(text)} has no date; did you mean {LAST_COMMIT!r}?"
        example = f"write a pattern such as {_EXAMPLE}, or {LAST_COMMIT}"
        return f"{quote_value(text)} has no date; {example}"
    missing = next((p for p in _list_longer(parts[-1]) if p not in parts), None)
    if missing is not None:
        shorter, longer = _NAMES[parts[-1]], _NAMES[missing]
        article = "an" if parts[-1] == "%H" else "a"
        return (
            f"{quote_value(text)} has {article} {shorter} ({parts[-1]}) without a {longer} "
            f"({missing})"
        )
    return _find_form_problem(text, tokens)


@cache
def compile_date_pattern(text: str) -> DatePattern:
    """Return the pattern of a valid text, which is not ``lastCommit``.

    Parts of a date have their usual digits; a month, a day and an hour may also have one digit if
    no other part is next to them. ``*`` matches any text without a slash.

    >>> compile_date_pattern("dt=%Y-%m-%d").find_period("dt=2026-02-28").text
    '2026-02-28'
    >>> compile_date_pattern("y=%Y/m=%m").find_period("y=2026/m=3").end
    datetime.datetime(2026, 4, 1, 0, 0)
    >>> compile_date_pattern("dt=%Y-%m-%d").find_period("dt=2026-02-30") is None
    True
    """
    tokens = _TOKEN.findall(text)
    pieces, seen = list[str](), set[str]()
    for part, before, after in _list_neighbours(tokens):
        if part == "*":
            pieces.append("[^/]*")
        elif part not in _PARTS:
            pieces.append(re.escape("%" if part == "%%" else part))
        elif part in seen:
            pieces.append(f"(?P={_NAMES[part]})")
        else:
            seen.add(part)
            is_fixed = before in _PARTS or after in _PARTS
            digits = "4" if part == "%Y" else "2" if is_fixed else "1,2"
            pieces.append(f"(?P<{_NAMES[part]}>[0-9]{{{digits}}})")
    parts = tuple(part for part in _PARTS if part in seen)
    return DatePattern(re.compile("".join(pieces), re.DOTALL), parts)


def _find_form_problem(text: str, tokens: Sequence[str]) -> str | None:
    """Return what keeps a text from being the path of partitions, or makes its dates ambiguous."""
    for part, before, after in _list_neighbours(tokens):
        if part == "*" and (before in _PARTS or after in _PARTS):
            return f"{quote_value(text)}: * next to a date does not say where the date is"
    if text.startswith("/") or text.endswith("/"):
        return f"{quote_value(text)} starts or ends with '/', but partition paths do not; remove it"
    return None


def _list_longer(part: str) -> Iterator[str]:
    """Yield the parts of a date that are longer than this one."""
    for other in _PARTS:
        if other == part:
            return
        yield other


def _list_neighbours(tokens: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    return zip(tokens, ("", *tokens[:-1]), (*tokens[1:], ""), strict=True)


def _find_end(start: datetime, shortest: str) -> datetime:
    """Return the end of a year, month, day or hour; the last moment there is for the year 9999."""
    try:
        match shortest:
            case "%Y":
                return start.replace(year=start.year + 1)
            case "%m":
                is_last = start.month == 12  # noqa: PLR2004
                return start.replace(year=start.year + is_last, month=start.month % 12 + 1)
            case "%d":
                return start + timedelta(days=1)
            case _:
                return start + timedelta(hours=1)
    except (ValueError, OverflowError):
        return datetime(MAXYEAR, 12, 31, 23)  # noqa: DTZ001
