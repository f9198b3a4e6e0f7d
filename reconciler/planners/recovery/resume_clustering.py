"""Plan the resume of this program's pending clusterings, and warn of other writers'; pure."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import numpy as np

from reconciler.arrays import to_arrow
from reconciler.hudi.files.table_files import find_sizes
from reconciler.hudi.timeline.plans import ClusteringPlan
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.reasons import pluralize
from reconciler.plans.decode import empty_removed_files
from reconciler.plans.groups import rewrites_from_json
from reconciler.plans.model import Note, ResumeStep
from reconciler.plans.rewrites import Rewrites
from reconciler.state.model import PendingClustering, TableState

_SHOWN = 3
_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusteringResumes:
    """Steps for this program's pending clusterings, and warnings about other writers'."""

    steps: tuple[ResumeStep, ...] = ()
    warnings: tuple[Note, ...] = ()


def plan_clustering_resumes(
    state: TableState, now: datetime, abandoned: Collection[str] = ()
) -> ClusteringResumes:
    """Return steps for this program's pending clusterings, oldest first; others may run.

    ``abandoned``: instants of other writers' that need no warning.
    """
    ours = [pending for pending in state.pending_clusterings if pending.is_ours]
    foreign = (pending for pending in state.pending_clusterings if not pending.is_ours)
    others = [pending for pending in foreign if pending.instant not in abandoned]
    return ClusteringResumes(
        steps=tuple(_build_step(pending, state) for pending in ours),
        warnings=tuple(
            Note("pendingClustering", _describe_foreign(pending, now)) for pending in others
        ),
    )


def build_resumed_rewrites(plan: ClusteringPlan, state: TableState, because: str) -> Rewrites:
    """Return the groups of a pending plan as columns, with the bytes of files that still exist."""
    sizes, ends = _slice_bytes(plan, state), np.cumsum([len(g.slices) for g in plan.groups])
    return rewrites_from_json(
        [
            {
                "partition": group.slices[0].partition if group.slices else "",
                "outputs": group.output_count,
                "bytes": sizes[end - len(group.slices) : end].sum(),
                "because": because,
                "slices": [
                    {
                        "fileId": file_slice.file_id,
                        "base": file_slice.base_file,
                        "logs": file_slice.log_files[::-1],
                    }
                    for file_slice in group.slices
                ],
            }
            for group, end in zip(plan.groups, ends.tolist(), strict=True)
        ]
    )


def _slice_bytes(
    plan: ClusteringPlan, state: TableState
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return per slice the bytes of its files."""
    slices = [file_slice for group in plan.groups for file_slice in group.slices]
    named = [
        [*([file_slice.base_file] if file_slice.base_file else []), *file_slice.log_files]
        for file_slice in slices
    ]
    pairs = zip(slices, named, strict=True)
    keys = [f"{file_slice.partition}/{name}" for file_slice, names in pairs for name in names]
    sizes = np.maximum(find_sizes(state.files, to_arrow(keys)), 0)
    owners = np.repeat(np.arange(len(slices)), [len(names) for names in named])
    return np.bincount(owners, weights=sizes, minlength=len(slices)).astype(np.int64)


def _build_step(pending: PendingClustering, state: TableState) -> ResumeStep:
    because = (
        f"clustering {pending.instant} of an earlier apply was left {pending.state.lower()}: apply "
        "finishes it for the file slices that have not changed"
    )
    return ResumeStep(
        instant=pending.instant,
        action="clustering",
        files=empty_removed_files(),
        groups=build_resumed_rewrites(pending.plan, state, because),
        because=because,
    )


def _describe_foreign(pending: PendingClustering, now: datetime) -> str:
    slices = [file_slice for group in pending.plan.groups for file_slice in group.slices]
    partitions = sorted({file_slice.partition for file_slice in slices})
    named = ", ".join(repr(path) for path in partitions[:_SHOWN])
    where = named if len(partitions) <= _SHOWN else f"{named} and {len(partitions) - _SHOWN} more"
    age = _format_age(now.timestamp() - pending.started_ms / 1000)
    return (
        f"clustering {pending.instant} of another writer has been {pending.state.lower()} for "
        f"{age} and will rewrite {pluralize(len(slices), 'file group')} of {where}: nothing else "
        "compacts or clusters them, and updates to them fail; let its writer finish it "
        "(run_clustering with op => 'execute'), or let concurrency.pending.clustering finish it or "
        "roll it back"
    )


def _format_age(seconds: float) -> str:
    """Format a time span in its largest whole unit.

    >>> _format_age(7300), _format_age(59)
    ('2 hours', '59 seconds')
    """
    for size, unit in _UNITS:
        if seconds >= size:
            return pluralize(int(seconds // size), unit)
    return pluralize(max(0, int(seconds)), "second")
