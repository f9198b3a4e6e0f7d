"""Find what keeps instants on the active timeline; pure.

Source: TimelineArchiverV1 and V2 (getCommitInstantsToArchive), ClusteringUtils and CompactionUtils
(getEarliestInstantToRetainFor…), ArchivalUtils. Four bounds are our own: the newest clean, replaced
files that are still there, files of unknown instants, and the history of schemas.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Final

from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.instant import (
    COMMITS,
    SECOND_DIGITS,
    WRITES,
    Action,
    Instant,
    parse_instant,
)
from reconciler.planners.archive.leftovers import SCHEMA_FILE, parse_schema_time
from reconciler.planners.archive.selection import Bound, CommitLimits, list_commits
from reconciler.spec.model import Policy, Retention
from reconciler.state.archival_facts import ArchivalFacts, NewestClean

#: deltacommits after which writers compact by default (hoodie.compact.inline.max.delta.commits)
COMPACTION_COMMITS: Final = 5
#: the same of the metadata table (hoodie.metadata.compact.max.delta.commits)
METADATA_COMPACTION_COMMITS: Final = 10
#: commits that stay beside those from the earliest instant to retain on
_SPARE: Final = 2
_COMPACTIONS: Final = frozenset({Action.COMMIT, Action.REPLACECOMMIT})
_REPLACING: Final = frozenset({Action.REPLACECOMMIT, Action.CLUSTERING})


def raise_limits(
    limits: CommitLimits, retention: Retention | None, commits: Sequence[Instant]
) -> CommitLimits:
    """Return the limits with room for the commits that a retention needs.

    ``commits``: the completed ones, oldest first.

    >>> from reconciler.hudi.timeline.instant import State
    >>> commits = [Instant(str(time), Action.COMMIT, State.COMPLETED) for time in range(10, 40)]
    >>> retention = Retention(policy=Policy.COMMITS, keep=24)
    >>> raise_limits(CommitLimits(least=20, most=30), retention, commits)
    CommitLimits(least=25, most=35)
    """
    needed = 0 if retention is None else _count_needed(retention, commits)
    more = max(0, needed - limits.least)
    return CommitLimits(least=limits.least + more, most=limits.most + more)


def _count_needed(retention: Retention, commits: Sequence[Instant]) -> int:
    times = [one.requested for one in commits]
    match retention.policy:
        case Policy.COMMITS:
            return retention.keep - 1 + _SPARE if len(times) > retention.keep else 0
        case Policy.HOURS:
            newest = parse_instant(times[-1]) if times else None
            if newest is None:
                return 0
            start = f"{newest - timedelta(hours=retention.keep):%Y%m%d%H%M%S}"
            start += times[-1][SECOND_DIGITS:]
            within = sum(time >= start for time in times)
            return within - 1 + _SPARE
        case Policy.FILE_VERSIONS:
            return 0


def find_bounds(
    timeline: Timeline,
    facts: ArchivalFacts,
    *,
    layout: int,
    is_merge_on_read: bool,
    savepoints: Iterable[str] | None = None,
    cleans: Iterable[str] = (),
) -> tuple[Bound, ...]:
    """Return every bound of a table's own timeline.

    ``savepoints``: the instants of those that there will be; None: those on the timeline.
    ``cleans``: the earliest instants to retain of cleans that come before the archival.
    """
    if savepoints is None:
        savepoints = list_savepoints(timeline)
    commits = list_commits(timeline, is_merge_on_read=is_merge_on_read)
    return (
        *_bound_by_pending_write(timeline, commits),
        *_bound_by_savepoint(savepoints),
        *(_bound_by_compaction(timeline, layout, COMPACTION_COMMITS) if is_merge_on_read else ()),
        *_bound_by_replacements(timeline, facts),
        *_bound_by_newest_clean(facts.clean),
        *_bound_by_planned_cleans(cleans),
        *_bound_by_metadata_table(commits, facts, layout),
        *_bound_by_unknown_files(timeline, facts.unknown_instant),
        *_bound_by_schemas(commits, facts.schema_files),
    )


def find_metadata_bounds(timeline: Timeline, data: Timeline, *, layout: int) -> tuple[Bound, ...]:
    """Return every bound of the metadata table's timeline; ``data``: the table's own.

    What is not compacted stays. Hudi archives it once more than ten deltacommits wait.
    """
    commits = list_commits(timeline, is_merge_on_read=True)
    return (
        *_bound_by_pending_write(timeline, commits),
        *_bound_by_compaction(timeline, layout, METADATA_COMPACTION_COMMITS),
        *_bound_by_last_compaction(timeline),
        *_bound_by_data(data),
    )


def _bound_by_pending_write(timeline: Timeline, commits: Sequence[Instant]) -> Iterator[Bound]:
    """Hold the last commit before the oldest pending write, so that the timeline has no hole.

    An older commit that was completed after that write began stays too: when the write completes,
    it looks there for conflicts.
    """
    pending = timeline.pending(WRITES)
    if not pending:
        return
    write = pending[0]
    before = [one.requested for one in commits if one.requested < write.requested]
    beside = set(_list_completed_since(timeline, pending)).intersection(before)
    what = f"{write.action} {write.requested} is {write.state.lower()}"
    yield Bound(
        rule="pendingWrite",
        instant=min([*beside, *before[-1:]], default=write.requested),
        because=f"{what}, and nothing is archived from the commit before it on until it ends",
    )


def _list_completed_since(timeline: Timeline, pending: Sequence[Instant]) -> Iterator[str]:
    """Yield the commits that were completed since the first of some pending writes began.

    Names of layout 1 have no completion time, so the times of the files tell there.
    """
    first = min(one.requested for one in pending)
    keys = {(one.requested, one.action) for one in pending}
    files = (f for f in timeline.files if (f.instant.requested, f.instant.action) in keys)
    began_ms = min(file.modified_ms for file in files)
    for file in timeline.completed_files(COMMITS):
        time = file.instant.completed
        if (file.modified_ms > began_ms) if time is None else (time > first):
            yield file.instant.requested


def list_savepoints(timeline: Timeline) -> tuple[str, ...]:
    """Return the instants of all savepoints, finished or not."""
    return tuple(one.requested for one in timeline.instants if one.action is Action.SAVEPOINT)


def _bound_by_savepoint(savepoints: Iterable[str]) -> Iterator[Bound]:
    first = min(savepoints, default=None)
    if first is not None:
        yield Bound(
            rule="savepoint",
            instant=first,
            because=f"savepoint {first} needs its commit and all later ones until it is removed",
        )


def _bound_by_compaction(timeline: Timeline, layout: int, enough: int) -> Iterator[Bound]:
    """Hold the deltacommits that let a writer schedule its next compaction."""
    compactions = timeline.completed({Action.COMMIT})
    deltas = [one for one in timeline.instants if one.action.completes_as is Action.DELTACOMMIT]
    deltas = [one for one in deltas if one.action is Action.DELTACOMMIT]
    if compactions:
        last = compactions[-1].requested
        deltas = [one for one in deltas if _is_after(one, last, layout)]
        holder = last if len(deltas) < enough else deltas[len(deltas) - enough].requested
    elif deltas:
        holder = deltas[max(0, len(deltas) - enough)].requested
    else:
        return
    yield Bound(
        rule="compaction",
        instant=holder,
        because=f"writers count deltacommits from {holder} on for their next compaction",
    )


def _is_after(instant: Instant, time: str, layout: int) -> bool:
    """Return whether an instant changed the table after a time, as Hudi's layouts tell it."""
    if layout == 1 or instant.completed is None:
        return instant.requested > time
    return instant.completed > time and instant.requested != time


