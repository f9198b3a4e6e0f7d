"""From a requested clean to a completed one: what a fresh clean and a resumed one share."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import to_numpy_bools, to_string_array
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
from reconciler.executor.clean.partition_folders import remove_partition_folders
from reconciler.executor.clean.payloads import group_names, make_clean_metadata, split_batches
from reconciler.executor.deletion import DeletionOutcome
from reconciler.executor.freshness import make_keys
from reconciler.executor.result import FileReasons, StepOutcome
from reconciler.executor.session import ApplySession
from reconciler.hudi.load import load_properties
from reconciler.hudi.timeline.clean import CleanerPlan
from reconciler.hudi.timeline.instant import Action, State
from reconciler.plans.model import Note, RemovedFiles
from reconciler.transaction.metadata import clean_sync
from reconciler.transaction.paths import LARGEST_CALL
from reconciler.transaction.publish import find_completion

#: the first table version whose inflight cleans are empty: the plan is read from requested anyway
_EMPTY_INFLIGHT_FROM: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CleanWork:
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


def run_with_heartbeat(
    session: ApplySession, instant: str, work: Callable[[], StepOutcome]
) -> StepOutcome:
    """Beat while a pending instant is worked on; say so when the work ends before it does."""
    heartbeat = session.make_heartbeat(instant)
    try:
        with session.heartbeats.repeat(heartbeat.beat):
            heartbeat.beat()
            outcome = work()
    except BaseException:  # an interrupted process may live on, and may come back to it
        with contextlib.suppress(ReconcilerError):
            if any(
                i.requested == instant and not i.is_completed
                for i in session.reload_timeline().instants
            ):
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


def begin_clean(session: ApplySession, work: CleanWork) -> None:
    """Write the inflight file of a clean just requested.

    Raises BusyError when another writer has begun to execute it: then it is theirs to finish.
    """
    empty = session.properties.table_version >= _EMPTY_INFLIGHT_FROM
    try:
        session.publisher.begin(work.instant, Action.CLEAN, b"" if empty else work.request)
    except AlreadyExistsError:
        raise BusyError(
            f"another writer has begun to execute our clean {work.instant}; plan again when it is "
            "done"
        ) from None


def finish_clean(
    session: ApplySession, work: CleanWork, kind: Literal["clean", "resume"]
) -> StepOutcome:
    """Delete, tell the metadata table, complete. The heartbeat beats and the clean is inflight.

    Raises BusyError when the lock can't be had for completing, PartialError when something else
    stops us after files are gone: in both cases the clean stays inflight for the next apply.
    """
    outcomes = _delete_files(session, work)
    outcome = _summarize(work, kind, outcomes)
    if outcome.failed:
        return outcome
    try:
        with session.phase("complete"), session.hold_lock():
            outcome = _complete(session, work, outcome)
    except BusyError as error:
        raise BusyError(
            f"the files of clean {work.instant} are deleted and it is not completed: {error}"
        ) from error
    except (BlockedError, FormatError, UnsupportedError, StaleError, StorageError) as error:
        raise PartialError(
            f"the files of clean {work.instant} are deleted and it is not completed: {error}; "
            "once that is mended, run apply again to finish it"
        ) from error
    with session.phase("check"):
        try:
            return check_listing(session, work, outcome)
        except ReconcilerError as error:  # it is completed all the same
            return replace(outcome, warnings=(Note("metadataListing", _describe_unchecked(error)),))


def _delete_files(session: ApplySession, work: CleanWork) -> list[DeletionOutcome]:
    """Hand the files to the executor; whatever it dies of, some of them may be gone."""
    with session.phase("delete", len(work.files)) as advance:
        try:
            outcomes = session.context.deleter.delete_files(
                session.storage.ref,
                split_batches(work.files, LARGEST_CALL),
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


def _complete(session: ApplySession, work: CleanWork, outcome: StepOutcome) -> StepOutcome:
    """Under the lock: the last look, folders, the metadata table, the completed file."""
    timeline = session.reload_timeline()
    if find_completion(timeline, work.instant, Action.CLEAN) is not None:
        return replace(outcome, how="adopted")
    if timeline.find_file(work.instant, Action.CLEAN, State.REQUESTED) is None:
        raise StaleError("its requested file was removed from the timeline by another writer")
    folders = remove_partition_folders(
        session.storage, work.delete_partitions, session.reload_timeline
    )
    removed = list_removed_names(work)
    properties = load_properties(session.storage)
    clean_sync.check_syncable(properties)
    sync = clean_sync.prepare_clean_sync(
        session.storage,
        properties,
        timeline,
        instant=work.instant,
        completed=session.publisher.choose_time(
            timeline, clean_sync.find_newest_time(session.storage, properties, timeline)
        ),
        cleaned=clean_sync.CleanedFiles(files=removed, partitions=folders.gone),
    )
    session.lock.confirm()
    clean_sync.apply_sync(session.storage, sync)
    session.lock.confirm()
    payload = make_clean_metadata(
        work.plan,
        instant=work.instant,
        earliest=work.earliest,
        removed=removed,
        removed_partitions=folders.gone,
        took_ms=max(0, session.context.clock.now_ms() - work.started_ms),
    )
    session.publisher.complete(work.instant, Action.CLEAN, payload.encode())
    return replace(outcome, partitions_removed=folders.gone, partitions_left=folders.left)


def check_listing(session: ApplySession, work: CleanWork, outcome: StepOutcome) -> StepOutcome:
    """Compare the metadata table's listing with the disk, in the partitions this clean touched."""
    removed = list_removed_names(work)
    found = clean_sync.find_missing_files(
        session.storage, load_properties(session.storage), session.reload_timeline(), removed.keys()
    )
    ours = {path: sorted(set(names) & set(removed[path])) for path, names in found.items()}
    others = {path: sorted(set(names) - set(removed[path])) for path, names in found.items()}
    return replace(
        outcome,
        differences=clean_sync.describe_missing_files(
            {path: names for path, names in ours.items() if names}
        ),
        warnings=clean_sync.describe_missing_files(
            {path: names for path, names in others.items() if names}
        ),
    )


