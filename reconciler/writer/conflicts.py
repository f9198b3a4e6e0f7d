"""Check whether other writers conflict with a write, when it begins and before it completes.

Hudi compares only file groups (SimpleConcurrentFileWritesConflictResolutionStrategy). A write that
looks for keys and finds them new also has to know of other new keys of their partitions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from reconciler.errors import BusyError
from reconciler.hudi.files.bucket_ids import get_bucket_digits
from reconciler.hudi.files.names import BaseName
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.hudi.load import load_properties
from reconciler.hudi.metadata.sync_decisions import RECORD_INDEX
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.instant import WRITES
from reconciler.state.observe import observe
from reconciler.state.schema import read_declared_schema
from reconciler.transaction.conflicts import Footprint, GroupClaim, find_conflicts
from reconciler.transaction.footprints import (
    collect_completed_writes,
    find_unexcluded_write,
    read_footprints,
)
from reconciler.transaction.paths import list_names_of_partitions
from reconciler.transaction.session import TableSession
from reconciler.writer.facts import WriteFacts
from reconciler.writer.request import WriteMode
from reconciler.writer.stream_batches import has_batch, parse_batches
from reconciler.writer.unpublished_write import UnpublishedWrite

_ROLLBACK_ACTIONS: Final = ("rollback", "restore")
#: a compaction of a merge-on-read table, pending or completed
_COMPACTION_ACTIONS: Final = ("compaction", "commit")
#: what an Avro schema says beside its columns; writers spell it differently
_ASIDE: Final = frozenset({"doc", "namespace"})


def check_mode(pending: Sequence[Footprint], *, follows_groups: bool) -> None:
    """Raise BusyError for pending instants that would make this write fail in the end.

    ``follows_groups``: the table has file groups that the write may follow or replace.
    """
    for other in pending:
        if other.action in _ROLLBACK_ACTIONS:
            raise BusyError(
                f"{other} is pending, and may undo what this write would read; wait until it is "
                "done, or let Hudi finish it, then write again"
            )
        if follows_groups and _is_pending_rewrite(other) and not other.is_known:
            raise BusyError(
                f"{other} of another writer is pending and may replace any file group, so that "
                "this write could not be completed beside it; wait until it is done or, if its "
                "writer is dead, let Hudi roll it back, then write again"
            )


def check_no_unlocked_write(session: TableSession, timeline: Timeline, own: str | None) -> None:
    """Raise BusyError for another pending write that no lock keeps out; ``own``: this instant."""
    other = find_unexcluded_write(session, timeline, own)
    if other is not None:
        raise BusyError(
            f"{other.action} {other.requested} is pending, and there is no lock: it and this write "
            "could lose each other's rows; configure concurrency.lock or wait"
        )


def check_conflicts(
    session: TableSession, done: UnpublishedWrite, timeline: Timeline, others: Sequence[Footprint]
) -> None:
    """Raise BusyError if another write that this one did not see touches the same groups.

    A pending write of rows to one of them finds this one when it completes, and gives up. A pending
    clustering would lose this one, and a pending rollback may undo what it has read. Of two writes
    that look for keys and find them new, neither sees the other's. So no other may have written to
    a partition into which this one brings new keys, or which it replaces; nor to any partition
    if a record index knows every key.
    """
    undoing = [
        other for other in others if other.action in _ROLLBACK_ACTIONS and not other.is_completed
    ]
    if undoing:
        raise _conflict_error(f"{undoing[0]} is pending, and may undo what this write has read")
    against = [other for other in others if other.is_completed or _is_pending_rewrite(other)]
    _check_claims(_list_claims(done), against)
    # one that was planned meanwhile would put its file in front of this write's
    _check_claims(_list_rewritten(done), [one for one in others if _is_new_compaction(done, one)])
    _check_claims(_list_appended(done), _find_appending_conflicts(done, others))
    _check_nothing_archived(done, timeline)
    _check_record_index(session, done)
    completed = [other for other in others if other.is_completed]
    if completed and done.facts.index_buckets is not None and not done.mode.replaces:
        _check_new_buckets(done, completed)
    elif completed and (done.mode.operation.needs_lookup or done.mode.replaces):
        _check_partitions(done, completed)
    if completed:
        _check_columns(session, done)


def _check_claims(claims: Iterable[GroupClaim], others: Sequence[Footprint]) -> None:
    """Raise BusyError for the first of some file groups that another write touches too."""
    listed = [*claims]
    conflicts = find_conflicts(listed, others)
    if conflicts:
        first = min(conflicts)
        raise _conflict_error(f"partition {listed[first].partition!r}: {conflicts[first]}")


def check_files_remain(session: TableSession, facts: WriteFacts, own: str) -> None:
    """Raise BusyError if files that a write reads were replaced by another and removed since.

    It is called when reading failed: a clean by file versions removes a file as soon as another
    write has replaced it. A file that is missing for no such reason is lost. ``own``: the instant.
    """
    before = collect_completed_writes(facts.state.timeline)
    timeline, others = read_footprints(session, before, own)
    completed = [other for other in others if other.is_completed]
    has_archived = not before <= collect_completed_writes(timeline)
    missing = _list_missing_files(session, facts) if completed or has_archived else {}
    claims = [
        GroupClaim(partition=path, ids=frozenset(map(_parse_file_id, names)), is_open=False)
        for path, names in sorted(missing.items())
    ]
    _check_claims(claims, completed)
    if missing and has_archived:
        path, names = min(missing.items())
        raise _conflict_error(
            f"partition {path!r}: {min(names)} was removed meanwhile, and writes were archived"
        )


def _list_missing_files(session: TableSession, facts: WriteFacts) -> dict[str, list[str]]:
    """Return the names of current base files that are gone, by partition."""
    groups = facts.groups
    bases = np.flatnonzero(groups.is_live & (groups.base >= 0)).tolist()
    paths = {groups.get_partition(group) for group in bases}
    present = list_names_of_partitions(session.storage, paths, files=len(groups))
    missing: dict[str, list[str]] = {}
    for group in bases:
        path, name = groups.get_partition(group), groups.get_base_path(group).rpartition("/")[2]
        if name not in present[path]:
            missing.setdefault(path, []).append(name)
    return missing


def _check_nothing_archived(done: UnpublishedWrite, timeline: Timeline) -> None:
    """Raise BusyError if a write that was pending may have completed and been archived.

    The archiver passes no pending write, so only writes before this one may have been.
    """
    before, now = done.facts.state.timeline, {instant.requested for instant in timeline.instants}
    if all(commit.requested in now for commit in before.commits):
        return
    for write in before.pending(WRITES):
        if write.requested not in now:
            raise _conflict_error(
                f"{write.action} {write.requested}, which was pending when this write began, is "
                "not on the timeline any more, nor are others that were archived: where it went is "
                "not known"
            )


def _check_record_index(session: TableSession, done: UnpublishedWrite) -> None:
    """Raise BusyError if a record index was begun: an indexer does not wait for writes."""
    if not done.mode.operation.needs_lookup:
        return
    before, now = done.facts.properties, load_properties(session.storage)
    if RECORD_INDEX in set(now.metadata_partitions) - set(before.metadata_partitions):
        raise _conflict_error(
            "a record index has begun meanwhile, which may make keys unique in all partitions"
        )


def _check_partitions(done: UnpublishedWrite, completed: Sequence[Footprint]) -> None:
    partitions = {file.partition for file in done.files if file.counts.inserts}
    partitions |= {log.partition for log in done.logs if log.inserts}
    partitions |= {*map(done.facts.groups.get_partition, done.replaced.tolist())}
    for other in completed:
        if not other.has_new_keys and not done.mode.replaces:
            continue
        if partitions and done.facts.index is not None and done.mode.operation.needs_lookup:
            raise _conflict_error(
                f"{other} has written to the table meanwhile, perhaps the same new keys: its "
                "record index makes them unique in all partitions"
            )
        both = partitions & other.groups.keys() if other.is_known else partitions
        if done.mode is WriteMode.INSERT_OVERWRITE_TABLE:
            both = both | other.groups.keys()
        if both:
            first = min(both)
            raise _conflict_error(
                f"partition {first!r}: {other} has written to it meanwhile, perhaps the same new "
                "keys"
            )


def _check_new_buckets(done: UnpublishedWrite, completed: Sequence[Footprint]) -> None:
    """Raise BusyError if another write has made a file group of a bucket that this one makes.

    Keys of other buckets are other keys. Hudi's writers do the same
    (BucketIndexConcurrentFileWritesConflictResolutionStrategy).
    """
    for file in done.files:
        if file.previous_name is not None:
            continue
        bucket = get_bucket_digits(_parse_file_id(file.file.name))
        for other in completed:
            ids = other.groups.get(file.partition, frozenset())
            if not other.is_known or any(get_bucket_digits(one) == bucket for one in ids):
                raise _conflict_error(
                    f"partition {file.partition!r}: {other} has made a file group of bucket "
                    f"{int(bucket)} meanwhile"
                )


def _check_columns(session: TableSession, done: UnpublishedWrite) -> None:
    """Raise BusyError if another write has changed the columns, or written the same batch."""
    state = observe(session.storage, None, observed_ms=session.clock.now_ms(), with_history=False)
    declared = read_declared_schema(session.storage, session.properties, state)
    if declared is not None and not _has_same_columns(declared.text, done.facts.declared):
        raise _conflict_error("another write has changed the columns of the table meanwhile")
    check_stream_batches(session, done.extra)


def check_stream_batches(session: TableSession, extra: Mapping[str, str]) -> None:
    """Raise BusyError if another run has written the batch of a stream that this one writes.

    ``extra``: the instant's extra metadata. It is called when the table has been observed, because
    the footprints of a write skip what had completed by then.
    """
    for stream, batch in parse_batches(extra).items():
        if has_batch(session.storage, stream, batch):
            raise _conflict_error(
                f"another run has written batch {batch} of stream {stream} meanwhile"
            )


def _has_same_columns(schema: str, before: str | None) -> bool:
    """True if two schemas have the same columns, whatever writers call the records."""
    if before is None or schema == before:
        return before is not None
    return bool(_normalize_schema(json.loads(schema)) == _normalize_schema(json.loads(before)))


def _normalize_schema(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_normalize_schema(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    is_record = schema.get("type") == "record"
    return {
        key: _normalize_schema(value)
        for key, value in schema.items()
        if key not in _ASIDE and not (is_record and key == "name")
    }


def _conflict_error(what: str) -> BusyError:
    return BusyError(f"{what}; nothing of this write is in the table, run it again")


def _is_pending_rewrite(footprint: Footprint) -> bool:
    """True if it is a pending write that replaces file groups."""
    return not footprint.is_completed and footprint.action in ("replacecommit", "clustering")


def _list_claims(done: UnpublishedWrite) -> Iterator[GroupClaim]:
    """Yield the file groups that this write follows or replaces, by partition."""
    replaced = done.facts.groups.list_file_ids(done.replaced)
    yield from _build_claims({path: set(ids) for path, ids in replaced.items()})
    yield from _list_rewritten(done)


def _list_rewritten(done: UnpublishedWrite) -> Iterator[GroupClaim]:
    """Yield the file groups that get a new base file from this write, by partition."""
    ids: dict[str, set[str]] = {}
    for file in done.files:
        if file.previous_name is not None:
            ids.setdefault(file.partition, set()).add(_parse_file_id(file.previous_name))
    return _build_claims(ids)


def _list_appended(done: UnpublishedWrite) -> Iterator[GroupClaim]:
    """Yield the file groups to which this write appends log files, by partition."""
    ids: dict[str, set[str]] = {}
    for log in done.logs:
        if not log.is_new_group:
            ids.setdefault(log.partition, set()).add(log.target.file_id)
    return _build_claims(ids)


def _build_claims(ids: Mapping[str, set[str]]) -> Iterator[GroupClaim]:
    for path, file_ids in sorted(ids.items()):
        yield GroupClaim(partition=path, ids=frozenset(file_ids), is_open=False)


def _find_appending_conflicts(
    done: UnpublishedWrite, others: Sequence[Footprint]
) -> list[Footprint]:
    """Return the other writes beside which no log file may be appended to the same group.

    A compaction keeps log files that complete after it was planned. Before version 8 their names
    tell which, so one that was planned meanwhile has not seen this write's, and would lose it.
    """
    by_name = done.facts.properties.table_version < LOGS_BY_COMPLETION

    def is_in_the_way(other: Footprint) -> bool:
        if other.action in _COMPACTION_ACTIONS:
            return by_name and _is_new_compaction(done, other)
        return other.is_completed or _is_pending_rewrite(other)

    return [other for other in others if is_in_the_way(other)]


def _is_new_compaction(done: UnpublishedWrite, other: Footprint) -> bool:
    """True for a compaction of a merge-on-read table that was planned since this write began."""
    known = {plan.instant for plan in done.facts.state.compactions}
    is_compaction = other.action in _COMPACTION_ACTIONS and done.facts.state.is_merge_on_read
    return is_compaction and other.instant not in known


def _parse_file_id(name: str) -> str:
    base_name = BaseName.parse(name)
    assert base_name is not None, "a base file of the table"
    return base_name.file_id