def _bound_by_replacements(timeline: Timeline, facts: ArchivalFacts) -> Iterator[Bound]:
    """Hold replacecommits whose replaced files may still be there: they would be read again."""
    clean = facts.clean
    if facts.replacing_instant is not None:
        yield Bound(
            rule="replacedFiles",
            instant=facts.replacing_instant,
            because=f"files that {facts.replacing_instant} replaced are still there, and would be "
            "read again without it; a clean must remove them",
        )
    replacing = [one for one in timeline.instants if one.action in _REPLACING]
    since = "" if clean is None else _find_clean_start(timeline, clean)
    holder = next((one for one in replacing if one.requested >= since), None)
    if holder is None:
        return
    until = "a clean has removed the files that it replaced"
    if clean is not None:
        until = f"a clean after {clean.instant} has removed the files that it replaced"
    yield Bound(
        rule="replacedFiles",
        instant=holder.requested,
        because=f"{holder.action} {holder.requested} must stay until {until}",
    )


def _find_clean_start(timeline: Timeline, clean: NewestClean) -> str:
    """Return the instant from which on replaced files may be left after the newest clean."""
    if clean.problem is not None:
        return ""
    if clean.earliest is None:
        return clean.instant
    savepoint = min(clean.savepointed, default=None)
    if savepoint is not None and savepoint < clean.earliest:
        done = timeline.completed({Action.REPLACECOMMIT})
        if any(savepoint <= one.requested <= clean.earliest for one in done):
            return savepoint
    return clean.earliest