def _describe_unchecked(error: ReconcilerError) -> str:
    return f"the clean is completed; its metadata table could not be compared with disk: {error}"


def list_removed_names(work: CleanWork) -> dict[str, list[str]]:
    """The names that are gone now by partition, with an empty list for a mere folder."""
    found: dict[str, list[str]] = {path: [] for path in work.delete_partitions}
    for path, names in work.gone.items():
        found.setdefault(path, []).extend(names)
    for path, names in group_names(work.files).items():
        found.setdefault(path, []).extend(names)
    return found


def _summarize(
    work: CleanWork, kind: Literal["clean", "resume"], outcomes: Sequence[DeletionOutcome]
) -> StepOutcome:
    gone = to_string_array([f"{o.partition}/{name}" for o in outcomes for name in o.gone])
    failed = sorted((o.partition, name, why) for o in outcomes for name, why in o.failed)
    stays = to_string_array([f"{partition}/{name}" for partition, name, _why in failed])
    absent = pc.is_in(make_keys(work.files), value_set=pa.concat_arrays([gone, stays]))
    return StepOutcome(
        kind=kind,
        how="inflight" if failed else "completed",
        instant=work.instant,
        removed=sum(outcome.deleted for outcome in outcomes),
        bytes=int(work.files.bytes[~to_numpy_bools(absent)].sum()),
        gone=len(gone) + sum(map(len, work.gone.values())),
        failed=_make_reasons(failed) if failed else None,
        earliest_instant_to_retain=work.earliest,
    )


def _make_reasons(failed: Sequence[tuple[str, str, str]]) -> FileReasons:
    partition, name, because = zip(*failed, strict=True)
    return FileReasons(
        partition=to_string_array(partition).dictionary_encode(),
        name=to_string_array(name),
        because=to_string_array(because).dictionary_encode(),
    )
