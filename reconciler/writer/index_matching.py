"""The second stage by a record index, in the files that it names: which rows change, move or stay.

A key is in one place only: a row that is brought for another partition moves, if it is not older
than the one that is there. Every key has to be where the index says: what it knows wrongly would be
there twice. Source: HoodieIndexUtils.mergeForPartitionUpdatesIfNeeded, as Hudi does where
hoodie.record.index.update.partition.path is true.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import to_integer_array, to_numpy_bools, to_numpy_numbers
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
    """Keys of a place into what becomes of their rows, by the files that have them; picklable.

    Raises FormatError naming the index for a key that is not where it says, and as ``parse_input_slice``.
    """

    row_job: Broadcast
    lookup: Broadcast
    context: TaskContext

    def __call__(self, place: int, blocks: Iterator[Any]) -> Iterator[BlockForPartition]:
        lookup: IndexLookup = self.lookup.value
        storage: Storage | None = None
        for number, packs in enumerate(batch_blocks(blocks)):
            storage = storage or self.context.open_storage()
            batch = pa.concat_batches([pack.read_batch() for pack in packs])
            tags = []
            for file, rows in group_rows(to_numpy_numbers(batch.column("file"))):
                some = batch.take(to_integer_array(rows))
                fate = _decide_outcomes(some, file, self.row_job.value, lookup, storage)
                row, source = (
                    to_numpy_numbers(some.column("row")),
                    to_numpy_numbers(some.column("source")),
                )
                tags.append((source, make_tags(file, row, some.column("key"), fate)))
            yield from send_tags(place, number, tags)


def _decide_outcomes(
    batch: Any, file: int, row_job: RowJob, lookup: IndexLookup, storage: Storage
) -> NDArray[np.int8]:
    """What becomes of rows whose keys are in a file."""
    keys, path = batch.column("key"), lookup.get_path(file)
    size = int(lookup.files.groups.base[file])
    there = find_stored_keys(storage, path, size, keys)
    if len(there) < len(keys):
        lost = np.setdiff1d(np.arange(len(keys)), there, assume_unique=True)
        raise misplaced_keys_error(keys, lost, f"in {path}")
    own = lookup.files.groups.partition[file]
    moves = (to_numpy_numbers(batch.column("folder")) != own) & ~to_numpy_bools(
        batch.column("deletes")
    )
    fate = np.where(moves, MatchOutcome.MOVES, MatchOutcome.CHANGES).astype(np.int8)
    times = [batch.column(name) for name in batch.schema.names if name.startswith("time")]
    if times and moves.any():
        rows = np.flatnonzero(moves)
        some = [column.take(to_integer_array(rows)) for column in times]
        ref = SliceFiles(base=path, base_size=size)
        older = _find_older_rows(keys.take(to_integer_array(rows)), some, ref, row_job, storage)
        fate[rows[older]] = MatchOutcome.STAYS
    return fate


def _find_older_rows(
    keys: Any, times: Sequence[Any], file: SliceFiles, row_job: RowJob, storage: Storage
) -> NDArray[np.bool_]:
    """Whether each key has a row in the file that is newer than its event times say."""
    reading = row_job.settings.reading
    fields = find_ordering_fields(reading.rules, reading.schema)
    columns = dict.fromkeys(
        name.partition(".")[0] for name in (*reading.rules.key_columns, *fields)
    )
    narrow = replace(reading, columns=tuple(columns))
    older = np.zeros(len(keys), np.bool_)
    path = file.base or ""
    for batch in read_slice(file, narrow, storage):
        met = pc.index_in(read_record_keys(batch, reading.rules, path), value_set=keys)
        at, which = (
            np.flatnonzero(to_numpy_bools(met.is_valid())),
            to_numpy_numbers(met.drop_null()),
        )
        old = read_event_times(batch.take(to_integer_array(at)), row_job, path)
        ours = [column.take(to_integer_array(which)) for column in times]
        older[which[compare_rows(ours, old) < 0]] = True
    return older


@dataclass(frozen=True, slots=True)
class SendMovedKeysTask:
    """Rows that are new in their partition since they leave another: their keys; picklable."""

    row_job: Broadcast
    search: Broadcast

    def __call__(self, place: int, blocks: Iterator[Any]) -> Iterator[BlockForPartition]:
        packs = [RowBlock.from_bytes(piece) for piece in blocks]
        tags = [pack for pack in packs if pack.kind is BlockKind.TAGS]
        for chunk in build_chunks(place, packs, self.row_job.value):
            where = match_rows(chunk, tags)
            yield from send_keys(chunk, where.row[where.is_moved], place, self.search.value)


@dataclass(frozen=True, slots=True)
class DuplicateKeyCheck:
    """Keys that the index has in one partition, and a file in another; picklable.

    Such a table has keys that are only told apart by their partitions: to move rows would be to
    lose some. Raises FormatError naming one.
    """

    search: Broadcast
    context: TaskContext

    def __call__(self, place: int, blocks: Iterator[Any]) -> Iterator[Never]:
        search: KeySearch = self.search.value
        for packs in batch_blocks(blocks):
            for one in search_files(search, place, packs, self.context.open_storage()):
                raise FormatError(
                    INDEX_PATH,
                    f"says that key {one.keys[0].as_py()!r} is in another partition, and "
                    f"{search.path[one.file]} has it as well: keys of this table are in several "
                    "partitions, of which the index knows one",
                    REMEDY,
                )
        yield from ()
