"""Settle a compaction whose files are there: complete it, adopt another writer's, or take it back.

Taking it back leaves the requested file: the plan is another writer's, and anyone may execute it
again. An inflight file is always another writer's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from reconciler.errors import BusyError
from reconciler.executor.compact.work import (
    CompactionWork,
    group_written_files,
    make_completed_commit,
    summarize,
)
from reconciler.executor.outcomes import ClusterOutcome
from reconciler.executor.result import StepOutcome
from reconciler.executor.session import ApplySession
from reconciler.file_slices.base_file.writer import WrittenFile
from reconciler.hudi.files.names import BaseName, LogName
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.commit import WriteFootprint, WriteStats
from reconciler.hudi.timeline.instant import COMMITS, Instant
from reconciler.plans.model import Note
from reconciler.rewrite.compaction import make_token_part
from reconciler.rewrite.model import CompactedSlice, make_seed
from reconciler.transaction.footprints import find_rollback_ms, find_undoing
from reconciler.transaction.metadata.rewrite_sync import prepare_compaction_sync
from reconciler.transaction.paths import is_present, list_names, list_names_of_partitions
from reconciler.transaction.publish import find_completion
from reconciler.transaction.recovery.abandoned_services import (
    check_taken_over,
    is_begun,
    list_own_files,
)
from reconciler.transaction.recovery.marked_files import (
    is_written_by,
    read_committed_files,
    remove_files,
    remove_markers,
)
from reconciler.transaction.recovery.pending_instants import remove_listed_attempt
from reconciler.transaction.run import Completion, Ended

#: partition and name
File = tuple[str, str]


def settle_compaction(
    session: ApplySession, work: CompactionWork, results: Sequence[CompactedSlice]
) -> Completion[StepOutcome] | Ended[StepOutcome]:
    """Check that the compaction is still this run's, and return how it completes.

    The table's lock is held. Writes that came since go to the next file slices, so they are no
    conflict. Raises BusyError when another writer has taken the instant over or removed it, when a
    write that is older than the plan has completed, or when one was undone that may be merged.
    """
    timeline = session.reload_timeline()
    done = find_completion(timeline, work.instant, work.action)
    if done is not None:
        return Ended(_adopt_completed(session, work, timeline, done))
    check_ours(session, work, timeline)
    _check_no_late_write(session, work, timeline)
    _check_nothing_undone(session, work, timeline)
    added = group_written_files(work, results)

    def encode(properties: TableProperties) -> bytes:
        commit = make_completed_commit(work, results)
        return commit.encode(version=properties.table_version)

    return Completion(
        timeline=timeline,
        prepare_sync=partial(prepare_compaction_sync, added=added),
        check=partial(_make_ready, session, work, added),
        make_payload=encode,
        make_outcome=lambda notes: StepOutcome(
            kind="resume",
            how="completed",
            instant=work.instant,
            rewritten=summarize(work, results),
            warnings=notes,
        ),
    )


def _make_ready(
    session: ApplySession, work: CompactionWork, added: Mapping[str, Sequence[WrittenFile]]
) -> None:
    """Remove the markers, and check for the last time that all is there and this run's.

    By a marker, a writer that comes back removes every file that it did not write itself, before it
    finds that it cannot complete the instant (HoodieTable.reconcileAgainstMarkers).
    """
    remove_markers(session.storage, work.instant)
    for partition, files in added.items():
        for file in files:
            if not is_present(session.storage, partition, file.name, file.size):
                raise _make_taken_error(work)
    timeline = session.reload_timeline()
    check_ours(session, work, timeline)
    _check_nothing_undone(session, work, timeline)


def check_ours(session: ApplySession, work: CompactionWork, timeline: Timeline) -> None:
    """Raise BusyError if the compaction is not this run's; the lock is held."""
    check_taken_over(session, timeline, work)
    was_undone = find_rollback_ms(session, timeline, work.instant, work.known) is not None
    if was_undone or is_begun(timeline, work):
        raise _make_taken_error(work)


def begin_again(session: ApplySession, work: CompactionWork, known: Timeline) -> None:
    """Remove what earlier attempts have left; the table's lock is held.

    ``known``: the timeline when this run took the compaction over. An inflight file that was there
    then is of a dead attempt, any other of a writer that has begun since. Raises BusyError.
    """
    timeline = session.reload_timeline()
    check_taken_over(session, timeline, work)
    if list_own_files(timeline, work.instant) != list_own_files(known, work.instant):
        raise _make_taken_error(work)
    take_back(session, work)


def take_back(session: ApplySession, work: CompactionWork) -> None:
    """Remove everything that attempts have left, so that only the requested file is there.

    The table's lock is held. What was written to the metadata table goes first, the inflight file
    last, so that the next run goes on if this one stops. Files are found by their names: an attempt
    that dies as it completes has no markers any more.
    """
    session.lock.confirm()
    files = len(work.state.files.name)
    names = list_names_of_partitions(session.storage, work.partitions, files=files)
    doomed = [
        (partition, name)
        for partition, listed in sorted(names.items())
        for name in sorted(listed)
        if is_written_by(name, work.instant)
    ]
    remove_listed_attempt(session.storage, work.instant, doomed)
    session.publisher.revert(work.instant, work.action)


