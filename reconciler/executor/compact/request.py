"""Make the plan that a compaction requests, and that any Hudi writer may execute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.executor.compact.work import list_input_files
from reconciler.hudi.files.names import BaseName, LogName
from reconciler.hudi.timeline.compaction_plan import CompactionPlan, PlannedOperation
from reconciler.hudi.timeline.plans import CompactionOperation
from reconciler.planners.newest_slices import find_candidates
from reconciler.plans.rewrites import Rewrites
from reconciler.state.model import TableState


def list_operations(groups: Rewrites) -> tuple[CompactionOperation, ...]:
    """Return the slices of groups of one slice each as operations of a plan, in their order."""
    columns = (groups.partition, groups.file_id, groups.base, groups.logs)
    return tuple(
        CompactionOperation(
            partition=partition,
            file_id=file_id,
            base_file=base,
            log_files=tuple(logs),
            base_instant=_find_base_instant(base, logs),
        )
        for partition, file_id, base, logs in zip(
            *(column.to_pylist() for column in columns), strict=True
        )
    )


def _find_base_instant(base: str | None, logs: Sequence[str]) -> str:
    """Return the instant that began a slice: of its base file, or of its oldest log file."""
    named = BaseName.parse(base) if base is not None else LogName.parse(logs[0])
    assert named is not None, "a slice has files with Hudi's names only"
    return named.instant


def make_plan(
    operations: Sequence[CompactionOperation],
    sizes: Mapping[str, int],
    state: TableState,
    order: str,
    extra: Mapping[str, str],
) -> CompactionPlan:
    """Return the plan of operations; ``sizes``: bytes of their files by path below the table.

    ``order``: ``logBytes``, the most bytes of log files first, or ``oldest``.
    """
    planned = [_measure(operation, sizes) for operation in operations]
    if order == "logBytes":
        planned.sort(key=lambda one: -sum(one.log_bytes))
    else:
        planned.sort(key=lambda one: _find_base_instant(None, one.operation.log_files))
    return CompactionPlan(
        operations=tuple(planned),
        unscheduled_partitions=_find_unscheduled(operations, state),
        extra=extra,
    )


def _measure(operation: CompactionOperation, sizes: Mapping[str, int]) -> PlannedOperation:
    measured = [sizes[path] for path in list_input_files(operation)]
    has_base = operation.base_file is not None
    return PlannedOperation(
        operation=operation,
        base_bytes=measured[0] if has_base else None,
        log_bytes=tuple(measured[has_base:]),
    )


def _find_unscheduled(
    operations: Sequence[CompactionOperation], state: TableState
) -> tuple[str, ...]:
    """Return the partitions that have slices with log files besides those of the operations."""
    planned = {(operation.partition, operation.file_id) for operation in operations}
    slices = find_candidates(state)
    files = slices.view.files
    with_logs = sorted(set(slices.log_slice.tolist()))
    ids = files.group_id.to_pylist() if with_logs else []
    left = set()
    for number in with_logs:
        path = files.partitions[int(slices.partition[number])]
        if (path, ids[int(slices.group[number])]) not in planned:
            left.add(path)
    return tuple(sorted(left))
