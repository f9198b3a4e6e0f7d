"""The layout of a group, fitted to some of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa

from reconciler.curves.drawn import mixed, spread, wanted_rows
from reconciler.curves.layout import Curve, Layout, Mapping, fit, sample_rows
from reconciler.hudi.arrow import integers
from reconciler.merge.slice import Source
from reconciler.rewrite.model import Group, Rewrite
from reconciler.rewrite.parts import Part
from reconciler.rewrite.reading import Columns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """Rows of a part in the columns that order them, each standing for so many ``bytes``."""

    part: int
    rows: pa.Table
    bytes: float

    def write(self, sink: Any, *, compressed: bool) -> None:  # noqa: ARG002 (it is small)
        """Write it as bytes, for ``unpacked``."""
        said = {b"part": b"%d" % self.part, b"bytes": repr(self.bytes).encode()}
        rows: Any = self.rows.replace_schema_metadata(said)
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)


def sample_of(part: Part, work: Rewrite, source: Source) -> Sample | None:
    """Some rows of a part, as many as it has bytes of its group; None where it has none.

    Memory: the columns that order the rows.
    """
    columns = Columns.of(work, part.group, only_ordered=True)
    footers: list[Any] = []
    batches = [
        columns.by_order(rows, part.group) for rows in columns.read(part, source, footers.append)
    ]
    if not batches:
        return None
    table = pa.Table.from_batches(batches)
    begin, end = part.span(footers[0] if footers else None)
    wanted = wanted_rows(sample_rows(part.group.outputs), end - begin, 1.0)
    if wanted < len(table):
        table = table.take(integers(spread(len(table), wanted, part.number)))
    return Sample(
        part=part.number,
        rows=table.combine_chunks(),
        bytes=max((end - begin) * part.total, 1.0) / len(table),
    )


def fitted(work: Rewrite, group: Group, samples: Sequence[Sample]) -> Layout:
    """The layout for a group's files, the same whatever the order of the samples.

    Raises as ``curves.layout.fit`` does.
    """
    ordering = work.ordering
    samples = sorted(samples, key=lambda sample: sample.part)
    rows = pa.concat_tables([sample.rows for sample in samples]).combine_chunks()
    sizes = np.repeat(
        [sample.bytes for sample in samples], [len(sample.rows) for sample in samples]
    )
    return fit(
        rows,
        ordering.columns,
        files=group.outputs,
        curve=cast("Curve", ordering.curve or "kd-tree"),
        mapping=cast("Mapping", ordering.mapping or "rank"),
        queries=ordering.queries,
        # those of keys are as if drawn, and so are these
        ties=mixed(len(rows), len(samples)),
        sizes=sizes,
        places=ordering.places or None,
        zone=ordering.zone,
    )


def unpacked(data: Any) -> Sample:
    """Of bytes or a buffer of Arrow's."""
    rows = pa.ipc.open_stream(data).read_all()
    said = rows.schema.metadata
    return Sample(
        part=int(said[b"part"]),
        rows=rows.replace_schema_metadata(None),
        bytes=float(said[b"bytes"]),
    )
