"""Complete a write whose files are there: the last look for conflicts, and what it publishes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

from reconciler.errors import AlreadyExistsError, BusyError, ReconcilerError
from reconciler.file_slices.base_file.writer import WrittenFile
from reconciler.hudi.files.names import PARTITION_METAFILE, make_file_path
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.write_commit import WriteCommit
from reconciler.plans.model import Note
from reconciler.transaction.footprints import read_footprints
from reconciler.transaction.metadata.write_sync import WriteChanges, prepare_write_sync
from reconciler.transaction.recovery.marked_files import (
    is_written_by,
    list_marked_files,
    remove_files,
    remove_markers,
)
from reconciler.transaction.recovery.own_writes import is_still_pending
from reconciler.transaction.run import MARKERS, Completion
from reconciler.transaction.session import TableSession
from reconciler.writer.conflicts import check_conflicts, check_no_unlocked_write
from reconciler.writer.facts import UnpublishedWrite
from reconciler.writer.fixed_bytes import warn_of_fixed_bytes
from reconciler.writer.request import WriteMode, WriteResult

_SCHEMA: Final = "schema"


def settle_write(session: TableSession, done: UnpublishedWrite) -> Completion[WriteResult]:
    """Look for conflicts for the last time, and say how the write completes.

    The table's lock is held. Raises BusyError if another write went to the same file groups, or
    has taken this one back: then it is to be undone.
    """
    timeline, footprints = read_footprints(session, done.known_writes, done.instant)
    _check_still_pending(session, done)
    check_no_unlocked_write(session, timeline, done.instant)
    check_conflicts(session, done, timeline, footprints)
    _remove_strays(session, done)
    _create_metafiles(session, done)
    timeline = session.reload_timeline()
    return Completion(
        timeline=timeline,
        prepare_sync=lambda request: prepare_write_sync(request, _describe_files(done)),
        check=partial(_check_still_pending, session, done),  # a rollback waits for no lock
        make_payload=partial(_encode_commit, done),
        make_outcome=partial(_make_result, done),
    )


def remove_leftovers(
    session: TableSession, done: UnpublishedWrite, outcome: WriteResult
) -> WriteResult:
    """Remove what late tasks wrote after the commit, then the markers; a failure is a warning."""
    try:
        _remove_strays(session, done)
        remove_markers(session.storage, done.instant)
    except ReconcilerError as error:
        note = Note(MARKERS, f"the write is completed; its markers stay for now: {error}")
        return replace(outcome, warnings=(*outcome.warnings, note))
    return outcome


def _check_still_pending(session: TableSession, done: UnpublishedWrite) -> None:
    """Raise BusyError if another writer has rolled the write back, or has begun to."""
    action = done.mode.action
    if not is_still_pending(session, done.instant, action, done.known_writes):
        raise BusyError(
            f"another writer has rolled back {action} {done.instant} while it was being written; "
            "nothing of it is in the table, run the write again"
        )


def _remove_strays(session: TableSession, done: UnpublishedWrite) -> None:
    """Remove by marker what attempts have written that did not count."""
    kept = {(file.partition, file.file.name) for file in done.files}
    remove_files(
        session.storage,
        [
            (partition, name)
            for partition, name in list_marked_files(session.storage, done.instant)
            if (partition, name) not in kept and is_written_by(name, done.instant)
        ],
    )


def _create_metafiles(session: TableSession, done: UnpublishedWrite) -> None:
    """Create the metafile of every new partition, by which listings know it."""
    known = done.facts.state.metafile_partitions
    for path in sorted({file.partition for file in done.files} - known):
        depth = len(path.split("/")) if path else 0
        text = f"#partition metadata\ncommitTime={done.instant}\npartitionDepth={depth}\n"
        with suppress(AlreadyExistsError):
            session.storage.create(make_file_path(path, PARTITION_METAFILE), text.encode())


def _describe_files(done: UnpublishedWrite) -> WriteChanges:
    facts, groups = done.facts, done.facts.groups
    added: dict[str, list[WrittenFile]] = {}
    for written in done.files:
        added.setdefault(written.partition, []).append(written.file)
    replaced = done.replaced.tolist()
    return WriteChanges(
        added=added,
        previous={
            make_file_path(written.partition, written.file.name): (
                written.previous.base or "",
                written.previous.base_size,
            )
            for written in done.files
            if written.previous is not None
        },
        replaced=[
            (groups.get_base_path(group), int(groups.base[group]))
            for group in replaced
            if groups.base[group] >= 0
        ],
        types={field.name: field.type for field in facts.settings.reading.schema},
        rewritten_partitions=frozenset(map(groups.get_partition, replaced)),
    )


def _encode_commit(done: UnpublishedWrite, properties: TableProperties) -> bytes:
    stats: dict[str, list[Mapping[str, str | int]]] = {}
    for written in done.files:
        stats.setdefault(written.partition, []).append(written.stat)
    replaced = done.facts.groups.list_file_ids(done.replaced)
    commit = WriteCommit(
        stats_by_partition=stats,
        operation=done.mode.hudi_name,
        replaced=replaced if done.mode.replaces else None,
        extra={**done.extra, _SCHEMA: done.facts.avro},
    )
    return commit.encode(version=properties.table_version)


def _make_result(done: UnpublishedWrite, notes: tuple[Note, ...]) -> WriteResult:
    previous = [written.previous for written in done.files if written.previous is not None]
    groups = done.facts.groups
    deleted: set[str] = set()
    if done.mode is WriteMode.DELETE_PARTITION:
        deleted = {groups.get_partition(group) for group in done.replaced.tolist()}
    return WriteResult(
        status="completed",
        instant=done.instant,
        counts=done.counts,
        created_groups=len(done.files) - len(previous),
        rewritten_groups=len(previous),
        replaced_groups=len(done.replaced),
        files=len(done.files),
        bytes=sum(written.file.size for written in done.files),
        rewritten_bytes=sum(file.base_size for file in previous),
        warnings=(*notes, *warn_of_fixed_bytes(done.files, done.facts.settings)),
        partitions_written=tuple(sorted({written.partition for written in done.files})),
        partitions_deleted=tuple(sorted(deleted)),
    )
