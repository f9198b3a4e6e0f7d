"""Running a reviewed rollback: a write of ours that died is taken back, and nothing beside it.

Hudi's rollbacks are instants of their own. This leaves none: nothing of the write was ever visible,
and who announced it is known to be dead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from reconciler.apply.checks import Look
from reconciler.apply.freshness import is_in, keys, keys_present
from reconciler.apply.result import Rows, StepOutcome
from reconciler.apply.table import Table
from reconciler.errors import BusyError, UnsupportedError
from reconciler.hudi.arrow import strings
from reconciler.hudi.instant import Instant
from reconciler.plan.columns import dictionary
from reconciler.plan.model import NamedFiles, Note, RollbackStep
from reconciler.planners.rollback import rows_of
from reconciler.transaction.dead_writes import beat_of, is_write, pending_of
from reconciler.transaction.footprints import is_being_rolled_back
from reconciler.transaction.undo import withdraw_named

_UNNAMED = "it came after the review, and the plan does not name it: plan again"
_STAYS = "its write has a file that came after the review, so nothing of it goes: plan again"
_COMPLETED = "its write was completed after the review, so it is the table's"
_WITHDRAWN = "its write is off the timeline since the review: plan again"

#: partition and name
File = tuple[str, str]


def run_rollback(table: Table, step: RollbackStep, look: Look | None) -> StepOutcome:
    """Take the write back if it is what was reviewed and dead; else leave it, and say why.

    ``look`` is one just taken, if there is one. Raises BusyError while its run lives or Hudi rolls
    it back, StorageError, FormatError. What the metadata table cannot forget is not taken back.
    """
    if look is None:
        with table.phase("observe"):
            look = table.look()
    with table.phase("rollback"), table.locked():
        timeline = table.reread()
        pending = pending_of(timeline, step.instant)
        if pending is None or not is_write(table, timeline, pending):
            is_there = any(one.requested == step.instant for one in timeline.instants)
            return _over(look, step, _COMPLETED if is_there else _WITHDRAWN)
        _check_dead(table, pending)
        if is_being_rolled_back(table, timeline, step.instant):
            raise BusyError(
                f"{table.name}: a rollback of {pending.action} {step.instant} is pending; run "
                "apply again when Hudi has finished it"
            )
        return _take_back(table, step, look, pending)


def _check_dead(table: Table, pending: Instant) -> None:
    """Raises BusyError while somebody works on it, and where nobody says whose it is."""
    what = f"{table.name}: {pending.action} {pending.requested}"
    beat = beat_of(table.storage, pending.requested)
    if beat is None:
        raise BusyError(
            f"{what} has no heartbeat of ours any more, so another writer has its hand in it; run "
            "apply again when it is done"
        )
    if not beat.is_last(table, table.tools.process):
        raise BusyError(f"{what} is the work of {beat.owner}, which still runs")


def _take_back(table: Table, step: RollbackStep, look: Look, pending: Instant) -> StepOutcome:
    """Under the lock; its run is dead. A file of it that nobody has reviewed keeps the write."""
    named, sizes = set(_pairs(step.files)), _sizes(look, step.instant)
    unnamed = sizes.keys() - named
    if unnamed:
        return StepOutcome(kind="rollback", how="nothing", left_out=_left(named, unnamed, sizes))
    table.lock.confirm()
    try:
        done = withdraw_named(table, step.instant, pending.action, named)
    except UnsupportedError as error:  # it stays pending, in no other step's way
        return StepOutcome(kind="rollback", how="failed", warnings=(Note("metadata", str(error)),))
    removed = set(done.removed)
    outcome = StepOutcome(
        kind="rollback",
        how="nothing" if done.unnamed else "undone",
        instant=None if done.unnamed else step.instant,
        removed=len(removed),
        bytes=sum(sizes.get(file, 0) for file in removed),
        gone=len(named - removed),
        left_out=_left(named - removed, done.unnamed, sizes) if done.unnamed else None,
    )
    if not done.unnamed:
        table.heartbeat(step.instant).remove()
    return outcome


def _over(look: Look, step: RollbackStep, because: str) -> StepOutcome:
    """A reviewed rollback whose write is not pending any more: what is still there stays."""
    is_there = is_in(keys(step.files), keys_present(look.state.files)).tolist()
    left = {file for file, there in zip(_pairs(step.files), is_there, strict=True) if there}
    return StepOutcome(
        kind="rollback",
        how="nothing",
        gone=len(step.files) - len(left),
        left_out=_rows(dict.fromkeys(left, because)) if left else None,
    )


def _sizes(look: Look, instant: str) -> dict[File, int]:
    """What is there of a pending write, and how large it is."""
    state = look.state
    write = next((one for one in state.pending_writes if one.instant == instant), None)
    if write is None:
        return {}
    found = {(folder, name): size for folder, name, size in write.unlisted}
    for row in rows_of(write, state.files).tolist():
        path = state.files.partitions[state.files.partition[row]]
        found[path, state.files.name[row].as_py()] = int(state.files.size[row])
    return found


def _left(named: Collection[File], unnamed: Collection[File], there: Collection[File]) -> Rows:
    """What keeps the write, and what of it was reviewed and stays with it."""
    stays = dict.fromkeys((file for file in named if file in there), _STAYS)
    return _rows(stays | dict.fromkeys(unnamed, _UNNAMED))


def _rows(because: Mapping[File, str]) -> Rows:
    files = sorted(because)
    folders, reasons = sorted({path for path, _ in files}), sorted(set(because.values()))
    return Rows(
        partition=dictionary(
            np.array([folders.index(path) for path, _ in files], np.int32), folders
        ),
        name=strings([name for _, name in files]),
        because=dictionary(
            np.array([reasons.index(because[file]) for file in files], np.int32), reasons
        ),
    )


def _pairs(files: NamedFiles) -> list[File]:
    return list(zip(files.partition.to_pylist(), files.name.to_pylist(), strict=True))
