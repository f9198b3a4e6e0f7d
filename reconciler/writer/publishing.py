"""From new files to a completed write: the last look, the metadata table, the completed file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.basefile.writer import WrittenFile
from reconciler.errors import AlreadyExistsError, BusyError, ReconcilerError, StorageError
from reconciler.hudi.instant import State
from reconciler.hudi.load import load_properties
from reconciler.hudi.names import PARTITION_METAFILE, BaseName
from reconciler.hudi.write_commit import WriteCommit
from reconciler.plan.model import Note
from reconciler.state.columns import declared_columns
from reconciler.state.observe import observe
from reconciler.transaction import metadata
from reconciler.transaction.conflicts import Claim, Footprint, conflicts
from reconciler.transaction.footprints import Known, footprints, foreign_pending, rolled_back_ms
from reconciler.transaction.hold import Hold
from reconciler.transaction.instants import instant_ms
from reconciler.transaction.lock import NoLock
from reconciler.transaction.marked import is_of, marked_files, remove_files, remove_markers
from reconciler.transaction.metadata_commit import Told, plan_commit_sync
from reconciler.transaction.publish import completion_of
from reconciler.transaction.undo import drop_partitions
from reconciler.writer.asked import Outcome, Way
from reconciler.writer.bucket import NewBase
from reconciler.writer.facts import Facts
from reconciler.writer.request import Totals
from reconciler.writer.streams import batches_of, has_batch

_SCHEMA: Final = "schema"
_UNDOING: Final = ("rollback", "restore")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Written:
    """A write whose files are there. ``known``: the writes that it has seen.

    ``replaced``: indexes into the groups of ``facts`` of those that are gone with it; ``extra``:
    of the instant.
    """

    way: Way
    instant: str
    facts: Facts
    known: Known
    files: Sequence[NewBase]
    totals: Totals
    replaced: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    extra: Mapping[str, str] = field(default_factory=dict)


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
    _check_alone(hold, done, found)
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


def _check_alone(hold: Hold, done: Written, found: Sequence[Footprint]) -> None:
    """Raises BusyError where another write that this one did not see went to the same groups.

    A pending write of rows to one of them finds this one when it completes, and gives up; a pending
    clustering would lose it, and what undoes others may undo what this one has read. Of two writes
    that look for keys and find them new, one does not see the other's: so no other may have written
    to a partition into which this one brings new keys, or of which it replaces all there is.
    """
    undoing = [one for one in found if one.action in _UNDOING and not one.is_completed]
    against = [one for one in found if one.is_completed or _rewrites(one)]
    claims = [*_claims(done)]
    hit = conflicts(claims, against)
    if undoing:
        raise _gives_way(f"{undoing[0]} is pending, and may undo what this write has read")
    if hit:
        first = min(hit)
        raise _gives_way(f"partition {claims[first].partition!r}: {hit[first]}")
    came = [one for one in found if one.is_completed]
    if came and (done.way.operation.looks_up or done.way.replaces):
        _check_partitions(done, came)
    if came:
        _check_table(hold, done)


def _check_partitions(done: Written, came: Sequence[Footprint]) -> None:
    partitions = {file.partition for file in done.files if file.counts.inserts}
    groups = done.facts.standing.groups
    partitions |= {groups.partitions[code] for code in groups.partition[done.replaced].tolist()}
    for one in came:
        both = partitions & one.groups.keys() if one.is_known else partitions
        if done.way is Way.INSERT_OVERWRITE_TABLE:
            both = both | one.groups.keys()
        if both:
            first = min(both)
            raise _gives_way(
                f"partition {first!r}: {one} has written to it meanwhile, perhaps the same new keys"
            )


def _check_table(hold: Hold, done: Written) -> None:
    """Others have completed writes meanwhile: of other columns, or of the same batch."""
    state = observe(hold.storage, None, observed_ms=hold.clock.now_ms(), history=False)
    declared = declared_columns(hold.storage, hold.properties, state)
    if declared is not None and declared.text != done.facts.declared:
        raise _gives_way("another write has changed the columns of the table meanwhile")
    for stream, batch in batches_of(done.extra).items():
        if has_batch(hold.storage, stream, batch):
            raise _gives_way(f"another run has written batch {batch} of stream {stream} meanwhile")


def _gives_way(what: str) -> BusyError:
    return BusyError(f"{what}; nothing of this write is in the table, run it again")


def _rewrites(footprint: Footprint) -> bool:
    """Whether it is a pending write that takes over file groups."""
    return not footprint.is_completed and footprint.action in ("replacecommit", "clustering")


def _claims(done: Written) -> Iterator[Claim]:
    """The file groups that this write follows or replaces, by partition."""
    groups = done.facts.standing.groups
    ids: dict[str, set[str]] = {}
    for file in done.files:
        if file.before is not None:
            ids.setdefault(file.partition, set()).add(_group_of(file.before))
    for group in done.replaced.tolist():
        path = groups.partitions[groups.partition[group]]
        ids.setdefault(path, set()).add(groups.file_id[group].as_py())
    for path, some in sorted(ids.items()):
        yield Claim(partition=path, ids=frozenset(some), is_open=False)


def _group_of(name: str) -> str:
    found = BaseName.parse(name)
    assert found is not None, "a base file of the table"
    return found.file_id


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
    drop_partitions(hold, properties, sync.drops)
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
