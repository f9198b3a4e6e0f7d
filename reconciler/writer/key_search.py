"""The second stage: find base files that hold the keys of a write, like Hudi's bloom index.

The keys of a partition go to the tasks that read its files; what each file holds goes back to where
the rows are. No task has more than a share of the keys in memory, the driver has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.arrays import Integers, to_arrow, to_numpy
from reconciler.file_slices.base_file.meta_columns import RECORD_KEY
from reconciler.file_slices.merge.slice_reader import SliceFiles, SliceReadOptions
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.lazy_dataclass import dataclass
from reconciler.spark.staged_rows import BlockForPartition
from reconciler.storage.api import Storage
from reconciler.writer.job import Broadcast, TaskContext
from reconciler.writer.lookup_costs import FileAnswer
from reconciler.writer.row_blocks import (
    BlockKind,
    MatchOutcome,
    RowBlock,
    RowChunk,
    build_chunks,
    make_tags,
    send_rows,
    split_by_code,
)
from reconciler.writer.slice_keys import SliceLogs, find_dead_keys, find_logged_keys
from reconciler.writer.stored_keys import find_stored_keys

#: keys that a task looks for at a time; each time it reads the footers of its files again
_KEYS_AT_ONCE: Final = 2_000_000
#: maximum copies of a partition's keys to send; beyond that fewer tasks share its files
_MAX_KEY_COPIES: Final = 200_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeySearch:
    """The assignment of files to the tasks that search keys in them.

    ``partitions``: paths. ``tasks_by_partition``: per partition, the tasks that get its keys.
    ``files``: per task, by partition number, the groups that it reads. ``path``, ``size``: the
    newest base file of every group that is read and has one. ``logs``: the log files of groups that
    have some; ``searches_logs``: rows of log files are searched too. ``reading``: how slices are
    merged, to tell which keys log files have deleted; None if deletions do not matter.
    """

    partitions: tuple[str, ...]
    tasks_by_partition: tuple[range, ...]
    files: tuple[Mapping[int, Integers], ...]
    path: Mapping[int, str]
    size: Mapping[int, int]
    logs: Mapping[int, SliceLogs] = field(default_factory=dict)
    reading: SliceReadOptions | None = None
    searches_logs: bool = False

    @classmethod
    def from_groups(
        cls,
        groups: FileGroupSizes,
        keys: Mapping[str, int],
        count: int,
        logs: Mapping[int, SliceLogs] | None = None,
        reading: SliceReadOptions | None = None,
        *,
        searches_logs: bool = False,
    ) -> KeySearch:
        """Return the search for rows counted by partition, with about ``count`` tasks.

        A partition's files are divided by their share of all files. There are no tasks without
        files.
        """
        logs = logs or {}
        searched = logs if searches_logs else {}
        by_path = {path: _find_groups(groups, path, searched) for path in sorted(keys)}
        by_path = {path: files for path, files in by_path.items() if len(files)}
        total = sum(map(len, by_path.values()))
        task_ranges: list[range] = []
        files: list[dict[int, Integers]] = []
        for code, (path, group_files) in enumerate(by_path.items()):
            wanted = max(1, round(count * len(group_files) / total))
            shares = min(len(group_files), wanted, max(1, _MAX_KEY_COPIES // max(keys[path], 1)))
            task_ranges.append(range(len(files), len(files) + shares))
            files += [{code: group_files[nth::shares]} for nth in range(shares)]
        all_groups = [group for group_files in by_path.values() for group in group_files.tolist()]
        return cls(
            partitions=tuple(by_path),
            tasks_by_partition=tuple(task_ranges),
            files=tuple(files),
            path={
                group: groups.get_base_path(group)
                for group in all_groups
                if groups.base[group] >= 0
            },
            size={group: int(groups.base[group]) for group in all_groups},
            logs={group: logs[group] for group in all_groups if group in logs},
            reading=reading,
            searches_logs=searches_logs,
        )

    def get_slice(self, group: int) -> SliceFiles:
        """Return the files of a group's current slice."""
        return SliceFiles(
            base=self.path.get(group),
            base_size=max(self.size[group], 0),
            logs=self.logs.get(group, SliceLogs()).paths,
        )


def _find_groups(groups: FileGroupSizes, path: str, logs: Mapping[int, SliceLogs]) -> Integers:
    """Return the groups of a partition that have a current base file, or log files to search."""
    within = groups.partition_range(path)
    has_base = groups.is_live[within] & (groups.base[within] >= 0)
    with_base: Integers = np.flatnonzero(has_base) + within.start
    more = [group for group in logs if within.start <= group < within.stop]
    return np.union1d(with_base, np.array(more, np.int64)) if more else with_base


def send_keys_to_files(
    row_job: Broadcast, search: Broadcast, partition: int, buffers: Iterator[Any]
) -> Iterator[BlockForPartition]:
    """Send the keys of rows to the tasks that read their partition's files."""
    for chunk in build_chunks(partition, map(RowBlock.from_bytes, buffers), row_job.value):
        yield from send_keys(chunk, np.arange(len(chunk.rows)), partition, search.value)


