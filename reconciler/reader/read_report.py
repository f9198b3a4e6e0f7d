"""Report what a read touches, in numbers; pure."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler import canonical_json
from reconciler.arrays import to_arrow, to_numpy
from reconciler.lazy_dataclass import dataclass
from reconciler.reader.merge_report import MergeReport
from reconciler.reader.model import PythonReason, find_python_reasons
from reconciler.reader.pruning import PrunedScan
from reconciler.reader.request import ReadArguments
from reconciler.reader.row_group_counts import RowGroupCounts
from reconciler.reader.skipping import SkipDecision
from reconciler.reader.spark_types import format_spark_type


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonSlices:
    """File slices that Python workers read, for one reason."""

    reason: str
    because: str
    slices: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStage:
    """The files left to read after a stage: all, partitions, index."""

    stage: str
    base_files: int
    base_bytes: int
    log_files: int
    log_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceDecisions:
    """Slices with the same decision. ``files``: each slice's base file, else its first log file."""

    decision: str
    because: str
    is_read: bool
    slices: int
    bytes: int
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadReport:
    """A read before it runs.

    ``as_of``: the shown instant, None for a table without a completed write; ``columns``: names and
    types as Spark spells them; ``partitions``: those with rows, ``kept_partitions``: those that are
    read; sizes in bytes; ``direct_slices``: base files alone, read by Spark's own reader.
    ``stages``: what is left after each; ``decided``: every slice's decision; ``row_groups``: counts
    in the slices that are read, None if none is skipped. ``index``: the index file that was read,
    below the table; ``problems``: why something was not used. ``damaged``: truncated log files.
    ``merging``: what is merged, None if no log file is read.
    """

    table: str
    kind: str
    as_of: str | None
    begin: str | None
    end: str | None
    where: str | None
    columns: tuple[tuple[str, str], ...]
    partitions: int
    kept_partitions: int
    direct_slices: int
    python_slices: int
    through_python: tuple[PythonSlices, ...]
    base_files: int
    base_bytes: int
    log_files: int
    log_bytes: int
    stages: tuple[ReadStage, ...] = ()
    decided: tuple[SliceDecisions, ...] = ()
    row_groups: RowGroupCounts | None = None
    index: str | None = None
    problems: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()
    merging: MergeReport | None = field(default=None, metadata={"optional": True})

    def to_document(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        columns = [{"name": name, "type": kind} for name, kind in self.columns]
        return {"format": 1, **canonical_json.to_document(self), "columns": columns}


def make_read_report(
    pruned: PrunedScan,
    arguments: ReadArguments,
    *,
    where: str | None = None,
    spark_reaches: bool = True,
    row_groups: RowGroupCounts | None = None,
    damaged: tuple[str, ...] = (),
) -> ReadReport:
    """Report what a read touches. ``pruned``: what ``where`` leaves of the scan."""
    scan, kept_scan = pruned.scan, pruned.kept
    reasons = find_python_reasons(kept_scan, spark_reaches=spark_reaches)
    counts = {reason: int(np.count_nonzero(reasons == reason)) for reason in PythonReason}
    stages = _count_stages(pruned)
    return ReadReport(
        table=scan.location,
        kind=arguments.kind,
        as_of=scan.as_of,
        begin=arguments.begin,
        end=arguments.end,
        where=where,
        columns=tuple((field.name, format_spark_type(field.type)) for field in scan.schema),
        partitions=_count_partitions(scan.slices),
        kept_partitions=_count_partitions(kept_scan.slices),
        direct_slices=int(np.count_nonzero(reasons < 0)),
        python_slices=sum(counts.values()),
        through_python=tuple(
            PythonSlices(reason=reason.key, because=reason.because, slices=count)
            for reason, count in counts.items()
            if count
        ),
        base_files=stages[-1].base_files,
        base_bytes=stages[-1].base_bytes,
        log_files=stages[-1].log_files,
        log_bytes=stages[-1].log_bytes,
        stages=stages,
        decided=_count_decisions(pruned),
        row_groups=row_groups,
        index=pruned.index,
        problems=pruned.problems,
        damaged=damaged,
    )


def _count_stages(pruned: PrunedScan) -> tuple[ReadStage, ...]:
    is_in_partition = pruned.decisions != SkipDecision.PARTITION
    slices = pruned.scan.slices
    return (
        _count_stage("all", slices),
        _count_stage("partitions", slices.filter(to_arrow(is_in_partition))),
        _count_stage("index", pruned.kept.slices),
    )


def _count_stage(name: str, slices: pa.Table) -> ReadStage:
    return ReadStage(
        stage=name,
        base_files=len(slices) - slices.column("base").null_count,
        base_bytes=_sum_column(slices, "base_size"),
        log_files=int(pc.sum(pc.list_value_length(slices.column("logs"))).as_py() or 0),
        log_bytes=_sum_column(slices, "log_size"),
    )


def _count_decisions(pruned: PrunedScan) -> tuple[SliceDecisions, ...]:
    """Group the slices by decision, skipped ones first."""
    decisions = []
    for decision in SkipDecision:
        mask = pruned.decisions == decision
        if mask.any():
            slices = pruned.scan.slices.filter(to_arrow(mask))
            decisions.append(
                SliceDecisions(
                    decision=decision.key,
                    because=decision.because,
                    is_read=decision.is_read,
                    slices=len(slices),
                    bytes=_sum_column(slices, "base_size") + _sum_column(slices, "log_size"),
                    files=tuple(_list_names(slices)),
                )
            )
    return tuple(decisions)


def _list_names(slices: pa.Table) -> list[str]:
    bases: list[str | None] = slices.column("base").to_pylist()
    logs: list[list[str]] = slices.column("logs").to_pylist()
    return [base or some[0] for base, some in zip(bases, logs, strict=True)]


def _count_partitions(slices: pa.Table) -> int:
    return int(pc.count_distinct(slices.column("partition")).as_py())


def _sum_column(slices: pa.Table, name: str) -> int:
    return int(to_numpy(slices.column(name).combine_chunks()).sum())
