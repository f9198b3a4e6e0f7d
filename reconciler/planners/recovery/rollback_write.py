"""Plan the rollback of this program's dead writes; pure.

Pending writes of other writers are never touched: their writers roll them back.
"""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from reconciler.arrays import Integers, to_arrow
from reconciler.hudi.files.table_files import FileKind, find_rows
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.planners.reasons import pluralize
from reconciler.plans.file_rows import named_from_json
from reconciler.plans.model import NamedFiles, Note, RollbackStep
from reconciler.state.model import PendingWrite, TableState


def plan_rollbacks(state: TableState) -> tuple[RollbackStep, ...]:
    """Return a step for every dead write of this program, oldest first."""
    return tuple(
        _build_step(write, state) for write in _find_dead_writes(state) if not write.is_rolled_back
    )


def warn_of_rollbacks(state: TableState) -> tuple[Note, ...]:
    """Warn of dead writes that another writer has started to roll back."""
    return tuple(
        Note(
            "pendingRollback",
            f"{_describe_write(write)}; another writer's rollback of it is pending and must be "
            "finished",
        )
        for write in _find_dead_writes(state)
        if write.is_rolled_back
    )


def list_written_files(write: PendingWrite, state: TableState) -> NamedFiles:
    """Return the data files that a pending write has written, inside and outside partitions."""
    files, rows = state.files, find_written_rows(write, state)
    paths = [files.partitions[code] for code in files.partition[rows]]
    listed = zip(paths, files.name.take(to_arrow(rows)).to_pylist(), strict=True)
    pairs = sorted({*listed, *((folder, name) for folder, name, _size in write.unlisted)})
    return named_from_json([{"partition": folder, "name": name} for folder, name in pairs])


def find_written_rows(write: PendingWrite, state: TableState) -> Integers:
    """Return the rows of the files that a pending write has written to partitions.

    Before version 8 the name of a log file does not tell its write, but its marker does.
    """
    files = state.files
    marked = np.zeros(0, np.int64)
    if write.logs:
        keys = pa.array([f"{partition}/{name}" for partition, name in write.logs])
        found = find_rows(files, keys)
        marked = np.unique(found[found >= 0])
    if write.instant not in files.instants:
        return marked
    is_written = files.kind == FileKind.BASE
    if state.table_version >= LOGS_BY_COMPLETION:
        is_written = is_written | (files.kind == FileKind.LOG)
    code = files.instants.index(write.instant)
    named = np.flatnonzero((files.instant == code) & is_written)
    return np.union1d(named, marked)


def _find_dead_writes(state: TableState) -> tuple[PendingWrite, ...]:
    return tuple(write for write in state.pending_writes if write.is_dead(state.observed_ms))


def _build_step(write: PendingWrite, state: TableState) -> RollbackStep:
    files = list_written_files(write, state)
    return RollbackStep(
        instant=write.instant,
        action=write.action.value,
        files=files,
        because=f"{_describe_write(write)}; apply rolls it back{_describe_files(len(files))}",
    )


def _describe_write(write: PendingWrite) -> str:
    what = f"{write.action} {write.instant} of {write.owner}"
    return f"{what} was left {write.state.lower()}: {_explain_death(write)}"


def _explain_death(write: PendingWrite) -> str:
    if write.owner.ended:
        return "its process ended before it was complete"
    if write.is_running is False:
        return "its process is dead"
    beat = datetime.fromtimestamp(write.beat_ms // 1000, UTC)
    return f"its last heartbeat was at {beat:%Y-%m-%d %H:%M:%S} UTC"


def _describe_files(files: int) -> str:
    return f" and deletes {pluralize(files, 'file')} that no reader has seen" if files else ""
