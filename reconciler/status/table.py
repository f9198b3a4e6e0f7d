"""Compute the status of a table from its state and its plan; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import Final

import numpy as np
import pyarrow.compute as pc

from reconciler.arrays import Mask, sum_by_code, to_arrow, to_numpy
from reconciler.hudi.files.table_files import FileKind
from reconciler.hudi.timeline.instant import COMMITS, SECOND_DIGITS, parse_instant
from reconciler.layout.sizing.record_size import PastWrite
from reconciler.planners.reader_window import find_reader_window
from reconciler.planners.recovery.held_back import measure_held_back
from reconciler.planners.savepoint_costs import find_costs
from reconciler.plans.model import Observed, TablePlan
from reconciler.plans.refusals import find_timeline_zone
from reconciler.prices import Prices, round_amount
from reconciler.spec.model import Concurrency, TableSpec
from reconciler.state.current_files import mark_read_files
from reconciler.state.extra_metadata import PLAN_DIGEST
from reconciler.state.model import Savepoint, TableState
from reconciler.status.compaction import compaction_status
from reconciler.status.conditions import (
    TableCondition,
    describe_stale,
    format_age,
    healthy_condition,
    is_unmanaged,
    leftover_reasons,
    synced_condition,
    unknown_layout_reasons,
)
from reconciler.status.index import index_status
from reconciler.status.layout import layout_status
from reconciler.status.logs import log_status
from reconciler.status.model import (
    CleanStatus,
    LastApply,
    LockStatus,
    PendingStatus,
    SavepointStatus,
    SizeClass,
    StorageCosts,
    SyncState,
    TableStatus,
    TimelineStatus,
)
from reconciler.status.orphans import orphan_status
from reconciler.status.writers import writers_status

#: keys of the extra metadata of reconciler's instants, besides the digest of the plan
_SPEC_DIGEST: Final = "reconciler.spec.digest"
_SPEC_COMMIT: Final = "reconciler.spec.commit"
_ACTOR: Final = "reconciler.actor"

#: refusals without a usable plan
_UNPLANNED_RULES: Final = frozenset({"pendingRestore", "clock", "zone"})
_MIB: Final = 1024**2
#: upper ends of the size classes, bytes; the last class has none
SIZE_CLASSES: Final = (1 * _MIB, 16 * _MIB, 64 * _MIB, 128 * _MIB, 256 * _MIB, 1024 * _MIB)


def table_status(
    spec: TableSpec,
    state: TableState | None,
    plan: TablePlan,
    *,
    lock: LockStatus | None = None,
    writes: Sequence[PastWrite] = (),
) -> TableStatus:
    """Return the status of a table; ``state`` is None if the table could not be read.

    ``writes``: its newest writes, as far as they were read.
    """
    if state is None or plan.error is not None or plan.observed is None:
        return _unreadable_status(spec, plan)
    is_read = mark_read_files(state.view)
    sync, because = _sync_state(spec, plan)
    concurrency = spec.concurrency or Concurrency()
    pending = _pending_instants(state, plan, concurrency)
    sizes = _size_classes(state, is_read)
    zone = find_timeline_zone(spec, state)
    age = partial(_instant_age, zone=zone, now_ms=state.observed_ms)
    index = index_status(state)
    missed = () if index is None else index.missed_by_hudi
    earliest = plan.impact.earliest_readable_before
    lock = _mark_stale(lock, concurrency)
    health = _health_condition(plan, pending, lock, concurrency.stale_after)
    return TableStatus(
        name=plan.name,
        path=plan.path,
        sync=sync,
        conditions=(synced_condition(spec, plan), health),
        because=because,
        refusals=plan.refusals,
        notes=plan.warnings,
        lock=lock,
        table_type=state.table_type,
        table_version=state.table_version,
        timezone=spec.timezone or state.timezone,
        last_completed=plan.observed.last_completed,
        earliest_readable=earliest,
        earliest_readable_age_seconds=age(earliest),
        files=plan.observed.files,
        bytes=plan.observed.bytes,
        bytes_reclaimable=_reclaimable_bytes(plan),
        small_files=plan.observed.small_files,
        small_file_share=_small_file_share(plan.observed, sizes),
        sizes=sizes,
        active_commits=len(state.timeline.commits),
        oldest_pending_age_seconds=max((p.age_seconds for p in pending), default=None),
        pending=pending,
        savepoints=_savepoints(spec, state, plan, is_read),
        last_clean=_find_last_clean(state, also_ours=True),
        last_foreign_clean=_find_last_clean(state, also_ours=False),
        last_apply=_find_last_apply(state, zone),
        layout=layout_status(spec, state, plan, age=age, pending=pending),
        index=index,
        writers=writers_status(spec, state, writes, missed_by_hudi=missed),
        orphans=orphan_status(spec, state, plan),
        timeline=_timeline_status(spec, state),
        logs=log_status(state, age),
        compaction=compaction_status(spec, state, plan),
        costs=_storage_costs(spec.prices, plan),
        window_end=plan.observed.window_end,
    )


def _storage_costs(prices: Prices | None, plan: TablePlan) -> StorageCosts | None:
    """Return what the files of the table cost a month; None without a price."""
    size = 0 if plan.observed is None else plan.observed.bytes
    per_month = None if prices is None else prices.price_storage(size)
    if prices is None or per_month is None:
        return None
    freed = _reclaimable_bytes(plan)
    amount = None if freed is None else prices.price_storage(freed)
    return StorageCosts(
        currency=prices.currency,
        per_month=round_amount(per_month),
        reclaimable_per_month=None if amount is None else round_amount(amount),
    )


def _timeline_status(spec: TableSpec, state: TableState) -> TimelineStatus | None:
    if spec.timeline is None or state.archival is None:
        return None
    from reconciler.planners.archive.planner import plan_archival  # noqa: PLC0415 (few declare it)

    decision = plan_archival(spec.timeline, spec.retention, state)
    instants = decision.step.instants if decision.step else ()
    return TimelineStatus(
        keep=spec.timeline.keep,
        keep_most=spec.timeline.most,
        commits=decision.commits,
        archivable=sum(one.action in COMMITS for one in instants),
        bound=decision.bound,
    )


def _unreadable_status(spec: TableSpec, plan: TablePlan) -> TableStatus:
    """The status of a table that could not be read, or whose state is unusable."""
    return TableStatus(
        name=plan.name,
        path=plan.path,
        sync="blocked" if plan.error is None else "error",
        error=plan.error,
        conditions=(
            synced_condition(spec, plan),
            healthy_condition(plan, stuck=(), stale_lock=None),
        ),
        because=tuple(note.because for note in plan.refusals),
        refusals=plan.refusals,
    )


def _health_condition(
    plan: TablePlan, pending: tuple[PendingStatus, ...], lock: LockStatus | None, limit: int
) -> TableCondition:
    stuck = [
        f"{one.action} {one.instant} is {one.state.lower()} for {format_age(one.age_seconds)}, "
        f"{describe_stale(limit)}{f', and {one.holds_back}' if one.holds_back else ''}"
        for one in pending
        if one.is_stuck
    ]
    stale = None
    if lock is not None and lock.is_stale:
        why = describe_stale(limit) if lock.age_seconds > limit else "its holder is gone"
        stale = f"{lock.path} is held by {lock.held_by}: {why}"
    return healthy_condition(plan, stuck=stuck, stale_lock=stale)


def _reclaimable_bytes(plan: TablePlan) -> int | None:
    is_planned = not any(note.rule in _UNPLANNED_RULES for note in plan.refusals)
    return plan.impact.bytes_removed if is_planned else None


def _mark_stale(lock: LockStatus | None, concurrency: Concurrency) -> LockStatus | None:
    if lock is None or lock.age_seconds <= concurrency.stale_after:
        return lock
    return replace(lock, is_stale=True)


def _small_file_share(observed: Observed, sizes: Sequence[SizeClass]) -> float | None:
    files = sum(size.files for size in sizes)
    return round(observed.small_files / files, 6) if files else None


def _parse_instant(instant: str, zone: tzinfo | None) -> datetime | None:
    """Return an instant as a time; None if its zone is unknown, or if it is not a time.

    >>> from datetime import UTC
    >>> str(_parse_instant("20240101210000123", UTC)), _parse_instant("00000000000000", UTC)
    ('2024-01-01 21:00:00.123000+00:00', None)
    """
    time = parse_instant(instant) if instant.isdecimal() else None
    if zone is None or time is None:
        return None
    return time.replace(tzinfo=zone, microsecond=int(f"{instant[SECOND_DIGITS:]:0<6}"[:6]))


def _instant_age(instant: str | None, zone: tzinfo | None, now_ms: int) -> int | None:
    """Return the seconds since an instant, 0 if the writers' clock is ahead."""
    moment = None if instant is None else _parse_instant(instant, zone)
    return None if moment is None else max(0, now_ms // 1000 - int(moment.timestamp()))


def _find_last_apply(state: TableState, zone: tzinfo | None) -> LastApply | None:
    past = state.clustering_facts.clusterings if state.clustering_facts is not None else ()
    done = [(clean.instant, clean.extra) for clean in state.cleans if not clean.is_blank]
    done += [(clustering.instant, clustering.extra) for clustering in past]
    applies = [(instant, extra) for instant, extra in done if PLAN_DIGEST in extra]
    if not applies:
        return None
    instant, extra = max(applies, key=lambda apply: apply[0])
    moment = _parse_instant(instant, zone)
    return LastApply(
        instant=instant,
        at=None if moment is None else moment.isoformat(timespec="milliseconds"),
        plan_digest=extra[PLAN_DIGEST],
        spec_digest=extra.get(_SPEC_DIGEST),
        spec_commit=extra.get(_SPEC_COMMIT),
        actor=extra.get(_ACTOR),
    )


def _sync_state(spec: TableSpec, plan: TablePlan) -> tuple[SyncState, tuple[str, ...]]:
    drift = tuple(f"{finding.field}: {finding.because}" for finding in plan.drift)
    left = leftover_reasons(plan)
    if plan.refusals:
        sync: SyncState = "blocked" if plan.is_blocked else "blocked in part"
        left = () if plan.is_blocked else left
        return sync, (*(note.because for note in plan.refusals), *left, *drift)
    if is_unmanaged(spec) and not left:
        return "unmanaged", ("the spec has no retention block",)
    if drift or plan.steps:
        return "drifted", (*left, *drift)
    if unknown := unknown_layout_reasons(plan):
        return "unknown", unknown
    return "in sync", ()


def _size_classes(state: TableState, is_read: Mask) -> tuple[SizeClass, ...]:
    size = state.files.size[is_read & (state.files.kind == FileKind.BASE)]
    row = np.searchsorted(np.array(SIZE_CLASSES), size, side="right")
    count = np.bincount(row, minlength=len(SIZE_CLASSES) + 1)
    total = sum_by_code(row, size, len(SIZE_CLASSES) + 1)
    rows = zip((*SIZE_CLASSES, None), count.tolist(), total.tolist(), strict=True)
    return tuple(SizeClass(below=below, files=files, bytes=b) for below, files, b in rows)


def _pending_instants(
    state: TableState, plan: TablePlan, concurrency: Concurrency
) -> tuple[PendingStatus, ...]:
    entries = [entry for entry in state.timeline.entries if not entry.instant.is_completed]
    ages = [max(0, state.observed_ms - entry.modified_ms) // 1000 for entry in entries]
    return tuple(
        PendingStatus(
            instant=entry.instant.requested,
            action=entry.instant.action.value,
            state=entry.instant.state.value,
            age_seconds=age,
            is_stuck=age > concurrency.stale_after,
            holds_back=measure_held_back(entry.instant.requested, state, plan.kept).text or None
            if age > concurrency.stale_after
            else None,
        )
        for entry, age in zip(entries, ages, strict=True)
    )


def _savepoints(
    spec: TableSpec, state: TableState, plan: TablePlan, is_read: Mask
) -> tuple[SavepointStatus, ...]:
    """Return the savepoints, with what each alone keeps if the table can be planned."""
    if not state.savepoints:
        return ()
    costs: Sequence[Mask | None] = [None] * len(state.savepoints)
    if spec.retention is not None and _reclaimable_bytes(plan) is not None:
        now = datetime.fromtimestamp(state.observed_ms / 1000, UTC)
        costs = find_costs(spec, state, now, find_reader_window(spec, state, now))
    return tuple(
        _savepoint_status(one, state, is_read, is_freed)
        for one, is_freed in zip(state.savepoints, costs, strict=True)
    )


def _savepoint_status(
    savepoint: Savepoint, state: TableState, is_read: Mask, is_freed: Mask | None
) -> SavepointStatus:
    made_ms, declared = savepoint.made_ms, savepoint.declared
    is_named = to_numpy(pc.is_in(state.files.name, value_set=to_arrow(sorted(savepoint.files))))
    is_pinned = is_named & ~is_read
    return SavepointStatus(
        instant=savepoint.instant,
        is_completed=savepoint.completed,
        files=int(is_named.sum()),
        bytes=int(state.files.size[is_named].sum()),
        pinned_files=int(is_pinned.sum()),
        pinned_bytes=int(state.files.size[is_pinned].sum()),
        name=None if declared is None else declared.name,
        made_by=savepoint.made_by or None,
        comment=savepoint.comment or None,
        age_seconds=None if made_ms is None else max(0, state.observed_ms - made_ms) // 1000,
        freed_files=None if is_freed is None else int(is_freed.sum()),
        freed_bytes=None if is_freed is None else int(state.files.size[is_freed].sum()),
    )


def _find_last_clean(state: TableState, *, also_ours: bool) -> CleanStatus | None:
    for clean in sorted(state.cleans, key=lambda clean: clean.instant, reverse=True):
        is_ours = PLAN_DIGEST in clean.extra
        if clean.is_blank or (is_ours and not also_ours):
            continue
        start = clean.earliest_instant_to_retain.strip() or None
        commits = None
        if start is not None:
            times = (i.requested for i in state.timeline.commits)
            commits = sum(start <= time <= clean.instant for time in times)
        return CleanStatus(
            instant=clean.instant,
            policy=clean.policy,
            earliest_instant_to_retain=start,
            commits=commits,
            is_ours=is_ours,
        )
    return None
