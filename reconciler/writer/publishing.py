"""From new files to a completed write: the last look, the metadata table, the completed file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import pyarrow.compute as pc

from reconciler.basefile.writer import WrittenFile
from reconciler.errors import AlreadyExistsError, BusyError, ReconcilerError, StorageError
from reconciler.hudi.instant import State
from reconciler.hudi.load import load_properties
from reconciler.hudi.names import PARTITION_METAFILE
from reconciler.hudi.write_commit import WriteCommit
from reconciler.plan.model import Note
from reconciler.transaction import metadata
from reconciler.transaction.footprints import footprints, foreign_pending, rolled_back_ms
from reconciler.transaction.hold import Hold
from reconciler.transaction.instants import instant_ms
from reconciler.transaction.lock import NoLock
from reconciler.transaction.marked import is_of, marked_files, remove_files, remove_markers
from reconciler.transaction.metadata_commit import Told, plan_commit_sync
from reconciler.transaction.publish import completion_of
from reconciler.transaction.undo import drop_partitions
from reconciler.writer.alone import check_alone
from reconciler.writer.asked import Outcome
from reconciler.writer.made import Written

_SCHEMA: Final = "schema"


def publish(hold: Hold, done: Written) -> Outcome:
    """Complete the write; the table's lock is held.

    Raises BusyError where another write has a hand in the same file groups, or has taken this one
    back: then it is to be undone.
    """
    timeline, found = footprints(hold, done.known, done.instant)
    _check_ours(hold, done)
    if isinstance(hold.lock, NoLock) and (pending := foreign_pending(timeline, done.instant)):
        raise BusyError(
            f"{pending[0].action} {pending[0].requested} is pending, and there is no lock: it and "
            "this write could lose each other's rows; configure concurrency.lock or wait"
        )
    check_alone(hold, done, timeline, found)
    _remove_strays(hold, done)
    _mark_partitions(hold, done)
    notes = _tell(hold, done)
    hold.lock.confirm()
    _check_ours(hold, done)  # a rollback waits for no lock
    return _outcome(done, (*notes, *_complete(hold, done)))


def _complete(hold: Hold, done: Written) -> tuple[Note, ...]:
    """The completed file; a note where the store said that it is not there, and it is."""
    try:
        hold.publisher.complete(done.instant, done.way.action, _payload(hold, done))
    except StorageError as error:
        if completion_of(hold.reread(), done.instant, done.way.action) is None:
            raise
        return (Note("store", f"the write is completed, whatever the store says of it: {error}"),)
    return ()


def tidied(hold: Hold, done: Written, outcome: Outcome) -> Outcome:
    """After the commit: what late tasks wrote goes, then the markers; a failure is a warning."""
    try:
        _remove_strays(hold, done)
        remove_markers(hold.storage, done.instant)
    except ReconcilerError as error:
        note = Note("markers", f"the write is completed; its markers stay for now: {error}")
        return replace(outcome, warnings=(*outcome.warnings, note))
    return outcome


def _check_ours(hold: Hold, done: Written) -> None:
    """Raises BusyError where somebody has rolled the write back, or has begun to."""
    timeline, action = hold.reread(), done.way.action
    is_there = (
        timeline.file(done.instant, action, State.REQUESTED) is not None
        and timeline.file(done.instant, action, State.INFLIGHT) is not None
        and completion_of(timeline, done.instant, action) is None
    )
    if not is_there or rolled_back_ms(hold, timeline, done.instant, done.known) is not None:
        raise BusyError(
            f"another writer has rolled back {action} {done.instant} while it was being written; "
            "nothing of it is in the table, run the write again"
        )


def _remove_strays(hold: Hold, done: Written) -> None:
    """Remove by marker what attempts have written that did not count."""
    kept = {(file.partition, file.file.name) for file in done.files}
    remove_files(
        hold.storage,
        [
            (partition, name)
            for partition, name in marked_files(hold.storage, done.instant)
            if (partition, name) not in kept and is_of(name, done.instant)
        ],
    )


def _mark_partitions(hold: Hold, done: Written) -> None:
    """Every partition with files has its metafile, by which listings know it."""
    known = done.facts.state.metafile_partitions
    for path in sorted({file.partition for file in done.files} - known):
        depth = len(path.split("/")) if path else 0
        text = f"#partition metadata\ncommitTime={done.instant}\npartitionDepth={depth}\n"
        try:
            hold.storage.create(
                f"{path}/{PARTITION_METAFILE}" if path else PARTITION_METAFILE, text.encode()
            )
        except AlreadyExistsError:
            continue


def _tell(hold: Hold, done: Written) -> tuple[Note, ...]:
    """The metadata table hears of it; a note for each index that had to be dropped."""
    storage, timeline = hold.storage, hold.reread()
    properties = load_properties(storage)
    if not properties.metadata_partitions:
        return ()
    sync = plan_commit_sync(
        storage,
        properties,
        timeline,
        _told(done),
        instant=done.instant,
        completed=hold.publisher.new_time(
            timeline, metadata.newest_time(storage, properties, timeline)
        ),
        instant_ms=instant_ms(done.instant, hold.publisher.zone),
    )
    hold.lock.confirm()
    drop_partitions(storage, properties, sync.drops)
    metadata.write_sync(storage, sync.sync)
    return tuple(
        Note("metadata", f"the metadata partition {name} was dropped: {why}")
        for name, why in sorted(sync.reasons.items())
    )


def _told(done: Written) -> Told:
    facts = done.facts
    groups, bases = facts.standing.groups, facts.standing.bases
    sizes = {
        (groups.partitions[groups.partition[at]], bases[at].as_py()): int(groups.base[at])
        for at in pc.indices_nonzero(pc.is_valid(bases)).to_pylist()
    }
    added: dict[str, list[WrittenFile]] = {}
    before = {}
    for one in done.files:
        added.setdefault(one.partition, []).append(one.file)
        if one.before is not None:
            size = sizes[one.partition, one.before]
            before[_path(one.partition, one.file.name)] = (_path(one.partition, one.before), size)
    replaced = [
        (groups.partitions[groups.partition[at]], bases[at].as_py())
        for at in done.replaced.tolist()
    ]
    return Told(
        added=added,
        before=before,
        replaced=[(_path(path, name), sizes[path, name]) for path, name in replaced if name],
        columns=facts.ranges,
        kinds={field.name: field.type for field in facts.reading.schema},
        alone=frozenset({path for path, _ in replaced}),
    )


def _path(partition: str, name: str) -> str:
    return f"{partition}/{name}" if partition else name


def _payload(hold: Hold, done: Written) -> bytes:
    groups = done.facts.standing.groups
    stats: dict[str, list[Mapping[str, str | int]]] = {}
    for one in done.files:
        stats.setdefault(one.partition, []).append(one.stat)
    replaced: dict[str, list[str]] | None = None
    if done.way.replaces:
        replaced = {}
        for at in done.replaced.tolist():
            path = groups.partitions[groups.partition[at]]
            replaced.setdefault(path, []).append(groups.file_id[at].as_py())
    commit = WriteCommit(
        written=stats,
        operation=done.way.named,
        replaced=replaced,
        extra={**done.extra, _SCHEMA: done.facts.avro},
    )
    return commit.encode(version=hold.properties.table_version)


def _outcome(done: Written, notes: tuple[Note, ...]) -> Outcome:
    filled = [one for one in done.files if one.before is not None]
    told = _told(done)
    return Outcome(
        how="completed",
        instant=done.instant,
        totals=done.totals,
        begun=len(done.files) - len(filled),
        filled=len(filled),
        replaced=len(done.replaced),
        files=len(done.files),
        bytes=sum(one.file.size for one in done.files),
        rewritten=sum(size for _path, size in told.before.values()),
        warnings=notes,
    )
