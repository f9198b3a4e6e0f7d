"""The second stage with a record index, which knows every key of the table in any partition.

Keys go to tasks that each read some of the index's file groups, and from there to tasks that read
the files in which the index has the keys. Those decide which rows change, move or stay: a row for
another partition moves, unless the existing row is newer. Every key must be where the index has it,
because a wrong entry would duplicate it. Source: SparkMetadataTableRecordIndex,
HoodieIndexUtils.mergeForPartitionUpdatesIfNeeded, as with
hoodie.record.index.update.partition.path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Final, Never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import Integers, Mask, to_arrow, to_numpy
from reconciler.errors import BusyError, FormatError, NotFoundError
from reconciler.file_slices.base_file.meta_columns import RECORD_KEY
from reconciler.file_slices.merge.log_records import find_ordering_fields, read_ordering_values
from reconciler.file_slices.merge.ordering import compare_rows, to_comparable_columns
from reconciler.file_slices.merge.record_keys import find_keys
from reconciler.file_slices.merge.slice_reader import SliceFiles, read_slice
from reconciler.hudi.metadata.own_timeline import ROOT
from reconciler.hudi.metadata.record_index import FileGroupLocation, KeyLocations, RecordIndex
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.lazy_dataclass import dataclass
from reconciler.spark.staged_rows import BlockForPartition
from reconciler.storage.api import Storage
from reconciler.writer.job import Broadcast, RowJob, RowOperation, TaskContext
from reconciler.writer.key_search import (
    KeySearch,
    batch_blocks,
    combine_keys,
    search_files,
    send_keys,
    send_tags,
)
from reconciler.writer.row_blocks import (
    BlockKind,
    MatchOutcome,
    RowBlock,
    RowChunk,
    build_chunks,
    group_rows,
    make_tags,
    read_matched_chunks,
    send_rows,
)
from reconciler.writer.slice_keys import (
    SliceLogs,
    find_logged_keys,
    find_merged_keys,
    get_current_slice,
)
from reconciler.writer.stored_keys import find_stored_keys

INDEX_PATH: Final = f"{ROOT}/record_index"
REMEDY: Final = (
    "drop the index with Hudi (DROP INDEX record_index, or a write with the index off); Hudi "
    "builds it again when it is on; without it keys are looked up in their rows' partitions"
)
#: the columns of keys that are sent, before those of event times
_KEY_COLUMNS: Final = ("key", "row", "folder", "deletes")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IndexLookup:
    """The tasks that read the index and those that read files. ``index``: a record index.

    ``index_tasks``: tasks that read the index; ``file_tasks``: tasks that read files of the table.
    ``logs``: the log files of the groups' current slices.
    """

    index: RecordIndex
    groups: FileGroupSizes
    index_tasks: int
    file_tasks: int
    logs: Mapping[int, SliceLogs] = field(default_factory=dict)

    def get_slice(self, file: int) -> SliceFiles:
        """Return the files of a group's current slice."""
        return get_current_slice(self.groups, file, self.logs)

    @classmethod
    def from_index(
        cls,
        index: RecordIndex,
        groups: FileGroupSizes,
        count: int,
        logs: Mapping[int, SliceLogs],
    ) -> IndexLookup:
        """Return the lookup with about ``count`` tasks at a time."""
        return cls(
            index=index,
            groups=groups,
            logs=logs,
            index_tasks=min(len(index.slices), max(count, 1)),
            file_tasks=min(max(len(groups), 1), max(count, 1)),
        )


def send_keys_to_index(
    row_job: Broadcast, lookup: Broadcast, partition: int, buffers: Iterator[Any]
) -> Iterator[BlockForPartition]:
    """Send the keys of rows to the tasks that read their part of the index."""
    for chunk in build_chunks(partition, map(RowBlock.from_bytes, buffers), row_job.value):
        batch = _describe_keys(chunk, row_job.value, lookup.value.groups)
        tasks = lookup.value.index.find_groups(batch.column("key")) % lookup.value.index_tasks
        yield from send_rows(batch, tasks, BlockKind.KEYS, partition, 0)


def _describe_keys(chunk: RowChunk, row_job: RowJob, groups: FileGroupSizes) -> Any:
    """Return a batch of key, row, folder number (-1: new), deletion flag and event times."""
    rows = np.arange(len(chunk.rows))
    codes, paths = chunk.encode_paths(rows)
    known = {path: code for code, path in enumerate(groups.partitions)}
    folder = np.array([known.get(path, -1) for path in paths], np.int32)[codes]
    times = _read_event_times(chunk.rows, row_job, "the rows")
    return pa.RecordBatch.from_arrays(
        [
            chunk.rows.column(RECORD_KEY),
            to_arrow(rows.astype(np.int32)),
            to_arrow(folder),
            to_arrow(chunk.is_deletion),
            *times,
        ],
        [*_KEY_COLUMNS, *(f"time{at}" for at in range(len(times)))],
    )


