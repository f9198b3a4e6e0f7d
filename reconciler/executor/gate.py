"""What stops an apply before it touches anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import to_string_array
from reconciler.errors import BlockedError, BusyError, StaleError
from reconciler.executor.freshness import (
    is_in,
    make_keys,
    take_files,
    update_sizes,
)
from reconciler.hudi.files.table_files import make_present_keys
from reconciler.hudi.table.properties import TableProperties
from reconciler.plans.guardrails import evaluate_policies
from reconciler.plans.model import (
    INDEX_TARGETS,
    CleanStep,
    ClusterStep,
    Impact,
    IndexStep,
    Note,
    Removal,
    ResumeStep,
    RollbackStep,
    Step,
    TablePlan,
    removal_steps,
    rewritten_groups,
)
from reconciler.plans.refusals import refuse_apply
from reconciler.spec.model import TableSpec
from reconciler.state.model import TableState
from reconciler.transaction.metadata import clean_sync

_ZINDEX: Final = INDEX_TARGETS[0]


class RefusedError(BlockedError):
    """Refusals of one table, each with its rule."""

    def __init__(self, notes: tuple[Note, ...]) -> None:
        super().__init__("; ".join(note.because for note in notes))
        self.notes = notes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FreshPlan:
    """The table as it is now and the plan that follows from it, by the planner of the review."""

    state: TableState
    plan: TablePlan


def check_refusals(
    fresh: FreshPlan,
    spec: TableSpec,
    properties: TableProperties,
    now: datetime,
    reviewed: Sequence[Step],
) -> None:
    """Raises RefusedError for what forbids the work, BusyError for what only delays it.

    ``reviewed``: the steps that are to run.
    """
    unlocked = _find_unlocked_writes(fresh, spec, reviewed) if _needs_lock(fresh, reviewed) else ()
    notes = (*fresh.plan.refusals, *refuse_apply(spec, fresh.state, now), *unlocked)
    if notes:
        raise RefusedError(tuple(dict.fromkeys(notes)))
    clean_sync.check_syncable(properties)


def check_policies(plan: TablePlan, spec: TableSpec, now: datetime) -> tuple[Note, ...]:
    """What policies only warn of; raises RefusedError for what they forbid."""
    found = evaluate_policies(plan, spec, now)
    if found.refusals:
        raise RefusedError(found.refusals)
    return found.warnings


def effective_plan(reviewed: TablePlan, fresh: FreshPlan) -> TablePlan:
    """The reviewed plan with the pending cleans that are finished first, named in it or not.

    Of a clean that it names only what it names of it, and every file once. Files count as large as
    they are, whatever the plan says of them.
    """
    named = {step.instant: step for step in reviewed.steps if isinstance(step, ResumeStep)}
    cleans = [step for step in reviewed.steps if isinstance(step, CleanStep)]
    resumed: list[ResumeStep] = []
    for step in fresh.plan.steps:
        if isinstance(step, ResumeStep):
            known = named.get(step.instant)
            rows = (
                np.ones(len(step.files), np.bool_) if known is None else _match_files(step, known)
            )
            resumed.append(replace(step, files=take_files(step.files, rows)))
    rest = [
        replace(
            step,
            files=take_files(
                step.files, ~_match_files(step, *resumed) & _match_present(step, fresh)
            ),
        )
        for step in cleans
    ]
    left = [step for step in rest if len(step.files) or step.delete_partitions]
    sized = (replace(step, files=update_sizes(step.files, fresh.state.files)) for step in left)
    kinds = RollbackStep | ClusterStep | IndexStep
    others = [step for step in reviewed.steps if isinstance(step, kinds)]
    return recount(replace(reviewed, steps=(*resumed, *others, *sized)))


def recount(plan: TablePlan) -> TablePlan:
    """The plan with the sums of its own steps, which an edited plan may tell wrong."""
    impact = Impact(
        files_removed=sum(len(step.files) for step in removal_steps(plan.steps)),
        bytes_removed=sum(int(step.files.bytes.sum()) for step in removal_steps(plan.steps)),
        bytes_rewritten=sum(int(groups.bytes.sum()) for groups in rewritten_groups(plan.steps)),
    )
    return replace(plan, impact=impact)


def _match_files(step: Removal, *others: Removal) -> NDArray[np.bool_]:
    """Per file of a step whether it is one of others'."""
    found = np.zeros(len(step.files), np.bool_)
    for other in others:
        found |= is_in(make_keys(step.files), make_keys(other.files))
    return found


def _match_present(step: Removal, fresh: FreshPlan) -> NDArray[np.bool_]:
    return is_in(make_keys(step.files), make_present_keys(fresh.state.files))


def check_identity(reviewed: TablePlan, state: TableState) -> None:
    """Raises StaleError when another table has come to the path since the review.

    It does not know the newest write that the review saw, nor any file group of the plan's files. A
    table that was only rolled back, cleaned or archived since knows one of the two.
    """
    last = reviewed.observed.last_completed if reviewed.observed else None
    if last is None or last in {instant.requested for instant in state.timeline.instants}:
        return
    names = [step.files.name for step in removal_steps(reviewed.steps)]
    ids = [groups.file_id for groups in rewritten_groups(reviewed.steps)]
    named = pc.extract_regex(
        pa.concat_arrays([to_string_array([]), *names]), r"^\.?(?P<id>[^_./]+)_"
    ).field("id")
    groups = pa.concat_arrays([named, *ids])
    if len(groups) and not pc.any(pc.is_in(groups, value_set=state.files.group_id)).as_py():
        raise StaleError(
            f"{state.location} is not the table that was reviewed: its timeline does not know "
            f"{last}, the newest write that the review saw; plan again"
        )


def _needs_lock(fresh: FreshPlan, reviewed: Sequence[Step]) -> bool:
    """Whether an apply has more to do than to build an index of ours, of which nobody else knows.

    What was left pending is finished first.
    """
    state = fresh.state
    if state.pending_cleans or any(one.is_ours for one in state.pending_clusterings):
        return True
    return any(not isinstance(step, IndexStep) or step.targets != (_ZINDEX,) for step in reviewed)


def _find_unlocked_writes(
    fresh: FreshPlan, spec: TableSpec, reviewed: Sequence[Step]
) -> Iterator[Note]:
    """Without a lock a pending write and we could write the metadata table at once.

    A write that is rolled back first does not: else the apply ends there.
    """
    state = fresh.state
    lock = spec.concurrency.lock if spec.concurrency else None
    undone = {step.instant for step in reviewed if isinstance(step, RollbackStep)}
    writes = [one for one in state.foreign_writes if one.requested not in undone]
    if lock is not None and lock.provider == "none" and state.metadata_partitions and writes:
        yield Note(
            "lock",
            f"{writes[0].action} {writes[0].requested} is pending, the metadata table is live, and "
            "without a lock both would write it; configure concurrency.lock or wait",
        )


def check_pending_cleans(fresh: FreshPlan) -> None:
    """Raises BusyError while another clean is on its way: it was not there when we began."""
    for clean in fresh.state.pending_cleans:
        raise BusyError(
            f"{fresh.plan.name}: clean {clean.instant} is {clean.state.lower()}; two cleans must "
            "not run at once, apply again when it is done"
        )
