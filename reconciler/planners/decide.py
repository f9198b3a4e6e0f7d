"""The decision about a clustering from what was read of a table; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reconciler.hudi.view import View
from reconciler.planners.clustering import ClusteringDecision, plan_clustering
from reconciler.planners.overlap import Ranges
from reconciler.sizing.estimate import RecordSize, record_size
from reconciler.spec.model import FileSizes, TableSpec
from reconciler.state.evidence import Evidence
from reconciler.state.model import TableState

if TYPE_CHECKING:
    from reconciler.planners.scans import Scans


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Known:
    """What the planning of a clustering starts from."""

    files: FileSizes
    evidence: Evidence
    sizes: RecordSize
    ranges: Ranges | None


def known_of(spec: TableSpec, state: TableState) -> Known:
    """Without ``state.evidence`` nothing is known of past writes, and no overlap is judged."""
    files = spec.files or FileSizes()
    rows = np.zeros(len(state.files), np.int64)
    evidence = state.evidence or Evidence(
        written=(), clusterings=(), footers=None, bounds=None, rows=rows
    )
    return Known(
        files=files,
        evidence=evidence,
        sizes=record_size(evidence.written, evidence.footers, fallback=files.record_size),
        ranges=Ranges.of(evidence.bounds, evidence.rows) if evidence.bounds else None,
    )


def decide(
    spec: TableSpec, state: TableState, view: View, known: Known, scans: Scans | None = None
) -> ClusteringDecision:
    """What is rewritten; ``scans``: what is to be for the sake of queries."""
    return plan_clustering(
        spec,
        state,
        sizes=known.sizes,
        past=known.evidence.clusterings,
        ranges=known.ranges,
        view=view,
        scans=scans,
        damaged=_damaged(state, known.evidence),
    )


def _damaged(state: TableState, evidence: Evidence) -> dict[int, str]:
    """Why base files cannot be read, whoever has tried."""
    foresight = state.foresight
    found = dict(evidence.damaged)
    if foresight is not None:
        found |= foresight.damaged
        found |= foresight.sample.damaged if foresight.sample is not None else {}
    return found
