"""Plan the rollback of other writers' failed writes, and finish pending rollbacks; pure.

``retention.failedWrites`` decides: LAZY plans a step for every pending write whose writer counts as
dead, and EAGER and NEVER only report it. Compactions and clusterings are never rolled back here.
Source: BaseHoodieTableServiceClient.getInstantsToRollback, MarkerBasedRollbackStrategy,
ListingBasedRollbackStrategy.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from reconciler import units
from reconciler.hudi.files.names import BaseName, LogName
from reconciler.hudi.files.table_files import FileKind, TableFiles
from reconciler.hudi.files.view import LOGS_BY_COMPLETION, find_group_codes
from reconciler.hudi.timeline.instant import COMMITS, Action, Instant
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.reasons import pluralize
from reconciler.planners.recovery.failed_files import (
    describe_rollback,
    find_clustering_rollbacks,
    format_ms,
    has_no_lock,
    list_failed_files,
)
from reconciler.planners.recovery.held_back import measure_held_back
from reconciler.plans.model import (
    KeptFiles,
    LogAppend,
    Note,
    RollbackStep,
)
from reconciler.spec.model import Concurrency, TableSpec
from reconciler.state.model import (
    ForeignWrite,
    PendingRollback,
    TableState,
    find_heartbeat_timeout,
)

_RULE = "failedWrite"

#: partition, file id and base instant
Slice = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedWrites:
    """The failed writes of a table, newest first, as Hudi rolls them back.

    ``rollbacks``: pending rollbacks that are finished. ``writes``: dead writes without a rollback.
    ``waiting``: reasons, by instant, why a failed write or a rollback cannot be touched.
    """

    rollbacks: tuple[PendingRollback, ...] = ()
    writes: tuple[ForeignWrite, ...] = ()
    waiting: tuple[tuple[str, str], ...] = ()


def plan_failed_writes(spec: TableSpec, state: TableState) -> tuple[RollbackStep, ...]:
    """Return a step for every failed write that may be rolled back, the newest first."""
    if not _is_lazy(spec) or has_no_lock(spec):
        return ()
    failed = find_failed_writes(spec, state)
    steps = [finish_rollback(rollback, state) for rollback in failed.rollbacks]
    steps += [_roll_back(write, spec, state) for write in failed.writes]
    return tuple(sorted(steps, key=lambda step: step.instant, reverse=True))


def warn_of_failed_writes(
    spec: TableSpec, state: TableState, kept: KeptFiles | None
) -> tuple[Note, ...]:
    """Return a warning for each failed write that stays, or that holds back a clean until it goes.

    ``kept``: the files past retention that stay.
    """
    if spec.retention is None or spec.retention.failed_writes is None:
        return ()
    failed = find_failed_writes(spec, state)
    notes = [Note(_RULE, because) for _instant, because in failed.waiting]
    stays = _explain_stay(spec)
    for write in failed.writes:
        held = _describe_held(write.instant, spec, state, kept)
        if stays is not None:
            notes.append(Note(_RULE, f"{_describe_write(write, spec)}{held}; {stays}"))
        elif held:
            what = f"{write.action} {write.instant} of another writer"
            notes.append(
                Note(_RULE, f"{what}{held.replace(' and', '', 1)} until it is rolled back")
            )
    if stays is not None:
        notes += [
            Note(_RULE, f"{describe_rollback(rollback)}; {stays}") for rollback in failed.rollbacks
        ]
    return tuple(notes)


def find_failed_writes(spec: TableSpec, state: TableState) -> FailedWrites:
    """Sort the pending writes of other writers, and pending rollbacks, by what may become of them.

    A rollback whose target completed is left: to finish it would take rows from readers.
    """
    limits = spec.concurrency or Concurrency()
    now_ms, waiting = state.observed_ms, []
    rollbacks: list[PendingRollback] = []
    targets = set()
    of_clusterings = find_clustering_rollbacks(spec, state)
    for rollback in state.pending_rollbacks:
        if rollback in of_clusterings:
            continue
        if rollback.plan is not None:
            targets.add(rollback.plan.target)
        problem = _find_obstacle(rollback, state)
        if rollback.is_dead(now_ms, limits) and problem is not None:
            waiting.append((rollback.instant, f"{describe_rollback(rollback)}: {problem}"))
        elif problem is None and rollback.is_dead(now_ms, limits):
            rollbacks.append(rollback)
    writes = []
    for write in state.failed_writes:
        if write.instant in targets or not write.is_dead(now_ms, limits):
            continue
        if write.problem is not None and _is_lazy(spec):
            because = f"{_describe_write(write, spec)}; it stays, because {write.problem}"
            waiting.append((write.instant, because))
        else:
            writes.append(write)
    return FailedWrites(
        rollbacks=tuple(reversed(rollbacks)), writes=tuple(reversed(writes)), waiting=tuple(waiting)
    )


def find_log_appends(write: ForeignWrite, state: TableState) -> tuple[LogAppend, ...]:
    """Return the slices of version 6 that share log files with a write, sorted.

    Markers name log files of the write. The workload profile names slices that it meant to change;
    a command block without rows to cancel does no harm. Slices without log files need none.
    """
    if state.table_version >= LOGS_BY_COMPLETION or not state.is_merge_on_read:
        return ()
    marked: dict[Slice, set[str]] = {}
    for partition, name in write.marked_logs:
        parsed = LogName.parse(name) or BaseName.parse(name)  # before 0.9 it named the base file
        if parsed is not None and parsed.instant != write.instant:
            marked.setdefault((partition, parsed.file_id, parsed.instant), set()).add(name)
    slices = sorted({*marked, *write.updated_slices})
    existing = _list_logs(slices, state.files)
    appends = []
    for key in slices:
        logs = existing.get(key, ())
        known = tuple(name for name in logs if name in marked.get(key, ()))
        if logs and (known or key in write.updated_slices or _has_base_marker(marked.get(key))):
            partition, file_id, base = key
            appends.append(
                LogAppend(
                    partition=partition, file_id=file_id, base_instant=base, logs=known or logs
                )
            )
    return tuple(appends)


def _has_base_marker(names: Iterable[str] | None) -> bool:
    return any(not name.startswith(".") for name in names or ())


def _list_logs(slices: list[Slice], files: TableFiles) -> dict[Slice, tuple[str, ...]]:
    """Return the existing log files of slices, in the order of their names."""
    if not slices or not len(files):
        return {}
    codes = find_group_codes(files, [(path, file_id) for path, file_id, _base in slices])
    known = {int(code): key for code, key in zip(codes, slices, strict=True) if code >= 0}
    rows = np.flatnonzero((files.kind == FileKind.LOG) & np.isin(files.group, sorted(known)))
    wanted = set(slices)
    found: dict[Slice, list[str]] = {}
    for row in rows.tolist():
        path, file_id, _base = known[int(files.group[row])]
        key = (path, file_id, files.instants[files.instant[row]])
        if key in wanted:
            found.setdefault(key, []).append(files.name[row].as_py())
    return {key: tuple(sorted(names)) for key, names in found.items()}


def _roll_back(write: ForeignWrite, spec: TableSpec, state: TableState) -> RollbackStep:
    files, appends = list_failed_files(write.instant, state), find_log_appends(write, state)
    return RollbackStep(
        instant=write.instant,
        action=write.action.value,
        files=files,
        writer="foreign",
        appends=appends or None,
        because=f"{_describe_write(write, spec)}; apply rolls it back"
        + _describe_work(len(files), appends),
    )


def finish_rollback(rollback: PendingRollback, state: TableState) -> RollbackStep:
    """Return the step that finishes a pending rollback, with what its write left."""
    plan = rollback.plan
    assert plan is not None, "a rollback without a plan is not finished"
    asked = {
        (request.partition, request.file_id, request.base_instant): request.log_blocks
        for request in plan.requests
        if request.log_blocks
    }
    existing = _list_logs(sorted(asked), state.files)
    appends = tuple(
        LogAppend(
            partition=partition,
            file_id=file_id,
            base_instant=base,
            logs=tuple(name for name in logs if name in asked[partition, file_id, base]) or logs,
        )
        for (partition, file_id, base), logs in sorted(existing.items())
    )
    files = list_failed_files(plan.target, state)
    return RollbackStep(
        instant=plan.target,
        action=plan.action,
        files=files,
        writer="foreign",
        rollback=rollback.instant,
        appends=appends or None,
        because=f"{describe_rollback(rollback)}; apply finishes it"
        + _describe_work(len(files), appends),
    )


def _find_obstacle(rollback: PendingRollback, state: TableState) -> str | None:
    """Return why a pending rollback cannot be finished, None if it can."""
    plan = rollback.plan
    if plan is None:
        return f"{rollback.problem}; finish or remove it with Hudi"
    if plan.action not in {action.value for action in COMMITS}:
        return f"it undoes a {plan.action}; finish it with Hudi"
    if any(clustering.instant == plan.target for clustering in state.pending_clusterings):
        return "it undoes a clustering; finish it with Hudi"
    if any(i.requested == plan.target and _is_done_write(i) for i in state.timeline.instants):
        return "it undoes a completed write, whose rows readers see; finish it with Hudi"
    return None


def _is_done_write(instant: Instant) -> bool:
    return instant.is_completed and instant.action is not Action.SAVEPOINT


def _is_lazy(spec: TableSpec) -> bool:
    return spec.retention is not None and spec.retention.failed_writes == "LAZY"


def _explain_stay(spec: TableSpec) -> str | None:
    """Return why failed writes stay, None if they are rolled back."""
    policy = spec.retention.failed_writes if spec.retention else None
    if policy == "EAGER":
        return "with retention.failedWrites: EAGER the next write of Hudi rolls it back"
    if policy == "NEVER":
        return (
            "retention.failedWrites: NEVER leaves it; roll it back with Hudi, or declare LAZY, if "
            "its writer will not come back"
        )
    if has_no_lock(spec):
        return (
            "without a lock it cannot be known to be left behind; configure concurrency.lock to "
            "have it rolled back"
        )
    return None


def _describe_write(write: ForeignWrite, spec: TableSpec) -> str:
    what = f"{write.action} {write.instant} of another writer was left {write.state.lower()}"
    limits = spec.concurrency or Concurrency()
    if write.beat_ms is not None:
        timeout = units.format_duration(find_heartbeat_timeout(limits))
        return (
            f"{what}: its last heartbeat was at {format_ms(write.beat_ms)}, and a writer counts "
            f"as dead after {timeout} without one"
        )
    return (
        f"{what}: it has no heartbeat and changed nothing since {format_ms(write.active_ms)}, "
        f"longer than concurrency.staleAfter, {units.format_duration(limits.stale_after)}"
    )


def _describe_work(files: int, appends: tuple[LogAppend, ...]) -> str:
    deletes = f" and deletes {pluralize(files, 'file')} that no reader has seen" if files else ""
    if not appends:
        return deletes
    comma = "," if deletes else ""
    slices = pluralize(len(appends), "file slice")
    return f"{deletes}{comma} and cancels its rows in the log files of {slices}"


def _describe_held(instant: str, spec: TableSpec, state: TableState, kept: KeptFiles | None) -> str:
    """Return what a pending write keeps a clean from removing, and clusterings from rewriting."""
    held = measure_held_back(instant, state, kept)
    parts = [f"the removal of {held.kept_text}"] if held.kept else []
    if held.groups and spec.rewriting is not None and not spec.rewriting.when.always:
        parts.append(f"the clustering of {held.group_text}")
    return f" and holds back {' and '.join(parts)}" if parts else ""
