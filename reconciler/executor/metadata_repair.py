"""Run a reviewed repair of Hudi's metadata table, and verify it at the end of an apply.

A repair has no instant of its own. Under the table's lock, partitions are taken out of the table's
properties before their files are deleted, so no reader sees a partition without its files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reconciler.errors import BusyError, ReconcilerError
from reconciler.executor.fresh_plan import FreshPlan
from reconciler.executor.outcomes import LeftRepair, MetadataOutcome
from reconciler.executor.result import StepOutcome
from reconciler.executor.session import ApplySession, LockedApplyChange
from reconciler.hudi.load import load_properties
from reconciler.hudi.metadata.table import FILES
from reconciler.planners.busy_instant import find_busy_instant
from reconciler.plans.model import MetadataStep, Note
from reconciler.transaction.metadata.live_partitions import drop_metadata_table, drop_partitions
from reconciler.transaction.retry import ShouldWait
from reconciler.transaction.run import Ended, run_change
from reconciler.verification.listing import has_moved
from reconciler.verification.verify import verify_metadata

if TYPE_CHECKING:
    from reconciler.state.metadata_differences import MetadataDifference, MetadataVerification
    from reconciler.state.model import TableState

_RULE: Final = "metadata"
_OTHERS_NOW: Final = "a plan made now would drop {}, which was not reviewed: plan again"
#: differences that the result names
_MAX_NAMED: Final = 5


def run_metadata_repair(
    session: ApplySession, step: MetadataStep, fresh: FreshPlan | None
) -> StepOutcome:
    """Drop the reviewed metadata partitions that still differ; the lock is taken here.

    ``fresh`` is a plan that was made just now, if there is one. Raises BusyError while other work
    is pending, StorageError, FormatError, and as ``ApplySession.make_fresh_plan``.
    """
    return run_change(_MetadataRepair(session=session, fresh=fresh, step=step))


@dataclass(kw_only=True, eq=False)
class _MetadataRepair(LockedApplyChange[FreshPlan, StepOutcome]):
    """A reviewed repair. It has no instant of its own and ends under the lock."""

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
        timeline = session.reload_timeline()
        busy = find_busy_instant(timeline)
        if busy is not None:
            raise BusyError(
                f"{session.name}: {busy.file_name} is pending and may rely on the metadata table "
                "as it is; run again when it is completed or was rolled back"
            )
        if has_moved(prepared.state.timeline, timeline):
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


def _select_partitions(
    step: MetadataStep, fresh: FreshPlan
) -> tuple[tuple[str, ...], tuple[LeftRepair, ...]]:
    """Return the partitions to drop, of the review and of a plan made now, and what is left."""
    now = [
        other
        for other in fresh.plan.steps
        if isinstance(other, MetadataStep) and set(other.partitions) & set(step.partitions)
    ]
    names: set[str] = set()
    left: list[LeftRepair] = []
    for other in now:
        unreviewed = sorted(set(other.partitions) - set(step.partitions))
        if unreviewed:
            left.append(LeftRepair(other.partitions, _OTHERS_NOW.format(", ".join(unreviewed))))
        else:
            names.update(other.partitions)
    return tuple(sorted(names)), tuple(left)


def _drop(session: ApplySession, names: tuple[str, ...]) -> None:
    properties = load_properties(session.storage)
    if FILES in names:
        drop_metadata_table(session.storage, properties)
    else:
        drop_partitions(session.storage, properties, names)


def verify_after_apply(session: ApplySession, before: TableState) -> Iterator[StepOutcome]:
    """Verify the metadata table after the steps of an apply, if the spec wants that.

    ``before``: the table when the apply began. A difference that was not there then is a failed
    check; others are in the plan. What cannot be verified is a warning.
    """
    if session.spec.metadata is not None and session.spec.metadata.verify == "each-apply":
        yield _verify(session, before)


def _verify(session: ApplySession, before: TableState) -> StepOutcome:
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
    known = set(before.differences) if before else set()
    return [one for one in found.differences if one not in known]


def _describe(one: MetadataDifference) -> str:
    where = "/".join(filter(None, (one.partition, one.file))) or "the whole table"
    column = f", column {one.column}" if one.column else ""
    return (
        f"{one.metadata_partition}: {where}{column}: recorded: {one.recorded}; actual: {one.actual}"
    )
