"""Rows on their way to a new file, as bytes: a head, then an Arrow stream."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

import numpy as np
import pyarrow as pa

from reconciler.curves.lanes import Lane
from reconciler.hudi.arrow import integers, numbers
from reconciler.rewrite.model import Tally

#: columns of the stream that hold the keys of its rows
_KEY: Final = "reconciler.key."
#: as long as Arrow aligns its vectors, for the stream behind it
_HEAD: Final = struct.Struct("<IIIQQQB27x")

#: how the dates of rows are counted: "none" where nothing says it (rows of logs), "old" where
#: nothing says it and it matters
Counted = Literal["none", "unsaid", "old", "proleptic"]
_COUNTED: Final[tuple[Counted, ...]] = ("none", "unsaid", "old", "proleptic")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """Some rows of a part for output ``file`` of its group.

    ``part`` and ``number`` say where they come from: in that order rows are as they were read.
    ``size``: bytes in Arrow's memory. ``tally``: of rows read, each told in one run of its part.
    ``data``: the rows with their keys (``joined``): a batch as it was cut, or an Arrow stream as it
    came; empty for no rows.
    """

    part: int
    number: int
    file: int
    size: int = 0
    tally: Tally = Tally()  # noqa: RUF009 (frozen)
    counted: Counted = "none"
    data: Any = b""

    def write(self, sink: Any, *, compressed: bool) -> None:
        """Write it as bytes, for ``unpacked``."""
        sink.write(self._head())
        if isinstance(self.data, pa.RecordBatch):
            options = ipc_options(compressed=compressed)
            with pa.ipc.new_stream(sink, self.data.schema, options=options) as writer:
                writer.write_batch(self.data)
        elif self.size:
            sink.write(self.data)

    def _head(self) -> bytes:
        return _HEAD.pack(
            self.part,
            self.number,
            self.file,
            self.size,
            self.tally.rows,
            self.tally.keys,
            _COUNTED.index(self.counted),
        )

    @classmethod
    def unpacked(cls, data: Any) -> Self:
        """Of bytes or a buffer of Arrow's, in whose memory the rows stay."""
        part, number, file, size, rows, keys, counted = _HEAD.unpack_from(data)
        return cls(
            part=part,
            number=number,
            file=file,
            size=size,
            tally=Tally(rows=rows, keys=keys),
            counted=_COUNTED[counted],
            data=pa.py_buffer(data).slice(_HEAD.size),
        )

    def rows(self) -> list[pa.RecordBatch]:
        """The rows with their keys; ``split`` parts them."""
        if not self.size:
            return []
        if isinstance(self.data, pa.RecordBatch):
            return [self.data]
        return list(pa.ipc.open_stream(self.data))


def ipc_options(*, compressed: bool) -> Any:
    """Of what goes from task to task; ``compressed``: not to a disk beside alone."""
    return pa.ipc.IpcWriteOptions(compression="lz4" if compressed else None, use_threads=False)


def joined(rows: pa.RecordBatch, lanes: Lane) -> pa.RecordBatch:
    """The rows with their keys as columns."""
    fields = [*rows.schema, *(pa.field(f"{_KEY}{nth}", pa.uint64()) for nth in range(len(lanes)))]
    columns = [*rows.columns, *map(integers, lanes)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def split(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Lane]:
    """The inverse of ``joined``."""
    count = sum(name.startswith(_KEY) for name in batch.schema.names)
    own = batch.num_columns - count
    lanes = np.stack([numbers(batch.column(own + nth)) for nth in range(count)])
    return batch.select(range(own)), lanes
