"""Fit the layout of a group to a sample of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa

from reconciler.arrays import to_arrow
from reconciler.file_slices.merge.slice_reader import SliceSource
from reconciler.layout.curves.pseudo_random import (
    count_sample_rows,
    pick_spread_rows,
    pseudo_random_bits,
)
from reconciler.layout.curves.row_layout import (
    Curve,
    DirectMapping,
    FitSample,
    RowLayout,
    fit_layout,
    needed_sample_rows,
)
from reconciler.lazy_dataclass import dataclass
from reconciler.rewrite.group_columns import GroupColumns
from reconciler.rewrite.model import RewriteGroup, RewriteJob
from reconciler.rewrite.slice_parts import SlicePart


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayoutSample:
    """Sampled rows of a part, in the columns that order them; each stands for ``bytes`` bytes."""

    part: int
    rows: pa.Table
    bytes: float

    def write(self, sink: Any, *, compressed: bool) -> None:  # noqa: ARG002 (it is small)
        """Write the sample as bytes, for ``read_sample``."""
        metadata = {b"part": b"%d" % self.part, b"bytes": repr(self.bytes).encode()}
        rows: Any = self.rows.replace_schema_metadata(metadata)
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)


def sample_part(part: SlicePart, job: RewriteJob, source: SliceSource) -> LayoutSample | None:
    """Sample rows of a part in proportion to its bytes; None if it has no rows.

    Memory: the columns that order the rows.
    """
    columns = GroupColumns.from_job(job, part.group, only_ordering=True)
    footers: list[Any] = []
    batches = [
        columns.select_ordering(rows, part.group)
        for rows in columns.read(part, source, footers.append)
    ]
    if not batches:
        return None
    table = pa.Table.from_batches(batches)
    begin, end = part.span(footers[0] if footers else None)
    count = count_sample_rows(needed_sample_rows(part.group.outputs), end - begin, 1.0)
    if count < len(table):
        table = table.take(to_arrow(pick_spread_rows(len(table), count, part.number)))
    return LayoutSample(
        part=part.number,
        rows=table.combine_chunks(),
        bytes=max((end - begin) * part.total, 1.0) / len(table),
    )


def fit_group_layout(
    job: RewriteJob, group: RewriteGroup, samples: Sequence[LayoutSample]
) -> RowLayout:
    """Fit the layout of a group's files; the order of the samples does not matter.

    Raises as ``fit_layout`` of ``layout.curves`` does.
    """
    ordering = job.ordering
    samples = sorted(samples, key=lambda sample: sample.part)
    rows = pa.concat_tables([sample.rows for sample in samples]).combine_chunks()
    sizes = np.repeat(
        [sample.bytes for sample in samples], [len(sample.rows) for sample in samples]
    )
    # tie breakers of record keys are pseudo-random too, so these serve as well
    ties = pseudo_random_bits(len(rows), len(samples))
    direct = DirectMapping(positions=ordering.positions or None, zone=ordering.zone)
    return fit_layout(
        FitSample(rows=rows, ties=ties, sizes=sizes),
        ordering.columns,
        files=group.outputs,
        curve=cast("Curve", ordering.curve or "kd-tree"),
        queries=ordering.queries,
        direct=direct if ordering.mapping == "direct" else None,
    )


def read_sample(data: Any) -> LayoutSample:
    """Read a sample from bytes or an Arrow buffer."""
    rows = pa.ipc.open_stream(data).read_all()
    metadata = rows.schema.metadata
    return LayoutSample(
        part=int(metadata[b"part"]),
        rows=rows.replace_schema_metadata(None),
        bytes=float(metadata[b"bytes"]),
    )
