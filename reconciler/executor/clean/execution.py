"""Bring a requested clean to its end: what a new clean and a resumed one have in common."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import to_arrow, to_numpy
from reconciler.errors import (
    AlreadyExistsError,
    BlockedError,
    BusyError,
    CatalogError,
    FormatError,
    LockServersError,
    PartialError,
    ReconcilerError,
    StaleError,
    StorageError,
    UnsupportedError,
)
from reconciler.executor.clean.partition_folders import Metafiles, remove_partition_folders
from reconciler.executor.clean.payloads import group_names, make_clean_metadata, split_batches
from reconciler.executor.deletion import DeletionOutcome
from reconciler.executor.fresh_plan import FreshPlan
from reconciler.executor.freshness import make_keys
from reconciler.executor.result import FileReasons, StepOutcome
from reconciler.executor.session import ApplyChange, ApplySession
from reconciler.hudi.files.table_files import TableFiles, make_name_lookup
from reconciler.hudi.load import load_properties
from reconciler.hudi.metadata.deltacommit import MetadataSync
from reconciler.hudi.timeline.clean import CleanerPlan
from reconciler.hudi.timeline.instant import Action, State
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.model import Note, RemovedFiles
from reconciler.transaction.metadata import clean_sync
from reconciler.transaction.metadata.sync import SyncRequest
from reconciler.transaction.paths import LARGEST_CALL
from reconciler.transaction.publish import find_completion
from reconciler.transaction.retry import ShouldWait
from reconciler.transaction.run import Completion, Ended, RequestedChange

#: the first table version whose inflight cleans are empty: the plan is read from requested anyway
_EMPTY_INFLIGHT_FROM: Final = 9
#: what a person can fix, so that the next apply finishes the clean
_MENDABLE: Final = (
    *(BlockedError, FormatError, UnsupportedError, StaleError),
    *(StorageError, CatalogError, LockServersError),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CleanWork:
    """A requested clean, and the part of it that runs.

    ``request``: the bytes of its requested file; ``plan``: their content. ``files`` may be removed,
    and ``gone`` (partition -> names) were removed in an earlier attempt. ``listed``: the files that
    the table had when this was decided. ``earliest``: the earliest instant to retain that the
    completed file claims.
    """

    instant: str
    plan: CleanerPlan
    request: bytes
    files: RemovedFiles
    listed: TableFiles
    delete_partitions: tuple[str, ...]
    earliest: str | None
    started_ms: int
    gone: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def action(self) -> Action:
        return Action.CLEAN


@dataclass(kw_only=True, eq=False)
class CleanExecution(ApplyChange, RequestedChange[CleanWork, StepOutcome, StepOutcome]):
    """Brings a requested clean to its end; a clean that fails is left for the next apply.

    ``removed``: metafiles of partition folders that are removed; they are added to.
    """

    session: ApplySession
    kind: Literal["clean", "resume"]
    fresh: FreshPlan | None = None
    removed: dict[str, Metafiles] = field(default_factory=dict)

    def begin(self, pending: CleanWork) -> None:
        """Write the inflight file.

        Raises BusyError when another writer executes the clean: then it is theirs to finish.
        """
        session = self.session
        is_empty = session.properties.table_version >= _EMPTY_INFLIGHT_FROM
        try:
            data = b"" if is_empty else pending.request
            session.publisher.begin(pending.instant, Action.CLEAN, data)
        except AlreadyExistsError:
            raise BusyError(
                f"another writer has begun to execute our clean {pending.instant}; plan again when "
                "it is done"
            ) from None

    def work(self, pending: CleanWork) -> StepOutcome | Ended[StepOutcome]:
        outcome = _summarize(pending, self.kind, _delete_files(self.session, pending))
        return Ended(outcome) if outcome.failed else outcome

    def settle(
        self,
        pending: CleanWork,
        result: StepOutcome,
        should_wait: ShouldWait,  # noqa: ARG002
    ) -> Completion[StepOutcome] | Ended[StepOutcome]:
        session = self.session
        timeline = session.reload_timeline()
        if find_completion(timeline, pending.instant, Action.CLEAN) is not None:
            return Ended(replace(result, how="adopted"))
        if timeline.find_file(pending.instant, Action.CLEAN, State.REQUESTED) is None:
            raise StaleError("another writer removed its requested file from the timeline")
        folders = remove_partition_folders(
            session.storage, pending.delete_partitions, session.reload_timeline, self.removed
        )

        def make_outcome(notes: tuple[Note, ...]) -> StepOutcome:
            return replace(
                result,
                partitions_removed=folders.gone,
                partitions_left=folders.left,
                warnings=(*result.warnings, *notes),
            )

        return Completion(
            timeline=timeline,
            prepare_sync=partial(_prepare_sync, pending, folders.gone),
            make_payload=lambda _properties: _encode_completed(session, pending, folders.gone),
            make_outcome=make_outcome,
        )

    def tidy(
        self, pending: CleanWork, result: StepOutcome | None, outcome: StepOutcome
    ) -> StepOutcome:
        """Compare the metadata table with the disk."""
        if result is None:
            return outcome
        with self.session.phase("check"):
            try:
                return check_listing(self.session, pending, outcome)
            except ReconcilerError as error:  # it is completed in any case
                note = Note("metadataListing", _describe_unchecked(error))
                return replace(outcome, warnings=(*outcome.warnings, note))

    def is_undone_after(self, error: BaseException) -> bool:  # noqa: ARG002
        """No clean is undone: some of its files may be deleted."""
        return False

    def abandon(self, pending: CleanWork) -> None:
        raise AssertionError(f"clean {pending.instant} stays for the next apply")

    def explain_failure(
        self, pending: CleanWork, error: BaseException, *, has_worked: bool
    ) -> StepOutcome | None:
        """Raise BusyError or PartialError for a clean that is not completed after its deletes."""
        if not has_worked:
            return None
        what = f"the files of clean {pending.instant} are deleted and it is not completed: {error}"
        if isinstance(error, BusyError):
            raise BusyError(what) from error
        if isinstance(error, _MENDABLE):
            raise PartialError(f"{what}; fix that, then run apply again to finish it") from error
        return None


def _delete_files(session: ApplySession, work: CleanWork) -> list[DeletionOutcome]:
    """Have the files deleted; raises PartialError when that stops, since some may be deleted."""
    with session.phase("delete", len(work.files)) as advance:
        try:
            outcomes = session.context.deleter.delete_files(
                session.storage.ref,
                split_batches(work.files, LARGEST_CALL),
                progress=advance,
            )
        except Exception as error:
            reason = str(error).strip().partition("\n")[0]
            if not isinstance(error, ReconcilerError):  # ours are sentences
                reason = f"{type(error).__name__}: {reason}"
            raise PartialError(
                f"deleting the files of clean {work.instant} stopped half way ({reason}); run "
                "apply again to finish it"
            ) from error
    reported = sum(done.deleted + len(done.gone) + len(done.failed) for done in outcomes)
    if reported != len(work.files):
        raise PartialError(
            f"clean {work.instant} has {len(work.files)} files to delete, and the executors "
            f"reported {reported}; run apply again to finish it"
        )
    return outcomes


def _prepare_sync(
    work: CleanWork, removed_partitions: Collection[str], request: SyncRequest
) -> MetadataSync | None:
    """Prepare the clean's update of the metadata table."""
    clean_sync.check_syncable(request.properties)
    return clean_sync.prepare_clean_sync(request, list_removed_names(work), removed_partitions)


