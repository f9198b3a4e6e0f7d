"""Second stage with a record index, in the files that it names: which rows change, move or stay.

A key is in one place only: a row for another partition moves, unless the existing row is newer.
Every key must be where the index says, because a wrong entry would duplicate it. Source:
HoodieIndexUtils.mergeForPartitionUpdatesIfNeeded, as with
hoodie.record.index.update.partition.path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import to_arrow, to_numpy
from reconciler.errors import FormatError
from reconciler.file_slices.merge.log_records import find_ordering_fields
from reconciler.file_slices.merge.ordering import compare_rows
from reconciler.file_slices.merge.record_keys import read_record_keys
from reconciler.file_slices.merge.slice_reader import SliceFiles, read_slice
from reconciler.spark.staged_rows import BlockForPartition
from reconciler.storage.api import Storage
from reconciler.writer.index_lookup import (
    INDEX_PATH,
    REMEDY,
    IndexLookup,
    misplaced_keys_error,
    read_event_times,
)
from reconciler.writer.job import Broadcast, RowJob, TaskContext
from reconciler.writer.key_search import KeySearch, batch_blocks, search_files, send_keys, send_tags
from reconciler.writer.row_blocks import BlockKind, RowBlock, group_rows
from reconciler.writer.row_chunks import MatchOutcome, build_chunks, make_tags, match_rows
from reconciler.writer.stored_keys import find_stored_keys


@dataclass(frozen=True, slots=True)
class MatchKeysTask:
    """Decides what becomes of rows by the files that have their keys; picklable.

    Raises FormatError naming the index for a key that is not where it says, and as ``read_slice``.
    """

    row_job: Broadcast
    lookup: Broadcast
    context: TaskContext

    def __call__(self, partition: int, buffers: Iterator[Any]) -> Iterator[BlockForPartition]:
        lookup: IndexLookup = self.lookup.value
        storage: Storage | None = None
        for number, blocks in enumerate(batch_blocks(buffers)):
            storage = storage or self.context.open_storage()
            batch = pa.concat_batches([block.read_batch() for block in blocks])
            tags = []
            for file, rows in group_rows(to_numpy(batch.column("file"))):
                selected = batch.take(to_arrow(rows))
                outcome = _decide_outcomes(selected, file, self.row_job.value, lookup, storage)
                row, source = (
                    to_numpy(selected.column("row")),
                    to_numpy(selected.column("source")),
                )
                tags.append((source, make_tags(file, row, selected.column("key"), outcome)))
            yield from send_tags(partition, number, tags)


def _decide_outcomes(
    batch: Any, file: int, row_job: RowJob, lookup: IndexLookup, storage: Storage
) -> NDArray[np.int8]:
    """Return what becomes of rows whose keys are in a file."""
    keys, path = batch.column("key"), lookup.get_path(file)
    size = int(lookup.files.groups.base[file])
    found = find_stored_keys(storage, path, size, keys)
    if len(found) < len(keys):
        missing = np.setdiff1d(np.arange(len(keys)), found, assume_unique=True)
        raise misplaced_keys_error(keys, missing, f"in {path}")
    own_partition = lookup.files.groups.partition[file]
    moves = (to_numpy(batch.column("folder")) != own_partition) & ~to_numpy(batch.column("deletes"))
    outcome = np.where(moves, MatchOutcome.MOVES, MatchOutcome.CHANGES).astype(np.int8)
    times = [batch.column(name) for name in batch.schema.names if name.startswith("time")]
    if times and moves.any():
        rows = np.flatnonzero(moves)
        selected = [column.take(to_arrow(rows)) for column in times]
        ref = SliceFiles(base=path, base_size=size)
        older = _find_older_rows(keys.take(to_arrow(rows)), selected, ref, row_job, storage)
        outcome[rows[older]] = MatchOutcome.STAYS
    return outcome


def _find_older_rows(
    keys: Any, times: Sequence[Any], file: SliceFiles, row_job: RowJob, storage: Storage
) -> NDArray[np.bool_]:
    """Return a mask of keys whose row in the file is newer than their event times."""
    reading = row_job.settings.reading
    fields = find_ordering_fields(reading.rules, reading.schema)
    columns = dict.fromkeys(
        name.partition(".")[0] for name in (*reading.rules.key_columns, *fields)
    )
    narrow = replace(reading, columns=tuple(columns))
    older = np.zeros(len(keys), np.bool_)
    path = file.base or ""
    for batch in read_slice(file, narrow, storage):
        matched = pc.index_in(read_record_keys(batch, reading.rules, path), value_set=keys)
        positions, key_positions = (
            np.flatnonzero(to_numpy(matched.is_valid())),
            to_numpy(matched.drop_null()),
        )
        old = read_event_times(batch.take(to_arrow(positions)), row_job, path)
        ours = [column.take(to_arrow(key_positions)) for column in times]
        older[key_positions[compare_rows(ours, old) < 0]] = True
    return older


@dataclass(frozen=True, slots=True)
class SendMovedKeysTask:
    """Sends the keys of rows that move, to be looked up in their new partition; picklable."""

    row_job: Broadcast
    search: Broadcast

    def __call__(self, partition: int, buffers: Iterator[Any]) -> Iterator[BlockForPartition]:
        blocks = [RowBlock.from_bytes(buffer) for buffer in buffers]
        tags = [block for block in blocks if block.kind is BlockKind.TAGS]
        for chunk in build_chunks(partition, blocks, self.row_job.value):
            where = match_rows(chunk, tags)
            yield from send_keys(chunk, where.row[where.is_moved], partition, self.search.value)


@dataclass(frozen=True, slots=True)
class DuplicateKeyCheck:
    """Checks that moved keys are not in their new partition already; picklable.

    Otherwise keys of the table are unique per partition only, and moving rows would lose some.
    Raises FormatError naming one.
    """

    search: Broadcast
    context: TaskContext

    def __call__(self, partition: int, buffers: Iterator[Any]) -> Iterator[Never]:
        search: KeySearch = self.search.value
        for blocks in batch_blocks(buffers):
            for match in search_files(search, partition, blocks, self.context.open_storage()):
                raise FormatError(
                    INDEX_PATH,
                    f"has key {match.keys[0].as_py()!r} in another partition, but "
                    f"{search.path[match.file]} has it too: keys of this table are in several "
                    "partitions, and the index knows only one of them",
                    REMEDY,
                )
        yield from ()
