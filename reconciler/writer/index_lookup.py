"""The second stage with a record index, which knows every key of the table in any partition.

Keys go to tasks that each read some of the index's file groups, and from there to tasks that read
the files in which the index has the keys (``index_matching``). Source:
SparkMetadataTableRecordIndex.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import to_arrow, to_numpy
from reconciler.errors import BusyError, FormatError, NotFoundError
from reconciler.file_slices.base_file.meta_columns import RECORD_KEY
from reconciler.file_slices.merge.log_records import find_ordering_fields, read_ordering_values
from reconciler.file_slices.merge.ordering import to_comparable
from reconciler.hudi.files.names import make_file_path
from reconciler.hudi.metadata.own_timeline import ROOT
from reconciler.hudi.metadata.record_index import FileGroupLocation, KeyLocations, RecordIndex
from reconciler.spark.staged_rows import BlockForPartition
from reconciler.storage.api import Storage
from reconciler.writer.job import Broadcast, RowJob, RowOperation, TableGroups, TaskContext
from reconciler.writer.key_search import batch_blocks
from reconciler.writer.row_blocks import BlockKind, RowBlock, group_rows, split_by_code
from reconciler.writer.row_chunks import RowChunk, build_chunks

INDEX_PATH: Final = f"{ROOT}/record_index"
REMEDY: Final = (
    "drop the index with Hudi (DROP INDEX record_index, or a write with the index off); Hudi "
    "builds it again when it is on; without it keys are looked up in their rows' partitions"
)
#: the columns of keys that are sent, before those of event times
_KEY_COLUMNS: Final = ("key", "row", "folder", "deletes")
TIME_COLUMN: Final = "time{}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IndexLookup:
    """Which tasks read the index and which read files. ``index``: a record index.

    ``index_tasks``: tasks that read the index; ``file_tasks``: tasks that read files of the table.
    """

    index: RecordIndex
    files: TableGroups
    index_tasks: int
    file_tasks: int

    @classmethod
    def from_index(cls, index: RecordIndex, files: TableGroups, count: int) -> IndexLookup:
        """Return the lookup with about ``count`` tasks at a time."""
        return cls(
            index=index,
            files=files,
            index_tasks=min(len(index.slices), max(count, 1)),
            file_tasks=min(max(len(files.groups), 1), max(count, 1)),
        )

    def get_path(self, file: int) -> str:
        """Return the path of the newest base file of a group."""
        groups = self.files.groups
        folder, name = groups.partitions[groups.partition[file]], self.files.bases[file].as_py()
        return make_file_path(folder, name)


@dataclass(frozen=True, slots=True)
class SendKeysToIndexTask:
    """Sends the keys of rows to the tasks that read their part of the index; picklable."""

    row_job: Broadcast
    lookup: Broadcast

    def __call__(self, partition: int, buffers: Iterator[Any]) -> Iterator[BlockForPartition]:
        row_job: RowJob = self.row_job.value
        lookup: IndexLookup = self.lookup.value
        for chunk in build_chunks(partition, map(RowBlock.from_bytes, buffers), row_job):
            batch = _describe_keys(chunk, row_job, lookup.files)
            where = lookup.index.find_groups(batch.column("key")) % lookup.index_tasks
            for task, some in split_by_code(batch, where):
                yield task, RowBlock(kind=BlockKind.KEYS, source=partition, number=0, data=some)


def _describe_keys(chunk: RowChunk, row_job: RowJob, files: TableGroups) -> Any:
    """Return a batch of key, row, folder number (-1: new), deletion flag and event times."""
    rows = np.arange(len(chunk.rows))
    codes, paths = chunk.encode_paths(rows)
    known = {path: code for code, path in enumerate(files.groups.partitions)}
    folder = np.array([known.get(path, -1) for path in paths], np.int32)[codes]
    times = read_event_times(chunk.rows, row_job, "the rows")
    return pa.RecordBatch.from_arrays(
        [
            chunk.rows.column(RECORD_KEY),
            to_arrow(rows.astype(np.int32)),
            to_arrow(folder),
            to_arrow(chunk.is_deletion),
            *times,
        ],
        [*_KEY_COLUMNS, *(TIME_COLUMN.format(at) for at in range(len(times)))],
    )


def read_event_times(batch: Any, row_job: RowJob, where: str) -> list[Any]:
    """Return the comparable event times of rows; none where the later row always wins."""
    reading = row_job.settings.reading
    if reading.rules.overwrites or row_job.operation is RowOperation.DELETE:
        return []
    fields = find_ordering_fields(reading.rules, reading.schema)
    columns = read_ordering_values(batch, fields, where)
    return [to_comparable(column, name) for column, name in zip(columns, fields, strict=True)]


@dataclass(frozen=True, slots=True)
class LookUpKeysTask:
    """Sends keys on to the file groups in which the index has them; picklable.

    Keys that it lacks are new. Raises FormatError naming the index where it is damaged or names a
    file group that readers do not see; BusyError where its files were cleaned meanwhile.
    """

    lookup: Broadcast
    context: TaskContext

    def __call__(self, partition: int, buffers: Iterator[Any]) -> Iterator[BlockForPartition]:
        lookup: IndexLookup = self.lookup.value
        storage: Storage | None = None
        for number, blocks in enumerate(batch_blocks(buffers)):
            storage = storage or self.context.open_storage()
            batch = _combine_keys(blocks)
            rows, file = _find_file_groups(lookup, storage, batch.column("key"))
            selected = batch.take(to_arrow(rows)).append_column("file", to_arrow(file))
            for task, some in split_by_code(selected, file % lookup.file_tasks):
                yield (
                    task,
                    RowBlock(kind=BlockKind.KEYS, source=partition, number=number, data=some),
                )


def _combine_keys(blocks: Sequence[RowBlock]) -> Any:
    """Combine the keys of blocks, each with its source."""
    batches = [block.read_batch() for block in blocks]
    source = np.repeat([block.source for block in blocks], [len(batch) for batch in batches])
    whole = pa.concat_batches(batches)
    return whole.append_column("source", to_arrow(source.astype(np.int64)))


def _find_file_groups(
    lookup: IndexLookup, storage: Storage, keys: Any
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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
    row, partition = np.concatenate(rows), np.concatenate(codes)
    files = _match_file_groups(lookup.files, [*known])
    missing = np.flatnonzero(files[partition] < 0)
    if len(missing):
        path, file_id = [*known][partition[missing[0]]]
        raise misplaced_keys_error(
            keys,
            row[missing],
            f"in partition {path!r}, file group {file_id}, which is no current file group",
        )
    return row, files[partition]


def _read_index(lookup: IndexLookup, storage: Storage, group: int, keys: Any) -> KeyLocations:
    try:
        return lookup.index.locate_keys(storage, group, keys)
    except NotFoundError as error:
        raise BusyError(
            f"{INDEX_PATH}: its files were cleaned during the read ({error}); nothing of this "
            "write is in the table, run it again"
        ) from None


def misplaced_keys_error(keys: Any, rows: NDArray[np.int64], where: str) -> FormatError:
    """Return the error for keys that are not where the index has them."""
    key, keys_ = keys[int(rows[0])].as_py(), "key" if len(rows) == 1 else "keys"
    message = f"wrong location of {len(rows)} {keys_} (first {key!r}): expected {where}"
    return FormatError(INDEX_PATH, message, REMEDY)


def _match_file_groups(
    files: TableGroups, locations: Sequence[FileGroupLocation]
) -> NDArray[np.int64]:
    """Return the file groups at some locations, -1 where no current base file is."""
    groups = files.groups
    live = np.flatnonzero(groups.is_live & (groups.base >= 0))
    folders = pa.array(groups.partitions, pa.string()).take(to_arrow(groups.partition[live]))
    existing = pc.binary_join_element_wise(folders, groups.file_id.take(to_arrow(live)), "/")
    wanted = pa.array(["/".join(partition) for partition in locations], pa.string())
    position = pc.index_in(wanted, value_set=existing).fill_null(-1)
    found = to_numpy(position).astype(np.int64)
    return np.where(found < 0, -1, live[found]) if len(live) else found
