"""Settle a clustering whose files are there: complete it, adopt another writer's, or undo it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from reconciler.errors import BusyError, StaleError
from reconciler.executor.cluster.group_selection import GroupSelection, drop_groups
from reconciler.executor.cluster.leftovers import read_completed_files, remove_own_files
from reconciler.executor.cluster.work import (
    ClusterWork,
    make_completed_commit,
    make_work_claims,
)
from reconciler.executor.outcomes import ClusterOutcome
from reconciler.executor.result import StepOutcome
from reconciler.executor.session import ApplySession
from reconciler.file_slices.base_file.writer import WrittenFile
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.commit import CommitMetadata, WriteStats
from reconciler.hudi.timeline.instant import Instant, State
from reconciler.plans.groups import iterate_groups
from reconciler.plans.model import Note
from reconciler.plans.rewrites import Rewrites
from reconciler.rewrite.model import RewrittenGroup
from reconciler.transaction.conflicts import find_conflicts
from reconciler.transaction.footprints import (
    find_rollback_ms,
    find_unexcluded_write,
    read_footprints,
)
from reconciler.transaction.metadata.rewrite_sync import prepare_rewrite_sync
from reconciler.transaction.paths import is_present
from reconciler.transaction.publish import find_completion
from reconciler.transaction.recovery.abandoned_services import is_begun
from reconciler.transaction.recovery.marked_files import (
    is_written_by,
    list_marked_files,
    remove_files,
    remove_marked_files,
    remove_markers,
)
from reconciler.transaction.recovery.pending_instants import remove_attempt, withdraw_instant
from reconciler.transaction.retry import ShouldWait
from reconciler.transaction.run import Completion, Ended


def settle_clustering(
    session: ApplySession,
    work: ClusterWork,
    results: Sequence[RewrittenGroup],
    should_wait: ShouldWait,
    dropped: dict[int, str],
) -> Completion[StepOutcome] | Ended[StepOutcome] | None:
    """Look for conflicts for the last time, and return how the clustering completes.

    The table's lock is held. Groups that another write has touched are dropped; when that is all of
    them the instant is withdrawn. None if it has to wait. ``results`` are in the order of the
    groups. ``dropped``: groups whose files an earlier look removed, whose lock vanished after it;
    it is added to. Raises BusyError when another writer has taken the instant over, StaleError when
    it is missing from the timeline.
    """
    timeline, footprints = read_footprints(session, work.known, work.instant)
    done = find_completion(timeline, work.instant, work.action)
    if done is not None:
        return Ended(adopt_completed(session, work, timeline, done))
    if timeline.find_file(work.instant, work.action, State.REQUESTED) is None:
        raise StaleError(f"clustering {work.instant} was removed from the timeline by another")
    if work.foreign is None:  # else they are looked for when the markers are gone
        _check_present(session, work, results, [n for n in range(len(results)) if n not in dropped])
    _check_not_taken(session, work, timeline)
    claims = make_work_claims(work, session.spec, footprints)
    if should_wait(claims, footprints):
        return None
    conflicts = find_conflicts(claims, footprints)
    conflicts |= _find_unlocked_conflicts(session, work, timeline) | dropped
    dropped.update(conflicts)
    kept = [number for number in range(len(results)) if number not in conflicts]
    chosen = drop_groups(work.selection, conflicts)
    _remove_dropped_files(session, work, results, kept)
    if not kept and work.foreign is not None:
        because = next(iter(conflicts.values()))
        raise BusyError(f"clustering {work.instant} stays requested: {because}; run apply again")
    if not kept:
        withdraw_instant(session, work.instant, work.action)
        return Ended(StepOutcome(kind="cluster", how="undone", rewritten=chosen.unchanged))

    timeline = session.reload_timeline()
    return Completion(
        timeline=timeline,
        prepare_sync=partial(prepare_rewrite_sync, added=_group_by_partition(work, results, kept)),
        check=partial(_make_ready, session, work, results, kept),
        make_payload=partial(_encode_commit, work, results, kept),
        make_outcome=lambda notes: StepOutcome(
            kind="cluster",
            how="completed",
            instant=work.instant,
            rewritten=_summarize(work, results, kept, chosen),
            warnings=notes,
        ),
    )


def _encode_commit(
    work: ClusterWork,
    results: Sequence[RewrittenGroup],
    kept: Sequence[int],
    properties: TableProperties,
) -> bytes:
    return make_completed_commit(work, results, kept).encode(version=properties.table_version)


def abandon_clustering(session: ApplySession, work: ClusterWork) -> None:
    """Undo a clustering that failed; the table's lock is held.

    Where another writer or run has taken it over only our files are removed. One of another writer
    stays requested.
    """
    timeline = session.reload_timeline()
    if find_completion(timeline, work.instant, work.action) is not None:
        remove_own_files(session, work, read_completed_files(session, work))
        return
    requested = timeline.find_file(work.instant, work.action, State.REQUESTED)
    is_taken = _is_rolled_back(session, work, timeline) or _is_of_another_run(session, work)
    is_taken |= work.foreign is not None and is_begun(timeline, work)
    if requested is not None and not is_taken:
        session.lock.confirm()
        if work.foreign is None:
            withdraw_instant(session, work.instant, work.action)
        else:
            remove_own_files(session, work)  # its markers may be gone
            remove_attempt(session.storage, work.instant)
    else:
        remove_own_files(session, work)


def adopt_completed(
    session: ApplySession, work: ClusterWork, timeline: Timeline, done: Instant
) -> StepOutcome:
    """Adopt our instant as another writer has completed it, and remove our files.

    Files of a completed instant are read, so ours would show every row twice.
    """
    file = next(f for f in timeline.files if f.instant == done)
    data, path = session.read_instant(file)
    commit = CommitMetadata.parse(data, path, replaces=True)
    kept = read_completed_files(session, work)
    remove_marked_files(session.storage, work.instant, kept)
    remove_own_files(session, work, kept)
    planned = list_file_groups(work.groups)
    replaced = {(partition, group) for partition, ids in commit.replaced.items() for group in ids}
    stats = WriteStats.parse(data, path)
    return StepOutcome(
        kind="cluster",
        how="adopted",
        instant=work.instant,
        rewritten=ClusterOutcome(
            groups=len(work.groups),
            slices=len(planned & replaced),
            files_before=_count_files(work.groups),
            files_after=int(stats.is_base.sum()),
            bytes_read=int(work.groups.bytes.sum()),
            bytes_written=int(stats.bytes.sum()),
            rows=int(stats.rows.sum()),
            left=work.selection.left,
            gone=work.selection.gone,
        ),
        differences=_describe_unreplaced(work, planned, replaced),
    )


def _describe_unreplaced(
    work: ClusterWork, planned: set[tuple[str, str]], replaced: set[tuple[str, str]]
) -> tuple[Note, ...]:
    if planned <= replaced:
        return ()
    missing = ", ".join(file_id for _, file_id in sorted(planned - replaced)[:5])
    return (
        Note(
            "adopted",
            f"another writer has completed clustering {work.instant} without replacing "
            f"{len(planned - replaced)} of its file groups, for example {missing}",
        ),
    )


def _make_ready(
    session: ApplySession,
    work: ClusterWork,
    results: Sequence[RewrittenGroup],
    kept: Sequence[int],
) -> None:
    """Check for the last time that the clustering is this run's: a rollback waits for no lock.

    The markers of another writer's clustering are removed first. By a marker, a writer that comes
    back removes every file that it did not write itself, before it finds that it cannot complete
    the instant (HoodieTable.reconcileAgainstMarkers).
    """
    if work.foreign is not None:
        remove_markers(session.storage, work.instant)
        _check_present(session, work, results, kept)
    _check_not_taken(session, work, session.reload_timeline())


def _check_present(
    session: ApplySession,
    work: ClusterWork,
    results: Sequence[RewrittenGroup],
    kept: Sequence[int],
) -> None:
    """Raise BusyError when another executes our clustering: it removes our files first."""
    written = [
        (partition, file)
        for partition, files in _group_by_partition(work, results, kept).items()
        for file in files
    ]
    storage = session.storage
    is_ours = all(is_present(storage, path, file.name, file.size) for path, file in written)
    if not is_ours or (not written and _is_of_another_run(session, work)):
        raise _make_taken_error(work)


def _check_not_taken(session: ApplySession, work: ClusterWork, timeline: Timeline) -> None:
    """Raise BusyError when another writer has rolled our clustering back, or has begun to.

    A clustering of another writer has no inflight file of ours, so that its writer cannot complete
    it should it come back. One that is there is of a writer that executes it now.
    """
    is_taken = is_begun(timeline, work) == (work.foreign is not None)
    if _is_rolled_back(session, work, timeline) or is_taken:
        raise _make_taken_error(work)


def _is_rolled_back(session: ApplySession, work: ClusterWork, timeline: Timeline) -> bool:
    return find_rollback_ms(session, timeline, work.instant, work.known) is not None


def _is_of_another_run(session: ApplySession, work: ClusterWork) -> bool:
    """Return True if another run has taken our clustering over; the table's lock is held."""
    return session.make_heartbeat(work.instant).is_taken_over()


