"""The report on file sizes in a plan: current sizes and the effect of the next insert.

It only informs reviewers. No step depends on it, and apply does not read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from reconciler import canonical_json
from reconciler.layout.sizing.simulate_inserts import InsertForecast
from reconciler.layout.sizing.size_report import FileSizeState
from reconciler.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertReport:
    """The predicted effect of inserting ``rows`` rows.

    ``because``: how rows were distributed and the size assumed for one, or why nothing was
    simulated. ``total``: the sum over all ``partition_count`` partitions that get rows; None if
    nothing was simulated. ``partitions``: the few with most rows. ``brought``: bytes of the new
    rows. ``written_per_byte``: bytes written for each of them, if inserts like this one go on.
    """

    rows: int
    because: str
    partition_count: int = field(default=0, metadata={"name": "into"})
    total: InsertForecast | None = None
    partitions: tuple[InsertForecast, ...] = ()
    brought: int | None = field(default=None, metadata={"optional": True})
    written_per_byte: float | None = field(default=None, metadata={"optional": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSizeReport:
    """The sizes of current base files compared with the declared sizes.

    ``target``, ``small_below``: bytes. ``state``: lists only the partitions with most small files;
    ``small_partitions``: number of partitions with any. ``next_insert``: None if not requested.
    """

    target: int
    small_below: int
    state: FileSizeState = field(metadata={"name": None})
    small_partitions: int
    next_insert: InsertReport | None = field(default=None, metadata={"optional": True})


def encode_file_sizes(report: FileSizeReport) -> dict[str, Any]:
    """Return the ``fileSizes`` of a plan document."""
    return {**canonical_json.to_document(report.state), **canonical_json.to_document(report)}


def decode_file_sizes(document: Mapping[str, Any]) -> FileSizeReport:
    """Return the report of a validated ``fileSizes``."""
    state = canonical_json.from_document(FileSizeState, document)
    return canonical_json.from_document(FileSizeReport, document, state=state)
