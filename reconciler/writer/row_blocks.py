"""Blocks of rows, keys or matches on their way from task to task: a header and an Arrow stream.

Tasks read blocks of rows as chunks: which rows are written, and which have keys that files hold.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.arrays import Codes, Integers, Mask, to_arrow, to_numpy
from reconciler.errors import ReconcilerError
from reconciler.file_slices.base_file.meta_columns import PARTITION, RECORD_KEY
from reconciler.file_slices.merge.record_keys import find_deletions
from reconciler.layout.sizing.key_routing import Hashes, hash_record_keys
from reconciler.lazy_dataclass import dataclass
from reconciler.rewrite.runs import make_ipc_options
from reconciler.spark.staged_rows import BlockForPartition
from reconciler.writer.dedupe import DedupeRule, choose_rows
from reconciler.writer.index_buckets import IndexBuckets
from reconciler.writer.job import RowJob, RowOperation

#: as long as Arrow's alignment, for the stream that follows
_HEAD: Final = struct.Struct("<BxxxII52x")
#: bytes in Arrow's memory that are collected before they are split into blocks
BLOCK_BYTES: Final = 24 * 1024 * 1024


class BlockKind(IntEnum):
    """The kind of content of a block."""

    ROWS = 0
    KEYS = 1
    TAGS = 2
    BINS = 3
    CHANGES = 4
    ANSWERS = 5


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


class MatchOutcome(IntEnum):
    """The outcome for a row whose key a file holds.

    ``CHANGES``: it replaces or deletes the file's row. ``MOVES``: the file's row is deleted, and
    the row is new in its own partition. ``STAYS``: the file's row is newer and stays. ``REVIVES``:
    log files have deleted the file's row; a row with its key comes back unless another file has it.
    """

    CHANGES = 0
    MOVES = 1
    STAYS = 2
    REVIVES = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class RowChunk:
    """Rows that came together. ``incoming_count``: their number before one per key was chosen.

    ``rows``: those that are written, with key and path. ``is_deletion``: whether each deletes its
    key. ``source`` and ``number``: their order among all chunks.
    """

    source: int
    number: int
    incoming_count: int
    rows: Any
    is_deletion: Mask

    @cached_property
    def hashes(self) -> Hashes:
        """Hashes of the keys."""
        return hash_record_keys(self.rows.column(RECORD_KEY))

    def encode_paths(self, rows: Integers) -> tuple[Codes, list[str]]:
        """Return the partition paths of some rows as codes, and what the codes stand for."""
        column = self.rows.column(PARTITION).take(to_arrow(rows)).dictionary_encode()
        return to_numpy(column.indices), column.dictionary.to_pylist()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatchedRows:
    """``new``: rows whose keys no file holds, without deletions; ``row``, ``file``: matches.

    A row occurs for each file that holds its key; files are indexes into FileGroupSizes.
    ``is_moved``: per match, whether the row is among the new ones too and the file's row is
    deleted. ``position``: per match, the number of the file's row, -1 if it is not known.
    """

    new: Integers
    row: Integers
    file: Integers
    is_moved: Mask
    position: Integers

    def removes_old_row(self, chunk: RowChunk) -> Mask:
        """Return whether each match removes the file's row."""
        return chunk.is_deletion[self.row] | self.is_moved


def build_chunks(partition: int, blocks: Iterable[RowBlock], row_job: RowJob) -> Iterator[RowChunk]:
    """Yield what is written of the rows of a shuffle partition; one chunk if keys are unique."""
    row_blocks = sort_blocks(blocks, BlockKind.ROWS)
    if not row_job.keeps_one_per_key:
        for block in row_blocks:
            rows = block.read_batch()
            yield RowChunk(
                source=block.source,
                number=block.number,
                incoming_count=len(rows),
                rows=rows,
                is_deletion=find_deletions(rows, row_job.rules.dedupe.delete_marker),
            )
    elif row_blocks:
        rows = pa.concat_batches([block.read_batch() for block in row_blocks])
        yield _choose_rows(partition, rows, row_job)


def _choose_rows(partition: int, rows: Any, row_job: RowJob) -> RowChunk:
    keys, paths = rows.column(RECORD_KEY), rows.column(PARTITION).dictionary_encode()
    is_delete = row_job.operation is RowOperation.DELETE
    rule = row_job.rules.dedupe
    if is_delete:  # deletions have no event times and no markers
        rule = DedupeRule(is_global=rule.is_global)
    chosen = choose_rows(rows, keys, paths, rule)
    is_whole = len(chosen.rows) == len(rows)
    return RowChunk(
        source=partition,
        number=0,
        incoming_count=len(rows),
        rows=rows if is_whole else rows.take(to_arrow(chosen.rows)),
        is_deletion=np.ones(len(chosen.rows), np.bool_) if is_delete else chosen.is_deletion,
    )


