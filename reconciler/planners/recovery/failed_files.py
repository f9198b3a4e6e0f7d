"""Find the files of pending instants of other writers, and say who left them; pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import numpy as np

from reconciler.arrays import Integers, to_arrow
from reconciler.hudi.files.table_files import TableFiles
from reconciler.hudi.timeline.instant import Action
from reconciler.plans.file_rows import named_from_json
from reconciler.plans.model import NamedFiles
from reconciler.spec.model import Concurrency, TableSpec
from reconciler.state.model import PendingRollback, TableState


def list_failed_files(instant: str, state: TableState) -> NamedFiles:
    """Return the files that a pending instant has written: those that are named by it."""
    files, rows = state.files, _find_rows(instant, state.files)
    paths = [files.partitions[code] for code in files.partition[rows]]
    listed = zip(paths, files.name.take(to_arrow(rows)).to_pylist(), strict=True)
    unlisted = [
        (folder, name)
        for write in (*state.failed_writes, *state.foreign_clusterings)
        if write.instant == instant
        for folder, name, _size in write.unlisted
    ]
    return _name_files({*listed, *unlisted})


def measure_failed_files(instant: str, state: TableState) -> dict[tuple[str, str], int]:
    """Return the existing files that are named by a pending instant, with their sizes."""
    sizes = {
        (folder, name): size
        for write in (*state.failed_writes, *state.foreign_clusterings)
        if write.instant == instant
        for folder, name, size in write.unlisted
    }
    files = state.files
    for row in _find_rows(instant, files).tolist():
        path = files.partitions[files.partition[row]]
        sizes[path, files.name[row].as_py()] = int(files.size[row])
    return sizes


def _find_rows(instant: str, files: TableFiles) -> Integers:
    if instant not in files.instants:
        return np.zeros(0, np.int64)
    return np.flatnonzero(files.instant == files.instants.index(instant))


def _name_files(pairs: Iterable[tuple[str, str]]) -> NamedFiles:
    return named_from_json(
        [{"partition": folder, "name": name} for folder, name in sorted(set(pairs))]
    )


def has_no_lock(spec: TableSpec) -> bool:
    """Return whether the spec declares that there is no lock."""
    lock = spec.concurrency.lock if spec.concurrency else None
    return lock is not None and lock.provider == "none"


def describe_rollback(rollback: PendingRollback) -> str:
    """Return what a pending rollback is and since when it waits."""
    target = f" of {rollback.plan.action} {rollback.plan.target}" if rollback.plan else ""
    by = "another writer" if rollback.owner is None else str(rollback.owner)
    return (
        f"rollback {rollback.instant}{target} by {by} was left {rollback.state.lower()} at "
        f"{format_ms(rollback.active_ms)}"
    )


def format_ms(epoch_ms: int) -> str:
    """Return a moment for people."""
    return f"{datetime.fromtimestamp(epoch_ms // 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def rolls_back_clusterings(spec: TableSpec) -> bool:
    """Return whether the spec has clusterings rolled back that nobody finishes."""
    pending = (spec.concurrency or Concurrency()).pending
    return pending is not None and pending.clustering == "rollback"


def finishes_clusterings(spec: TableSpec) -> bool:
    """Return whether the spec has clusterings finished that nobody else finishes."""
    pending = (spec.concurrency or Concurrency()).pending
    return pending is not None and pending.clustering == "finish"


def find_clustering_rollbacks(spec: TableSpec, state: TableState) -> tuple[PendingRollback, ...]:
    """Return the pending rollbacks of clusterings, if the spec says what becomes of these.

    In version 6 a clustering is a replacecommit like others, and one that is off the timeline
    already cannot be told from them. It is one if the spec does not have other writes rolled back.
    """
    if not (rolls_back_clusterings(spec) or finishes_clusterings(spec)):
        return ()
    pending = {clustering.instant for clustering in state.pending_clusterings}
    known = {instant.requested for instant in state.timeline.instants}
    is_lazy = spec.retention is not None and spec.retention.failed_writes == "LAZY"
    return tuple(
        rollback
        for rollback in state.pending_rollbacks
        if rollback.plan is not None
        and (
            rollback.plan.action == Action.CLUSTERING
            or rollback.plan.target in pending
            or (
                rollback.plan.action == Action.REPLACECOMMIT
                and rollback.plan.target not in known
                and not is_lazy
            )
        )
    )
