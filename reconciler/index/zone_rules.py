"""The offsets of one time zone by Java's rules. No I/O.

Python reads another edition of the time zone database, and differs from Java in years that tables
hold. With a Spark session, the rules come from the session's own Java.
Sources: java.time.zone.ZoneRules, ZoneOffsetTransitionRule; ZonedDateTime.ofLocal and
LocalDate.atStartOfDay for local times that a change of offset skips or repeats.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from calendar import monthrange
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Final, Literal, NamedTuple

from reconciler.lazy_dataclass import dataclass

_MICROS: Final = 1_000_000
_DAY: Final = 86_400
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = date(1970, 1, 1)
#: 400 years hold a whole number of weeks, after which the calendar repeats
_YEARS: Final = 400
_CYCLE: Final = 146_097 * _DAY
#: longer than any offset from UTC and than the time between two changes of a zone
_MARGIN: Final = 3 * _DAY
_CHANGE: Final = re.compile(r"Transition\[(?:Gap|Overlap) at ([^\[\] ]+) to ([^\[\] ]+)\]")
_OFFSET: Final = re.compile(r"([+-])(\d\d):(\d\d)(?::(\d\d))?\Z", re.ASCII)


class YearlyRule(NamedTuple):
    """A change of offset that recurs every year, as in Java's ZoneOffsetTransitionRule.

    ``day``: day of the month; negative days count from its end, -1 is the last. ``weekday``: the
    change is on the first such weekday from ``day`` on (the last one up to a negative ``day``); 1
    is Monday, 0 means exactly ``day``. ``second``: second of the day. Offsets are seconds ahead of
    UTC.
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
        """Return the time of the change in a year, in seconds since 1970."""
        first = self.day if self.day > 0 else monthrange(year, self.month)[1] + 1 + self.day
        day = date(year, self.month, first)
        if self.weekday:
            ahead = (self.weekday - day.isoweekday()) % 7
            day += timedelta(days=ahead if self.day > 0 or not ahead else ahead - 7)
        local = (day - _FIRST).days * _DAY + self.second
        return local - {"UTC": 0, "WALL": self.before, "STANDARD": self.standard}[self.counts]


@dataclass(frozen=True, kw_only=True)
class ZoneRules:
    """All offsets of one time zone.

    ``changes``: the times at which the offset changes, in seconds since 1970, sorted. ``offsets``:
    seconds ahead of UTC before the first change, between changes and after the last one.
    ``is_endless``: the last 400 years of changes repeat for ever.
    """

    changes: tuple[int, ...]
    offsets: tuple[int, ...]
    is_endless: bool = False

    @classmethod
    def from_java(cls, first: int, changes: str, yearly: Sequence[YearlyRule] = ()) -> ZoneRules:
        """Parse the rules that Java prints.

        ``first``: the offset before all changes. ``changes``: Java's text of its list of
        transitions. Raises ValueError for any other text.

        >>> ZoneRules.from_java(0, "[Transition[Gap at 1970-01-01T00:00Z to +01:00]]")
        ZoneRules(changes=(0,), offsets=(0, 3600), is_endless=False)
        """
        parsed = _parse_changes(changes)
        if yearly:
            last = parsed[-1][0] if parsed else 0
            year = (_EPOCH + timedelta(seconds=last)).year
            years = range(year, year + _YEARS + 2)
            later = sorted(
                (rule.change_in_year(year), rule.after) for rule in yearly for year in years
            )
            parsed += [change for change in later if change[0] > last or not parsed]
        return cls(
            changes=tuple(at for at, _ in parsed),
            offsets=(first, *(offset for _, offset in parsed)),
            is_endless=bool(yearly),
        )

    def to_instant(self, local: int) -> int:
        """Return the instant of a local time; both in microseconds since 1970.

        A repeated local time gives the first of its two instants. A skipped one is counted with
        the offset from before the change.
        """
        at = bisect_right(self._local_changes, self._into_cycle(local // _MICROS))
        return local - self.offsets[at] * _MICROS

    def find_instants(self, local: int) -> tuple[int, ...]:
        """Return all instants of a local time: two if it is repeated, none if it is skipped.

        All are microseconds since 1970.
        """
        at = bisect_right(self._local_changes, self._into_cycle(local // _MICROS))
        instants = {(local - offset * _MICROS, offset) for offset in self.offsets[at : at + 3]}
        return tuple(sorted(i for i, offset in instants if self.offset_at(i // _MICROS) == offset))

    def day_start(self, days: int) -> int:
        """Return when a day begins, in microseconds since 1970 in UTC.

        ``days``: days since 1970-01-01. A day whose midnight is skipped begins at the change.
        """
        second = days * _DAY
        at = bisect_right(self._local_changes, self._into_cycle(second))
        if at < len(self.changes):
            skipped_from = self.changes[at] + self.offsets[at]
            if skipped_from <= self._into_cycle(second):
                second = second - self._into_cycle(second) + skipped_from
        return (second - self.offsets[at]) * _MICROS

    def offset_at(self, second: int) -> int:
        """Return the seconds that the zone is ahead of UTC at an instant in seconds."""
        return self.offsets[bisect_right(self.changes, self._into_cycle(second))]

    @cached_property
    def _local_changes(self) -> tuple[int, ...]:
        """The local times from which on each change is surely over."""
        ends = zip(self.changes, self.offsets, self.offsets[1:], strict=False)
        return tuple(at + max(before, after) for at, before, after in ends)

    def _into_cycle(self, second: int) -> int:
        """Return a time with the same offset within the years that ``changes`` covers."""
        if not self.is_endless:
            return second
        beyond = second - (self.changes[-1] - _MARGIN)
        return second if beyond < 0 else second - (beyond // _CYCLE + 1) * _CYCLE


def _parse_changes(changes: str) -> list[tuple[int, int]]:
    """Parse Java's list of ZoneOffsetTransition: each time, and the offset from then on."""
    parsed = []
    for match in _CHANGE.finditer(changes):
        at = datetime.fromisoformat(match[1]) - _EPOCH
        parsed.append((at // timedelta(seconds=1), _parse_offset(match[2])))
    if len(parsed) != changes.count("Transition["):
        raise ValueError(changes)
    return parsed


def _parse_offset(offset: str) -> int:
    match = _OFFSET.match(offset)
    if match is None:
        if offset != "Z":
            raise ValueError(offset)
        return 0
    seconds = int(match[2]) * 3600 + int(match[3]) * 60 + int(match[4] or 0)
    return seconds if match[1] == "+" else -seconds