def _encode_completed(
    session: ApplySession, work: CleanWork, removed_partitions: Collection[str]
) -> bytes:
    payload = make_clean_metadata(
        work.plan,
        instant=work.instant,
        earliest=work.earliest,
        removed=list_removed_names(work),
        removed_partitions=removed_partitions,
        took_ms=max(0, session.clock.now_ms() - work.started_ms),
    )
    return payload.encode()


def check_listing(
    session: ApplySession,
    work: CleanWork,
    outcome: StepOutcome,
    seen: Callable[[str], Collection[str]] | None = None,
) -> StepOutcome:
    """Compare the metadata table with the disk, in the partitions that this clean touched.

    ``seen``: returns the names that are in a partition since the clean; None: those that were
    listed before it and that it did not remove.
    """
    removed = list_removed_names(work)
    if seen is None:
        listed = make_name_lookup(work.listed)

        def seen(path: str) -> Collection[str]:
            return set(listed(path)).difference(removed[path])

    missing = clean_sync.find_missing_files(
        session.storage,
        load_properties(session.storage),
        session.reload_timeline(),
        removed.keys(),
        seen=seen,
        files=len(work.listed),
    )
    cleaned = {path: set(names) & set(removed[path]) for path, names in missing.items()}
    others = {path: set(names) - cleaned[path] for path, names in missing.items()}
    return replace(
        outcome,
        differences=clean_sync.describe_missing_files(cleaned),
        warnings=(*outcome.warnings, *clean_sync.describe_missing_files(others)),
    )


def _describe_unchecked(error: ReconcilerError) -> str:
    return f"the clean is completed; its metadata table could not be compared with disk: {error}"


def list_removed_names(work: CleanWork) -> dict[str, list[str]]:
    """Return the deleted names by partition; a folder that was empty has an empty list."""
    removed: dict[str, list[str]] = {path: [] for path in work.delete_partitions}
    for path, names in work.gone.items():
        removed.setdefault(path, []).extend(names)
    for path, names in group_names(work.files).items():
        removed.setdefault(path, []).extend(names)
    return removed


def _summarize(
    work: CleanWork, kind: Literal["clean", "resume"], outcomes: Sequence[DeletionOutcome]
) -> StepOutcome:
    missing = to_arrow([f"{o.partition}/{name}" for o in outcomes for name in o.gone])
    failed = [(o.partition, name, why) for o in outcomes for name, why in o.failed]
    stays = to_arrow([f"{partition}/{name}" for partition, name, _why in failed])
    absent = pc.is_in(make_keys(work.files), value_set=pa.concat_arrays([missing, stays]))
    return StepOutcome(
        kind=kind,
        how="inflight" if failed else "completed",
        instant=work.instant,
        removed=sum(outcome.deleted for outcome in outcomes),
        bytes=int(work.files.bytes[~to_numpy(absent)].sum()),
        gone=len(missing) + sum(map(len, work.gone.values())),
        failed=FileReasons.from_rows(failed),
        earliest_instant_to_retain=work.earliest,
    )
