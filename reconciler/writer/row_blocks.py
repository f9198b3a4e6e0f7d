"""Blocks of rows, keys or matches on their way from task to task: a header and an Arrow stream."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.arrays import Integers, to_arrow
from reconciler.rewrite.runs import make_ipc_options
from reconciler.spark.staged_rows import BlockForPartition

#: as long as Arrow's alignment, for the stream that follows
_HEAD: Final = struct.Struct("<BxxxII52x")
#: bytes in Arrow's memory that are collected before they are split into blocks
BLOCK_BYTES: Final = 24 * 1024 * 1024


class BlockKind(IntEnum):
    """What a block holds."""

    ROWS = 0
    KEYS = 1
    TAGS = 2
    BINS = 3
    CHANGES = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowBlock:
    """An Arrow batch, the ``number``-th that ``source`` sent; ``data``: the batch or its bytes.

    For keys, ``number`` is that of their partition.
    """

    kind: BlockKind
    source: int
    number: int
    data: Any

    def write(self, sink: Any, *, compressed: bool) -> None:
        """Write the block as bytes, for ``from_bytes``."""
        sink.write(_HEAD.pack(self.kind, self.source, self.number))
        options = make_ipc_options(compressed=compressed)
        with pa.ipc.new_stream(sink, self.data.schema, options=options) as writer:
            writer.write_batch(self.data)

    @classmethod
    def from_bytes(cls, data: Any) -> Self:
        """Read a block from bytes or an Arrow buffer; its batch stays in that memory."""
        kind, source, number = _HEAD.unpack_from(data)
        body = pa.py_buffer(data).slice(_HEAD.size)
        return cls(kind=BlockKind(kind), source=source, number=number, data=body)

    def read_batch(self) -> Any:
        """Return the batch."""
        if isinstance(self.data, pa.RecordBatch):
            return self.data
        return pa.ipc.open_stream(self.data).read_next_batch()


def sort_blocks(blocks: Iterable[RowBlock], kind: BlockKind) -> list[RowBlock]:
    """Return the blocks of a kind in the order in which they were sent."""
    selected = [block for block in blocks if block.kind is kind]
    return sorted(selected, key=lambda block: (block.source, block.number))


def combine_batches(batches: Iterable[Any]) -> Iterator[Any]:
    """Combine the rows into batches of about ``BLOCK_BYTES``."""
    waiting: list[Any] = []
    size = 0
    for batch in batches:
        if len(batch):
            waiting.append(batch)
            size += batch.nbytes
        if size >= BLOCK_BYTES:
            yield pa.concat_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.concat_batches(waiting)


def send_rows(
    batch: Any, tasks: NDArray[Any], kind: BlockKind, source: int, number: int
) -> Iterator[BlockForPartition]:
    """Yield a block for each task with its rows, in their order; ``tasks``: a number per row."""
    for task, rows in split_by_code(batch, tasks):
        yield task, RowBlock(kind=kind, source=source, number=number, data=rows)


def split_by_code(batch: Any, codes: NDArray[Any]) -> Iterator[tuple[int, Any]]:
    """Yield the rows of each code, in their order."""
    groups = list(group_rows(codes))
    if len(groups) > 1:
        batch = batch.take(to_arrow(np.concatenate([rows for _, rows in groups])))
    start = 0
    for code, rows in groups:
        yield code, batch.slice(start, len(rows))
        start += len(rows)


def group_rows(codes: NDArray[Any]) -> Iterator[tuple[int, Integers]]:
    """Yield each code, ascending, and the rows that have it.

    >>> [(code, rows.tolist()) for code, rows in group_rows(np.array([7, 3, 7]))]
    [(3, [1]), (7, [0, 2])]
    """
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True)[: len(ordered)]) + 1
    start = 0
    for end in ends.tolist():
        yield int(ordered[start]), order[start:end]
        start = end
