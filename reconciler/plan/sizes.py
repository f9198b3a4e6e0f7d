"""What a plan says of file sizes: how they are, and what the next rows would do to them.

It is for people to look at. No step comes of it, and apply does not read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.sizing.report import Bar, FileSizeState, MadeBy, SmallIn
from reconciler.sizing.simulate import Outlook, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """What so many new ``rows`` will do.

    ``because``: how they were spread and what a row was taken for, or why nothing was simulated.
    ``total``: of all partitions that get some, so many as ``into`` says; None where nothing was
    simulated. ``partitions``: those with most rows, at most a few.
    """

    rows: int
    because: str
    into: int = 0
    total: Outlook | None = None
    partitions: tuple[Outlook, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSizeReport:
    """The base files of newest slices beside what is declared of them.

    ``target``, ``small_below``: bytes. ``state``: of its partitions no more than those with most
    small files; ``small_partitions``: how many have any. ``next_insert``: None where nobody asked.
    """

    target: int
    small_below: int
    state: FileSizeState
    small_partitions: int
    next_insert: Simulated | None = None


def encoded(report: FileSizeReport) -> dict[str, Any]:
    """The ``fileSizes`` of a document."""
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
    return found | ({} if report.next_insert is None else {"nextInsert": _next(report.next_insert)})


def _next(simulated: Simulated) -> dict[str, Any]:
    return {
        "rows": simulated.rows,
        "because": simulated.because,
        "into": simulated.into,
        "total": None if simulated.total is None else _outlook(simulated.total),
        "partitions": [
            {"partition": each.partition} | _outlook(each) for each in simulated.partitions
        ],
    }


def _outlook(outlook: Outlook) -> dict[str, Any]:
    return {
        "rows": outlook.rows,
        "filled": outlook.filled,
        "filledRows": outlook.filled_rows,
        "filledTo": _span(outlook.filled_to),
        "rewritten": outlook.rewritten,
        "new": outlook.new,
        "newOf": _span(outlook.new_of),
        "small": outlook.small,
    }


def _span(span: Span | None) -> dict[str, int] | None:
    return None if span is None else {"least": span.least, "most": span.most}


def decoded(found: Mapping[str, Any]) -> FileSizeReport:
    """The report of a ``fileSizes`` that ``shape.check`` let pass."""
    simulated = found.get("nextInsert")
    return FileSizeReport(
        target=found["target"],
        small_below=found["smallBelow"],
        state=FileSizeState(
            files=found["files"],
            bytes=found["bytes"],
            small=found["small"],
            log_only=found["logOnly"],
            histogram=tuple(Bar(**bar) for bar in found["histogram"]),
            partitions=tuple(SmallIn(**each) for each in found["partitions"]),
            operations=tuple(MadeBy(**each) for each in found["operations"]),
        ),
        small_partitions=found["smallPartitions"],
        next_insert=None if simulated is None else _simulated(simulated),
    )


def _simulated(found: Mapping[str, Any]) -> Simulated:
    total = found["total"]
    return Simulated(
        rows=found["rows"],
        because=found["because"],
        into=found["into"],
        total=None if total is None else _outlook_of(total),
        partitions=tuple(_outlook_of(each) for each in found["partitions"]),
    )


def _outlook_of(found: Mapping[str, Any]) -> Outlook:
    return Outlook(
        partition=found.get("partition"),
        rows=found["rows"],
        filled=found["filled"],
        filled_rows=found["filledRows"],
        filled_to=_span_of(found["filledTo"]),
        rewritten=found["rewritten"],
        new=found["new"],
        new_of=_span_of(found["newOf"]),
        small=found["small"],
    )


def _span_of(found: Mapping[str, int] | None) -> Span | None:
    return None if found is None else Span(**found)
