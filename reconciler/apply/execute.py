"""From a requested clean to a completed one: what a fresh clean and a resumed one share."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.apply.executor import Outcome
from reconciler.apply.freshness import keys
from reconciler.apply.partitions import remove_partitions
from reconciler.apply.payloads import batches_of, completed_payload, names_by_partition
from reconciler.apply.result import Rows, StepOutcome
from reconciler.apply.table import Table
from reconciler.errors import (
    AlreadyExistsError,
    BlockedError,
    BusyError,
    FormatError,
    PartialError,
    ReconcilerError,
    StaleError,
    StorageError,
    UnsupportedError,
)
from reconciler.hudi.arrow import flags, strings
from reconciler.hudi.clean import CleanerPlan
from reconciler.hudi.instant import Action, State
from reconciler.hudi.load import load_properties
from reconciler.plan.model import Note, RemovedFiles
from reconciler.transaction import metadata
from reconciler.transaction.paths import LARGEST_CALL
from reconciler.transaction.publish import completion_of

#: the first table version whose inflight cleans are empty: the plan is read from requested anyway
_EMPTY_INFLIGHT_FROM: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Work:
    """A requested clean and what of it runs.

    ``request`` are the bytes of its requested file, ``plan`` what they say. ``files`` may go, and
    ``gone`` (partition -> names) went in an earlier attempt; ``earliest`` is what the completed
    file claims.
    """

    instant: str
    plan: CleanerPlan
    request: bytes
    files: RemovedFiles
    delete_partitions: tuple[str, ...]
    earliest: str | None
    started_ms: int
    gone: Mapping[str, Sequence[str]] = field(default_factory=dict)


def with_heartbeat(table: Table, instant: str, carry_out: Callable[[], StepOutcome]) -> StepOutcome:
    """Beat while a pending instant is worked on; say so when the work ends before it does."""
    heartbeat = table.heartbeat(instant)
    try:
        with table.pulse.beating(heartbeat.beat):
            heartbeat.beat()
            outcome = carry_out()
    except BaseException:  # an interrupted process may live on, and may come back to it
        with contextlib.suppress(ReconcilerError):
            if any(i.requested == instant and not i.is_completed for i in table.reread().instants):
                heartbeat.end()
            else:
                heartbeat.remove()
        raise
    with contextlib.suppress(ReconcilerError):  # the clean is what it is; the next apply tidies up
        if outcome.how == "inflight":
            heartbeat.end()
        else:
            heartbeat.remove()
    return outcome


def begin(table: Table, work: Work) -> None:
    """Write the inflight file of a clean just requested.

    Raises BusyError when another writer has begun to execute it: then it is theirs to finish.
    """
    empty = table.properties.table_version >= _EMPTY_INFLIGHT_FROM
    try:
        table.publisher.start(work.instant, Action.CLEAN, b"" if empty else work.request)
    except AlreadyExistsError:
        raise BusyError(
            f"another writer has begun to execute our clean {work.instant}; plan again when it is "
            "done"
        ) from None


def finish(table: Table, work: Work, kind: Literal["clean", "resume"]) -> StepOutcome:
    """Delete, tell the metadata table, complete. The heartbeat beats and the clean is inflight.

    Raises BusyError when the lock can't be had for completing, PartialError when something else
    stops us after files are gone: in both cases the clean stays inflight for the next apply.
    """
    outcomes = _delete(table, work)
    outcome = _tally(work, kind, outcomes)
    if outcome.failed:
        return outcome
    try:
        with table.phase("complete"), table.locked():
            outcome = _complete(table, work, outcome)
    except BusyError as error:
        raise BusyError(
            f"the files of clean {work.instant} are deleted and it is not completed: {error}"
        ) from error
    except (BlockedError, FormatError, UnsupportedError, StaleError, StorageError) as error:
        raise PartialError(
            f"the files of clean {work.instant} are deleted and it is not completed: {error}; "
            "once that is mended, run apply again to finish it"
        ) from error
    with table.phase("check"):
        try:
            return checked(table, work, outcome)
        except ReconcilerError as error:  # it is completed all the same
            return replace(outcome, warnings=(Note("metadataListing", _unchecked(error)),))


def _delete(table: Table, work: Work) -> list[Outcome]:
    """Hand the files to the executor; whatever it dies of, some of them may be gone."""
    with table.phase("delete", len(work.files)) as advance:
        try:
            outcomes = table.tools.executor.delete_files(
                table.storage.ref,
                batches_of(work.files, LARGEST_CALL),
                progress=advance,
            )
        except Exception as error:
            said = str(error).strip().partition("\n")[0]
            if not isinstance(error, ReconcilerError):  # ours are sentences
                said = f"{type(error).__name__}: {said}"
            raise PartialError(
                f"deleting the files of clean {work.instant} stopped half way ({said}); "
                "run apply again to go on"
            ) from error
    told = sum(done.deleted + len(done.gone) + len(done.failed) for done in outcomes)
    if told != len(work.files):
        raise PartialError(
            f"of the {len(work.files)} files of clean {work.instant} the executor has told of "
            f"{told}; run apply again to go on"
        )
    return outcomes


def _complete(table: Table, work: Work, outcome: StepOutcome) -> StepOutcome:
    """Under the lock: the last look, folders, the metadata table, the completed file."""
    timeline = table.reread()
    if completion_of(timeline, work.instant, Action.CLEAN) is not None:
        return replace(outcome, how="adopted")
    if timeline.file(work.instant, Action.CLEAN, State.REQUESTED) is None:
        raise StaleError("its requested file was removed from the timeline by another writer")
    folders = remove_partitions(table.storage, work.delete_partitions, table.reread)
    removed = removed_names(work)
    properties = load_properties(table.storage)
    metadata.check_syncable(properties)
    sync = metadata.plan_sync(
        table.storage,
        properties,
        timeline,
        instant=work.instant,
        completed=table.publisher.new_time(
            timeline, metadata.newest_time(table.storage, properties, timeline)
        ),
        removal=metadata.Removal(files=removed, partitions=folders.gone),
    )
    table.lock.confirm()
    metadata.write_sync(table.storage, sync)
    table.lock.confirm()
    payload = completed_payload(
        work.plan,
        instant=work.instant,
        earliest=work.earliest,
        removed=removed,
        removed_partitions=folders.gone,
        took_ms=max(0, table.tools.clock.now_ms() - work.started_ms),
    )
    table.publisher.complete(work.instant, Action.CLEAN, payload.encode())
    return replace(outcome, partitions_removed=folders.gone, partitions_left=folders.left)


def checked(table: Table, work: Work, outcome: StepOutcome) -> StepOutcome:
    """Compare the metadata table's listing with the disk, in the partitions this clean touched."""
    removed = removed_names(work)
    found = metadata.ghosts(
        table.storage, load_properties(table.storage), table.reread(), removed.keys()
    )
    ours = {path: sorted(set(names) & set(removed[path])) for path, names in found.items()}
    others = {path: sorted(set(names) - set(removed[path])) for path, names in found.items()}
    return replace(
        outcome,
        differences=metadata.ghost_notes({path: names for path, names in ours.items() if names}),
        warnings=metadata.ghost_notes({path: names for path, names in others.items() if names}),
    )


