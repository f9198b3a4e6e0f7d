"""What the clocks of a place show, by Java's own rules; pure.

Python's zones come from another edition of the time zone database, and from another reading of it:
they differ in years that tables hold. Where there is a session, its Java says what its clocks show.
Sources: java.time.zone.ZoneRules, ZoneOffsetTransitionRule; ZonedDateTime.ofLocal and
LocalDate.atStartOfDay for times that clocks skip or show twice.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Final, Literal, NamedTuple

_MICROS: Final = 1_000_000
_DAY: Final = 86_400
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = date(1970, 1, 1)
#: so many years hold a whole number of weeks, and the calendar begins anew
_YEARS: Final = 400
_CYCLE: Final = 146_097 * _DAY
#: no clock is so far from UTC, and none is set twice within it
_MARGIN: Final = 3 * _DAY
_CHANGE: Final = re.compile(r"Transition\[(?:Gap|Overlap) at ([^\[\] ]+) to ([^\[\] ]+)\]")
_OFFSET: Final = re.compile(r"([+-])(\d\d):(\d\d)(?::(\d\d))?\Z", re.ASCII)


class YearlyRule(NamedTuple):
    """When clocks change every year, as Java's ZoneOffsetTransitionRule says it.

    ``day``: of the month, or from its end, -1 the last; ``weekday``: the first such day from then
    on, or up to then where ``day`` is negative, 1 for Monday, 0 for none; ``second``: of the day;
    offsets in seconds ahead of UTC.
    """

    month: int
    day: int
    weekday: int
    second: int
    counts: Literal["UTC", "WALL", "STANDARD"]
    standard: int
    before: int
    after: int

    def change_in_year(self, year: int) -> int:
        """When it comes about, in seconds since 1970."""
        first = self.day if self.day > 0 else monthrange(year, self.month)[1] + 1 + self.day
        day = date(year, self.month, first)
        if self.weekday:
            ahead = (self.weekday - day.isoweekday()) % 7
            day += timedelta(days=ahead if self.day > 0 or not ahead else ahead - 7)
        local = (day - _FIRST).days * _DAY + self.second
        return local - {"UTC": 0, "WALL": self.before, "STANDARD": self.standard}[self.counts]


@dataclass(frozen=True, kw_only=True)
class ZoneRules:
    """The clocks of one place. ``changes``: when they are set, in seconds since 1970, sorted.

    ``offsets``: in seconds ahead of UTC, before the first change, between, and after the last.
    ``is_endless``: the last 400 years of the changes come again and again.
    """

    changes: tuple[int, ...]
    offsets: tuple[int, ...]
    is_endless: bool = False

    @classmethod
    def from_java(cls, first: int, changes: str, yearly: Sequence[YearlyRule] = ()) -> ZoneRules:
        """``first``: the offset before all changes; ``changes``: as Java prints the list of them.

        Raises ValueError for a text that is none.

        >>> Clocks.of(0, "[Transition[Gap at 1970-01-01T00:00Z to +01:00]]")
        Clocks(changes=(0,), offsets=(0, 3600), is_endless=False)
        """
        found = _parse_changes(changes)
        if yearly:
            last = found[-1][0] if found else 0
            year = (_EPOCH + timedelta(seconds=last)).year
            years = range(year, year + _YEARS + 2)
            later = sorted(
                (rule.change_in_year(year), rule.after) for rule in yearly for year in years
            )
            found += [change for change in later if change[0] > last or not found]
        return cls(
            changes=tuple(at for at, _ in found),
            offsets=(first, *(offset for _, offset in found)),
            is_endless=bool(yearly),
        )

    def to_instant(self, local: int) -> int:
        """The instant at which clocks show a time; both in microseconds, as if of UTC.

        The first of two instants; a time that is skipped counts on from before.
        """
        at = bisect_right(self._local_changes, self._into_cycle(local // _MICROS))
        return local - self.offsets[at] * _MICROS

    def day_start(self, days: int) -> int:
        """When a day, given by those since 1970-01-01, begins; in microseconds since 1970 in UTC.

        One whose midnight is skipped begins when clocks were set.
        """
        second = days * _DAY
        at = bisect_right(self._local_changes, self._into_cycle(second))
        if at < len(self.changes):
            skipped_from = self.changes[at] + self.offsets[at]
            if skipped_from <= self._into_cycle(second):
                second = second - self._into_cycle(second) + skipped_from
        return (second - self.offsets[at]) * _MICROS

    def offset_at(self, second: int) -> int:
        """How far ahead of UTC clocks are at an instant, both in seconds."""
        return self.offsets[bisect_right(self.changes, self._into_cycle(second))]

    @cached_property
    def _local_changes(self) -> tuple[int, ...]:
        """What clocks show when they have been set, and everything before is over."""
        ends = zip(self.changes, self.offsets, self.offsets[1:], strict=False)
        return tuple(at + max(before, after) for at, before, after in ends)

    def _into_cycle(self, second: int) -> int:
        """A time within the years of the changes at which clocks show the same."""
        if not self.is_endless:
            return second
        beyond = second - (self.changes[-1] - _MARGIN)
        return second if beyond < 0 else second - (beyond // _CYCLE + 1) * _CYCLE


def _parse_changes(changes: str) -> list[tuple[int, int]]:
    """Of Java's list of ZoneOffsetTransition: when, and the offset from then on."""
    found = []
    for match in _CHANGE.finditer(changes):
        at = datetime.fromisoformat(match[1]) - _EPOCH
        found.append((at // timedelta(seconds=1), _parse_offset(match[2])))
    if len(found) != changes.count("Transition["):
        raise ValueError(changes)
    return found


def _parse_offset(offset: str) -> int:
    match = _OFFSET.match(offset)
    if match is None:
        if offset != "Z":
            raise ValueError(offset)
        return 0
    seconds = int(match[2]) * 3600 + int(match[3]) * 60 + int(match[4] or 0)
    return seconds if match[1] == "+" else -seconds