def _read_event_times(batch: Any, row_job: RowJob, where: str) -> tuple[Any, ...]:
    """Return the comparable event times of rows; none if the later row always wins."""
    reading = row_job.settings.reading
    if reading.rules.overwrites or row_job.operation is RowOperation.DELETE:
        return ()
    fields = find_ordering_fields(reading.rules, reading.schema)
    return to_comparable_columns(read_ordering_values(batch, fields, where), fields)


def look_up_keys(
    lookup: Broadcast, context: TaskContext, partition: int, buffers: Iterator[Any]
) -> Iterator[BlockForPartition]:
    """Send keys on to the file groups in which the index has them; others are new.

    Raises FormatError naming the index if it is damaged or names a file group that readers do not
    see; BusyError if its files were cleaned meanwhile.
    """
    for number, (blocks, storage) in enumerate(batch_blocks(buffers, context)):
        batch = combine_keys(blocks)
        rows, file = _find_file_groups(lookup.value, storage, batch.column("key"))
        batch = batch.take(to_arrow(rows)).append_column("file", to_arrow(file))
        tasks = file % lookup.value.file_tasks
        yield from send_rows(batch, tasks, BlockKind.KEYS, partition, number)


def _find_file_groups(
    lookup: IndexLookup, storage: Storage, keys: Any
) -> tuple[Integers, Integers]:
    """Return which of the keys the index has, and the file group of each."""
    known: dict[FileGroupLocation, int] = {}
    rows, codes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for group, requested in group_rows(lookup.index.find_groups(keys)):
        locations = _read_index(lookup, storage, group, keys.take(to_arrow(requested)))
        code = np.array(
            [known.setdefault(location, len(known)) for location in locations.locations], np.int64
        )
        rows.append(requested[locations.key_index])
        codes.append(code[locations.location_code])
    row, location = np.concatenate(rows), np.concatenate(codes)
    files = _match_file_groups(lookup.groups, [*known])
    missing = np.flatnonzero(files[location] < 0)
    if len(missing):
        path, file_id = [*known][location[missing[0]]]
        expected = f"in partition {path!r}, file group {file_id}, which is no current file group"
        raise _misplaced_keys_error(keys, row[missing], expected)
    return row, files[location]


def _read_index(lookup: IndexLookup, storage: Storage, group: int, keys: Any) -> KeyLocations:
    try:
        return lookup.index.locate_keys(storage, group, keys)
    except NotFoundError as error:
        raise BusyError(
            f"{INDEX_PATH}: its files were cleaned during the read ({error}); nothing of this "
            "write is in the table, run it again"
        ) from None


def _misplaced_keys_error(keys: Any, rows: Integers, expected: str) -> FormatError:
    """Return the error for keys that are not where the index has them."""
    key, keys_ = keys[int(rows[0])].as_py(), "key" if len(rows) == 1 else "keys"
    message = f"wrong location of {len(rows)} {keys_} (first {key!r}): expected {expected}"
    return FormatError(INDEX_PATH, message, REMEDY)


def _match_file_groups(groups: FileGroupSizes, locations: Sequence[FileGroupLocation]) -> Integers:
    """Return the file groups at some locations, -1 for none."""
    has_files = (groups.base >= 0) | (groups.log_files > 0)
    live = np.flatnonzero(groups.is_live & has_files)
    folders = pa.array(groups.partitions, pa.string()).take(to_arrow(groups.partition[live]))
    file_ids = groups.file_id.take(to_arrow(live))
    existing = pc.binary_join_element_wise(folders, file_ids, "/")
    wanted = pa.array(["/".join(location) for location in locations], pa.string())
    position = pc.index_in(wanted, value_set=existing).fill_null(-1)
    positions = to_numpy(position).astype(np.int64)
    return np.where(positions < 0, -1, live[positions]) if len(live) else positions


def match_keys(
    row_job: Broadcast,
    lookup: Broadcast,
    context: TaskContext,
    partition: int,
    buffers: Iterator[Any],
) -> Iterator[BlockForPartition]:
    """Decide what becomes of rows by the files that have their keys, and send them the outcome.

    Raises FormatError naming the index for a key that is not where the index has it, and as
    ``read_slice``.
    """
    for number, (blocks, storage) in enumerate(batch_blocks(buffers, context)):
        batch = pa.concat_batches([block.read_batch() for block in blocks])
        tags = []
        for file, rows in group_rows(to_numpy(batch.column("file"))):
            keys = batch.take(to_arrow(rows))
            outcome, position = _decide_outcomes(keys, file, row_job.value, lookup.value, storage)
            tags.append(make_tags(file, keys, outcome, position))
        yield from send_tags(tags, partition, number)