def make_tags(
    file: int,
    keys: Any,
    outcome: NDArray[np.int8] | None = None,
    position: Integers | None = None,
) -> Any:
    """Return a batch for ``match_rows`` about rows whose keys a file holds, with their source.

    ``keys``: columns key, row and source. Without ``outcome`` all rows replace or delete the file's
    row. ``position``: the number of the file's row for each key, if it is known.
    """
    if position is None:
        position = np.full(len(keys), -1, np.int64)
    if outcome is None:
        outcome = np.full(len(keys), MatchOutcome.CHANGES, np.int8)
    columns = {
        "source": keys.column("source"),
        "row": keys.column("row"),
        "file": to_arrow(np.full(len(keys), file)),
        "hash": to_arrow(hash_record_keys(keys.column("key"))),
        "outcome": to_arrow(outcome),
        "position": to_arrow(position.astype(np.int64)),
    }
    return pa.RecordBatch.from_pydict(columns)


def read_matched_chunks(
    partition: int, buffers: Iterable[Any], row_job: RowJob
) -> Iterator[tuple[RowChunk, MatchedRows]]:
    """Yield the chunks of a shuffle partition (``build_chunks``), matched by its tags.

    With a bucket index, a row whose bucket has a file group changes it, whether or not its key is
    there.
    """
    blocks = [RowBlock.from_bytes(buffer) for buffer in buffers]
    tags = [block for block in blocks if block.kind is BlockKind.TAGS]
    for chunk in build_chunks(partition, blocks, row_job):
        if row_job.index_buckets is not None and row_job.operation.needs_lookup:
            yield chunk, _match_by_bucket(chunk, row_job.index_buckets)
        else:
            yield chunk, match_rows(chunk, tags)


def _match_by_bucket(chunk: RowChunk, buckets: IndexBuckets) -> MatchedRows:
    """Return the rows whose bucket has a file group, and the new rows of other buckets."""
    codes, paths = chunk.encode_paths(np.arange(len(chunk.rows)))
    numbers = buckets.find_buckets(chunk.rows.column(RECORD_KEY))
    group = buckets.find_groups(codes.astype(np.int64), paths, numbers)
    row = np.flatnonzero(group >= 0)
    return MatchedRows(
        new=np.flatnonzero((group < 0) & ~chunk.is_deletion),
        row=row,
        file=group[row],
        is_moved=np.zeros(len(row), np.bool_),
        position=np.full(len(row), -1, np.int64),
    )


def match_rows(chunk: RowChunk, tags: Sequence[RowBlock]) -> MatchedRows:
    """Return which rows of a partition's only chunk are in files, by the tags of the search.

    Raises ReconcilerError if the rows are not those that were searched.
    """
    is_new = ~chunk.is_deletion
    if not tags:
        no_rows = np.zeros(0, np.int64)
        none = np.zeros(0, np.bool_)
        return MatchedRows(
            new=np.flatnonzero(is_new),
            row=no_rows,
            file=no_rows,
            is_moved=none,
            position=no_rows,
        )
    columns = pa.concat_batches([tag.read_batch() for tag in tags]).columns
    row, file, hashes, outcome, position = map(to_numpy, columns)
    order = np.lexsort((file, row))
    row, file, hashes = row[order].astype(np.int64), file[order].astype(np.int64), hashes[order]
    if len(row) and (row[-1] >= len(chunk.rows) or (chunk.hashes[row] != hashes).any()):
        raise rows_changed_error()
    outcome = outcome[order]
    keeps = ~_find_dead_matches(chunk, row, outcome)
    row, file, outcome, position = row[keeps], file[keeps], outcome[keeps], position[order][keeps]
    is_new[row] = False
    is_new[row[outcome == MatchOutcome.MOVES]] = True
    is_active = outcome != MatchOutcome.STAYS
    return MatchedRows(
        new=np.flatnonzero(is_new),
        row=row[is_active],
        file=file[is_active],
        is_moved=outcome[is_active] == MatchOutcome.MOVES,
        position=position[is_active],
    )


def _find_dead_matches(chunk: RowChunk, row: Integers, outcome: NDArray[np.int8]) -> Mask:
    """Return which matches with deleted rows do not count; ``row`` is ascending.

    A deletion has nothing to delete there. Another row goes to the first of the files that had its
    key, unless a file has the key now: in both, readers would see it twice.
    """
    is_dead = outcome == MatchOutcome.REVIVES
    has_live = np.zeros(len(chunk.rows), np.bool_)
    has_live[row[~is_dead]] = True
    is_first = np.ones(len(row), np.bool_)
    is_first[1:] = row[1:] != row[:-1]
    ignored: Mask = is_dead & (has_live[row] | chunk.is_deletion[row] | ~is_first)
    return ignored


def rows_changed_error() -> ReconcilerError:
    """Return the error for two stages that read different rows."""
    return ReconcilerError(
        "the rows changed when they were read again after a worker was lost; write the DataFrame "
        "to files first (or checkpoint it), then write from there"
    )