def _bound_by_newest_clean(clean: NewestClean | None) -> Iterator[Bound]:
    if clean is None:
        return
    if clean.problem is not None:
        because = f"nothing tells what clean {clean.instant} retains: {clean.problem}"
        yield Bound(rule="newestClean", instant="", because=because)
    elif clean.earliest is not None:
        because = f"clean {clean.instant}, the newest, retains the files from {clean.earliest} on"
        yield Bound(
            rule="newestClean", instant=clean.earliest, because=f"{because}, until a newer clean"
        )


def _bound_by_planned_cleans(cleans: Iterable[str]) -> Iterator[Bound]:
    """Hold what the newest clean will retain once the archival looks at the table again."""
    first = min(cleans, default=None)
    if first is not None:
        because = f"the clean of this plan retains the files from {first} on, until a newer clean"
        yield Bound(rule="newestClean", instant=first, because=because)


def _bound_by_metadata_table(
    commits: Sequence[Instant], facts: ArchivalFacts, layout: int
) -> Iterator[Bound]:
    """Hold what the metadata table has not compacted: the timeline says which of it counts."""
    if facts.metadata is None:
        return
    compactions = facts.metadata.timeline.completed(_COMPACTIONS)
    if not compactions:
        yield Bound(
            rule="metadataTable",
            instant="",
            because="the metadata table was never compacted; one of Hudi's writers must do it",
            holds_all=True,
        )
        return
    last = compactions[-1].requested
    because = f"the metadata table was last compacted at {last}, and holds what is newer"
    if layout == 1:
        yield Bound(rule="metadataTable", instant=last, because=because, holds_all=True)
        return
    newer = next((one for one in commits if _is_after(one, last, layout)), None)
    if newer is not None:
        yield Bound(rule="metadataTable", instant=newer.requested, because=because)


def _bound_by_unknown_files(timeline: Timeline, unknown: str | None) -> Iterator[Bound]:
    """Hold the write before files of no instant: readers take files before the timeline's start."""
    if unknown is None:
        return
    times = [one.requested for one in timeline.writes]
    at = bisect_right(times, unknown)
    yield Bound(
        rule="unknownFiles",
        instant=times[at - 1] if at else unknown,
        because=f"files of {unknown}, which is on no timeline, would be read once the timeline "
        "starts later; they must be removed first",
    )


def _bound_by_schemas(commits: Sequence[Instant], names: Sequence[str]) -> Iterator[Bound]:
    """Hold the commit of the newest schema history: Hudi reads none of an archived commit."""
    times = {parse_schema_time(name) for name in names if name.endswith(SCHEMA_FILE)}
    kept = [one.requested for one in commits if one.requested in times]
    if kept:
        yield Bound(
            rule="schemaHistory",
            instant=kept[-1],
            because=f"the history of schemas is that of {kept[-1]}, until a writer writes a newer",
        )


def _bound_by_last_compaction(timeline: Timeline) -> Iterator[Bound]:
    compactions = timeline.completed(_COMPACTIONS)
    last = compactions[-1].requested if compactions else ""
    later = (one for one in timeline.completed(COMMITS) if _is_after(one, last, 2))
    instant = min([last, *(one.requested for one in later)])
    because = f"it was last compacted at {last}" if last else "it was never compacted"
    yield Bound(rule="compaction", instant=instant, because=because)


def _bound_by_data(data: Timeline) -> Iterator[Bound]:
    """Hold what may belong to an active instant of the table: a rollback of it looks here."""
    pending = [one for one in data.instants if not one.is_completed]
    commits = [one for one in data.instants if one.action in COMMITS or one.action in _REPLACING]
    first = min([*pending[:1], *commits[:1]], key=lambda one: one.requested, default=None)
    if first is not None:
        because = f"the table's own timeline starts at {first.requested}"
        yield Bound(rule="dataTable", instant=first.requested, because=because, holds_all=True)
