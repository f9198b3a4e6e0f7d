"""Collect the statistics of a table that clustering and forecasts need from its state; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Final

import numpy as np

from reconciler.layout.sizing.record_size import RecordSize, estimate_record_size
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.column_ranges import ColumnRanges
from reconciler.spec.model import FileSizes
from reconciler.state.clustering_facts import ClusteringFacts
from reconciler.state.clustering_layout import PastClustering
from reconciler.state.model import TableState

_NO_FACTS: Final = ClusteringFacts(
    written=(), clusterings=(), footers=None, bounds=None, rows=np.zeros(0, np.int64)
)
_NO_FIXED_BYTES: Final = RecordSize(fixed=0, per_row=1024.0, because="declared")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KnownStatistics:
    """The known statistics of a table's rows and files.

    ``sizes``: record sizes. ``past``: completed clusterings of the active timeline. ``ranges``:
    value ranges of base files on the clustering columns; None: overlap is not measured.
    ``damaged``: why base files cannot be read, by their rows of the state's files. ``facts``: all
    that was read for a clustering.
    """

    sizes: RecordSize = _NO_FIXED_BYTES
    past: tuple[PastClustering, ...] = ()
    ranges: ColumnRanges | None = None
    damaged: Mapping[int, str] = field(default_factory=dict)
    facts: ClusteringFacts = _NO_FACTS


def collect_statistics(files: FileSizes, state: TableState) -> KnownStatistics:
    """Return the statistics of a table; ``files``: the declared file sizes.

    Without ``state.clustering_facts`` past writes are unknown and overlap is not measured.
    """
    unread = replace(_NO_FACTS, rows=np.zeros(len(state.files), np.int64))
    facts = state.clustering_facts or unread
    return KnownStatistics(
        sizes=estimate_record_size(facts.written, facts.footers, fallback=files.record_size),
        past=facts.clusterings,
        ranges=ColumnRanges.build(facts.bounds, facts.rows) if facts.bounds else None,
        damaged=_damaged_files(state, facts),
        facts=facts,
    )


def _damaged_files(state: TableState, facts: ClusteringFacts) -> dict[int, str]:
    """Return why base files cannot be read, by row, from every attempt to read them."""
    damaged, forecast_input = dict(facts.damaged), state.forecast_input
    if forecast_input is not None:
        damaged |= forecast_input.damaged
        damaged |= forecast_input.sample.damaged if forecast_input.sample is not None else {}
    return damaged
