"""From new files to a completed clustering, or back to nothing: everything under the lock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reconciler.apply.cluster_work import ClusterWork, claims_of, completed_commit
from reconciler.apply.own_files import remove_own
from reconciler.apply.patience import Waits
from reconciler.apply.result import LeftGroup, StepOutcome
from reconciler.apply.result import Rewritten as Done
from reconciler.apply.table import Table
from reconciler.basefile.writer import WrittenFile
from reconciler.errors import BusyError, NotFoundError, ReconcilerError, StaleError
from reconciler.hudi.commit import CommitMetadata
from reconciler.hudi.instant import Instant, State
from reconciler.hudi.load import instant_path, load_properties, read_instant_file
from reconciler.hudi.timeline import Timeline
from reconciler.hudi.write_stats import WriteStats
from reconciler.plan.model import Note
from reconciler.rewrite.model import Rewritten
from reconciler.transaction import metadata, metadata_rewrite
from reconciler.transaction.conflicts import conflicts
from reconciler.transaction.footprints import footprints, foreign_pending, rolled_back_ms
from reconciler.transaction.instants import instant_ms
from reconciler.transaction.lock import NoLock
from reconciler.transaction.marked import (
    files_written,
    is_of,
    marked_files,
    remove_files,
    remove_marked,
    remove_markers,
)
from reconciler.transaction.paths import path_of
from reconciler.transaction.publish import completion_of
from reconciler.transaction.undo import drop_partitions, withdraw


def publish(
    table: Table, work: ClusterWork, results: Sequence[Rewritten], waits: Waits
) -> StepOutcome | None:
    """The last look, then the metadata table and the completed file. The table's lock is held.

    Groups that another write has a hand in are dropped; when that is all of them the instant is
    withdrawn. None where it ``waits`` first. ``results``: in the order of the groups. Raises
    BusyError when another writer has taken the instant over, StaleError when it is gone from the
    timeline.
    """
    timeline, found = footprints(table, work.known, work.instant)
    done = completion_of(timeline, work.instant, work.action)
    if done is not None:
        return adopt(table, work, timeline, done)
    if timeline.file(work.instant, work.action, State.REQUESTED) is None:
        raise StaleError(f"clustering {work.instant} was removed from the timeline by another")
    _check_ours(table, work, timeline, results)
    claims = claims_of(work.groups, work.state, table.spec)
    if waits(claims, found):
        return None
    hit = conflicts(claims, found)
    hit |= _unlocked(table, work, timeline)
    kept = [number for number in range(len(results)) if number not in hit]
    left = (*work.left, *_left(work, hit))
    _remove_all_but(table, work, results, kept)
    if not kept:
        withdraw(table, work.instant, work.action)
        return StepOutcome(kind="cluster", how="undone", rewritten=Done(left=left, gone=work.gone))
    warnings = _complete(table, work, results, kept)
    return StepOutcome(
        kind="cluster",
        how="completed",
        instant=work.instant,
        rewritten=_tally(work, results, kept, left),
        warnings=warnings,
    )


def tidied(table: Table, work: ClusterWork, outcome: StepOutcome) -> StepOutcome:
    """After the commit: what late workers wrote goes, then the markers.

    What fails is a warning: the clustering is completed, and the next apply does it.
    """
    try:
        kept = _files_of(table, work)
        remove_marked(table.storage, work.instant, kept)
        remove_markers(table.storage, work.instant)
    except ReconcilerError as error:
        note = Note("markers", f"the clustering is completed; its markers stay for now: {error}")
        return replace(outcome, warnings=(*outcome.warnings, note))
    return outcome


def abandon(table: Table, work: ClusterWork) -> None:
    """Undo a clustering that failed; where it is somebody else's by now, only our files go.

    Takes the lock.
    """
    with table.locked():
        timeline = table.reread()
        if completion_of(timeline, work.instant, work.action) is not None:
            remove_own(table.storage, work, _files_of(table, work))
            return
        requested = timeline.file(work.instant, work.action, State.REQUESTED)
        taken = rolled_back_ms(table, timeline, work.instant, work.known)
        if requested is not None and taken is None:
            table.lock.confirm()
            withdraw(table, work.instant, work.action)
        else:
            remove_own(table.storage, work)


def adopt(table: Table, work: ClusterWork, timeline: Timeline, done: Instant) -> StepOutcome:
    """Another writer has completed our instant: what it says stands, our files go.

    Files of a completed instant are read, so ours would show every row twice.
    """
    file = next(f for f in timeline.files if f.instant == done)
    data, path = (
        read_instant_file(table.storage, table.properties, file),
        instant_path(table.properties, file),
    )
    commit = CommitMetadata.parse(data, path, replaces=True)
    kept = _files_of(table, work)
    remove_marked(table.storage, work.instant, kept)
    remove_own(table.storage, work, kept)
    planned = set(_ids(work, range(len(work.groups))))
    replaced = {(partition, one) for partition, ids in commit.replaced.items() for one in ids}
    stats = WriteStats.parse(data, path)
    return StepOutcome(
        kind="cluster",
        how="adopted",
        instant=work.instant,
        rewritten=Done(
            groups=len(work.groups),
            slices=len(planned & replaced),
            files_before=_files_before(work, range(len(work.groups))),
            files_after=int(stats.is_base.sum()),
            bytes_read=int(work.groups.bytes.sum()),
            bytes_written=int(stats.bytes.sum()),
            rows=int(stats.rows.sum()),
            left=work.left,
            gone=work.gone,
        ),
        differences=_strange(work, planned, replaced),
    )


def _strange(
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


def _files_of(table: Table, work: ClusterWork) -> set[tuple[str, str]]:
    """The files that the completed instant names, by partition and name."""
    timeline = table.reread()
    done = completion_of(timeline, work.instant, work.action)
    if done is None:
        raise StaleError(f"clustering {work.instant} is not completed any more")
    return files_written(table.storage, table.properties, timeline, done)


def _check_ours(
    table: Table, work: ClusterWork, timeline: Timeline, results: Sequence[Rewritten]
) -> None:
    """Raises BusyError when somebody does our clustering instead: then our files are going."""
    partitions = work.groups.partition.to_pylist()
    gone = [
        file.name
        for partition, result in zip(partitions, results, strict=True)
        for file in result.files
        if not _is_there(table, partition, file.name, file.size)
    ]
    if gone:
        raise _taken(work)
    _check_not_taken(table, work, timeline)


def _check_not_taken(table: Table, work: ClusterWork, timeline: Timeline) -> None:
    """Raises BusyError when somebody has rolled our clustering back, or has begun to."""
    is_begun = timeline.file(work.instant, work.action, State.INFLIGHT) is not None
    rolled_back = rolled_back_ms(table, timeline, work.instant, work.known) is not None
    if rolled_back or not is_begun:
        raise _taken(work)


def _taken(work: ClusterWork) -> BusyError:
    return BusyError(
        f"another writer has taken over our clustering {work.instant}; plan again when it is done"
    )


def _is_there(table: Table, partition: str, name: str, size: int) -> bool:
    try:
        entry = table.storage.stat(path_of(partition, name))
    except NotFoundError:
        return False
    return entry is not None and entry.size == size


def _unlocked(table: Table, work: ClusterWork, timeline: Timeline) -> dict[int, str]:
    """Without a lock nobody waits for us: any pending write of another one stops it all."""
    pending = foreign_pending(timeline, work.instant)
    if not isinstance(table.lock, NoLock) or not pending:
        return {}
    why = f"{pending[0].action} {pending[0].requested} is pending, and there is no lock"
    return dict.fromkeys(range(len(work.groups)), why)


def _remove_all_but(
    table: Table, work: ClusterWork, results: Sequence[Rewritten], kept: Sequence[int]
) -> None:
    """Remove the files of dropped groups, and by marker those of attempts that did not count."""
    partitions = work.groups.partition.to_pylist()
    stays = {(partitions[n], file.name) for n in kept for file in results[n].files}
    written = {
        (partition, file.name)
        for partition, result in zip(partitions, results, strict=True)
        for file in result.files
    }
    marked = {
        (partition, name)
        for partition, name in marked_files(table.storage, work.instant)
        if is_of(name, work.instant)
    }
    remove_files(table.storage, sorted((written | marked) - stays))


def _complete(
    table: Table, work: ClusterWork, results: Sequence[Rewritten], kept: Sequence[int]
) -> tuple[Note, ...]:
    """The metadata table, then the completed file; a note for each index that had to be dropped."""
    storage, timeline = table.storage, table.reread()
    properties = load_properties(storage)
    dropped: tuple[Note, ...] = ()
    if properties.metadata_partitions:
        sync = metadata_rewrite.plan_rewrite_sync(
            storage,
            properties,
            timeline,
            instant=work.instant,
            completed=table.publisher.new_time(
                timeline, metadata.newest_time(storage, properties, timeline)
            ),
            instant_ms=instant_ms(work.instant, table.publisher.zone),
            added=_by_partition(work, results, kept),
        )
        table.lock.confirm()
        drop_partitions(table.storage, properties, sync.drops)
        metadata.write_sync(storage, sync.sync)
        dropped = tuple(
            Note("metadata", f"the metadata partition {name} was dropped: {why}")
            for name, why in sorted(sync.reasons.items())
        )
    table.lock.confirm()
    _check_not_taken(table, work, table.reread())  # a rollback waits for no lock
    payload = completed_commit(work, results, kept).encode(version=properties.table_version)
    table.publisher.complete(work.instant, work.action, payload)
    return dropped


def new_files(
    table: Table, work: ClusterWork, results: Sequence[Rewritten]
) -> dict[str, list[WrittenFile]]:
    """Partition -> the new files that were published."""
    kept = _files_of(table, work)
    found = _by_partition(work, results, range(len(results)))
    return {
        partition: [file for file in files if (partition, file.name) in kept]
        for partition, files in found.items()
    }


def _by_partition(
    work: ClusterWork, results: Sequence[Rewritten], numbers: Sequence[int]
) -> dict[str, list[WrittenFile]]:
    partitions = work.groups.partition.to_pylist()
    added: dict[str, list[WrittenFile]] = {}
    for number in numbers:
        if results[number].files:
            added.setdefault(partitions[number], []).extend(results[number].files)
    return added


def _left(work: ClusterWork, hit: dict[int, str]) -> list[LeftGroup]:
    starts, partitions = work.groups.starts.tolist(), work.groups.partition.to_pylist()
    return [
        LeftGroup(partition=partitions[n], slices=starts[n + 1] - starts[n], because=hit[n])
        for n in sorted(hit)
    ]


def _tally(
    work: ClusterWork,
    results: Sequence[Rewritten],
    kept: Sequence[int],
    left: tuple[LeftGroup, ...],
) -> Done:
    done = [results[number] for number in kept]
    return Done(
        groups=len(kept),
        slices=len(_ids(work, kept)),
        files_before=_files_before(work, kept),
        files_after=sum(len(one.files) for one in done),
        bytes_read=int(work.groups.bytes[list(kept)].sum()),
        bytes_written=sum(file.size for one in done for file in one.files),
        rows=sum(one.written.rows for one in done),
        splits=sum(one.splits for one in done),
        gone=work.gone,
        left=left,
        queries=work.measure.of(kept) if work.measure else (),
        unmeasured=work.measure.problem if work.measure else None,
    )


def _ids(work: ClusterWork, numbers: Sequence[int]) -> list[tuple[str, str]]:
    groups = work.groups
    starts, ids = groups.starts.tolist(), groups.file_id.to_pylist()
    partitions = groups.partition.to_pylist()
    return [
        (partitions[number], file_id)
        for number in numbers
        for file_id in ids[starts[number] : starts[number + 1]]
    ]


def _files_before(work: ClusterWork, numbers: Sequence[int]) -> int:
    """Base and log files of some groups."""
    groups, starts = work.groups, work.groups.starts.tolist()
    bases, logs = groups.base.to_pylist(), groups.logs.to_pylist()
    return sum(
        (bases[at] is not None) + len(logs[at])
        for number in numbers
        for at in range(starts[number], starts[number + 1])
    )
