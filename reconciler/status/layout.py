"""The layout of a table's files, compared with its spec; pure.

Only tables whose spec declares a clustering or file sizes have one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan
from typing import TYPE_CHECKING, Final

import numpy as np

from reconciler.hudi.timeline.instant import Action
from reconciler.plans.compact_step import CompactStep
from reconciler.plans.refused_steps import find_refused_kinds, list_applied_steps
from reconciler.spec.model import Clustering, FileSizes, TableSpec
from reconciler.state.clustering_layout import ClusteringLayout
from reconciler.state.extra_metadata import PLAN_DIGEST
from reconciler.state.measured_queries import parse_measurements
from reconciler.state.model import TableState
from reconciler.status.model import (
    ClusteringStatus,
    LayoutStatus,
    PartitionStatus,
    PendingClusteringStatus,
    PendingStatus,
    PlannedLayout,
    SizeClass,
)

if TYPE_CHECKING:
    from reconciler.planners.cluster.layout_figures import PartitionFigures
    from reconciler.plans.model import TablePlan

#: partitions that a status names
_MAX_PARTITIONS: Final = 20


def layout_status(
    spec: TableSpec,
    state: TableState,
    plan: TablePlan,
    *,
    age: Callable[[str], int | None],
    pending: Sequence[PendingStatus],
) -> LayoutStatus | None:
    """Return the layout status of a table; None if its spec declares no rewrite.

    ``age``: returns the seconds since an instant, None if its zone is unknown.
    """
    block = spec.rewriting
    if block is None:
        return None
    figures = _layout_figures(spec, state)
    declared = ClusteringLayout()
    if block.columns:
        declared = ClusteringLayout(columns=block.columns, curve=block.curve, mapping=block.mapping)
    return LayoutStatus(
        columns=declared.columns,
        curve=declared.curve,
        mapping=declared.mapping,
        sizes=_size_classes(figures),
        overlap=_round_overlap(figures.table_overlap),
        partitions=int((figures.files > 0).sum()),
        small_partitions=int((figures.small > 0).sum()),
        worst=_worst_partitions(figures, block),
        planned=_planned_layout(plan),
        last_clustering=_last_clustering(state, declared, age),
        pending=_pending_clusterings(state, pending),
    )


def _layout_figures(spec: TableSpec, state: TableState) -> PartitionFigures:
    # few specs have the block
    from reconciler.planners.cluster.layout_figures import measure_layout  # noqa: PLC0415
    from reconciler.planners.column_ranges import ColumnRanges  # noqa: PLC0415
    from reconciler.planners.newest_slices import find_candidates  # noqa: PLC0415

    evidence, ranges = state.clustering_facts, None
    if evidence is not None and evidence.bounds is not None:
        ranges = ColumnRanges.build(evidence.bounds, evidence.rows)
    return measure_layout(find_candidates(state), spec.files or FileSizes(), ranges)


def _size_classes(figures: PartitionFigures) -> tuple[SizeClass, ...]:
    sizes = figures.sizes
    ends, files = [*sizes.upper_bounds.tolist(), None], sizes.files.tolist()
    rows = zip(ends, files, sizes.bytes.tolist(), strict=True)
    return tuple(SizeClass(below=end, files=count, bytes=size) for end, count, size in rows)


def _round_overlap(overlap: float) -> float | None:
    return None if isnan(overlap) else round(overlap, 2)


def _worst_partitions(figures: PartitionFigures, block: Clustering) -> tuple[PartitionStatus, ...]:
    overlap = np.nan_to_num(figures.overlap)
    above = block.when.overlap_above
    is_bad = figures.small > 0
    if above is not None:
        is_bad |= overlap > above
    places = np.flatnonzero(is_bad)
    order = places[np.lexsort((places, -overlap[places], -figures.small[places]))][:_MAX_PARTITIONS]
    return tuple(
        PartitionStatus(
            partition=figures.partition[place].as_py(),
            files=int(figures.files[place]),
            small_files=int(figures.small[place]),
            small_file_share=round(float(figures.small[place] / figures.files[place]), 6),
            overlap=_round_overlap(float(figures.overlap[place])),
        )
        for place in order.tolist()
    )


def _planned_layout(plan: TablePlan) -> PlannedLayout | None:
    if plan.layout is None or "cluster" in find_refused_kinds(plan.refusals):
        return None
    after = plan.layout.after
    compactions = (one for one in list_applied_steps(plan) if isinstance(one, CompactStep))
    compacted = sum(int(one.groups.bytes.sum()) for one in compactions)
    return PlannedLayout(
        bytes_rewritten=plan.impact.bytes_rewritten - compacted,
        files_after=after.files,
        small_files_after=after.small,
        overlap_after=after.overlap,
    )


def _last_clustering(
    state: TableState, declared: ClusteringLayout, age: Callable[[str], int | None]
) -> ClusteringStatus | None:
    if state.clustering_facts is None or not state.clustering_facts.clusterings:
        return None
    last = state.clustering_facts.clusterings[-1]
    layout = last.layout
    return ClusteringStatus(
        instant=last.instant,
        age_seconds=age(last.instant),
        columns=None if layout is None else layout.columns,
        curve=None if layout is None else layout.curve,
        mapping=None if layout is None else layout.mapping,
        is_as_declared=not declared.columns or layout == declared,
        is_ours=PLAN_DIGEST in last.extra,
        queries=parse_measurements(last.extra),
    )


def _pending_clusterings(
    state: TableState, pending: Sequence[PendingStatus]
) -> tuple[PendingClusteringStatus, ...]:
    groups: dict[str, set[tuple[str, str]]] = {}
    for group in state.clusterings:
        groups.setdefault(group.instant, set()).add((group.partition, group.file_id))
    return tuple(
        PendingClusteringStatus(
            instant=write.instant,
            state=write.state,
            age_seconds=write.age_seconds,
            is_stuck=write.is_stuck,
            file_groups=len(groups.get(write.instant, ())),
            partitions=len({partition for partition, _ in groups.get(write.instant, ())}),
        )
        for write in pending
        if write.action == Action.CLUSTERING.value or write.instant in groups
    )
