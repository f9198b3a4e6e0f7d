"""The second stage: find base files that hold the keys of a write, like Hudi's bloom index.

The keys of a partition go to the tasks that read its files; what each file holds goes back to where
the rows are. No task has more than a share of the keys in memory, the driver has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.arrays import to_arrow, to_numpy
from reconciler.file_slices.base_file.meta_columns import RECORD_KEY
from reconciler.hudi.files.names import make_file_path
from reconciler.spark.staged_rows import BlockForPartition
from reconciler.storage.api import Storage
from reconciler.writer.job import Broadcast, TableGroups, TaskContext
from reconciler.writer.row_blocks import BlockKind, RowBlock, split_by_code
from reconciler.writer.row_chunks import RowChunk, build_chunks, make_tags
from reconciler.writer.stored_keys import find_stored_keys

#: keys that a task looks for at a time; each time it reads the footers of its files again
_KEYS_AT_ONCE: Final = 2_000_000
#: the most copies of a partition's keys that are sent; beyond that fewer tasks share its files
_MAX_KEY_COPIES: Final = 200_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeySearch:
    """Which task reads which files.

    ``partitions``: paths. ``tasks_by_partition``: per partition, the tasks that get its keys.
    ``files``: per task, by partition number, the groups that it reads. ``path``, ``size``: of the
    newest base file of every group that is read.
    """

    partitions: tuple[str, ...]
    tasks_by_partition: tuple[range, ...]
    files: tuple[Mapping[int, NDArray[np.int64]], ...]
    path: Mapping[int, str]
    size: Mapping[int, int]

    @classmethod
    def from_groups(
        cls, table_groups: TableGroups, keys: Mapping[str, int], count: int
    ) -> KeySearch:
        """Return the search for rows counted by partition, with about ``count`` tasks.

        A partition's files are divided by their share of all files. There are no tasks without
        files.
        """
        groups = table_groups.groups
        found = {path: _find_groups(table_groups, path) for path in sorted(keys)}
        found = {path: files for path, files in found.items() if len(files)}
        total = sum(map(len, found.values()))
        task_ranges: list[range] = []
        files: list[dict[int, NDArray[np.int64]]] = []
        for code, (path, group_files) in enumerate(found.items()):
            max_tasks = max(1, _MAX_KEY_COPIES // max(keys[path], 1))
            shares = min(
                len(group_files), max(1, round(count * len(group_files) / total)), max_tasks
            )
            task_ranges.append(range(len(files), len(files) + shares))
            files += [{code: group_files[nth::shares]} for nth in range(shares)]
        all_groups = np.concatenate([np.zeros(0, np.int64), *found.values()]).tolist()
        names = table_groups.bases.take(to_arrow(np.array(all_groups, np.int64))).to_pylist()
        folders = [groups.partitions[groups.partition[at]] for at in all_groups]
        paths = (make_file_path(at, name) for at, name in zip(folders, names, strict=True))
        return cls(
            partitions=tuple(found),
            tasks_by_partition=tuple(task_ranges),
            files=tuple(files),
            path=dict(zip(all_groups, paths, strict=True)),
            size={at: int(groups.base[at]) for at in all_groups},
        )


def _find_groups(table_groups: TableGroups, path: str) -> NDArray[np.int64]:
    """Return the groups of a partition that have a current base file."""
    within = table_groups.groups.partition_range(path)
    has_base = table_groups.groups.is_live[within] & (table_groups.groups.base[within] >= 0)
    found: NDArray[np.int64] = np.flatnonzero(has_base) + within.start
    return found


@dataclass(frozen=True, slots=True)
class SendKeysToFilesTask:
    """Sends the keys of rows to the tasks that read their partition's files; picklable."""

    row_job: Broadcast
    search: Broadcast

    def __call__(self, partition: int, buffers: Iterator[Any]) -> Iterator[BlockForPartition]:
        for chunk in build_chunks(partition, map(RowBlock.from_bytes, buffers), self.row_job.value):
            yield from send_keys(chunk, np.arange(len(chunk.rows)), partition, self.search.value)