def _unchecked(error: ReconcilerError) -> str:
    return f"the clean is completed; its metadata table could not be compared with disk: {error}"


def removed_names(work: Work) -> dict[str, list[str]]:
    """The names that are gone now by partition, with an empty list for a mere folder."""
    found: dict[str, list[str]] = {path: [] for path in work.delete_partitions}
    for path, names in work.gone.items():
        found.setdefault(path, []).extend(names)
    for path, names in names_by_partition(work.files).items():
        found.setdefault(path, []).extend(names)
    return found


def _tally(
    work: Work, kind: Literal["clean", "resume"], outcomes: Sequence[Outcome]
) -> StepOutcome:
    gone = strings([f"{o.partition}/{name}" for o in outcomes for name in o.gone])
    failed = sorted((o.partition, name, why) for o in outcomes for name, why in o.failed)
    stays = strings([f"{partition}/{name}" for partition, name, _why in failed])
    absent = pc.is_in(keys(work.files), value_set=pa.concat_arrays([gone, stays]))
    return StepOutcome(
        kind=kind,
        how="inflight" if failed else "completed",
        instant=work.instant,
        removed=sum(outcome.deleted for outcome in outcomes),
        bytes=int(work.files.bytes[~flags(absent)].sum()),
        gone=len(gone) + sum(map(len, work.gone.values())),
        failed=_rows(failed) if failed else None,
        earliest_instant_to_retain=work.earliest,
    )


def _rows(failed: Sequence[tuple[str, str, str]]) -> Rows:
    partition, name, because = zip(*failed, strict=True)
    return Rows(
        partition=strings(partition).dictionary_encode(),
        name=strings(name),
        because=strings(because).dictionary_encode(),
    )
