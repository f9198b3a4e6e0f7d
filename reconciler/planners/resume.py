"""Pending cleans that somebody left behind: what of them may still be done; pure.

Hudi executes a pending plan as it stands; here every file is judged again by what the table is now.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.hudi.arrow import flags, integers, strings
from reconciler.hudi.view import View
from reconciler.plan.columns import dictionary
from reconciler.plan.model import Note, RemovedFiles, ResumeStep
from reconciler.planners.phrases import Phrases, plural
from reconciler.planners.slices import Protection, protection, view_of
from reconciler.planners.window import Window
from reconciler.spec.model import Concurrency
from reconciler.state.model import PLAN_DIGEST, PendingClean, TableState

#: extra metadata of our own cleans: JSON of the folders that go
DELETE_PARTITIONS: Final = "reconciler.delete.partitions"
_RETENTION, _REPLACED = 0, 1


@dataclass(frozen=True, slots=True, eq=False)
class WithheldFiles:
    """Planned files that stay; sorted by (partition, name); columns as in ``KeptFiles``."""

    partition: Any
    name: Any
    because: Any

    def __len__(self) -> int:
        return len(self.name)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Revalidated:
    """What of a pending clean may go now.

    ``rows``: per row of the state's files, it goes. Planned files that are gone are nowhere.
    """

    files: RemovedFiles
    withheld: WithheldFiles
    delete_partitions: tuple[str, ...]
    rows: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Resumes:
    """Steps for the pending cleans; ``is_blocked``: one may be at work, so no other may start."""

    steps: tuple[ResumeStep, ...]
    warnings: tuple[Note, ...]
    is_blocked: bool
    rows: NDArray[np.bool_]


def is_ours(clean: PendingClean) -> bool:
    """Whether an apply of this tool requested it."""
    return PLAN_DIGEST in clean.extra


def plan_resumes(
    state: TableState,
    concurrency: Concurrency | None,
    now: datetime,
    window: Window | None = None,
) -> Resumes:
    """Finish what is left behind, oldest first; say what may still be at work.

    ``window``: what was superseded in it stays.
    """
    rows = np.zeros(len(state.files), np.bool_)
    steps: list[ResumeStep] = []
    warnings: list[Note] = []
    is_blocked = False
    for clean in state.pending_cleans:
        alive = None if is_ours(clean) else _may_be_alive(clean, concurrency, now)
        if alive is not None:
            is_blocked = True
            warnings.append(Note("pendingClean", alive))
            continue
        found = revalidate(state, clean, taken=rows, window=window)
        rows |= found.rows
        steps.append(_step(clean, found))
        if len(found.withheld):
            warnings.append(Note("pendingClean", _of_withheld(clean, found.withheld)))
    return Resumes(steps=tuple(steps), warnings=tuple(warnings), is_blocked=is_blocked, rows=rows)


def _may_be_alive(
    clean: PendingClean, concurrency: Concurrency | None, now: datetime
) -> str | None:
    """Why another writer's clean must be left alone, None when it counts as left behind."""
    settings = concurrency or Concurrency()
    age = now.timestamp() - clean.started_ms / 1000
    whose, state = f"clean {clean.instant} of another writer", clean.state.lower()
    if age <= settings.stale_after:
        return (
            f"{whose} has been {state} for {max(age, 0):.0f} s and may be at work, so nothing is "
            "cleaned now; it counts as left behind after concurrency.staleAfter, "
            f"{settings.stale_after} s"
        )
    if settings.lock is not None and settings.lock.provider == "none":
        return (
            f"{whose} is {state}; without a lock it cannot be known to be left behind, so nothing "
            "is cleaned: let its writer finish it, or configure concurrency.lock"
        )
    return None


def _step(clean: PendingClean, found: Revalidated) -> ResumeStep:
    whose = "an earlier apply" if is_ours(clean) else "another writer"
    left = f"clean {clean.instant} of {whose} was left {clean.state.lower()}"
    if clean.problem is not None:
        because = f"{left} and its plan cannot be read ({clean.problem}): apply clears it up"
    elif not len(found.files) and not found.delete_partitions:
        because = f"{left} and nothing of it may or can be done any more: apply takes it back"
    else:
        because = f"{left}: apply finishes it"
    return ResumeStep(
        instant=clean.instant,
        action="clean",
        files=found.files,
        delete_partitions=found.delete_partitions,
        because=because,
    )


def _of_withheld(clean: PendingClean, withheld: WithheldFiles) -> str:
    why = withheld.because.to_pylist()[0]
    return (
        f"clean {clean.instant} plans {plural(len(withheld), 'file')} that must stay and will: "
        f"{withheld.name[0].as_py()}: {why}"
    )


