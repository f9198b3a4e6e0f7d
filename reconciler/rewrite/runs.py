"""Rows on their way to a new file, as bytes: a head, then an Arrow stream."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

import numpy as np
import pyarrow as pa

from reconciler.arrays import to_integer_array, to_numpy_numbers
from reconciler.layout.curves.lanes import Lane
from reconciler.rewrite.model import Tally

#: columns of the stream that hold the keys of its rows
_KEY: Final = "reconciler.key."
#: as long as Arrow aligns its vectors, for the stream behind it
_HEAD: Final = struct.Struct("<IIIQQQB27x")

#: how the dates of rows are counted: "none" where nothing says it (rows of logs), "old" where
#: nothing says it and it matters
DateCalendar = Literal["none", "unsaid", "old", "proleptic"]
_CALENDARS: Final[tuple[DateCalendar, ...]] = ("none", "unsaid", "old", "proleptic")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """Some rows of a part for output ``file`` of its group.

    ``part`` and ``number`` say where they come from: in that order rows are as they were read.
    ``size``: bytes in Arrow's memory. ``tally``: of rows read, each told in one run of its part.
    ``data``: the rows with their keys (``append_keys``): a batch as it was cut, or an Arrow stream as it
    came; empty for no rows.
    """

    part: int
    number: int
    file: int
    size: int = 0
    tally: Tally = Tally()  # noqa: RUF009 (frozen)
    calendar: DateCalendar = "none"
    data: Any = b""

    def write(self, sink: Any, *, compressed: bool) -> None:
        """Write it as bytes, for ``from_bytes``."""
        sink.write(self._encode_head())
        if isinstance(self.data, pa.RecordBatch):
            options = make_ipc_options(compressed=compressed)
            with pa.ipc.new_stream(sink, self.data.schema, options=options) as writer:
                writer.write_batch(self.data)
        elif self.size:
            sink.write(self.data)

    def _encode_head(self) -> bytes:
        return _HEAD.pack(
            self.part,
            self.number,
            self.file,
            self.size,
            self.tally.rows,
            self.tally.keys,
            _CALENDARS.index(self.calendar),
        )

    @classmethod
    def from_bytes(cls, data: Any) -> Self:
        """Of bytes or a buffer of Arrow's, in whose memory the rows stay."""
        part, number, file, size, rows, keys, counted = _HEAD.unpack_from(data)
        return cls(
            part=part,
            number=number,
            file=file,
            size=size,
            tally=Tally(rows=rows, keys=keys),
            calendar=_CALENDARS[counted],
            data=pa.py_buffer(data).slice(_HEAD.size),
        )

    def read_batches(self) -> list[pa.RecordBatch]:
        """The rows with their keys; ``split_keys`` parts them."""
        if not self.size:
            return []
        if isinstance(self.data, pa.RecordBatch):
            return [self.data]
        return list(pa.ipc.open_stream(self.data))


def make_ipc_options(*, compressed: bool) -> Any:
    """Of what goes from task to task; ``compressed``: not to a disk beside alone."""
    return pa.ipc.IpcWriteOptions(compression="lz4" if compressed else None, use_threads=False)


def append_keys(rows: pa.RecordBatch, lanes: Lane) -> pa.RecordBatch:
    """The rows with their keys as columns."""
    fields = [*rows.schema, *(pa.field(f"{_KEY}{nth}", pa.uint64()) for nth in range(len(lanes)))]
    columns = [*rows.columns, *map(to_integer_array, lanes)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def split_keys(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Lane]:
    """The inverse of ``append_keys``."""
    count = sum(name.startswith(_KEY) for name in batch.schema.names)
    own = batch.num_columns - count
    lanes = np.stack([to_numpy_numbers(batch.column(own + nth)) for nth in range(count)])
    return batch.select(range(own)), lanes
