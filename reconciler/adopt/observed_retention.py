"""The retention that a table's cleans followed, derived from what they recorded. Pure.

A completed clean records its policy, the earliest instant it retained and the newest commit it
knew, but not the configured number. Source: Hudi's CleanerUtils.getEarliestCommitToRetain.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

import numpy as np

from reconciler.hudi.files.names import BaseName, LogName
from reconciler.hudi.files.view import FileView, find_group_codes
from reconciler.hudi.timeline.instant import COMMITS, Action
from reconciler.render import words
from reconciler.spec.model import Policy
from reconciler.spec.rules import COUNT_BY_POLICY
from reconciler.state.model import CompletedClean, TableState

#: how long after its own instant a clean may have read the clock
_SLACK: Final = timedelta(minutes=5)
_HOUR: Final = timedelta(hours=1)
_HOURS_PER_DAY: Final = 24
_INSTANT_DIGITS: Final = 14
#: a clean retains what these need while they are pending, as in ``planners.clean``
_HOLDING_ACTIONS: Final = COMMITS | {Action.COMPACTION, Action.CLUSTERING}


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionCandidate:
    """A number that explains the cleans; ``because`` is the reason to prefer it, or ""."""

    keep: int
    because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedRetention:
    """What the cleans of the newest policy kept; ``findings`` are sentences about it.

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
    telling = [
        clean
        for clean in sorted(state.cleans, key=lambda found: found.instant, reverse=True)
        if not clean.is_blank and clean.policy
    ]
    if not telling:
        return None
    newest = telling[0].policy or ""
    same = [clean for clean in telling if clean.policy == newest]
    others = _describe_other_policies(telling, newest)
    if newest not in COUNT_BY_POLICY:
        window = f"at least {_format_hours(least)} and less than {_format_hours(most)} hours"
    sentence = f"{some} kept {window}"
    fitting = range(max(1, math.ceil(least / _HOUR)), math.ceil(most / _HOUR))
    days = [hours for hours in fitting if hours % _HOURS_PER_DAY == 0]
    if len(fitting) == 1:
        return f"{sentence}.", (RetentionCandidate(keep=fitting[0]),)
    if len(days) == 1:
        why = f"{days[0]} is the only number of whole days among them."
        return f"{sentence}.", (RetentionCandidate(keep=days[0], because=why),)
    return f"{sentence}; the number is unknown.", ()


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
    if len(instant) < _INSTANT_DIGITS:
        return None
    try:
        local = datetime.fromisoformat(f"{instant[:8]}T{instant[8:_INSTANT_DIGITS]}")
    except ValueError:
        return None
    return local.replace(tzinfo=zone or UTC).astimezone(UTC)


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
    of_policy = {
        key: clean.instant
        for key, clean in newest.items()
        if clean.policy == Policy.FILE_VERSIONS.value
    }
    groups = find_group_codes(view.files, of_policy)
    bound = np.zeros(len(view.files.group_partition), np.int32)
    for group, instant in zip(groups.tolist(), of_policy.values(), strict=True):
        if group >= 0:
            bound[group] = view.time_code(instant)
    counts = view.is_visible & view.is_live & ~view.is_phantom & (view.key < bound[view.group])
    left = np.bincount(view.group[counts], minlength=len(bound))
    return [int(left[group]) for group in groups.tolist() if group >= 0 and left[group]]


def _file_id(name: str) -> str | None:
    found = LogName.parse(name) if name.startswith(".") else BaseName.parse(name)
    return None if found is None else found.file_id
