"""Refuse tables before Spark starts, by what their properties and timeline alone tell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from reconciler.errors import ReconcilerError
from reconciler.executor.fresh_plan import has_shared_steps, refuse_unlocked_writes
from reconciler.executor.gate import AdmittedPlan, AdmittedTable, RefusedError, RefusedTable
from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.timeline.instant import WRITES, Action
from reconciler.plans.model import Note
from reconciler.transaction.session import StorageOpener

#: pending instants of these actions may be clusterings of ours
_CLUSTERINGS: Final = frozenset({Action.CLUSTERING, Action.REPLACECOMMIT})


def refuse_early(admitted: AdmittedPlan, open_storage: StorageOpener) -> AdmittedPlan:
    """Return the plan without tables that a look at their timeline already refuses.

    The others are checked again when their turn comes, and so is what cannot be read here.
    """

    def check(table: AdmittedTable | RefusedTable) -> AdmittedTable | RefusedTable:
        if isinstance(table, RefusedTable) or not table.may_work:
            return table
        notes = tuple(_find_refusals(table, open_storage))
        return (
            RefusedTable(plan=table.plan, error=RefusedError((*table.refusals, *notes)))
            if notes
            else table
        )

    return replace(admitted, tables=tuple(map(check, admitted.tables)))


def _find_refusals(table: AdmittedTable, open_storage: StorageOpener) -> Iterator[Note]:
    spec, steps = table.spec, table.allowed.steps
    lock = spec.concurrency.lock if spec.concurrency else None
    if lock is None or lock.provider != "none" or not has_shared_steps(steps):
        return
    try:
        storage = open_storage(table.plan.path, spec.storage_options)
        properties = load_properties(storage)
        timeline = load_timeline(storage, properties)
    except ReconcilerError:
        return
    if properties.metadata_partitions:
        yield from refuse_unlocked_writes(timeline.pending(WRITES - _CLUSTERINGS), spec, steps)