def send_keys(
    chunk: RowChunk, rows: NDArray[np.int64], partition: int, search: KeySearch
) -> Iterator[BlockForPartition]:
    """Yield the keys of some rows for the tasks that read their partitions' files."""
    codes = {path: code for code, path in enumerate(search.partitions)}
    keys = chunk.rows.column(RECORD_KEY)
    code_of_path, paths = chunk.encode_paths(rows)
    number = np.array([codes.get(path, -1) for path in paths], np.int64)[code_of_path]
    rows, number = rows[number >= 0], number[number >= 0]
    batch = pa.RecordBatch.from_arrays(
        [keys.take(to_arrow(rows)), to_arrow(rows.astype(np.int32))], ["key", "row"]
    )
    for code, rows_of_code in split_by_code(batch, number):
        block = RowBlock(kind=BlockKind.KEYS, source=partition, number=code, data=rows_of_code)
        for task in search.tasks_by_partition[code]:
            yield task, block


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeysInFile:
    """Keys that a file holds. ``file``: its group; ``source``, ``row``: the origin of each key."""

    file: int
    source: NDArray[np.int64]
    row: NDArray[np.int32]
    keys: Any


@dataclass(frozen=True, slots=True)
class SearchFilesTask:
    """Searches keys in files, and sends the matches back to the rows; picklable.

    Raises FormatError naming a file that is damaged or has no keys.
    """

    search: Broadcast
    context: TaskContext

    def __call__(self, partition: int, buffers: Iterator[Any]) -> Iterator[BlockForPartition]:
        storage: Storage | None = None
        for number, blocks in enumerate(batch_blocks(buffers)):
            storage = storage or self.context.open_storage()
            tags = [
                (match.source, make_tags(match.file, match.row, match.keys))
                for match in search_files(self.search.value, partition, blocks, storage)
            ]
            yield from send_tags(partition, number, tags)


def batch_blocks(buffers: Iterator[Any]) -> Iterator[list[RowBlock]]:
    """Group blocks of keys, up to about as many keys as a task keeps in memory."""
    collected: list[RowBlock] = []
    count = 0
    for block in map(RowBlock.from_bytes, buffers):
        collected.append(block)
        count += len(block.read_batch())
        if count >= _KEYS_AT_ONCE:
            yield collected
            count, collected = 0, []
    if collected:
        yield collected


def search_files(
    search: KeySearch, task_number: int, blocks: Sequence[RowBlock], storage: Storage
) -> Iterator[KeysInFile]:
    """Yield what each file of a task holds of the keys of its partition."""
    for code in sorted({block.number for block in blocks}):
        selected = [block for block in blocks if block.number == code]
        batches = [block.read_batch() for block in selected]
        counts = [len(batch) for batch in batches]
        source = np.repeat([block.source for block in selected], counts).astype(np.int64)
        batch = pa.concat_batches(batches)
        keys, row = batch.column("key"), to_numpy(batch.column("row"))
        for file in search.files[task_number][code].tolist():
            found_rows = find_stored_keys(storage, search.path[file], search.size[file], keys)
            if len(found_rows):
                yield KeysInFile(
                    file=file,
                    source=source[found_rows],
                    row=row[found_rows],
                    keys=keys.take(to_arrow(found_rows)),
                )


def send_tags(
    partition: int, number: int, tags: Sequence[tuple[NDArray[np.int64], Any]]
) -> Iterator[BlockForPartition]:
    """Yield tags (``make_tags``) for the source of each row, in blocks of this number."""
    if tags:
        sources = np.concatenate([source for source, _ in tags])
        for task, rows_of_code in split_by_code(
            pa.concat_batches([batch for _, batch in tags]), sources
        ):
            yield (
                task,
                RowBlock(kind=BlockKind.TAGS, source=partition, number=number, data=rows_of_code),
            )
