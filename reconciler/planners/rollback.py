"""Writes of ours that died: the next apply takes them back; pure.

Other writers' pending writes are never touched: what is theirs they roll back themselves.
"""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from reconciler.hudi.arrow import integers, strings
from reconciler.hudi.files import FileKind, Files
from reconciler.plan.columns import dictionary
from reconciler.plan.model import NamedFiles, Note, RollbackStep
from reconciler.planners.phrases import plural
from reconciler.state.model import PendingWrite, TableState


def plan_rollbacks(state: TableState) -> tuple[RollbackStep, ...]:
    """A step for every write of ours whose run is dead, oldest first."""
    return tuple(_step(write, state) for write in _dead(state) if not write.is_rolled_back)


def rollback_warnings(state: TableState) -> tuple[Note, ...]:
    """Dead writes that another writer has begun to roll back, and has to."""
    return tuple(
        Note(
            "pendingRollback",
            f"{_left(write)}; a rollback of it is pending, which its writer has to finish",
        )
        for write in _dead(state)
        if write.is_rolled_back
    )


def files_of(write: PendingWrite, state: TableState) -> NamedFiles:
    """The base files that a pending write has made, in partitions and where none is yet."""
    rows = rows_of(write, state.files)
    if not write.unlisted:
        return NamedFiles(
            partition=dictionary(state.files.partition[rows], state.files.partitions),
            name=state.files.name.take(integers(rows)),
        )
    paths = [state.files.partitions[code] for code in state.files.partition[rows]]
    listed = zip(paths, state.files.name.take(integers(rows)).to_pylist(), strict=True)
    pairs = sorted({*listed, *((folder, name) for folder, name, _size in write.unlisted)})
    folders = sorted({folder for folder, _name in pairs})
    code = {folder: number for number, folder in enumerate(folders)}
    return NamedFiles(
        partition=dictionary(np.array([code[path] for path, _ in pairs], np.int32), folders),
        name=strings([name for _, name in pairs]),
    )


def rows_of(write: PendingWrite, files: Files) -> NDArray[np.int64]:
    """The rows of the files that it has written to partitions."""
    if write.instant not in files.instants:
        return np.zeros(0, np.int64)
    code = files.instants.index(write.instant)
    return np.flatnonzero((files.instant == code) & (files.kind == FileKind.BASE))


def _dead(state: TableState) -> tuple[PendingWrite, ...]:
    return tuple(write for write in state.pending_writes if write.is_dead(state.observed_ms))


def _step(write: PendingWrite, state: TableState) -> RollbackStep:
    files = files_of(write, state)
    return RollbackStep(
        instant=write.instant,
        action=write.action.value,
        files=files,
        because=f"{_left(write)}; apply takes it back{_with(len(files))}",
    )


def _left(write: PendingWrite) -> str:
    what = f"{write.action} {write.instant} of {write.owner}"
    return f"{what} was left {write.state.lower()}: {_why(write)}"


def _why(write: PendingWrite) -> str:
    if write.owner.ended:
        return "its run ended before it was done"
    if write.lives is False:
        return "its process is gone"
    beat = datetime.fromtimestamp(write.beat_ms // 1000, UTC)
    return f"nothing was heard of it since {beat:%Y-%m-%d %H:%M:%S} UTC"


def _with(files: int) -> str:
    return f", with {plural(files, 'file')} that no reader has seen" if files else ""
