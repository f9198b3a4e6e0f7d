"""How a table is, for people who run it: in sync or not, what hangs, what is pinned; pure.

Everything here is computed from a TableState and the plan made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.hudi.arrow import flags, strings
from reconciler.hudi.files import FileKind
from reconciler.plan.model import Note, ResumeStep, TablePlan
from reconciler.planners.resume import PLAN_DIGEST
from reconciler.planners.slices import view_of
from reconciler.spec.model import Concurrency, TableSpec
from reconciler.state.model import Savepoint, TableState

Sync = Literal["in sync", "drifted", "blocked", "unmanaged", "error"]

_MIB: Final = 1024**2
#: upper ends of the size classes, bytes; the last class has none
SIZE_CLASSES: Final = (1 * _MIB, 16 * _MIB, 64 * _MIB, 128 * _MIB, 256 * _MIB, 1024 * _MIB)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingStatus:
    """A requested or inflight instant; ``is_stuck`` when pending longer than staleAfter."""

    instant: str
    action: str
    state: str
    age_seconds: int
    is_stuck: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointStatus:
    """A savepoint. ``pinned_*``: of its files, those that no newest file slice has any more."""

    instant: str
    is_completed: bool
    files: int
    bytes: int
    pinned_files: int
    pinned_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeClass:
    """Base files of newest slices below so many bytes (None: any) and in no class before."""

    below: int | None
    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanStatus:
    """What the last clean of the active timeline really kept.

    ``commits``: completed commits from the earliest instant it retained to itself, None when it
    retained by another measure. ``is_ours``: an apply of this tool made it.
    """

    instant: str
    policy: str | None
    earliest_instant_to_retain: str | None
    commits: int | None
    is_ours: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LockStatus:
    """The table's lock while somebody has it: who, as people say it, and since the last beat."""

    path: str
    held_by: str
    age_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatus:
    """One table. What is below ``because`` is None or empty where ``error`` is set.

    ``because``: why it is not in sync, a sentence each. ``notes``: the plan's warnings, which say
    what holds the boundary back and what to do, or why nothing is to be done. Counts are of base,
    log and CDC files.
    """

    name: str
    path: str
    sync: Sync
    error: str | None = None
    because: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    lock: LockStatus | None = None
    table_type: str | None = None
    table_version: int | None = None
    timezone: str | None = None
    last_completed: str | None = None
    earliest_readable: str | None = None
    files: int = 0
    bytes: int = 0
    small_files: int = 0
    sizes: tuple[SizeClass, ...] = ()
    pending: tuple[PendingStatus, ...] = ()
    savepoints: tuple[SavepointStatus, ...] = ()
    last_clean: CleanStatus | None = None
    last_foreign_clean: CleanStatus | None = None

    def document(self) -> Mapping[str, Any]:
        """The status as JSON-able data."""
        return asdict(self)


def table_status(
    spec: TableSpec,
    state: TableState | None,
    plan: TablePlan,
    *,
    lock: LockStatus | None = None,
) -> TableStatus:
    """The status of a table; ``state`` is None where the plan has an error or could not look."""
    if plan.error is None and state is None:
        because = tuple(note.because for note in plan.refusals)
        return TableStatus(name=plan.name, path=plan.path, sync="blocked", because=because)
    if state is None or plan.error is not None or plan.observed is None:
        return TableStatus(name=plan.name, path=plan.path, sync="error", error=plan.error)
    view = view_of(state)
    is_read = (view.is_newest & view.is_live)[view.slice_of]
    sync, because = _sync(spec, plan)
    return TableStatus(
        name=plan.name,
        path=plan.path,
        sync=sync,
        because=because,
        notes=plan.warnings,
        lock=lock,
        table_type=state.table_type,
        table_version=state.table_version,
        timezone=spec.timezone or state.timezone,
        last_completed=plan.observed.last_completed,
        earliest_readable=plan.impact.earliest_readable_before,
        files=plan.observed.files,
        bytes=plan.observed.bytes,
        small_files=plan.observed.small_files,
        sizes=_sizes(state, is_read),
        pending=_pending(state, spec.concurrency or Concurrency()),
        savepoints=tuple(_savepoint(s, state, is_read) for s in state.savepoints),
        last_clean=_last_clean(state, also_ours=True),
        last_foreign_clean=_last_clean(state, also_ours=False),
    )


def _sync(spec: TableSpec, plan: TablePlan) -> tuple[Sync, tuple[str, ...]]:
    drift = tuple(f"{finding.field}: {finding.because}" for finding in plan.drift)
    resumes = tuple(step.because for step in plan.steps if isinstance(step, ResumeStep))
    if plan.refusals:
        return "blocked", (*(note.because for note in plan.refusals), *drift)
    if spec.retention is None:
        return "unmanaged", ("the spec has no retention block",)
    if drift or plan.steps:
        return "drifted", (*resumes, *drift)
    return "in sync", ()


def _sizes(state: TableState, is_read: NDArray[np.bool_]) -> tuple[SizeClass, ...]:
    size = state.files.size[is_read & (state.files.kind == FileKind.BASE)]
    row = np.searchsorted(np.array(SIZE_CLASSES), size, side="right")
    count = np.bincount(row, minlength=len(SIZE_CLASSES) + 1)
    total = np.zeros(len(SIZE_CLASSES) + 1, np.int64)
    np.add.at(total, row, size)
    rows = zip((*SIZE_CLASSES, None), count.tolist(), total.tolist(), strict=True)
    return tuple(SizeClass(below=below, files=files, bytes=b) for below, files, b in rows)


def _pending(state: TableState, concurrency: Concurrency) -> tuple[PendingStatus, ...]:
    found = []
    for entry in state.timeline.entries:
        if not entry.instant.is_completed:
            age = max(0, state.observed_ms - entry.modified_ms) // 1000
            found.append(
                PendingStatus(
                    instant=entry.instant.requested,
                    action=entry.instant.action.value,
                    state=entry.instant.state.value,
                    age_seconds=age,
                    is_stuck=age > concurrency.stale_after,
                )
            )
    return tuple(found)


def _savepoint(
    savepoint: Savepoint, state: TableState, is_read: NDArray[np.bool_]
) -> SavepointStatus:
    named = pc.is_in(state.files.name, value_set=strings(sorted(savepoint.files)))
    is_named = flags(named)
    is_pinned = is_named & ~is_read
    return SavepointStatus(
        instant=savepoint.instant,
        is_completed=savepoint.completed,
        files=int(is_named.sum()),
        bytes=int(state.files.size[is_named].sum()),
        pinned_files=int(is_pinned.sum()),
        pinned_bytes=int(state.files.size[is_pinned].sum()),
    )


def _last_clean(state: TableState, *, also_ours: bool) -> CleanStatus | None:
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
