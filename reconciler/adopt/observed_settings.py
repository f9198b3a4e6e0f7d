"""Settings that show on a table: clustering, file sizes and log files. Pure.

Options of writers are not on storage, so the rest stays unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from reconciler.hudi.files.table_files import FileKind
from reconciler.hudi.files.view import FileView
from reconciler.hudi.timeline.plans import RequestedReplace
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.newest_slices import find_candidates
from reconciler.state.clustering_layout import LAYOUT_KEY, ClusteringLayout
from reconciler.state.current_files import mark_read_files
from reconciler.state.model import TableState

_CURVE: Final = "hoodie.layout.optimize.strategy"
_CURVES: Final = {"linear": "linear", "zorder": "z-order", "hilbert": "hilbert"}

#: fewer files do not show the size that writers fill them to
_MIN_FILES: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedClustering:
    """The newest clustering plan; ``curve``, ``mapping`` None: it does not record them, as Hudi's.

    ``equal_plans`` of the ``plans`` on the timeline, this one included, sort by the same columns.
    """

    instant: str
    columns: tuple[str, ...]
    curve: str | None
    mapping: str | None = None
    equal_plans: int
    plans: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedSizes:
    """Bytes of the base files in the newest slices: 95 of 100 are at most ``common_size``."""

    files: int
    common_size: int
    largest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedLogs:
    """The log files of the newest slices: in ``slices`` of ``of_slices``; sizes in bytes."""

    slices: int
    of_slices: int
    files: int
    bytes: int
    base_bytes: int


def observe_clustering(plans: Iterable[tuple[str, RequestedReplace]]) -> ObservedClustering | None:
    """Return the newest clustering of (instant, requested file) pairs; None if there is none."""
    clusterings = {instant: plan for instant, plan in plans if plan.is_clustering}
    if not clusterings:
        return None
    instant = max(clusterings)
    newest = clusterings[instant]
    layout = _read_layout(newest, instant)
    return ObservedClustering(
        instant=instant,
        columns=layout.columns,
        curve=layout.curve,
        mapping=layout.mapping,
        equal_plans=sum(plan.sort_columns == newest.sort_columns for plan in clusterings.values()),
        plans=len(clusterings),
    )


def _read_layout(plan: RequestedReplace, instant: str) -> ClusteringLayout:
    """Return the layout of a plan: recorded by reconciler, else what Hudi's options tell."""
    if LAYOUT_KEY in plan.extra:
        return ClusteringLayout.parse(plan.extra[LAYOUT_KEY], f"clustering {instant}")
    curve = _CURVES.get(plan.strategy.get(_CURVE, "").lower().replace("-", ""))
    return ClusteringLayout(columns=plan.sort_columns, curve=curve)


def observe_sizes(view: FileView) -> ObservedSizes | None:
    """Return the sizes of base files in the newest slices; None if there are too few."""
    files = view.files
    sizes = files.size[mark_read_files(view) & (files.kind == FileKind.BASE)]
    if len(sizes) < _MIN_FILES:
        return None
    ordered = np.sort(sizes)
    rank = -(-len(ordered) * 95 // 100) - 1  # not np.percentile: take the size of a file
    return ObservedSizes(
        files=len(ordered), common_size=int(ordered[rank]), largest=int(ordered[-1])
    )


def observe_logs(state: TableState) -> ObservedLogs | None:
    """Return the log files of the newest slices; None if there are none."""
    slices = find_candidates(state)
    files = np.bincount(slices.log_slice, minlength=len(slices))
    if not files.any():
        return None
    return ObservedLogs(
        slices=int((files > 0).sum()),
        of_slices=len(slices),
        files=int(files.sum()),
        bytes=int(slices.logs.sum()),
        base_bytes=int(slices.base.sum()),
    )