def abandon_compaction(
    session: ApplySession, work: CompactionWork, *, withdraws: bool = False
) -> None:
    """Take a compaction back that failed; the table's lock is held.

    Where another writer or run has taken it over only our files are removed. ``withdraws``: its
    request goes too, unless a writer may have gone by it.
    """
    timeline = session.reload_timeline()
    done = find_completion(timeline, work.instant, work.action)
    if done is not None:
        kept = read_committed_files(session.storage, session.properties, timeline, done)
        remove_own_files(session, work, kept)
        return
    try:
        check_ours(session, work, timeline)
    except BusyError:
        remove_own_files(session, work)
    else:
        take_back(session, work)
        if withdraws and not _may_be_known(timeline, work):
            session.publisher.withdraw(work.instant, work.action)


def _may_be_known(timeline: Timeline, work: CompactionWork) -> bool:
    """Return whether a writer may have written log files for the slices after a compaction.

    Without the compaction these slices would not be there: in version 6 log files are named after
    their slice. Writers that began before it was requested are pending, or have completed since.
    """
    if work.state.table_version >= LOGS_BY_COMPLETION:
        return False
    known = work.known
    return any(
        not write.is_completed or (write.requested, write.action.completes_as) not in known
        for write in timeline.writes
        if write.requested != work.instant
    )


def remove_own_files(
    session: ApplySession, work: CompactionWork, keep: Collection[File] = ()
) -> None:
    """Remove what this attempt has written, whatever other attempts at the instant wrote.

    Another writer may have removed our markers, so the write tokens of the files tell.
    """
    token = f"-{make_token_part(make_seed(work.instant, work.attempt))}-"
    files = [
        (partition, name)
        for partition in work.partitions
        for name in sorted(list_names(session.storage, partition))
        if (base := BaseName.parse(name)) is not None
        and base.instant == work.instant
        and token in base.token
    ]
    remove_files(session.storage, [file for file in files if file not in keep])


def _adopt_completed(
    session: ApplySession, work: CompactionWork, timeline: Timeline, done: Instant
) -> StepOutcome:
    """Adopt the compaction as another writer has completed it, and remove our files.

    Two base files of one file slice would be read as one of them, whichever comes last.
    """
    kept = read_committed_files(session.storage, session.properties, timeline, done)
    remove_own_files(session, work, kept)
    file = next(f for f in timeline.files if f.instant == done)
    stats = WriteStats.parse(*session.read_instant(file))
    names = list_names_of_partitions(session.storage, {partition for partition, _ in kept})
    lost = sorted(name for partition, name in kept if name not in names[partition])
    differences: tuple[Note, ...] = ()
    if lost:
        text = (
            f"another writer has completed compaction {work.instant} with {len(lost)} files that "
            f"are not there, for example {lost[0]}; restore the table to a savepoint"
        )
        differences = (Note("adopted", text),)
    return StepOutcome(
        kind="resume",
        how="adopted",
        instant=work.instant,
        rewritten=ClusterOutcome(
            groups=len(work.operations),
            slices=len(work.operations),
            files_before=summarize(work, ()).files_before,
            files_after=int(stats.is_base.sum()),
            bytes_written=int(stats.bytes.sum()),
            rows=int(stats.rows.sum()),
        ),
        differences=differences,
    )


def _check_no_late_write(session: ApplySession, work: CompactionWork, timeline: Timeline) -> None:
    """Raise BusyError if a write has completed whose log files belong to the compacted slices.

    In version 6 log files are named after the slice that their writer found. They belong to these
    slices if it began before the compaction was requested, or looked at the timeline before. From
    version 8 on they do if it completed before. It may not have been seen when these were read.
    """
    known = work.known
    for file in timeline.completed_files(COMMITS):
        done = file.instant
        if (done.requested, done.action) in known or done.requested == work.instant:
            continue
        if why := _explain_late_write(session, work, file):
            raise BusyError(f"{why}; run apply again")


def _explain_late_write(session: ApplySession, work: CompactionWork, file: TimelineFile) -> str:
    """Return why log files of a completed write belong to the compacted slices, "" if none do."""
    done = file.instant
    what = f"{done.action} {done.requested}"
    if work.state.table_version >= LOGS_BY_COMPLETION:
        is_late = done.completed is not None and done.completed < work.instant
        when = f"completed before compaction {work.instant} was requested and is seen only now"
        return f"{what} {when}" if is_late else ""
    if done.requested < work.instant:
        when = f"began before compaction {work.instant} was requested"
        return f"{what} {when} and has completed meanwhile"
    late = _find_late_log(work, WriteFootprint.parse(*session.read_instant(file)))
    if not late:
        return ""
    return (
        f"{late}: {what} has written it to a file slice before compaction {work.instant}, which it "
        "did not see, so its rows would be lost"
    )


def _find_late_log(work: CompactionWork, write: WriteFootprint) -> str:
    """Return a log file of a write that belongs to a slice of the compaction, "" for none."""
    slices = {(one.partition, one.file_id, one.base_instant) for one in work.operations}
    for partition, name in sorted(write.files):
        log = LogName.parse(name)
        if log is not None and (partition, log.file_id, log.instant) in slices:
            return f"{partition}/{name}".lstrip("/")
    return ""


def _check_nothing_undone(session: ApplySession, work: CompactionWork, timeline: Timeline) -> None:
    """Raise BusyError if a write was undone since the log files were read: its rows are merged."""
    undoing = find_undoing(session, timeline, work.known)
    if undoing is not None:
        raise BusyError(
            f"{undoing.action} {undoing.requested} undoes a write since compaction {work.instant} "
            "was prepared, so its rows must not be merged; run apply again"
        )


def _make_taken_error(work: CompactionWork) -> BusyError:
    return BusyError(
        f"another writer has taken over compaction {work.instant}; plan again when it is done"
    )
