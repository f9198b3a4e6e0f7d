"""Runs: rows that travel to a new file as bytes, a header followed by an Arrow stream."""

from __future__ import annotations

import struct
from typing import Any, Final, Literal, Self

import numpy as np
import pyarrow as pa

from reconciler.arrays import to_arrow, to_numpy
from reconciler.layout.curves.lanes import Lane
from reconciler.lazy_dataclass import dataclass
from reconciler.rewrite.model import Tally

#: prefix of the stream's columns that hold the sort keys of its rows
_KEY: Final = "reconciler.key."
#: as long as Arrow's alignment, for the stream that follows
_HEAD: Final = struct.Struct("<IIIQQQB27x")

#: the calendar of rows' dates: "none" for rows of logs, "unsaid" where the footer does not declare
#: it, "old" where that matters because dates are before 1582
DateCalendar = Literal["none", "unsaid", "old", "proleptic"]
_CALENDARS: Final[tuple[DateCalendar, ...]] = ("none", "unsaid", "old", "proleptic")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """Some rows of a part for output ``file`` of its group.

    ``part`` and ``number`` give the order in which rows were read. ``size``: bytes in Arrow's
    memory. ``tally``: counts of rows read; each row is in the tally of one run. ``data``: rows with
    their sort keys (``append_keys``), as a batch or as a received Arrow stream; empty for no rows.
    """

    part: int
    number: int
    file: int
    size: int = 0
    tally: Tally = Tally()
    calendar: DateCalendar = "none"
    data: Any = b""

    def write(self, sink: Any, *, compressed: bool) -> None:
        """Write the run as bytes, for ``from_bytes``."""
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
        """Read a run from bytes or an Arrow buffer; its rows stay in that memory."""
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
        """Return the rows with their sort keys; ``split_keys`` separates them."""
        if not self.size:
            return []
        if isinstance(self.data, pa.RecordBatch):
            return [self.data]
        return list(pa.ipc.open_stream(self.data))


def make_ipc_options(*, compressed: bool) -> Any:
    """Return Arrow's options for data between tasks; ``compressed``: it leaves this host."""
    return pa.ipc.IpcWriteOptions(compression="lz4" if compressed else None, use_threads=False)


def append_keys(rows: pa.RecordBatch, lanes: Lane) -> pa.RecordBatch:
    """Return the rows with their sort keys as additional columns."""
    for nth, lane in enumerate(lanes):
        rows = rows.append_column(pa.field(f"{_KEY}{nth}", pa.uint64()), to_arrow(lane))
    return rows


def split_keys(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Lane]:
    """Separate rows from their sort keys; the inverse of ``append_keys``."""
    count = sum(name.startswith(_KEY) for name in batch.schema.names)
    own_columns = batch.num_columns - count
    lanes = np.stack([to_numpy(batch.column(own_columns + nth)) for nth in range(count)])
    return batch.select(range(own_columns)), lanes
