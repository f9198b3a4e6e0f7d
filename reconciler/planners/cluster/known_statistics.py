"""Collect the statistics that clustering and forecasts need from a table's state; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reconciler.hudi.files.view import FileView
from reconciler.layout.sizing.record_size import RecordSize, estimate_record_size
from reconciler.planners.cluster.overlap import ColumnRanges
from reconciler.planners.cluster.planner import ClusteringDecision, plan_clustering
from reconciler.spec.model import FileSizes, TableSpec
from reconciler.state.clustering_facts import ClusteringFacts
from reconciler.state.model import TableState

if TYPE_CHECKING:
    from reconciler.planners.prediction.current_reads import MaxScanDemand


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KnownStatistics:
    """The statistics of a table: declared file sizes, facts read, record sizes, value ranges."""

    files: FileSizes
    facts: ClusteringFacts
    sizes: RecordSize
    ranges: ColumnRanges | None


def collect_statistics(spec: TableSpec, state: TableState) -> KnownStatistics:
    """Return the statistics of a table.

    Without ``state.clustering_facts`` past writes are unknown and overlap is not measured.
    """
    files = spec.files or FileSizes()
    rows = np.zeros(len(state.files), np.int64)
    evidence = state.clustering_facts or ClusteringFacts(
        written=(), clusterings=(), footers=None, bounds=None, rows=rows
    )
    return KnownStatistics(
        files=files,
        facts=evidence,
        sizes=estimate_record_size(evidence.written, evidence.footers, fallback=files.record_size),
        ranges=ColumnRanges.build(evidence.bounds, evidence.rows) if evidence.bounds else None,
    )


def decide_clustering(
    spec: TableSpec,
    state: TableState,
    view: FileView,
    known: KnownStatistics,
    max_scan: MaxScanDemand | None = None,
) -> ClusteringDecision:
    """Decide what to rewrite. ``max_scan``: slices to rewrite for queries over ``maxScan``."""
    return plan_clustering(
        spec,
        state,
        sizes=known.sizes,
        past=known.facts.clusterings,
        ranges=known.ranges,
        view=view,
        max_scan=max_scan,
        damaged=_damaged_files(state, known.facts),
    )


def _damaged_files(state: TableState, evidence: ClusteringFacts) -> dict[int, str]:
    """Return why base files cannot be read, by row, from every attempt to read them."""
    foresight = state.forecast_input
    found = dict(evidence.damaged)
    if foresight is not None:
        found |= foresight.damaged
        found |= foresight.sample.damaged if foresight.sample is not None else {}
    return found
