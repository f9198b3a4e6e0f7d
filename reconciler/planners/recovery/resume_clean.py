"""Plan the resume of pending cleans whose owner is dead; pure.

Hudi executes a pending plan as it is. Here every file is checked again against the current table.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final

import numpy as np
import pyarrow.compute as pc

from reconciler.arrays import Integers, Mask, to_arrow, to_numpy
from reconciler.hudi.files.view import FileView
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.file_columns import build_removed_files, name_columns
from reconciler.planners.protection import Protection, find_protection
from reconciler.planners.reader_window import ReaderWindow
from reconciler.planners.reasons import RowReasons, pluralize
from reconciler.plans.columns import build_dictionary
from reconciler.plans.model import NamedFiles, Note, RemovedFiles, ResumeStep
from reconciler.spec.model import Concurrency
from reconciler.state.extra_metadata import PLAN_DIGEST
from reconciler.state.model import PendingClean, TableState

#: key of the extra metadata of the reconciler's cleans: JSON list of the folders to delete
DELETE_PARTITIONS: Final = "reconciler.delete.partitions"


@dataclass(frozen=True, slots=True, eq=False)
class WithheldFiles(NamedFiles):
    """Planned files that must stay; ``because`` as in ``KeptFiles``."""

    because: Any


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RevalidatedClean:
    """The part of a pending clean that may still run.

    ``rows``: per row of the state's files, whether it is removed. Planned files that no longer
    exist are not listed.
    """

    files: RemovedFiles
    withheld: WithheldFiles
    delete_partitions: tuple[str, ...]
    rows: Mask


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CleanResumes:
    """The steps for pending cleans.

    ``is_blocked``: a pending clean may still be running, so no other may start.
    """

    steps: tuple[ResumeStep, ...]
    warnings: tuple[Note, ...]
    is_blocked: bool
    rows: Mask


def is_own_clean(clean: PendingClean) -> bool:
    """Return whether an apply of this tool requested it."""
    return PLAN_DIGEST in clean.extra


def plan_clean_resumes(
    state: TableState,
    concurrency: Concurrency | None,
    now: datetime,
    window: ReaderWindow | None = None,
) -> CleanResumes:
    """Return steps for abandoned cleans, oldest first, and warnings about running ones.

    ``window``: slices superseded within it stay.
    """
    rows = np.zeros(len(state.files), np.bool_)
    steps: list[ResumeStep] = []
    warnings: list[Note] = []
    is_blocked = False
    for clean in state.pending_cleans:
        reason = None if is_own_clean(clean) else _explain_foreign(clean, concurrency, now)
        if reason is not None:
            is_blocked = True
            warnings.append(Note("pendingClean", reason))
            continue
        current = revalidate_clean(state, clean, already_removed=rows, window=window)
        rows |= current.rows
        steps.append(_build_step(clean, current))
        if len(current.withheld):
            warnings.append(Note("pendingClean", _describe_withheld(clean, current.withheld)))
    return CleanResumes(
        steps=tuple(steps), warnings=tuple(warnings), is_blocked=is_blocked, rows=rows
    )


def _explain_foreign(
    clean: PendingClean, concurrency: Concurrency | None, now: datetime
) -> str | None:
    """Return why another writer's clean must not be touched; None if it is abandoned."""
    settings = concurrency or Concurrency()
    age = now.timestamp() - clean.started_ms / 1000
    whose, state = f"clean {clean.instant} of another writer", clean.state.lower()
    if age <= settings.stale_after:
        return (
            f"{whose} has been {state} for {max(age, 0):.0f} s and may still run, so nothing is "
            "cleaned now; it counts as abandoned after concurrency.staleAfter, "
            f"{settings.stale_after} s"
        )
    if settings.lock is not None and settings.lock.provider == "none":
        return (
            f"{whose} is {state}; without a lock it may still run, so nothing is cleaned: let its "
            "writer finish it, or configure concurrency.lock"
        )
    return None


def _build_step(clean: PendingClean, current: RevalidatedClean) -> ResumeStep:
    whose = "an earlier apply" if is_own_clean(clean) else "another writer"
    left = f"clean {clean.instant} of {whose} was left {clean.state.lower()}"
    if clean.problem is not None:
        because = f"{left} and its plan cannot be read ({clean.problem}): apply removes it"
    elif not len(current.files) and not current.delete_partitions:
        because = f"{left} and none of its files can be deleted any more: apply rolls it back"
    else:
        because = f"{left}: apply finishes it"
    return ResumeStep(
        instant=clean.instant,
        action="clean",
        files=current.files,
        delete_partitions=current.delete_partitions,
        because=because,
    )


