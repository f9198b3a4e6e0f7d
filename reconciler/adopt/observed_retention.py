"""The retention that a table's cleans followed, derived from what they recorded. Pure.

A completed clean records its policy, the earliest instant it retained and the newest commit it
knew, but not the configured number. Source: Hudi's CleanerUtils.getEarliestCommitToRetain.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

import numpy as np

from reconciler.hudi.files.names import BaseName, LogName
from reconciler.hudi.files.view import FileView, find_group_codes
from reconciler.hudi.timeline.instant import COMMITS, Action, parse_instant
from reconciler.lazy_dataclass import dataclass
from reconciler.render import words
from reconciler.spec.model import Policy
from reconciler.spec.rules import COUNT_BY_POLICY
from reconciler.state.model import CompletedClean, TableState

#: how long after its own instant a clean may have read the clock
_SLACK: Final = timedelta(minutes=5)
_HOUR: Final = timedelta(hours=1)
_HOURS_PER_DAY: Final = 24
#: a clean retains what these need while they are pending, as in ``planners.clean``
_HOLDING_ACTIONS: Final = COMMITS | {Action.COMPACTION, Action.CLUSTERING}


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionCandidate:
    """A number that explains the cleans; ``because`` is the reason to prefer it, or ""."""

    keep: int
    because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedRetention:
    """The retention seen in the cleans of the newest policy; ``findings`` are sentences about it.

    ``field``: the retention's field in a spec, None for an unknown policy. ``candidates``: the best
    first, empty if the number is unknown. ``since``: the earliest instant that the newest readable
    clean retained.
    """

    policy: str
    field: str | None
    findings: tuple[str, ...]
    candidates: tuple[RetentionCandidate, ...] = ()
    since: str | None = None


def observe_retention(
    state: TableState, view: FileView, zone: tzinfo | None
) -> ObservedRetention | None:
    """Return the retention of the completed cleans on the active timeline; None without cleans.

    ``zone`` is that of the timeline's instants; without it hours are those of a wall clock.
    """
    telling = [clean for clean in state.cleans if not clean.is_blank and clean.policy]
    telling.sort(key=lambda clean: clean.instant, reverse=True)
    if not telling:
        return None
    newest = telling[0].policy or ""
    same = [clean for clean in telling if clean.policy == newest]
    others = _describe_other_policies(telling, newest)
    if newest not in COUNT_BY_POLICY:
        finding = f"{_name_cleans(same)} followed {words.escape_text(newest)}, an unknown policy."
        return ObservedRetention(policy=newest, field=None, findings=(finding, *others))
    policy = Policy(newest)
    match policy:
        case Policy.COMMITS:
            finding, candidates = _observe_commits(state, same)
        case Policy.HOURS:
            finding, candidates = _observe_hours(state, same, zone)
        case Policy.FILE_VERSIONS:
            finding, candidates = _observe_versions(view, telling)
    followed = f"{_name_cleans(same)} followed {policy}"
    return ObservedRetention(
        policy=policy,
        field=COUNT_BY_POLICY[policy],
        findings=(f"{followed}{finding}", *others),
        candidates=candidates,
        since=next((window.commits[0] for window in _find_windows(state, same)), None),
    )


def _describe_other_policies(cleans: Sequence[CompletedClean], newest: str) -> tuple[str, ...]:
    others = [clean for clean in cleans if clean.policy != newest]
    if not others:
        return ()
    policies = sorted({words.escape_text(clean.policy or "") for clean in others})
    return (f"{_name_cleans(others)} followed {' and '.join(policies)}, so they are ignored.",)


def _name_cleans(cleans: Sequence[CompletedClean]) -> str:
    """Name the cleans, newest first, by their instants.

    >>> from types import SimpleNamespace as made
    >>> _name_cleans([made(instant="20260102")])
    'The clean 20260102'
    >>> _name_cleans([made(instant="3"), made(instant="1")])
    'The 2 cleans from 1 to 3'
    """
    if len(cleans) == 1:
        return f"The clean {cleans[0].instant}"
    return f"The {len(cleans)} cleans from {cleans[-1].instant} to {cleans[0].instant}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _RetainedWindow:
    """The commits that one clean retained.

    ``commits``: their requested times from the earliest retained on. ``before``: the commit before
    those, None if it is archived. ``is_held_back``: a write in progress may have made the clean
    keep more than configured.
    """

    clean: CompletedClean
    commits: tuple[str, ...]
    before: str | None
    is_held_back: bool


def _find_windows(state: TableState, cleans: Sequence[CompletedClean]) -> list[_RetainedWindow]:
    windows = (_find_window(state, clean) for clean in cleans)
    return [window for window in windows if window is not None]


def _find_window(state: TableState, clean: CompletedClean) -> _RetainedWindow | None:
    """Return the window; None if its commits are archived or rolled back, and cannot be counted."""
    first, last = clean.earliest_instant_to_retain.strip(), clean.last_completed_commit.strip()
    times = [i.requested for i in state.timeline.commits]
    last = last or next((time for time in reversed(times) if time < clean.instant), "")
    if first not in times or last not in times or last < first:
        return None

    def was_completed(time: str) -> bool:
        # version 6 does not record when a write ended: count it as completed then
        return time == last or state.completions.get(time, "") <= clean.instant

    known = [time for time in times if time <= last and was_completed(time)]
    at = bisect_left(known, first)
    if at == len(known) or known[at] != first:
        return None
    pending = [
        i.requested
        for i in state.timeline.instants
        if i.action in _HOLDING_ACTIONS
        and first < i.requested
        and not (i.is_completed and was_completed(i.requested))
    ]
    kept = tuple(known[at:])
    is_held_back = bool(pending) and len(kept) > 1 and pending[0] < kept[1]
    before = known[at - 1] if at else None
    return _RetainedWindow(clean=clean, commits=kept, before=before, is_held_back=is_held_back)


def _observe_commits(
    state: TableState, cleans: Sequence[CompletedClean]
) -> tuple[str, tuple[RetentionCandidate, ...]]:
    windows = _find_windows(state, cleans)
    if not windows:
        what = f"the commits that {_name_clean(cleans)} kept"
        return f"; {what} are archived and cannot be counted.", ()
    counts = [len(window.commits) for window in windows]
    free = [len(window.commits) for window in windows if not window.is_held_back] or counts
    because = "The widest is declared." if len(set(counts)) > 1 else ""
    widest = RetentionCandidate(keep=max(counts), because=because)
    narrower = RetentionCandidate(keep=max(free), because=_explain_held_back(free, counts))
    candidates = (narrower, widest) if narrower.keep != widest.keep else (widest,)
    return f"{_count_readable(windows, cleans)} kept {_list_counts(counts, 'commit')}.", candidates


def _explain_held_back(free: Sequence[int], counts: Sequence[int]) -> str:
    if max(free) == max(counts):
        return ""
    return f"Those that no write in progress can have held back kept {_format_range(free)}."


def _name_clean(cleans: Sequence[CompletedClean]) -> str:
    return "it" if len(cleans) == 1 else "they"


def _count_readable(windows: Sequence[_RetainedWindow], cleans: Sequence[CompletedClean]) -> str:
    """Say how many of the cleans are readable."""
    if len(windows) == len(cleans):
        return " and"
    return f"; {len(windows)} of them can be read back and"


def _format_range(counts: Sequence[int]) -> str:
    least, most = min(counts), max(counts)
    return f"{least}" if least == most else f"{least} to {most}"


def _list_counts(counts: Sequence[int], noun: str) -> str:
    """Say what each clean kept, the newest first.

    >>> _list_counts([3], "commit"), _list_counts([3, 3], "commit"), _list_counts([3, 5], "commit")
    ('3 commits', '3 commits each', '3 to 5 commits, the newest 3')
    """
    if len(set(counts)) > 1:
        return f"{_format_range(counts)} {noun}s, the newest {counts[0]}"
    each = " each" if len(counts) > 1 else ""
    return f"{words.format_count(counts[0], noun)}{each}"


def _observe_hours(
    state: TableState, cleans: Sequence[CompletedClean], zone: tzinfo | None
) -> tuple[str, tuple[RetentionCandidate, ...]]:
    """Find the number of hours that explains all cleans.

    Each clean's hours are between its first retained commit and the commit before that.
    """
    windows = [window for window in _find_windows(state, cleans) if not window.is_held_back]
    brackets = [bracket for window in windows if (bracket := _hour_bounds(window, zone))]
    if not brackets:
        return f"; what {_name_clean(cleans)} kept is not readable.", ()
    least = max(bracket[0] for bracket in brackets)
    most = min((bracket[1] for bracket in brackets if bracket[1]), default=None)
    some = _count_readable(windows, cleans)
    if most is None:
        return f"{some} kept at least {_format_hours(least)} hours; the number is unknown.", ()
    if least >= most:
        spread = f"between {_format_hours(most)} and {_format_hours(least)}"
        return f"{some} differ in the hours: {spread}.", ()
    kept = f"{some} kept at least {_format_hours(least)} and less than {_format_hours(most)} hours"
    fitting = range(max(1, math.ceil(least / _HOUR)), math.ceil(most / _HOUR))
    days = [hours for hours in fitting if hours % _HOURS_PER_DAY == 0]
    if len(fitting) == 1:
        return f"{kept}.", (RetentionCandidate(keep=fitting[0]),)
    if len(days) == 1:
        why = f"{days[0]} is the only number of whole days among them."
        return f"{kept}.", (RetentionCandidate(keep=days[0], because=why),)
    return f"{kept}; the number is unknown.", ()


def _hour_bounds(
    window: _RetainedWindow, zone: tzinfo | None
) -> tuple[timedelta, timedelta | None] | None:
    """Return the least hours and the limit above; None if an instant is no time."""
    at, first = (_parse_instant(time, zone) for time in (window.clean.instant, window.commits[0]))
    if at is None or first is None or at < first:
        return None
    before = _parse_instant(window.before, zone) if window.before else None
    return at - first, None if before is None else at + _SLACK - before


def _parse_instant(instant: str, zone: tzinfo | None) -> datetime | None:
    """Return an instant as a time; an unknown zone counts as UTC."""
    local = parse_instant(instant)
    return None if local is None else local.replace(tzinfo=zone or UTC).astimezone(UTC)


def _format_hours(span: timedelta) -> str:
    """Format hours with one decimal.

    >>> _format_hours(timedelta(hours=24)), _format_hours(timedelta(minutes=90))
    ('24', '1.5')
    """
    return f"{span / _HOUR:.1f}".removesuffix(".0")


def _observe_versions(
    view: FileView, cleans: Sequence[CompletedClean]
) -> tuple[str, tuple[RetentionCandidate, ...]]:
    """Return the numbers of slices left in the groups from which the cleans removed some.

    Only the newest clean of a group counts: later cleans remove what earlier ones left.
    """
    left = _count_remaining_slices(view, cleans)
    if not left:
        return "; the file groups it cleaned are gone, so what it kept cannot be counted.", ()
    groups = words.format_count(len(left), "file group")
    where = f"in the {groups} that {'was' if len(left) == 1 else 'were'} cleaned"
    if len(set(left)) == 1:
        versions = words.format_count(left[0], "version")
        return f" and left {versions} {where}.", (RetentionCandidate(keep=left[0]),)
    because = "The widest is declared."
    candidates = (RetentionCandidate(keep=max(left), because=because),)
    return f" and left {_format_range(left)} versions {where}.", candidates


def _count_remaining_slices(view: FileView, cleans: Sequence[CompletedClean]) -> list[int]:
    newest: dict[tuple[str, str], CompletedClean] = {}
    for clean in cleans:
        for partition, names in clean.removed.items():
            for file_id in {_file_id(name) for name in names} - {None}:
                newest.setdefault((partition, str(file_id)), clean)
    by_versions = Policy.FILE_VERSIONS.value
    of_policy = {at: clean.instant for at, clean in newest.items() if clean.policy == by_versions}
    groups = find_group_codes(view.files, of_policy)
    bound = np.zeros(len(view.files.group_partition), np.int32)
    for group, instant in zip(groups.tolist(), of_policy.values(), strict=True):
        if group >= 0:
            bound[group] = view.time_code(instant)
    counts = view.is_visible & view.is_live & ~view.is_phantom & (view.key < bound[view.group])
    left = np.bincount(view.group[counts], minlength=len(bound))
    return [int(left[group]) for group in groups.tolist() if group >= 0 and left[group]]


def _file_id(name: str) -> str | None:
    parsed = LogName.parse(name) if name.startswith(".") else BaseName.parse(name)
    return None if parsed is None else parsed.file_id
