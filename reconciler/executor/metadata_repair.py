"""Run a reviewed repair of Hudi's metadata table, and verify it at the end of an apply.

A repair has no instant of its own. Under the table's lock, partitions are taken out of the table's
properties before their files are deleted, so no reader sees a partition without its files. Those
that are built anew are listed there last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from reconciler.errors import BusyError, NotFoundError, ReconcilerError
from reconciler.executor.fresh_plan import FreshPlan
from reconciler.executor.metadata_records import read_new_partitions
from reconciler.executor.outcomes import LeftRepair, MetadataOutcome
from reconciler.executor.result import StepOutcome
from reconciler.executor.session import ApplySession, LockedApplyChange
from reconciler.hudi.load import load_properties
from reconciler.hudi.metadata.table import FILES
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.busy_instant import find_busy_instant
from reconciler.planners.metadata.planner import LET_HUDI, NOT_DONE
from reconciler.plans.model import MetadataStep, Note
from reconciler.transaction.metadata.live_partitions import (
    drop_metadata_table,
    drop_partitions,
    list_unfinished,
)
from reconciler.transaction.metadata.rebuild import (
    NewPartitions,
    give_up_rebuilds,
    list_partitions,
    replace_partitions,
)
from reconciler.transaction.retry import ShouldWait
from reconciler.transaction.run import Ended, run_change
from reconciler.verification.checked_table import CheckedTable
from reconciler.verification.listing import has_moved
from reconciler.verification.verify import verify_metadata

if TYPE_CHECKING:
    from reconciler.hudi.timeline.active import Timeline
    from reconciler.state.metadata_differences import MetadataDifference, MetadataVerification
    from reconciler.state.model import TableState

_RULE: Final = "metadata"
_OTHERS_NOW: Final = "a plan made now would {} {}, which was not reviewed: plan again"
_OTHER_NOW: Final = "a plan made now would {} it instead: {}; plan again"
#: differences that the result names
_MAX_NAMED: Final = 5


def run_metadata_repair(
    session: ApplySession, step: MetadataStep, fresh: FreshPlan | None
) -> StepOutcome:
    """Drop or rebuild the reviewed metadata partitions that still differ; the lock is taken here.

    ``fresh`` is a plan that was made just now, if there is one. Raises BusyError while other work
    is pending, StorageError, FormatError, and as ``ApplySession.make_fresh_plan``.
    """
    if step.change == "rebuild":
        return run_change(_MetadataRebuild(session=session, fresh=fresh, step=step))
    return run_change(_MetadataDrop(session=session, fresh=fresh, step=step))


@dataclass(kw_only=True, eq=False)
class _MetadataDrop(LockedApplyChange[FreshPlan, StepOutcome]):
    """A reviewed drop. It has no instant of its own and ends under the lock."""

    activity = "the metadata table was being repaired"
    request_phase = "metadata"
    refusable = "metadata"

    step: MetadataStep

    def prepare(self) -> FreshPlan:
        return self.take_fresh_plan()

    def request(
        self,
        prepared: FreshPlan,
        should_wait: ShouldWait,  # noqa: ARG002
    ) -> Ended[StepOutcome] | None:
        """Drop the partitions; None if the timeline has moved since they were compared."""
        session = self.session
        if _load_quiet_timeline(session, prepared) is None:
            return None
        names, left = _select_partitions(self.step, prepared)
        if names:
            session.lock.confirm()
            _drop(session, names)
        return Ended(
            StepOutcome(
                kind="metadata",
                how="completed" if names else "nothing",
                repaired=MetadataOutcome(dropped=names, left=left),
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _NewContent:
    """What is to be written, read from the table of ``fresh``; ``new``: None for nothing."""

    fresh: FreshPlan
    new: NewPartitions | None
    left: tuple[LeftRepair, ...]


@dataclass(kw_only=True, eq=False)
class _MetadataRebuild(LockedApplyChange[_NewContent, StepOutcome]):
    """A reviewed rebuild: it reads the table without the lock, and writes under it."""

    activity = "the metadata table was being rebuilt"
    request_phase = "metadata"
    refusable = "metadata"

    step: MetadataStep

    def prepare(self) -> _NewContent:
        fresh = self.take_fresh_plan()
        names, left = _select_partitions(self.step, fresh)
        if not names:
            return _NewContent(fresh=fresh, new=None, left=left)
        session = self.session
        table = CheckedTable.open(session.storage, fresh.state, 1.0)
        try:
            new = read_new_partitions(table, names, session.publisher.zone)
        except NotFoundError as gone:
            raise BusyError(
                f"{session.name}: {gone.path} has vanished while it was read, because the table "
                "is being written; run again"
            ) from gone
        return _NewContent(fresh=fresh, new=new, left=left)

    def request(
        self,
        prepared: _NewContent,
        should_wait: ShouldWait,  # noqa: ARG002
    ) -> Ended[StepOutcome] | None:
        """Write the partitions; None if the timeline has moved before anything was changed."""
        session = self.session
        timeline = _load_quiet_timeline(session, prepared.fresh)
        if timeline is None:
            return None
        new = prepared.new
        if new is None:
            return Ended(_describe_rebuild(prepared, (), ()))
        given_up = () if FILES in new.groups else give_up_rebuilds(session, new.obstacles)
        if not new.groups:
            return Ended(_describe_rebuild(prepared, (), given_up))
        names = replace_partitions(session, timeline, new)
        if _load_quiet_timeline(session, prepared.fresh) is None:
            raise BusyError(
                f"{session.name}: another writer has written without the lock while "
                f"{' and '.join(names)} were built, so they are not listed, and nobody reads them; "
                "plan again"
            )
        list_partitions(session, names, new)
        return Ended(_describe_rebuild(prepared, names, given_up))


def _describe_rebuild(
    done: _NewContent, names: tuple[str, ...], given_up: tuple[str, ...]
) -> StepOutcome:
    """Return the outcome; with the whole table, what cannot be built is dropped."""
    obstacles = {} if done.new is None else done.new.obstacles
    dropped = tuple(sorted(obstacles)) if FILES in names else given_up
    kept = {name: why for name, why in sorted(obstacles.items()) if name not in dropped}
    left = [LeftRepair(names, f"{why}; {LET_HUDI}") for why, names in _group_by_reason(kept)]
    return StepOutcome(
        kind="metadata",
        how="completed" if names or dropped else "nothing",
        repaired=MetadataOutcome(
            dropped=dropped, rebuilt=tuple(sorted(names)), left=(*done.left, *left)
        ),
        warnings=tuple(_explain_drops({name: obstacles[name] for name in dropped})),
    )


def _explain_drops(obstacles: Mapping[str, str]) -> Iterator[Note]:
    for why, names in _group_by_reason(obstacles):
        clause = "was dropped, because it" if len(names) == 1 else "were dropped, because they"
        yield Note(_RULE, f"{' and '.join(names)} {clause} cannot be rebuilt: {why}")


def _group_by_reason(obstacles: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each reason with its partitions."""
    for why in dict.fromkeys(obstacles.values()):
        yield why, tuple(name for name, reason in obstacles.items() if reason == why)


