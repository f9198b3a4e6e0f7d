"""Plan to finish pending compactions that nobody finishes, and warn of those that stay; pure.

While a compaction is pending, cleans keep its input files, and nothing else compacts or clusters
its file groups. Its plan may be executed by any writer. ``concurrency.pending`` says whether an
apply does, and after which time. Source: BaseHoodieTableServiceClient.compact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from reconciler import units
from reconciler.arrays import Integers, to_arrow
from reconciler.hudi.files.names import BaseName, LogName
from reconciler.hudi.files.table_files import find_sizes
from reconciler.hudi.timeline.instant import Action
from reconciler.hudi.timeline.plans import CompactionOperation
from reconciler.planners.compaction_obstacles import find_file_obstacles, find_merge_obstacles
from reconciler.planners.reasons import pluralize
from reconciler.planners.recovery.failed_files import format_ms, has_no_lock
from reconciler.planners.recovery.held_back import describe_kept, measure_held_back
from reconciler.plans.decode import empty_removed_files
from reconciler.plans.groups import rewrites_from_json
from reconciler.plans.model import KeptFiles, Note, ResumeStep
from reconciler.plans.rewrites import Rewrites
from reconciler.spec.model import Concurrency, PendingServices, TableSpec
from reconciler.state.model import ForeignWrite, TableState, is_abandoned
from reconciler.state.pending_compaction import PendingCompaction

_RULE: Final = "pendingCompaction"
_REMEDY: Final = "let Hudi"


def plan_compaction_resumes(spec: TableSpec, state: TableState) -> tuple[ResumeStep, ...]:
    """Return a step for every compaction that an apply finishes, oldest first."""
    if not state.pending_compactions or has_no_lock(spec):
        return ()
    return tuple(
        _build_step(pending, because, state)
        for pending, because in _find_wanted(spec, state)
        if not find_obstacle(pending, state)
    )


def warn_of_compactions(
    spec: TableSpec, state: TableState, kept: KeptFiles | None = None
) -> tuple[Note, ...]:
    """Return a warning for each compaction that stays, or holds back a clean until it is finished.

    ``kept``: the files past retention that stay.
    """
    if not state.pending_compactions:
        return ()
    notes = []
    for pending, because in _find_wanted(spec, state):
        held = describe_kept(pending.instant, state, kept)
        if stays := _explain_stay(pending, spec, state):
            notes.append(Note(_RULE, f"{because}{held}; {stays}"))
        elif held:
            what = f"compaction {pending.instant}{held.replace(' and', '', 1)}"
            notes.append(Note(_RULE, f"{what} until it is finished"))
    return (*notes, *_warn_of_others(spec, state, kept))


def find_compaction(state: TableState, instant: str) -> PendingCompaction | None:
    """Return the pending compaction of a time; log compactions do not count."""
    return next(
        (one for one in _list_compactions(state) if one.instant == instant),
        None,
    )


def find_obstacle(pending: PendingCompaction, state: TableState) -> str:
    """Return why a compaction cannot be executed here; empty if nothing is known against it."""
    missing = explain_missing_input(pending.operations, state)
    return missing or next(_find_obstacles(pending, state), "")


def explain_missing_input(operations: Sequence[CompactionOperation], state: TableState) -> str:
    """Return that input files of a compaction do not exist; empty if all are there."""
    keys = [f"{one.partition}/{name}" for one in operations for name in _list_inputs(one)]
    lost = [key for key, size in zip(keys, _find_sizes(keys, state), strict=True) if size < 0]
    if not lost:
        return ""
    files = pluralize(len(lost), "file")
    return (
        f"{lost[0].removeprefix('/')}: is missing, although a pending compaction names it "
        f"({files} in all); restore it, or roll the compaction back"
    )


def list_merged_logs(operation: CompactionOperation) -> tuple[str, ...]:
    """Return the log files of an operation that hold rows, in merge order."""
    parsed = [log for name in operation.log_files if (log := LogName.parse(name)) is not None]
    return tuple(log.text for log in sorted(parsed, key=lambda log: log.order) if not log.is_cdc)


def build_compaction_groups(
    operations: Sequence[CompactionOperation], state: TableState, because: str
) -> Rewrites:
    """Return the slices of a plan as columns, a group each, with the bytes of existing files."""
    sizes = _sum_sizes(operations, state).tolist()
    return rewrites_from_json(
        [
            {
                "partition": operation.partition,
                "outputs": 1,
                "bytes": size,
                "because": because,
                "slices": [
                    {
                        "fileId": operation.file_id,
                        "base": operation.base_file,
                        "logs": list(list_merged_logs(operation)),
                    }
                ],
            }
            for operation, size in zip(operations, sizes, strict=True)
        ]
    )


def _find_obstacles(pending: PendingCompaction, state: TableState) -> Iterator[str]:
    yield from find_file_obstacles(state)
    for operation in filter(_names_other_groups, pending.operations):
        yield (
            f"its plan is damaged: for file group {operation.file_id} of partition "
            f"{operation.partition!r} it names files of another"
        )
    for operation in pending.operations:
        if operation.is_bootstrap:
            yield f"{operation.base_file} is a bootstrap skeleton, whose rows are outside the table"
    for rollback in state.pending_rollbacks:
        if rollback.plan is not None and rollback.plan.target == pending.instant:
            yield f"rollback {rollback.instant} of it is pending"
    yield from find_merge_obstacles(state)


def _names_other_groups(operation: CompactionOperation) -> bool:
    """Return whether an operation names a file that is not of its file group."""
    base = operation.base_file
    parsed: list[BaseName | LogName | None] = [*map(LogName.parse, operation.log_files)]
    parsed += [] if base is None else [BaseName.parse(base)]
    return any(name is None or name.file_id != operation.file_id for name in parsed)


def _list_compactions(state: TableState) -> Iterator[PendingCompaction]:
    return (one for one in state.pending_compactions if one.action is Action.COMPACTION)


def _find_wanted(spec: TableSpec, state: TableState) -> Iterator[tuple[PendingCompaction, str]]:
    """Yield the compactions that an apply finishes if it can, each with the reason.

    Those are the ones that an earlier apply has begun, and, if the spec says so, those that nobody
    else finishes.
    """
    finishes = _get_services(spec).compaction == "finish"
    abandoned = {one.instant: one for one in _find_abandoned(spec, state)}
    for pending in _list_compactions(state):
        if pending.is_begun_here:
            yield (
                pending,
                (
                    f"compaction {pending.instant} was left {pending.state.lower()} by an earlier "
                    f"apply: {_describe_hold(pending, state)}"
                ),
            )
        elif finishes and pending.instant in abandoned:
            yield pending, _describe(pending, abandoned[pending.instant], spec, state)


def _explain_stay(pending: PendingCompaction, spec: TableSpec, state: TableState) -> str:
    """Return why a compaction that would be finished stays; empty if it does not."""
    if has_no_lock(spec):
        return "without a lock it cannot be known to be left behind; configure concurrency.lock"
    if missing := explain_missing_input(pending.operations, state):
        return f"it cannot be finished here: {missing}"
    if obstacle := next(_find_obstacles(pending, state), ""):
        remedy = "" if _REMEDY in obstacle else f"; {_REMEDY} run it"
        return f"it cannot be finished here: {obstacle}{remedy}"
    return ""


def _warn_of_others(spec: TableSpec, state: TableState, kept: KeptFiles | None) -> Iterator[Note]:
    """Warn of abandoned compactions that the spec leaves, and of log compactions."""
    known = {pending.instant: pending for pending in state.pending_compactions}
    finishes = _get_services(spec).compaction == "finish"
    for abandoned in _find_abandoned(spec, state):
        pending = known[abandoned.instant]
        if pending.action is Action.LOGCOMPACTION:
            stays = "only Hudi executes log compactions; let it run this one"
        elif finishes or pending.is_begun_here:
            continue
        else:
            stays = "concurrency.pending.compaction: report leaves it"
        held = describe_kept(pending.instant, state, kept)
        yield Note(_RULE, f"{_describe(pending, abandoned, spec, state)}{held}; {stays}")


def _find_abandoned(spec: TableSpec, state: TableState) -> Iterator[ForeignWrite]:
    services = _get_services(spec)
    for compaction in state.foreign_compactions:
        if is_abandoned(compaction, state.observed_ms, services):
            yield compaction


def _get_services(spec: TableSpec) -> PendingServices:
    return (spec.concurrency or Concurrency()).pending or PendingServices()


def _build_step(pending: PendingCompaction, because: str, state: TableState) -> ResumeStep:
    text = f"{because}; apply finishes it"
    return ResumeStep(
        instant=pending.instant,
        action="compaction",
        files=empty_removed_files(),
        groups=build_compaction_groups(pending.operations, state, text),
        because=text,
    )


def _describe(
    pending: PendingCompaction, seen: ForeignWrite, spec: TableSpec, state: TableState
) -> str:
    kind = "log compaction" if pending.action is Action.LOGCOMPACTION else "compaction"
    after = units.format_duration(_get_services(spec).after)
    return (
        f"{kind} {pending.instant} of another writer was left {pending.state.lower()}: nothing of "
        f"it changed since {format_ms(seen.active_ms)}, longer than concurrency.pending.after, "
        f"{after}; {_describe_hold(pending, state)}"
    )


def _describe_hold(pending: PendingCompaction, state: TableState) -> str:
    groups = pluralize(len(pending.operations), "file group")
    files = measure_held_back(pending.instant, state, None).files
    groups += f" ({pluralize(files, 'file')})" if files else ""
    partitions = pluralize(len({one.partition for one in pending.operations}), "partition")
    return f"it keeps {groups} of {partitions} from cleans, clusterings and other compactions"


def _sum_sizes(operations: Sequence[CompactionOperation], state: TableState) -> Integers:
    """Return per operation the bytes of its existing files."""
    named = [_list_inputs(one) for one in operations]
    keys = [
        f"{operation.partition}/{name}"
        for operation, names in zip(operations, named, strict=True)
        for name in names
    ]
    sizes = np.maximum(_find_sizes(keys, state), 0)
    owners = np.repeat(np.arange(len(operations)), [len(names) for names in named])
    return np.bincount(owners, weights=sizes, minlength=len(operations)).astype(np.int64)


def _find_sizes(keys: Sequence[str], state: TableState) -> Integers:
    """Return the bytes of files by partition and name, -1 for one that does not exist."""
    return find_sizes(state.files, to_arrow(keys))


def _list_inputs(operation: CompactionOperation) -> list[str]:
    base = [operation.base_file] if operation.base_file else []
    return [*base, *list_merged_logs(operation)]