def _make_taken_error(work: ClusterWork) -> BusyError:
    return BusyError(
        f"another writer has taken over {'our ' if work.foreign is None else ''}clustering "
        f"{work.instant}; plan again when it is done"
    )


def _find_unlocked_conflicts(
    session: ApplySession, work: ClusterWork, timeline: Timeline
) -> dict[int, str]:
    """Drop all groups for another pending write that no lock keeps out."""
    other = find_unexcluded_write(session, timeline, work.instant)
    if other is None:
        return {}
    why = f"{other.action} {other.requested} is pending, and there is no lock"
    return dict.fromkeys(range(len(work.groups)), why)


def _remove_dropped_files(
    session: ApplySession, work: ClusterWork, results: Sequence[RewrittenGroup], kept: Sequence[int]
) -> None:
    """Remove the files of dropped groups, and by marker those of attempts that did not count."""
    written, stays = (
        {
            (partition, file.name)
            for partition, files in _group_by_partition(work, results, numbers).items()
            for file in files
        }
        for numbers in (range(len(results)), kept)
    )
    marked = {
        (partition, name)
        for partition, name in list_marked_files(session.storage, work.instant)
        if is_written_by(name, work.instant)
    }
    remove_files(session.storage, sorted((written | marked) - stays))


def group_new_files(
    session: ApplySession, work: ClusterWork, results: Sequence[RewrittenGroup]
) -> dict[str, list[WrittenFile]]:
    """Return the new files that were published, by partition."""
    kept = read_completed_files(session, work)
    written = _group_by_partition(work, results, range(len(results)))
    return {
        partition: [file for file in files if (partition, file.name) in kept]
        for partition, files in written.items()
    }


