"""Complete a write whose files are there: the last look for conflicts, and what it publishes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

from reconciler.errors import AlreadyExistsError, BusyError, ReconcilerError
from reconciler.file_slices.base_file.writer import WrittenFile
from reconciler.file_slices.log_file.log_file import WrittenLogFile
from reconciler.hudi.files.names import PARTITION_METAFILE, make_file_path
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.write_commit import WriteCommit, WriteStat
from reconciler.plans.model import Note
from reconciler.rewrite.replaced_keys import read_log_keys
from reconciler.transaction.footprints import read_footprints
from reconciler.transaction.metadata.write_sync import WriteChanges, prepare_write_sync
from reconciler.transaction.recovery.marked_files import (
    remove_marked_files,
    remove_markers,
)
from reconciler.transaction.recovery.own_writes import is_still_pending
from reconciler.transaction.run import MARKERS, Completion
from reconciler.transaction.session import TableSession
from reconciler.writer.bucket import WrittenBaseFile
from reconciler.writer.conflicts import check_conflicts, check_no_unlocked_write
from reconciler.writer.fixed_bytes import warn_of_fixed_bytes
from reconciler.writer.log_deletions import read_removed_keys
from reconciler.writer.request import WriteMode, WriteResult
from reconciler.writer.unpublished_write import UnpublishedWrite

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
        prepare_sync=lambda request: prepare_write_sync(request, _describe_files(session, done)),
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
    action = done.action
    if not is_still_pending(session, done.instant, action, done.known_writes):
        raise BusyError(
            f"another writer has rolled back {action} {done.instant} while it was being written; "
            "nothing of it is in the table, run the write again"
        )


def _remove_strays(session: TableSession, done: UnpublishedWrite) -> None:
    """Remove by marker what attempts have written that did not count."""
    kept = {(file.partition, file.file.name) for file in done.all_files}
    remove_marked_files(session.storage, done.instant, kept)


def _create_metafiles(session: TableSession, done: UnpublishedWrite) -> None:
    """Create the metafile of every new partition, by which listings know it."""
    known = done.facts.state.metafile_partitions
    for path in sorted(done.partitions - known):
        depth = len(path.split("/")) if path else 0
        text = f"#partition metadata\ncommitTime={done.instant}\npartitionDepth={depth}\n"
        with suppress(AlreadyExistsError):
            session.storage.create(make_file_path(path, PARTITION_METAFILE), text.encode())


def _read_replaced_log_keys(session: TableSession, done: UnpublishedWrite) -> Iterator[Any]:
    """Yield the keys of replaced file groups with log files."""
    facts, groups = done.facts, done.facts.groups
    logged = [group for group in done.replaced.tolist() if groups.log_files[group]]
    if logged:
        paths = set(map(groups.get_partition, logged))
        yield from read_log_keys(session.storage, facts.state, paths)


def _describe_files(session: TableSession, done: UnpublishedWrite) -> WriteChanges:
    facts, groups = done.facts, done.facts.groups
    added: dict[str, list[WrittenFile]] = {}
    for written in done.files:
        added.setdefault(written.partition, []).append(written.file)
    logged: dict[str, list[WrittenLogFile]] = {}
    for log in done.logs:
        logged.setdefault(log.partition, []).append(log.file)
    replaced = done.replaced.tolist()
    rewritten = [written for written in done.files if written.sources]
    return WriteChanges(
        added=added,
        logged=logged,
        sources={
            make_file_path(written.partition, written.file.name): [
                (source.base or "", source.base_size) for source in written.sources
            ]
            for written in done.files
        },
        without_lost_keys=_list_paths(file for file in rewritten if not file.counts.deletes),
        without_gained_keys=_list_paths(file for file in rewritten if not file.counts.inserts),
        replaced=[
            (groups.get_base_path(group), int(groups.base[group]))
            for group in replaced
            if groups.base[group] >= 0
        ],
        types={field.name: field.type for field in facts.settings.reading.schema},
        rewritten_partitions=frozenset(map(groups.get_partition, replaced)),
        replaced_groups=[
            (groups.get_partition(group), groups.get_file_id(group))
            for group in replaced
            if groups.base[group] < 0
        ],
        unknown_keys=_explain_unknown_keys(done),
        read_log_keys=partial(_read_replaced_log_keys, session, done),
        read_logged_deletions=partial(read_removed_keys, session.storage, done),
    )


def _list_paths(files: Iterable[WrittenBaseFile]) -> frozenset[str]:
    return frozenset(make_file_path(written.partition, written.file.name) for written in files)


def _explain_unknown_keys(done: UnpublishedWrite) -> str | None:
    """Return why log files may have keys that are new; a bucket index looks for none."""
    if done.facts.index_buckets is None or not any(log.file.rows for log in done.logs):
        return None
    return "a bucket index does not tell which keys of log files are new"


def _encode_commit(done: UnpublishedWrite, properties: TableProperties) -> bytes:
    stats: dict[str, list[WriteStat]] = {}
    for written in done.all_files:
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
        created_groups=len(done.files) - len(previous) + sum(log.is_new_group for log in done.logs),
        rewritten_groups=len(previous),
        appended_groups=len({log.target.file_id for log in done.logs if not log.is_new_group}),
        replaced_groups=len(done.replaced),
        files=len(done.files),
        bytes=sum(written.file.size for written in done.files),
        log_files=len(done.logs),
        log_bytes=sum(log.file.size for log in done.logs),
        rewritten_bytes=sum(file.base_size for file in previous),
        warnings=(*notes, *warn_of_fixed_bytes(done.files, done.facts.settings)),
        partitions_written=tuple(sorted(done.partitions)),
        partitions_deleted=tuple(sorted(deleted)),
        lookup=done.lookup,
    )
