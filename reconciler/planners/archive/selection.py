"""Choose the instants of a timeline that are archived; pure.

Source: TimelineArchiverV1 and TimelineArchiverV2 (getInstantsToArchive), ArchivalUtils.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import takewhile
from typing import Final

from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.instant import COMMITS, Action, Instant
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.archive_step import ArchiveRule
from reconciler.state.archival_facts import SIDE_ACTIONS, InstantKey

_WITHOUT_DELTACOMMITS: Final = COMMITS - {Action.DELTACOMMIT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The reason why commits stay on the active timeline from ``instant`` on.

    ``holds_all``: it holds cleans and rollbacks too, also in layout 1.
    """

    rule: ArchiveRule
    instant: str
    because: str
    holds_all: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitLimits:
    """Above ``most`` active commits, the oldest are archived until ``least`` are left."""

    least: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveSelection:
    """The completed instants to archive, ordered by requested time.

    ``active``: completed commits on the timeline. ``bound``: what keeps ``held`` commits that the
    limits alone would archive; None if nothing does.
    """

    instants: tuple[Instant, ...]
    active: int
    bound: Bound | None = None
    held: int = 0


def list_commits(timeline: Timeline, *, is_merge_on_read: bool) -> tuple[Instant, ...]:
    """Return the completed commits that an archival counts, oldest first."""
    return timeline.completed(COMMITS if is_merge_on_read else _WITHOUT_DELTACOMMITS)


def select_instants(
    timeline: Timeline,
    limits: CommitLimits,
    bounds: Sequence[Bound],
    *,
    layout: int,
    is_merge_on_read: bool,
    archived: Collection[InstantKey] = (),
) -> ArchiveSelection:
    """Return the instants to archive.

    ``archived``: instants that are archived already and still active. The oldest of them go first,
    whatever the limits say, because a run stopped before it removed them.
    """
    commits = list_commits(timeline, is_merge_on_read=is_merge_on_read)
    bound = min(bounds, key=lambda one: (one.instant, one.rule), default=None)
    excess = commits[: len(commits) - limits.least] if len(commits) > limits.most else ()
    done = tuple(takewhile(lambda one: (one.requested, one.action) in archived, commits))
    excess = max(excess, done, key=len)
    free = tuple(one for one in excess if bound is None or one.requested < bound.instant)
    if layout == 1:
        others = _select_groups(timeline, limits, [one for one in bounds if one.holds_all])
    else:
        others = _select_between(timeline, free)
    others += [
        one
        for one in timeline.completed(SIDE_ACTIONS)
        if (one.requested, one.action) in archived and one not in others
    ]
    held = len(excess) - len(free)
    return ArchiveSelection(
        instants=tuple(sorted((*free, *others), key=lambda one: (one.requested, one.action))),
        active=len(commits),
        bound=bound if held else None,
        held=held,
    )


def _select_between(timeline: Timeline, commits: Sequence[Instant]) -> list[Instant]:
    """Return the cleans and rollbacks before the last archived commit, as for layout 2.

    The newest clean stays: the next clean starts from it.
    """
    if not commits:
        return []
    last, cleans = commits[-1].requested, timeline.completed({Action.CLEAN})
    return [
        one
        for one in timeline.completed(SIDE_ACTIONS)
        if one.requested < last and one not in cleans[-1:]
    ]


def _select_groups(
    timeline: Timeline, limits: CommitLimits, bounds: Sequence[Bound]
) -> list[Instant]:
    """Return the oldest cleans and the oldest rollbacks, which layout 1 counts by themselves."""
    chosen: list[Instant] = []
    for action in sorted(SIDE_ACTIONS):
        group = timeline.completed({action})
        if len(group) > limits.most:
            chosen += group[: len(group) - limits.least]
    return [one for one in chosen if all(one.requested < bound.instant for bound in bounds)]
