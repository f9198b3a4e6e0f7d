"""The report on file sizes in a plan: current sizes and the effect of the next insert.

It only informs people. No step depends on it, and apply does not read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.layout.sizing.simulate_inserts import InsertForecast, SizeRange
from reconciler.layout.sizing.size_report import (
    FileSizeState,
    HistogramBar,
    OperationFiles,
    PartitionSmallFiles,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertReport:
    """The predicted effect of inserting ``rows`` rows.

    ``because``: how rows were distributed and the size assumed for one, or why nothing was
    simulated. ``total``: the sum over all ``partition_count`` partitions that get rows; None if
    nothing was simulated. ``partitions``: the few with most rows.
    """

    rows: int
    because: str
    partition_count: int = 0
    total: InsertForecast | None = None
    partitions: tuple[InsertForecast, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSizeReport:
    """The sizes of current base files compared with the declared sizes.

    ``target``, ``small_below``: bytes. ``state``: lists only the partitions with most small files;
    ``small_partitions``: number of partitions with any. ``next_insert``: None if not requested.
    """

    target: int
    small_below: int
    state: FileSizeState
    small_partitions: int
    next_insert: InsertReport | None = None


def encode_file_sizes(report: FileSizeReport) -> dict[str, Any]:
    """Return the ``fileSizes`` of a plan document."""
    state = report.state
    found = {
        "target": report.target,
        "smallBelow": report.small_below,
        "files": state.files,
        "bytes": state.bytes,
        "small": state.small,
        "logOnly": state.log_only,
        "histogram": [
            {"least": bar.least, "below": bar.below, "files": bar.files, "bytes": bar.bytes}
            for bar in state.histogram
        ],
        "smallPartitions": report.small_partitions,
        "partitions": [
            {
                "partition": each.partition,
                "files": each.files,
                "small": each.small,
                "pinned": each.pinned,
                "bytes": each.bytes,
            }
            for each in state.partitions
        ],
        "operations": [
            {
                "operation": each.operation,
                "files": each.files,
                "small": each.small,
                "bytes": each.bytes,
            }
            for each in state.operations
        ],
    }
    return found | (
        {} if report.next_insert is None else {"nextInsert": _encode_inserts(report.next_insert)}
    )


def _encode_inserts(simulated: InsertReport) -> dict[str, Any]:
    return {
        "rows": simulated.rows,
        "because": simulated.because,
        "into": simulated.partition_count,
        "total": None if simulated.total is None else _encode_outlook(simulated.total),
        "partitions": [
            {"partition": each.partition} | _encode_outlook(each) for each in simulated.partitions
        ],
    }


def _encode_outlook(outlook: InsertForecast) -> dict[str, Any]:
    return {
        "rows": outlook.rows,
        "filled": outlook.filled,
        "filledRows": outlook.filled_rows,
        "filledTo": _encode_span(outlook.filled_sizes),
        "rewritten": outlook.rewritten,
        "new": outlook.new,
        "newOf": _encode_span(outlook.new_sizes),
        "small": outlook.small,
    }


def _encode_span(span: SizeRange | None) -> dict[str, int] | None:
    return None if span is None else {"least": span.least, "most": span.most}


def decode_file_sizes(found: Mapping[str, Any]) -> FileSizeReport:
    """Return the report of a validated ``fileSizes``."""
    simulated = found.get("nextInsert")
    return FileSizeReport(
        target=found["target"],
        small_below=found["smallBelow"],
        state=FileSizeState(
            files=found["files"],
            bytes=found["bytes"],
            small=found["small"],
            log_only=found["logOnly"],
            histogram=tuple(HistogramBar(**bar) for bar in found["histogram"]),
            partitions=tuple(PartitionSmallFiles(**each) for each in found["partitions"]),
            operations=tuple(OperationFiles(**each) for each in found["operations"]),
        ),
        small_partitions=found["smallPartitions"],
        next_insert=None if simulated is None else _decode_inserts(simulated),
    )


def _decode_inserts(found: Mapping[str, Any]) -> InsertReport:
    total = found["total"]
    return InsertReport(
        rows=found["rows"],
        because=found["because"],
        partition_count=found["into"],
        total=None if total is None else _decode_outlook(total),
        partitions=tuple(_decode_outlook(each) for each in found["partitions"]),
    )


def _decode_outlook(found: Mapping[str, Any]) -> InsertForecast:
    return InsertForecast(
        partition=found.get("partition"),
        rows=found["rows"],
        filled=found["filled"],
        filled_rows=found["filledRows"],
        filled_sizes=_decode_span(found["filledTo"]),
        rewritten=found["rewritten"],
        new=found["new"],
        new_sizes=_decode_span(found["newOf"]),
        small=found["small"],
    )


def _decode_span(found: Mapping[str, int] | None) -> SizeRange | None:
    return None if found is None else SizeRange(**found)
