"""Plan a table afresh, and check what forbids an apply once the table was looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Mask, take_rows, to_arrow
from reconciler.errors import BusyError, StaleError
from reconciler.executor.freshness import (
    is_in,
    make_keys,
    take_files,
    update_sizes,
)
from reconciler.executor.gate import check_table_refusals, recount
from reconciler.hudi.files.table_files import find_sizes, has_files
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.instant import Instant
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.archive_step import ArchiveStep
from reconciler.plans.compact_step import CompactStep
from reconciler.plans.model import (
    INDEX_TARGETS,
    CleanStep,
    ClusterStep,
    IndexStep,
    MetadataStep,
    Note,
    OrphansStep,
    Removal,
    ResumeStep,
    RollbackStep,
    Step,
    TablePlan,
    removal_steps,
    rewritten_groups,
)
from reconciler.plans.partition_deletion import DeletePartitionStep
from reconciler.plans.refusals import refuse_apply
from reconciler.plans.savepoint_step import SavepointStep
from reconciler.spec.model import TableSpec
from reconciler.state.model import TableState
from reconciler.transaction.metadata import clean_sync

_ZINDEX: Final = INDEX_TARGETS[0]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FreshPlan:
    """The table as it is now, and the plan that the planners of the review make of it."""

    state: TableState
    plan: TablePlan


def check_refusals(
    fresh: FreshPlan,
    spec: TableSpec,
    properties: TableProperties,
    now: datetime,
    reviewed: Sequence[Step],
) -> None:
    """Raise RefusedError for what forbids all work, BusyError for what only delays it.

    ``reviewed``: the steps that are to run. A refusal of one kind of step is none of these.
    """
    state = fresh.state
    unlocked: tuple[Note, ...] = ()
    if state.metadata_partitions and _needs_lock(fresh, reviewed):
        unlocked = tuple(refuse_unlocked_writes(state.foreign_writes, spec, reviewed))
    notes = (*fresh.plan.refusals, *refuse_apply(spec, state, now), *unlocked)
    check_table_refusals(tuple(dict.fromkeys(notes)))
    clean_sync.check_syncable(properties)


def effective_plan(reviewed: TablePlan, fresh: FreshPlan) -> TablePlan:
    """Return the reviewed plan with the pending cleans that are finished first.

    Of a pending clean that the plan names, only the files that it names count; of any other, all
    do. Every file counts once, with the size that it has now. A compaction that neither the plan
    names nor an earlier apply has planned is left alone.
    """
    named = {step.instant: step for step in reviewed.steps if isinstance(step, ResumeStep)}
    cleans = [step for step in reviewed.steps if isinstance(step, CleanStep)]
    resumed: list[ResumeStep] = []
    for step in fresh.plan.steps:
        if isinstance(step, ResumeStep):
            known = named.get(step.instant)
            is_foreign = step.action == "compaction" or step.writer is not None
            if known is None and is_foreign and not is_planned_here(fresh.state, step):
                continue  # not reviewed
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
    orphans = [
        _take_present(step, fresh) for step in reviewed.steps if isinstance(step, OrphansStep)
    ]
    kinds = (
        RollbackStep
        | MetadataStep
        | SavepointStep
        | DeletePartitionStep
        | ClusterStep
        | CompactStep
        | IndexStep
    )
    others = [step for step in reviewed.steps if isinstance(step, kinds)]
    archives = [step for step in reviewed.steps if isinstance(step, ArchiveStep)]
    steps = (*resumed, *others, *sized, *orphans, *archives)
    return recount(replace(reviewed, steps=steps))


def is_planned_here(state: TableState, step: ResumeStep) -> bool:
    """Return whether a resume finishes a compaction that an apply has planned."""
    ours = {one.instant for one in state.pending_compactions if one.is_ours}
    return step.action == "compaction" and step.instant in ours


def _take_present(step: OrphansStep, fresh: FreshPlan) -> OrphansStep:
    """Return the step with the files that exist, with the size that each has now."""
    sizes = find_sizes(fresh.state.files, make_keys(step.files))
    rows = np.flatnonzero(sizes >= 0)
    return replace(step, files=replace(take_rows(step.files, rows), bytes=sizes[rows]))


def _match_files(step: Removal, *others: Removal) -> Mask:
    """Return per file of a step whether it is in one of the others."""
    matches = np.zeros(len(step.files), np.bool_)
    for other in others:
        matches |= is_in(make_keys(step.files), make_keys(other.files))
    return matches


def _match_present(step: Removal, fresh: FreshPlan) -> Mask:
    return has_files(fresh.state.files, make_keys(step.files))


def check_identity(reviewed: TablePlan, state: TableState) -> None:
    """Raise StaleError when another table has come to the path since the review.

    Such a table knows neither the newest write that the review saw nor a file group of the plan's
    files. A table that was only rolled back, cleaned or archived since knows one of the two.
    """
    last = reviewed.observed.last_completed if reviewed.observed else None
    if last is None or last in {instant.requested for instant in state.timeline.instants}:
        return
    names = [step.files.name for step in removal_steps(reviewed.steps)]
    ids = [groups.file_id for groups in rewritten_groups(reviewed.steps)]
    named = pc.extract_regex(
        pa.concat_arrays([to_arrow([]), *names]), r"^\.?(?P<id>[^_./]+)_"
    ).field("id")
    groups = pa.concat_arrays([named, *ids])
    if len(groups) and not pc.any(pc.is_in(groups, value_set=state.files.group_id)).as_py():
        raise StaleError(
            f"{state.location} is not the table that was reviewed: its timeline does not know "
            f"{last}, the newest write that the review saw; plan again"
        )


def _needs_lock(fresh: FreshPlan, reviewed: Sequence[Step]) -> bool:
    """Return True unless an apply only builds reconciler's own index, which no other tool writes.

    What was left pending is finished first.
    """
    state = fresh.state
    if state.pending_cleans or any(clustering.is_ours for clustering in state.pending_clusterings):
        return True
    return has_shared_steps(reviewed)


def has_shared_steps(reviewed: Sequence[Step]) -> bool:
    """Return whether a step changes more than reconciler's own index."""
    return any(not isinstance(step, IndexStep) or step.targets != (_ZINDEX,) for step in reviewed)


def refuse_unlocked_writes(
    writes: Iterable[Instant], spec: TableSpec, reviewed: Sequence[Step]
) -> Iterator[Note]:
    """Refuse a pending write that could write the live metadata table while we do, without a lock.

    A write that is rolled back first could not: if its rollback fails, the apply ends there.
    """
    lock = spec.concurrency.lock if spec.concurrency else None
    undone = {step.instant for step in reviewed if isinstance(step, RollbackStep)}
    write = next((write for write in writes if write.requested not in undone), None)
    if lock is not None and lock.provider == "none" and write is not None:
        yield Note(
            "lock",
            f"{write.action} {write.requested} is pending, the metadata table is live, and "
            "without a lock both would write it; configure concurrency.lock or wait",
        )


def check_pending_cleans(fresh: FreshPlan) -> None:
    """Raise BusyError while another clean is pending: it was not there when the apply began."""
    for clean in fresh.state.pending_cleans:
        raise BusyError(
            f"{fresh.plan.name}: clean {clean.instant} is {clean.state.lower()}; two cleans must "
            "not run at once, apply again when it is done"
        )