def send_keys(
    chunk: RowChunk, rows: Integers, partition: int, search: KeySearch
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


def search_keys_in_files(
    search: Broadcast, context: TaskContext, partition: int, buffers: Iterator[Any]
) -> Iterator[BlockForPartition]:
    """Search keys in files, and send the matches back to the rows.

    Raises FormatError naming a file that is damaged or has no keys.
    """
    answers: dict[int, FileAnswer] = {}
    for number, (blocks, storage) in enumerate(batch_blocks(buffers, context)):
        matches = search_files(search.value, partition, blocks, storage, answers)
        tags = [
            make_tags(file, keys, _find_outcomes(search.value, file, keys, storage), position)
            for file, keys, position in matches
        ]
        yield from send_tags(tags, partition, number)
    yield from send_answers(answers.values(), partition)


def batch_blocks(
    buffers: Iterable[Any], context: TaskContext
) -> Iterator[tuple[list[RowBlock], Storage]]:
    """Group blocks of keys, up to about as many keys as a task keeps in memory.

    Each group comes with the table's storage, which is opened for the first one.
    """
    storage: Storage | None = None
    collected: list[RowBlock] = []
    count = 0
    for block in map(RowBlock.from_bytes, buffers):
        storage = storage or context.open_storage()
        collected.append(block)
        count += len(block.read_batch())
        if count >= _KEYS_AT_ONCE:
            yield collected, storage
            count, collected = 0, []
    if collected and storage is not None:
        yield collected, storage


def search_files(
    search: KeySearch,
    task_number: int,
    blocks: Sequence[RowBlock],
    storage: Storage,
    answers: dict[int, FileAnswer],
) -> Iterator[tuple[int, Any, Integers]]:
    """Yield each file of a task, by its group, with the keys of its partition that it holds.

    Also yields the numbers of their rows. ``answers`` gets what each base file was asked.
    """
    for code in sorted({block.number for block in blocks}):
        batch = combine_keys([block for block in blocks if block.number == code])
        keys = batch.column("key")
        for file in search.files[task_number][code].tolist():
            index, position, answer = _find_keys(search, file, keys, storage)
            if answer is not None and answers.get(file) is not FileAnswer.KEYS:
                answers[file] = answer
            if len(index):
                yield file, batch.take(to_arrow(index)), position


def _find_outcomes(
    search: KeySearch, file: int, keys: Any, storage: Storage
) -> NDArray[np.int8] | None:
    """Return what becomes of rows whose keys a file group has; None if all change its rows."""
    logs = search.logs.get(file)
    if logs is None or search.reading is None or file not in search.path:
        return None
    given = search.get_slice(file)
    is_dead = find_dead_keys(given, logs, keys.column("key"), search.reading, storage)
    return np.where(is_dead, MatchOutcome.REVIVES, MatchOutcome.CHANGES).astype(np.int8)


def _find_keys(
    search: KeySearch, file: int, keys: Any, storage: Storage
) -> tuple[Integers, Integers, FileAnswer | None]:
    """Return which keys a file group has, and the numbers of their rows in its base file, or -1.

    Also what the base file was asked, None without one.
    """
    position = np.full(len(keys), -1, np.int64)
    has_key = np.zeros(len(keys), np.bool_)
    answer = None
    if file in search.path:
        stored = find_stored_keys(storage, search.path[file], search.size[file], keys)
        answer = stored.answer
        position[stored.index] = stored.position
        has_key[stored.index] = True
    logs = search.logs.get(file)
    if logs is not None and search.searches_logs and search.reading is not None:
        has_key[find_logged_keys(logs.paths, keys, search.reading, storage)] = True
    index: Integers = np.flatnonzero(has_key)
    return index, position[index], answer


def combine_keys(blocks: Sequence[RowBlock]) -> Any:
    """Combine the keys of blocks into a batch, each with its source."""
    batches = [block.read_batch() for block in blocks]
    source = np.repeat([block.source for block in blocks], [len(batch) for batch in batches])
    whole = pa.concat_batches(batches)
    return whole.append_column("source", to_arrow(source.astype(np.int64)))


def send_answers(answers: Iterable[FileAnswer], partition: int) -> Iterator[BlockForPartition]:
    """Yield a block that counts what files were asked, for the first shuffle partition."""
    counts = Counter(answer.value for answer in answers)
    data = pa.RecordBatch.from_pydict({"answer": [*counts], "files": [*counts.values()]})
    if counts:
        yield 0, RowBlock(kind=BlockKind.ANSWERS, source=partition, number=0, data=data)


def send_tags(tags: Sequence[Any], partition: int, number: int) -> Iterator[BlockForPartition]:
    """Yield tags (``make_tags``) for the source of each row, in blocks of this number."""
    if tags:
        whole = pa.concat_batches(tags)
        source = to_numpy(whole.column("source"))
        tags_alone = whole.select(whole.schema.names[1:])
        yield from send_rows(tags_alone, source, BlockKind.TAGS, partition, number)
