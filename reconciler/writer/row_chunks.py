"""Chunks of incoming rows: which rows are written, and which have keys that files already hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.arrays import Codes, Integers, Mask, to_arrow, to_numpy
from reconciler.errors import ReconcilerError
from reconciler.file_slices.base_file.meta_columns import PARTITION, RECORD_KEY
from reconciler.file_slices.merge.record_keys import find_deletions
from reconciler.layout.sizing.key_routing import Hashes, hash_record_keys
from reconciler.writer.dedupe import DedupeRule, choose_rows
from reconciler.writer.job import RowJob, RowOperation
from reconciler.writer.row_blocks import BlockKind, RowBlock, sort_blocks


class MatchOutcome(IntEnum):
    """What becomes of a row whose key a file holds.

    ``CHANGES``: it replaces or deletes the file's row. ``MOVES``: the file's row is deleted, and
    the row is new in its own partition. ``STAYS``: the file's row is newer and stays.
    """

    CHANGES = 0
    MOVES = 1
    STAYS = 2


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
    deleted.
    """

    new: Integers
    row: Integers
    file: Integers
    is_moved: Mask

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


def make_tags(file: int, keys: Any, outcome: NDArray[np.int8] | None = None) -> Any:
    """Return a batch for ``match_rows`` about rows whose keys a file holds, with their source.

    ``keys``: columns key, row and source. Without ``outcome`` all rows replace or delete the file's
    row.
    """
    if outcome is None:
        outcome = np.full(len(keys), MatchOutcome.CHANGES, np.int8)
    columns = {
        "source": keys.column("source"),
        "row": keys.column("row"),
        "file": to_arrow(np.full(len(keys), file)),
        "hash": to_arrow(hash_record_keys(keys.column("key"))),
        "outcome": to_arrow(outcome),
    }
    return pa.RecordBatch.from_pydict(columns)


def read_matched_chunks(
    partition: int, buffers: Iterable[Any], row_job: RowJob
) -> Iterator[tuple[RowChunk, MatchedRows]]:
    """Yield the chunks of a shuffle partition (``build_chunks``), matched by its tags."""
    blocks = [RowBlock.from_bytes(buffer) for buffer in buffers]
    tags = [block for block in blocks if block.kind is BlockKind.TAGS]
    for chunk in build_chunks(partition, blocks, row_job):
        yield chunk, match_rows(chunk, tags)


def match_rows(chunk: RowChunk, tags: Sequence[RowBlock]) -> MatchedRows:
    """Return which rows of a partition's only chunk are in files, by the tags of the search.

    Raises ReconcilerError if the rows are not those that were searched.
    """
    is_new = ~chunk.is_deletion
    if not tags:
        no_rows = np.zeros(0, np.int64)
        none = np.zeros(0, np.bool_)
        return MatchedRows(new=np.flatnonzero(is_new), row=no_rows, file=no_rows, is_moved=none)
    columns = pa.concat_batches([tag.read_batch() for tag in tags]).columns
    row, file, hashes, outcome = map(to_numpy, columns)
    order = np.lexsort((file, row))
    row, file, hashes = row[order].astype(np.int64), file[order].astype(np.int64), hashes[order]
    if len(row) and (row[-1] >= len(chunk.rows) or (chunk.hashes[row] != hashes).any()):
        raise rows_changed_error()
    outcome = outcome[order]
    is_new[row] = False
    is_new[row[outcome == MatchOutcome.MOVES]] = True
    is_active = outcome != MatchOutcome.STAYS
    return MatchedRows(
        new=np.flatnonzero(is_new),
        row=row[is_active],
        file=file[is_active],
        is_moved=outcome[is_active] == MatchOutcome.MOVES,
    )


def rows_changed_error() -> ReconcilerError:
    """Return the error for two stages that read different rows."""
    return ReconcilerError(
        "the rows changed when they were read again after a worker was lost; write the DataFrame "
        "to files first (or checkpoint it), then write from there"
    )
