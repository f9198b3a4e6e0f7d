"""The files that the policy alone would remove and that stay, each with the rule that saves it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reconciler.hudi.arrow import integers
from reconciler.hudi.instant import Instant
from reconciler.hudi.view import View
from reconciler.plan.columns import dictionary
from reconciler.plan.model import KEEP_RULES, KeptFiles
from reconciler.planners.phrases import Phrases
from reconciler.planners.slices import Protection
from reconciler.planners.verdict import Verdict
from reconciler.spec.model import Retention

_DISPLACED = "the output of a pending compaction of its file group counts as one version"
_UNFILLED = "the newer slice of its file group waits for a pending compaction"


def kept_files(
    retention: Retention,
    view: View,
    guard: Protection,
    verdict: Verdict,
    is_kept: NDArray[np.bool_],
) -> KeptFiles:
    """The rows of ``is_kept`` with the first rule of KEEP_RULES that applies to each."""
    rows = np.flatnonzero(is_kept)
    slices = view.slice_of[rows]
    if view.other_slice_of is not None:
        slices = np.where(verdict.is_removed[slices], view.other_slice_of[rows], slices)
    rules, because = _reasons(retention, view, guard, verdict)
    files = view.files
    return KeptFiles(
        partition=dictionary(files.partition[rows], files.partitions),
        name=files.name.take(integers(rows)),
        rule=rules[slices],
        because=because.column(slices.astype(np.int64)),
    )


def held_back(holder: Instant, held: str | None) -> str:
    """Which pending write holds the boundary back, and to where."""
    where = f"at {held}" if held else "before the first commit"
    return (
        f"pending {holder.action} {holder.requested} holds the earliest instant to retain {where}"
    )


def _reasons(
    retention: Retention, view: View, guard: Protection, verdict: Verdict
) -> tuple[NDArray[np.int8], Phrases]:
    """Per slice the rule that saves it, were it to be saved, and the sentence."""
    rules = np.full(len(view), -1, np.int8)
    because = Phrases(len(view))
    pending = guard.pending

    def save(
        rule: str,
        where: NDArray[np.bool_],
        sentence: Callable[[int], str] | str,
        about: NDArray[Any] | None = None,
    ) -> None:
        rules[where & (rules < 0)] = KEEP_RULES.index(rule)
        say = (lambda _: sentence) if isinstance(sentence, str) else sentence
        because.say(where, np.zeros(len(view), np.int32) if about is None else about, say)

    save(
        "savepoint",
        guard.savepoint >= 0,
        lambda code: f"savepoint {guard.savepoints[code]} pins its file slice",
        guard.savepoint,
    )
    save(
        "pendingCompaction",
        guard.compaction >= 0,
        lambda code: f"pending compaction {pending[code]} reads its file slice",
        guard.compaction,
    )
    save("pendingCompaction", (guard.clustering < 0) & verdict.is_displaced, _DISPLACED)
    save("pendingCompaction", view.is_newest & view.is_live, _UNFILLED)
    save(
        "pendingClustering",
        guard.clustering >= 0,
        lambda code: f"pending clustering {pending[code]} reads its file slice",
        guard.clustering,
    )
    bounds = verdict.boundary
    if bounds.holder is not None:
        save("pendingWrite", verdict.is_held, held_back(bounds.holder, bounds.held))
    save("readers", guard.reading.is_read, guard.reading.says, guard.reading.about)
    save("cap", np.ones(len(view), np.bool_), _of_cap(retention, verdict))
    return rules, because


def _of_cap(retention: Retention, verdict: Verdict) -> str:
    return (
        f"this run stops at {verdict.earliest}: retention.maxCommitsPerRun is "
        f"{retention.max_commits_per_run}"
    )
