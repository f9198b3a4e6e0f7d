"""The second stage: which base files hold the keys of a write, as Hudi's bloom index finds them.

The keys of a partition go to tasks that have its files among them, and what each file holds goes
back to where the rows are. No task has more than a share of keys in memory, and the driver none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.arrays import to_integer_array, to_numpy_numbers
from reconciler.file_slices.base_file.meta_columns import RECORD_KEY
from reconciler.hudi.files.names import make_file_path
from reconciler.spark.staged_rows import BlockForPartition
from reconciler.storage.api import Storage
from reconciler.writer.job import Broadcast, TableGroups, TaskContext
from reconciler.writer.row_blocks import BlockKind, RowBlock, split_by_code
from reconciler.writer.row_chunks import RowChunk, build_chunks, make_tags
from reconciler.writer.stored_keys import find_stored_keys

#: keys that a task looks for at a time: each time it reads the files' footers, or more of them
_KEYS_AT_ONCE: Final = 2_000_000
#: keys of a partition that are sent, all copies together, before fewer tasks share its files
_MAX_KEY_COPIES: Final = 200_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeySearch:
    """Which place looks into which files.

    ``partitions``: paths. ``tasks_by_partition``: for each of them those that get its keys. ``files``: for each
    place, of each partition by its number, the groups that it looks into. ``path``, ``size``: of
    the newest base file of every group that is looked into.
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
        """For so many rows by partition, and about so many places; none where there are no files.

        A partition's files are shared out by their number in proportion to all.
        """
        groups = table_groups.groups
        found = {path: _find_groups(table_groups, path) for path in sorted(keys)}
        found = {path: files for path, files in found.items() if len(files)}
        total = sum(map(len, found.values()))
        places: list[range] = []
        files: list[dict[int, NDArray[np.int64]]] = []
        for code, (path, of) in enumerate(found.items()):
            most = max(1, _MAX_KEY_COPIES // max(keys[path], 1))
            shares = min(len(of), max(1, round(count * len(of) / total)), most)
            places.append(range(len(files), len(files) + shares))
            files += [{code: of[nth::shares]} for nth in range(shares)]
        every = np.concatenate([np.zeros(0, np.int64), *found.values()]).tolist()
        names = table_groups.bases.take(to_integer_array(np.array(every, np.int64))).to_pylist()
        folders = [groups.partitions[groups.partition[at]] for at in every]
        paths = (make_file_path(at, name) for at, name in zip(folders, names, strict=True))
        return cls(
            partitions=tuple(found),
            tasks_by_partition=tuple(places),
            files=tuple(files),
            path=dict(zip(every, paths, strict=True)),
            size={at: int(groups.base[at]) for at in every},
        )


def _find_groups(table_groups: TableGroups, path: str) -> NDArray[np.int64]:
    """The groups of a partition that have a base file that readers see."""
    within = table_groups.groups.partition_range(path)
    is_one = table_groups.groups.is_live[within] & (table_groups.groups.base[within] >= 0)
    found: NDArray[np.int64] = np.flatnonzero(is_one) + within.start
    return found


@dataclass(frozen=True, slots=True)
class SendKeysToFilesTask:
    """Rows of a place into their keys, sent where their partition's files are; picklable."""

    row_job: Broadcast
    search: Broadcast

    def __call__(self, place: int, blocks: Iterator[Any]) -> Iterator[BlockForPartition]:
        for chunk in build_chunks(place, map(RowBlock.from_bytes, blocks), self.row_job.value):
            yield from send_keys(chunk, np.arange(len(chunk.rows)), place, self.search.value)


def send_keys(
    chunk: RowChunk, rows: NDArray[np.int64], place: int, search: KeySearch
) -> Iterator[BlockForPartition]:
    """The keys of some rows, sent where their partitions' files are."""
    codes = {path: code for code, path in enumerate(search.partitions)}
    keys = chunk.rows.column(RECORD_KEY)
    where, paths = chunk.encode_paths(rows)
    number = np.array([codes.get(path, -1) for path in paths], np.int64)[where]
    rows, number = rows[number >= 0], number[number >= 0]
    batch = pa.RecordBatch.from_arrays(
        [keys.take(to_integer_array(rows)), to_integer_array(rows.astype(np.int32))], ["key", "row"]
    )
    for code, some in split_by_code(batch, number):
        pack = RowBlock(kind=BlockKind.KEYS, source=place, number=code, data=some)
        for to in search.tasks_by_partition[code]:
            yield to, pack


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeysInFile:
    """Keys that a file holds. ``file``: its group; ``source``, ``row``: whence each key came."""

    file: int
    source: NDArray[np.int64]
    row: NDArray[np.int32]
    keys: Any


@dataclass(frozen=True, slots=True)
class SearchFilesTask:
    """Keys of a place into what its files hold of them, sent back to the rows; picklable.

    Raises FormatError naming a file that is damaged or has no keys.
    """

    search: Broadcast
    context: TaskContext

    def __call__(self, place: int, blocks: Iterator[Any]) -> Iterator[BlockForPartition]:
        storage: Storage | None = None
        for number, packs in enumerate(batch_blocks(blocks)):
            storage = storage or self.context.open_storage()
            tags = [
                (one.source, make_tags(one.file, one.row, one.keys))
                for one in search_files(self.search.value, place, packs, storage)
            ]
            yield from send_tags(place, number, tags)


def batch_blocks(blocks: Iterator[Any]) -> Iterator[list[RowBlock]]:
    """Packs of keys, about as many keys at a time as a task has in memory."""
    some: list[RowBlock] = []
    count = 0
    for pack in map(RowBlock.from_bytes, blocks):
        some.append(pack)
        count += len(pack.read_batch())
        if count >= _KEYS_AT_ONCE:
            yield some
            count, some = 0, []
    if some:
        yield some


def search_files(
    search: KeySearch, place: int, packs: Sequence[RowBlock], storage: Storage
) -> Iterator[KeysInFile]:
    """What each file of a place holds of the keys that are looked for in its partition."""
    for code in sorted({pack.number for pack in packs}):
        some = [pack for pack in packs if pack.number == code]
        batches = [pack.read_batch() for pack in some]
        counts = [len(batch) for batch in batches]
        source = np.repeat([pack.source for pack in some], counts).astype(np.int64)
        batch = pa.concat_batches(batches)
        keys, row = batch.column("key"), to_numpy_numbers(batch.column("row"))
        for file in search.files[place][code].tolist():
            at = find_stored_keys(storage, search.path[file], search.size[file], keys)
            if len(at):
                yield KeysInFile(
                    file=file, source=source[at], row=row[at], keys=keys.take(to_integer_array(at))
                )


def send_tags(
    place: int, number: int, tags: Sequence[tuple[NDArray[np.int64], Any]]
) -> Iterator[BlockForPartition]:
    """Tags (``make_tags``) with the source of each row, sent there in packs of this number."""
    if tags:
        sources = np.concatenate([source for source, _ in tags])
        for to, some in split_by_code(pa.concat_batches([one for _, one in tags]), sources):
            yield to, RowBlock(kind=BlockKind.TAGS, source=place, number=number, data=some)
