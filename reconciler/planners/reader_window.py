"""Find the slices that running readers may still need; pure.

A query reads the slices that were newest when it began. An incremental consumer reads those of
every commit that it has not consumed. Slices superseded within the longest such time stay.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

import numpy as np

from reconciler import units
from reconciler.arrays import Integers, Mask
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.model import Impact, Note
from reconciler.plans.refusals import find_timeline_zone, format_instant
from reconciler.spec.model import TableSpec
from reconciler.state.model import TableState

#: longer than any time zone has ever turned its clocks back
_TURNED_BACK: Final = timedelta(hours=3)
_LENGTH: Final = 17  # of an instant with milliseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderWindow:
    """The time that the slowest reader needs: its name, the seconds, and the start as an instant.

    ``start`` is in the ``zone`` of the timeline and not later than any instant in the window.
    """

    reader: str
    seconds: int
    start: str
    zone: tzinfo

    @property
    def description(self) -> str:
        """Return the reader and its time in words."""
        return f"{self.reader} {units.format_duration(self.seconds)}"


def find_reader_window(spec: TableSpec, state: TableState, now: datetime) -> ReaderWindow | None:
    """Return the window of the slowest reader; None without readers or without retention.

    The time zone of the timeline must be known.
    """
    slowest = spec.readers.slowest_reader if spec.readers and spec.retention else None
    if slowest is None:
        return None
    zone = find_timeline_zone(spec, state)
    assert zone is not None, "a missing zone is refused before"
    reader, seconds = slowest
    return ReaderWindow(
        reader=reader, seconds=seconds, start=_find_start(now, seconds, zone), zone=zone
    )


def _find_start(now: datetime, seconds: int, zone: tzinfo) -> str:
    """Return now minus the seconds as an instant; the earlier one if clocks turn back after it."""
    try:
        start = now.astimezone(UTC) - timedelta(seconds=seconds)
        soon = min(start + _TURNED_BACK, now)
        return format_instant(start + min(_utc_offset(start, zone), _utc_offset(soon, zone)), UTC)
    except OverflowError:  # before year 1: every instant is in the window
        return ""


def _utc_offset(moment: datetime, zone: tzinfo) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReaderProtection:
    """The slices that readers may still read.

    ``is_read``: per slice. ``reason_key``: per slice, the code of the time that superseded it, or
    -1 minus the code of its own time. ``explain`` returns the sentence of such a key.
    """

    is_read: Mask
    reason_key: Integers
    explain: Callable[[int], str]


def find_slices_read(state: TableState, window: ReaderWindow | None) -> ReaderProtection:
    """Return the slices that were written or superseded within the window.

    A slice is superseded when the next slice of its group, or the replacement of the group, is
    completed: at its completion time, or in version 6 when the completed file was written.
    Pending instants have superseded nothing.
    """
    view = state.view
    if window is None:
        nothing = np.zeros(len(view), np.bool_)
        return ReaderProtection(
            is_read=nothing, reason_key=np.zeros(len(view), np.int64), explain=str
        )
    ends = _completion_times(state, view.times)
    recent = np.array([end is None or end >= window.start for end in ends] + [True], np.bool_)
    ended = view.replaced[view.group]
    is_recent = recent[view.newer] & recent[ended]
    by = np.minimum(view.newer, ended).astype(np.int64)

    def sentence(about: int) -> str:
        code = about if about >= 0 else -1 - about
        if code == view.never_code:
            return f"{window.description} and may read it"
        what = "superseded" if about >= 0 else "written"
        return _explain_slice(window, what, view.times[code], ends[code])

    return ReaderProtection(
        is_read=recent[view.key] | is_recent,
        reason_key=np.where(is_recent, by, -1 - view.key),
        explain=sentence,
    )


def _explain_slice(window: ReaderWindow, what: str, by: str, end: str | None) -> str:
    sentence = f"{window.description} and may read its file slice"
    if end is None:
        return f"{sentence}; {by}, which is pending, has not {what} it yet"
    until = _find_expiry(end, window)
    limit = "" if until is None else f" until {until}"
    return f"{sentence}{limit}: it was {what} by {by}, completed at {end}"


def _completion_times(state: TableState, times: tuple[str, ...]) -> list[str | None]:
    """Return per time when its instant was completed; None if it is pending."""
    known = state.v6_completions if state.table_version < LOGS_BY_COMPLETION else state.completions
    pending = {instant.requested for instant in state.timeline.writes if not instant.is_completed}
    return [
        None if time in pending else max(time, known.get(time, time)).ljust(_LENGTH, "9")
        for time in times
    ]


def _find_expiry(end: str, window: ReaderWindow) -> str | None:
    """Return until when readers need what ended at ``end``; None if it is not a date."""
    try:
        day, clock = f"{end[:4]}-{end[4:6]}-{end[6:8]}", f"{end[8:10]}:{end[10:12]}:{end[12:14]}"
        local = datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=window.zone, fold=1)
        until = local.astimezone(UTC) + timedelta(seconds=window.seconds)
        return until.astimezone(window.zone).isoformat()
    except (ValueError, OverflowError):
        return None


def refuse_shrinking(window: ReaderWindow | None, impact: Impact) -> tuple[Note, ...]:
    """Return the refusal of a clean that removes what a declared reader still needs."""
    before, after = impact.earliest_readable_before, impact.earliest_readable_after
    if window is None or before is None:
        return ()
    if after is not None and (after <= before or after <= window.start):
        return ()
    return (
        Note(
            "readers",
            f"{window.description}, back to {window.start}, but after the plan the table can be "
            f"read from {'no instant' if after is None else after} instead of {before}; retain "
            "more",
            step="clean",
        ),
    )