def revalidate(
    state: TableState,
    clean: PendingClean,
    *,
    taken: NDArray[np.bool_] | None = None,
    window: Window | None = None,
) -> Revalidated:
    """The planned files that are there and that nothing needs, and the others with a reason each.

    A savepoint, a pending compaction or clustering, being of a newest slice or of no completed
    write, and having been superseded within the readers' ``window`` keep a file, whenever they came
    to be. ``taken`` marks rows that another plan removes.
    """
    view = view_of(state)
    guard = protection(state, view, window)
    planned = _planned_rows(state, clean)
    if taken is not None:
        planned &= ~taken
    reasons = _reasons(view, guard)
    stays = reasons.codes >= 0
    decisive = view.slice_of
    if view.other_slice_of is not None:
        decisive = np.where(stays[view.slice_of], view.slice_of, view.other_slice_of)
    goes = planned & ~stays[decisive]
    kept = np.flatnonzero(planned & ~goes)
    files = state.files
    return Revalidated(
        files=_removed(view, clean, np.flatnonzero(goes)),
        withheld=WithheldFiles(
            partition=dictionary(files.partition[kept], files.partitions),
            name=files.name.take(integers(kept)),
            because=reasons.column(decisive[kept].astype(np.int64)),
        ),
        delete_partitions=_partitions(state, clean, view, goes if taken is None else goes | taken),
        rows=goes,
    )


def _planned_rows(state: TableState, clean: PendingClean) -> NDArray[np.bool_]:
    """Rows of the files that the plan names, by partition and name."""
    files = state.files
    wanted = np.zeros(len(files), np.bool_)
    if not clean.files or not len(files):
        return wanted
    starts = np.searchsorted(files.partition, np.arange(len(files.partitions) + 1))
    for code, path in enumerate(files.partitions):
        names = clean.files.get(path)
        if names:
            here = slice(int(starts[code]), int(starts[code + 1]))
            in_folder = files.name[here]
            wanted[here] = flags(pc.is_in(in_folder, value_set=strings(names)))
    return wanted


def _reasons(view: View, guard: Protection) -> Phrases:
    """Per slice why it must stay; silent for those that nothing needs."""
    reasons = Phrases(len(view))
    nothing = np.zeros(len(view), np.int32)
    reasons.say(
        guard.savepoint >= 0,
        guard.savepoint,
        lambda code: f"savepoint {guard.savepoints[code]} pins its file slice",
    )
    reasons.say(
        guard.compaction >= 0,
        guard.compaction,
        lambda code: f"pending compaction {guard.pending[code]} reads its file slice",
    )
    reasons.say(
        guard.clustering >= 0,
        guard.clustering,
        lambda code: f"pending clustering {guard.pending[code]} reads its file slice",
    )
    reasons.say(
        view.is_newest & view.is_live,
        nothing,
        lambda _: "it is of the newest slice of its file group",
    )
    reasons.say(~view.is_visible, nothing, lambda _: "it is of no completed write")
    reasons.say(guard.reading.is_read, guard.reading.about, guard.reading.says)
    return reasons


def _removed(view: View, clean: PendingClean, rows: NDArray[np.int64]) -> RemovedFiles:
    files = view.files
    is_replaced = ~view.is_live[view.slice_of[rows]]
    because = f"planned by clean {clean.instant}, which is still pending"
    return RemovedFiles(
        partition=dictionary(files.partition[rows], files.partitions),
        name=files.name.take(integers(rows)),
        bytes=files.size[rows],
        kind=files.kind[rows],
        rule=np.where(is_replaced, _REPLACED, _RETENTION).astype(np.int8),
        because=dictionary(np.zeros(len(rows), np.int32), [because]),
    )


def _partitions(
    state: TableState, clean: PendingClean, view: View, goes: NDArray[np.bool_]
) -> tuple[str, ...]:
    """The plan's folders that are still there and of which every file goes."""
    planned = set(clean.delete_partitions) | _own_partitions(clean)
    if not planned or not state.is_partitioned:
        return ()
    stays = set(np.unique(view.files.partition[~goes]).tolist())
    full = {path for code, path in enumerate(view.files.partitions) if code in stays}
    there = state.metafile_partitions.union(state.partitions)
    return tuple(sorted((planned & there) - full - state.stray_partitions - {""}))


def _own_partitions(clean: PendingClean) -> set[str]:
    try:
        listed = json.loads(clean.extra.get(DELETE_PARTITIONS, "[]"))
    except ValueError:
        return set()
    return {path for path in listed if isinstance(path, str)} if isinstance(listed, list) else set()