def _decide_outcomes(
    batch: Any, file: int, row_job: RowJob, lookup: IndexLookup, storage: Storage
) -> tuple[NDArray[np.int8], Integers]:
    """Return what becomes of rows whose keys are in a file, and the numbers of the file's rows."""
    groups, keys = lookup.groups, batch.column("key")
    slice_files = lookup.get_slice(file)
    position, missing = _find_rows(slice_files, keys, row_job, storage)
    if len(missing):
        expected = slice_files.base or ", ".join(slice_files.logs) or groups.get_file_id(file)
        raise _misplaced_keys_error(keys, missing, f"in {expected}")
    is_elsewhere = to_numpy(batch.column("folder")) != groups.partition[file]
    moves = is_elsewhere & ~to_numpy(batch.column("deletes"))
    outcome = np.where(moves, MatchOutcome.MOVES, MatchOutcome.CHANGES).astype(np.int8)
    times = [batch.column(name) for name in batch.schema.names if name.startswith("time")]
    if times and moves.any():
        rows = np.flatnonzero(moves)
        selected = [column.take(to_arrow(rows)) for column in times]
        older = _find_older_rows(keys.take(to_arrow(rows)), selected, slice_files, row_job, storage)
        outcome[rows[older]] = MatchOutcome.STAYS
    return outcome, position


def _find_rows(
    files: SliceFiles, keys: Any, row_job: RowJob, storage: Storage
) -> tuple[Integers, Integers]:
    """Return the number of each key's row in the base file, or -1, and the keys of no row.

    Log files are read only for keys that the base file does not have.
    """
    position = np.full(len(keys), -1, np.int64)
    if files.base is not None:
        stored = find_stored_keys(storage, files.base, files.base_size, keys, expects_all=True)
        position[stored.index] = stored.position
    missing: Integers = np.flatnonzero(position < 0)
    if len(missing) and files.logs:
        reading, wanted = row_job.settings.reading, keys.take(to_arrow(missing))
        missing = np.delete(missing, find_logged_keys(files.logs, wanted, reading, storage))
    return position, missing


def _find_older_rows(
    keys: Any, times: Sequence[Any], file: SliceFiles, row_job: RowJob, storage: Storage
) -> Mask:
    """Return a mask of keys whose row in the file is newer than their event times."""
    reading = row_job.settings.reading
    fields = find_ordering_fields(reading.rules, reading.schema)
    columns = dict.fromkeys(
        name.partition(".")[0] for name in (*reading.rules.key_columns, *fields)
    )
    older = np.zeros(len(keys), np.bool_)
    path = file.base or ""
    for batch in read_slice(file, replace(reading, columns=tuple(columns)), storage):
        rows, positions = find_keys(batch, keys, reading.rules, path)
        old = _read_event_times(batch.take(to_arrow(rows)), row_job, path)
        new = [column.take(to_arrow(positions)) for column in times]
        older[positions[compare_rows(new, old) < 0]] = True
    return older


def send_moved_keys(
    row_job: Broadcast, search: Broadcast, partition: int, buffers: Iterator[Any]
) -> Iterator[BlockForPartition]:
    """Send the keys of rows that move, to be looked up in their new partition."""
    for chunk, matched in read_matched_chunks(partition, buffers, row_job.value):
        yield from send_keys(chunk, matched.row[matched.is_moved], partition, search.value)


def check_moved_keys(
    row_job: Broadcast,
    search: Broadcast,
    context: TaskContext,
    partition: int,
    buffers: Iterator[Any],
) -> Iterator[Never]:
    """Raise FormatError naming a moved key that is in its new partition already.

    Otherwise keys of the table are unique per partition only, and moving rows would lose some. Rows
    that log files have deleted are not there any more.
    """
    files: KeySearch = search.value
    job: RowJob = row_job.value
    for blocks, storage in batch_blocks(buffers, context):
        for file, found, _position in search_files(files, partition, blocks, storage, {}):
            keys = found.column("key")
            if file in files.logs:
                given, reading = files.get_slice(file), job.settings.reading
                keys = keys.filter(to_arrow(find_merged_keys(given, keys, reading, storage)))
            if not len(keys):
                continue
            raise FormatError(
                INDEX_PATH,
                f"has key {keys[0].as_py()!r} in another partition, but "
                f"{files.path[file]} has it too: keys of this table are in several partitions, and "
                "the index knows only one of them",
                REMEDY,
            )
    yield from ()
