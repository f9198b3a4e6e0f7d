"""List the files past retention that stay, each with the rule that keeps it; pure."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reconciler.arrays import Mask
from reconciler.hudi.files.view import FileView
from reconciler.hudi.timeline.instant import Instant
from reconciler.planners.clean.expired_slices import ExpiredSlices
from reconciler.planners.file_columns import name_columns
from reconciler.planners.protection import Protection
from reconciler.planners.reasons import RowReasons, Sentence
from reconciler.plans.columns import build_dictionary
from reconciler.plans.model import KEEP_RULES, KeptFiles
from reconciler.spec.model import Retention

_COUNTED_AS_VERSION = "the output of a pending compaction of its file group counts as a version"
_AWAITS_COMPACTION = "the newer slice of its file group waits for a pending compaction"


def list_kept_files(
    retention: Retention,
    view: FileView,
    protection: Protection,
    expired: ExpiredSlices,
    is_kept: Mask,
) -> KeptFiles:
    """Return the rows of ``is_kept`` with the first rule of KEEP_RULES that applies to each."""
    rows = np.flatnonzero(is_kept)
    columns = name_columns(view.files, rows)
    if not len(rows):  # as in most tables
        nothing = np.zeros(0, np.int32)
        because = build_dictionary(nothing, [])
        return KeptFiles(**columns, rule=nothing.astype(np.int8), because=because)
    slices = view.row_slice[rows]
    if view.row_slice_1x is not None:
        slices = np.where(expired.is_removed[slices], view.row_slice_1x[rows], slices)
    rules, reasons = _assign_reasons(retention, view, protection, expired)
    because = reasons.build_column(slices.astype(np.int64))
    return KeptFiles(**columns, rule=rules[slices], because=because)


def explain_held_boundary(holder: Instant, boundary: str | None) -> str:
    """Return the sentence which pending write limits the boundary, and to which instant."""
    where = f"to {boundary}" if boundary else "to before the first commit"
    return (
        f"pending {holder.action} {holder.requested} limits the earliest instant to retain {where}"
    )


def _assign_reasons(
    retention: Retention, view: FileView, protection: Protection, expired: ExpiredSlices
) -> tuple[NDArray[np.int8], RowReasons]:
    """Return per slice the first rule that would keep it, and the sentence."""
    rules = np.full(len(view), -1, np.int8)
    because = RowReasons(len(view))
    reasons = protection.reasons

    def save(rule: str, where: Mask, sentence: Sentence, key: NDArray[Any] | int = 0) -> None:
        rules[where & (rules < 0)] = KEEP_RULES.index(rule)
        because.assign(where, sentence, key)

    save("savepoint", *reasons["savepoint"])
    save("pendingCompaction", *reasons["pendingCompaction"])
    is_displaced = (protection.clustering < 0) & expired.is_displaced
    save("pendingCompaction", is_displaced, _COUNTED_AS_VERSION)
    save("pendingCompaction", view.is_newest & view.is_live, _AWAITS_COMPACTION)
    save("pendingClustering", *reasons["pendingClustering"])
    boundary = expired.boundary
    if boundary.blocking_write is not None:
        save(
            "pendingWrite",
            expired.is_held_back,
            explain_held_boundary(boundary.blocking_write, boundary.effective),
        )
    save("readers", *reasons["readers"])
    save("cap", np.ones(len(view), np.bool_), _explain_cap(retention, expired))
    return rules, because


def _explain_cap(retention: Retention, expired: ExpiredSlices) -> str:
    return (
        f"this run stops at {expired.earliest}: retention.maxCommitsPerRun is "
        f"{retention.max_commits_per_run}"
    )