def _group_by_partition(
    work: ClusterWork, results: Sequence[RewrittenGroup], numbers: Sequence[int]
) -> dict[str, list[WrittenFile]]:
    partitions = work.groups.partition.to_pylist()
    added: dict[str, list[WrittenFile]] = {}
    for number in numbers:
        if results[number].files:
            added.setdefault(partitions[number], []).extend(results[number].files)
    return added


def _summarize(
    work: ClusterWork,
    results: Sequence[RewrittenGroup],
    kept: Sequence[int],
    chosen: GroupSelection,
) -> ClusterOutcome:
    """Return the outcome of a clustering; ``chosen``: the groups that were published."""
    done = [results[number] for number in kept]
    return ClusterOutcome(
        groups=len(kept),
        slices=len(chosen.groups.file_id),
        files_before=_count_files(chosen.groups),
        files_after=sum(len(group.files) for group in done),
        bytes_read=int(chosen.groups.bytes.sum()),
        bytes_written=sum(file.size for group in done for file in group.files),
        rows=sum(group.written.rows for group in done),
        splits=sum(group.splits for group in done),
        gone=chosen.gone,
        left=chosen.left,
        queries=work.measurement.select_groups(kept) if work.measurement else (),
        unmeasured=work.measurement.problem if work.measurement else None,
    )


def list_file_groups(groups: Rewrites) -> set[tuple[str, str]]:
    """Return partition and file id of every slice."""
    ids = groups.file_id.to_pylist()
    return {(partition, name) for partition, part in iterate_groups(groups) for name in ids[part]}


def _count_files(groups: Rewrites) -> int:
    """Return the number of base and log files of some groups."""
    return int(len(groups.base) - groups.base.null_count + len(groups.logs.flatten()))
