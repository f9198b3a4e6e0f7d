"""The second stage where a record index knows every key of the table, whatever its partition.

Keys go to tasks that read the index, each some of its file groups, and from there to tasks that
look into the files where the index says that keys are (``judging``). Source:
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

from reconciler.arrays import to_boolean_array, to_integer_array, to_numpy_numbers
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
    "drop the index with Hudi (DROP INDEX record_index, or a write with it switched off), which "
    "builds it anew when it is switched on again; without it keys are looked for in the partitions "
    "of their rows"
)
#: the columns of keys on their way, before those of event times
_KEY_COLUMNS: Final = ("key", "row", "folder", "deletes")
TIME_COLUMN: Final = "time{}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IndexLookup:
    """Which tasks look where. ``index``: a record index; ``files``: of the table.

    ``index_tasks``: tasks that read the index; ``file_tasks``: those that look into files.
    """

    index: RecordIndex
    files: TableGroups
    index_tasks: int
    file_tasks: int

    @classmethod
    def from_index(cls, index: RecordIndex, files: TableGroups, count: int) -> IndexLookup:
        """With about so many tasks at a time."""
        return cls(
            index=index,
            files=files,
            index_tasks=min(len(index.slices), max(count, 1)),
            file_tasks=min(max(len(files.groups), 1), max(count, 1)),
        )

    def get_path(self, file: int) -> str:
        """Of the newest base file of a group."""
        groups = self.files.groups
        folder, name = groups.partitions[groups.partition[file]], self.files.bases[file].as_py()
        return make_file_path(folder, name)


@dataclass(frozen=True, slots=True)
class SendKeysToIndexTask:
    """Rows of a place into their keys, sent where the index is read that knows them; picklable."""

    row_job: Broadcast
    lookup: Broadcast

    def __call__(self, place: int, blocks: Iterator[Any]) -> Iterator[BlockForPartition]:
        row_job: RowJob = self.row_job.value
        lookup: IndexLookup = self.lookup.value
        for chunk in build_chunks(place, map(RowBlock.from_bytes, blocks), row_job):
            batch = _describe_keys(chunk, row_job, lookup.files)
            where = lookup.index.find_groups(batch.column("key")) % lookup.index_tasks
            for to, some in split_by_code(batch, where):
                yield to, RowBlock(kind=BlockKind.KEYS, source=place, number=0, data=some)


def _describe_keys(chunk: RowChunk, row_job: RowJob, files: TableGroups) -> Any:
    """Key, row, number of the folder (-1: not there yet), whether it removes, event times."""
    rows = np.arange(len(chunk.rows))
    codes, paths = chunk.encode_paths(rows)
    known = {path: code for code, path in enumerate(files.groups.partitions)}
    folder = np.array([known.get(path, -1) for path in paths], np.int32)[codes]
    times = read_event_times(chunk.rows, row_job, "the rows")
    return pa.RecordBatch.from_arrays(
        [
            chunk.rows.column(RECORD_KEY),
            to_integer_array(rows.astype(np.int32)),
            to_integer_array(folder),
            to_boolean_array(chunk.is_deletion),
            *times,
        ],
        [*_KEY_COLUMNS, *(TIME_COLUMN.format(at) for at in range(len(times)))],
    )


def read_event_times(batch: Any, row_job: RowJob, where: str) -> list[Any]:
    """The event times by which rows win over others, comparable; none where the later one wins."""
    reading = row_job.settings.reading
    if reading.rules.overwrites or row_job.operation is RowOperation.DELETE:
        return []
    fields = find_ordering_fields(reading.rules, reading.schema)
    columns = read_ordering_values(batch, fields, where)
    return [to_comparable(column, name) for column, name in zip(columns, fields, strict=True)]


@dataclass(frozen=True, slots=True)
class LookUpKeysTask:
    """Keys of a place into the file groups that the index has them in; picklable.

    What it does not know is new. Raises FormatError naming the index where it is damaged, or says
    that a key is where no reader looks; BusyError where its files are gone since.
    """

    lookup: Broadcast
    context: TaskContext

    def __call__(self, place: int, blocks: Iterator[Any]) -> Iterator[BlockForPartition]:
        lookup: IndexLookup = self.lookup.value
        storage: Storage | None = None
        for number, packs in enumerate(batch_blocks(blocks)):
            storage = storage or self.context.open_storage()
            batch = _combine_keys(packs)
            rows, file = _find_file_groups(lookup, storage, batch.column("key"))
            told = batch.take(to_integer_array(rows)).append_column("file", to_integer_array(file))
            for to, some in split_by_code(told, file % lookup.file_tasks):
                yield to, RowBlock(kind=BlockKind.KEYS, source=place, number=number, data=some)


def _combine_keys(packs: Sequence[RowBlock]) -> Any:
    """The keys of packs, each with its source."""
    batches = [pack.read_batch() for pack in packs]
    source = np.repeat([pack.source for pack in packs], [len(batch) for batch in batches])
    whole = pa.concat_batches(batches)
    return whole.append_column("source", to_integer_array(source.astype(np.int64)))


def _find_file_groups(
    lookup: IndexLookup, storage: Storage, keys: Any
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which of the keys the index knows, and in which file group each is."""
    known: dict[FileGroupLocation, int] = {}
    rows, codes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for group, asked_for in group_rows(lookup.index.find_groups(keys)):
        places = _read_index(lookup, storage, group, keys.take(to_integer_array(asked_for)))
        code = np.array([known.setdefault(one, len(known)) for one in places.locations], np.int64)
        rows.append(asked_for[places.key_index])
        codes.append(code[places.location_code])
    row, place = np.concatenate(rows), np.concatenate(codes)
    files = _match_file_groups(lookup.files, [*known])
    lost = np.flatnonzero(files[place] < 0)
    if len(lost):
        path, file_id = [*known][place[lost[0]]]
        raise misplaced_keys_error(
            keys,
            row[lost],
            f"in partition {path!r}, file group {file_id}, which readers do not see",
        )
    return row, files[place]


def _read_index(lookup: IndexLookup, storage: Storage, group: int, keys: Any) -> KeyLocations:
    try:
        return lookup.index.locate_keys(storage, group, keys)
    except NotFoundError as error:
        raise BusyError(
            f"{INDEX_PATH}: its files were cleaned while they were read ({error}); nothing of this "
            "write is in the table, run it again"
        ) from None


def misplaced_keys_error(keys: Any, rows: NDArray[np.int64], where: str) -> FormatError:
    """What is said of rows whose keys are not where the index says."""
    key = keys[int(rows[0])].as_py()
    said = f"keys are not where it says ({len(rows)} of them, first {key!r}): it says {where}"
    return FormatError(INDEX_PATH, said, REMEDY)


def _match_file_groups(
    files: TableGroups, places: Sequence[FileGroupLocation]
) -> NDArray[np.int64]:
    """The file groups at some places, -1 where there is no base file that readers see."""
    groups = files.groups
    live = np.flatnonzero(groups.is_live & (groups.base >= 0))
    folders = pa.array(groups.partitions, pa.string()).take(
        to_integer_array(groups.partition[live])
    )
    there = pc.binary_join_element_wise(folders, groups.file_id.take(to_integer_array(live)), "/")
    wanted = pa.array(["/".join(place) for place in places], pa.string())
    at = pc.index_in(wanted, value_set=there).fill_null(-1)
    found = to_numpy_numbers(at).astype(np.int64)
    return np.where(found < 0, -1, live[found]) if len(live) else found