def _describe_withheld(clean: PendingClean, withheld: WithheldFiles) -> str:
    why = withheld.because.to_pylist()[0]
    them = "it" if len(withheld) == 1 else "them"
    return (
        f"clean {clean.instant} plans to delete {pluralize(len(withheld), 'file')} that must stay, "
        f"so apply keeps {them}: {withheld.name[0].as_py()}: {why}"
    )


def revalidate_clean(
    state: TableState,
    clean: PendingClean,
    *,
    already_removed: Mask | None = None,
    window: ReaderWindow | None = None,
) -> RevalidatedClean:
    """Split the planned files of a clean into those to delete and those to keep, with reasons.

    A file stays if a savepoint or a pending compaction or clustering needs it, if it belongs to a
    newest slice or to no completed write, or if its slice was superseded within the readers'
    ``window``. ``already_removed`` marks rows that another step removes.
    """
    view = state.view
    protection = find_protection(state, window)
    if already_removed is None:
        already_removed = np.zeros(len(state.files), np.bool_)
    planned = _find_planned_rows(state, clean) & ~already_removed
    reasons = _assign_reasons(view, protection)
    stays = reasons.codes >= 0
    decisive = view.row_slice
    if view.row_slice_1x is not None:
        decisive = np.where(stays[view.row_slice], view.row_slice, view.row_slice_1x)
    is_removed = planned & ~stays[decisive]
    kept = np.flatnonzero(planned & ~is_removed)
    return RevalidatedClean(
        files=_removed_files(view, clean, np.flatnonzero(is_removed)),
        withheld=WithheldFiles(
            **name_columns(state.files, kept),
            because=reasons.build_column(decisive[kept].astype(np.int64)),
        ),
        delete_partitions=_find_partitions(state, clean, is_removed | already_removed),
        rows=is_removed,
    )


def _find_planned_rows(state: TableState, clean: PendingClean) -> Mask:
    """Return the rows of the files that the plan names by partition and name."""
    files = state.files
    wanted = np.zeros(len(files), np.bool_)
    if not clean.files or not len(files):
        return wanted
    starts = np.searchsorted(files.partition, np.arange(len(files.partitions) + 1))
    for code, path in enumerate(files.partitions):
        names = clean.files.get(path)
        if names:
            rows = slice(int(starts[code]), int(starts[code + 1]))
            in_folder = files.name[rows]
            wanted[rows] = to_numpy(pc.is_in(in_folder, value_set=to_arrow(names)))
    return wanted


def _assign_reasons(view: FileView, protection: Protection) -> RowReasons:
    """Return per slice why it must stay; slices that nothing needs have no reason."""
    reasons, by_rule = RowReasons(len(view)), protection.reasons
    for rule in ("savepoint", "pendingCompaction", "pendingClustering"):
        reasons.assign(*by_rule[rule])
    is_newest = view.is_newest & view.is_live
    reasons.assign(is_newest, "it belongs to the newest slice of its file group")
    reasons.assign(~view.is_visible, "it belongs to no completed write")
    reasons.assign(*by_rule["readers"])
    return reasons


def _removed_files(view: FileView, clean: PendingClean, rows: Integers) -> RemovedFiles:
    because = f"planned by clean {clean.instant}, which is still pending"
    column = build_dictionary(np.zeros(len(rows), np.int32), [because])
    return build_removed_files(view, rows, column)


def _find_partitions(state: TableState, clean: PendingClean, is_removed: Mask) -> tuple[str, ...]:
    """Return the planned folders that still exist and whose files are all removed."""
    planned = set(clean.delete_partitions) | _partitions_in_metadata(clean)
    if not planned or not state.is_partitioned:
        return ()
    stays = set(np.unique(state.files.partition[~is_removed]).tolist())
    full = {path for code, path in enumerate(state.files.partitions) if code in stays}
    existing = state.metafile_partitions.union(state.partitions)
    return tuple(sorted((planned & existing) - full - state.stray_partitions - {""}))


def _partitions_in_metadata(clean: PendingClean) -> set[str]:
    try:
        listed = json.loads(clean.extra.get(DELETE_PARTITIONS, "[]"))
    except ValueError:
        return set()
    return {path for path in listed if isinstance(path, str)} if isinstance(listed, list) else set()