def _load_quiet_timeline(session: ApplySession, fresh: FreshPlan) -> Timeline | None:
    """Return the timeline, None if it has moved. Raises BusyError while other work is pending."""
    timeline = session.reload_timeline()
    busy = find_busy_instant(timeline)
    if busy is not None:
        raise BusyError(
            f"{session.name}: {busy.file_name} is pending and may rely on the metadata table "
            "as it is; run again when it is completed or was rolled back"
        )
    return None if has_moved(fresh.state.timeline, timeline) else timeline


def _select_partitions(
    step: MetadataStep, fresh: FreshPlan
) -> tuple[tuple[str, ...], tuple[LeftRepair, ...]]:
    """Return the partitions to repair, of the review and of a plan made now, and what is left."""
    now = [
        other
        for other in fresh.plan.steps
        if isinstance(other, MetadataStep) and set(other.partitions) & set(step.partitions)
    ]
    names: set[str] = set()
    left: list[LeftRepair] = []
    for other in now:
        unreviewed = sorted(set(other.partitions) - set(step.partitions))
        if other.change != step.change:
            left.append(
                LeftRepair(other.partitions, _OTHER_NOW.format(other.change, other.because))
            )
        elif unreviewed:
            left.append(
                LeftRepair(other.partitions, _OTHERS_NOW.format(step.change, ", ".join(unreviewed)))
            )
        else:
            names.update(other.partitions)
    if not now:
        left += _explain_no_repair(step, fresh)
    return tuple(sorted(names)), tuple(left)


def _explain_no_repair(step: MetadataStep, fresh: FreshPlan) -> list[LeftRepair]:
    """Return why a plan made now repairs nothing, if something still differs."""
    found = fresh.state.metadata_verification
    if found is None or not found.count_differences(step.partitions):
        return []
    reasons = [note.because for note in fresh.plan.warnings if note.rule == _RULE]
    return [LeftRepair(step.partitions, because) for because in reasons if NOT_DONE in because]


def _drop(session: ApplySession, names: tuple[str, ...]) -> None:
    properties = load_properties(session.storage)
    if FILES in names:
        drop_metadata_table(session.storage, properties)
        return
    is_rebuilding = session.spec.metadata is not None and session.spec.metadata.repair == "rebuild"
    unfinished = list_unfinished(properties).difference(names) if is_rebuilding else ()
    drop_partitions(session.storage, properties, names, rebuilt=unfinished)


def verify_after_apply(session: ApplySession, before: TableState) -> StepOutcome:
    """Verify the metadata table after the steps of an apply.

    ``before``: the table when the apply began. A difference that was not there then is a failed
    check; others are in the plan. What cannot be verified is a warning.
    """
    with session.phase("check"):
        try:
            found = verify_metadata(
                session.storage, session.spec, observed_ms=session.context.clock.now_ms()
            )
        except ReconcilerError as error:
            note = Note(_RULE, f"the metadata table could not be verified: {error}")
            return StepOutcome(
                kind="metadata", how="nothing", repaired=MetadataOutcome(), warnings=(note,)
            )
    new = _find_new(found, before.metadata_verification)
    notes = [Note(_RULE, _describe(one)) for one in new[:_MAX_NAMED]]
    if len(new) > _MAX_NAMED:
        more = len(new) - _MAX_NAMED
        notes.append(Note(_RULE, f"{more} more differences; reconciler verify names them"))
    compared = sum(check.compared for check in found.checks)
    return StepOutcome(
        kind="metadata",
        how="completed",
        repaired=MetadataOutcome(compared=compared),
        differences=tuple(notes),
    )


def _find_new(
    found: MetadataVerification, before: MetadataVerification | None
) -> list[MetadataDifference]:
    """Return the differences that an apply made; one that was there may name other files now."""
    known = {_identify(one) for one in before.differences} if before else set()
    return [one for one in found.differences if _identify(one) not in known]


def _identify(one: MetadataDifference) -> MetadataDifference:
    return replace(one, actual="")


def _describe(one: MetadataDifference) -> str:
    where = "/".join(filter(None, (one.partition, one.file))) or "the whole table"
    column = f", column {one.column}" if one.column else ""
    return (
        f"{one.metadata_partition}: {where}{column}: recorded: {one.recorded}; actual: {one.actual}"
    )
