"""Count a write's rows in tasks, sum the counts up to a workload, and weigh a sample of new rows.

Hudi assumes 1024 bytes per record until its timeline shows the size, and few rows mostly show the
size of empty columns. A first large write would then make many files that are too small. So a
sample is written into memory to measure the size of new rows in a file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.arrays import Integers, sort_unique, to_arrow
from reconciler.file_slices.base_file.meta_columns import PARTITION, RECORD_KEY, CommitStamp
from reconciler.file_slices.base_file.parquet import count_row_bytes
from reconciler.file_slices.base_file.writer import BaseFileWriter
from reconciler.layout.sizing.assign import Workload
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.layout.sizing.key_routing import Hashes
from reconciler.layout.sizing.record_size import RecordSize
from reconciler.lazy_dataclass import dataclass
from reconciler.rewrite.model import Tally
from reconciler.writer.bucket import BucketSettings
from reconciler.writer.index_buckets import IndexBuckets
from reconciler.writer.job import Broadcast
from reconciler.writer.new_rows import NewRows
from reconciler.writer.row_blocks import (
    BlockKind,
    MatchedRows,
    RowBlock,
    RowChunk,
    read_matched_chunks,
)

#: rows that all tasks weigh together, and the minimum and maximum of one task
_ROWS: Final = 256 * 1024
_MIN_ROWS: Final = 4 * 1024
_MAX_ROWS: Final = 64 * 1024
#: maximum number of bytes in Arrow's memory that a task weighs, apart from one row
_BYTES: Final = 32 * 1024 * 1024
#: more bytes than any file has
_NO_LIMIT: Final = 1 << 60


def choose_sample_size(tasks: int) -> int:
    """Return how many new rows each of so many tasks weighs.

    >>> choose_sample_size(1), choose_sample_size(16), choose_sample_size(10_000)
    (65536, 16384, 4096)
    """
    return max(_MIN_ROWS, min(_ROWS // tasks, _MAX_ROWS))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWeight:
    """``rows`` in ``files`` files: ``data`` bytes of row groups, ``fixed`` bytes beside them."""

    rows: int = 0
    files: int = 0
    data: int = 0
    fixed: int = 0

    def add(self, other: RowWeight) -> RowWeight:
        """Return the sum of both."""
        return RowWeight(
            rows=self.rows + other.rows,
            files=self.files + other.files,
            data=self.data + other.data,
            fixed=self.fixed + other.fixed,
        )

    @property
    def record_size(self) -> RecordSize:
        """The size of a record; there must be rows."""
        return RecordSize(
            fixed=round(self.fixed / self.files),
            per_row=self.data / self.rows,
            because=f"{self.rows} new rows were weighed",
            rows=self.rows,
        )


@dataclass(slots=True)
class WeightSample:
    """The first new rows of a task, up to ``max_rows``."""

    max_rows: int
    rows: int = 0
    _bytes: int = 0
    _kept: list[Any] = field(default_factory=list)

    def add(self, batch: Any, new: Integers) -> None:
        """Add the given rows of a batch, as far as there is room."""
        if self.rows >= self.max_rows or self._bytes >= _BYTES or not len(new):
            return
        row_bytes = max(batch.nbytes / len(batch), 1.0)
        count = min(self.max_rows - self.rows, int((_BYTES - self._bytes) / row_bytes) + 1)
        kept = batch.take(to_arrow(new[:count]))
        self._kept.append(kept)
        self.rows += len(kept)
        self._bytes += int(kept.nbytes)

    def weigh(self, settings: BucketSettings, instant: str) -> RowWeight:
        """Write the rows, at least one, into a file in memory; errors as of the file's writer."""
        sink = pa.BufferOutputStream()
        file = BaseFileWriter(sink, "the new rows", settings.schema, settings.form)
        rows = NewRows(
            self._kept,
            stamp=CommitStamp(instant=instant, task=0),
            columns=settings.reading.wanted.columns,
            target=_NO_LIMIT,
        )
        try:
            rows.write_into(file, _NO_LIMIT)
            written = file.close()
        except BaseException:
            file.abandon()
            raise
        data = count_row_bytes(written.footer)
        return RowWeight(rows=written.rows, files=1, data=data, fixed=max(written.size - data, 0))


def count_rows(_partition: int, buffers: Iterator[Any]) -> Iterator[dict[str, int]]:
    """Count the rows of each partition of the table."""
    counts: Counter[str] = Counter()
    for block in map(RowBlock.from_bytes, buffers):
        for value in block.read_batch().column(PARTITION).value_counts().to_pylist():
            counts[value["values"]] += value["counts"]
    yield dict(counts)


@dataclass(slots=True, kw_only=True, eq=False)
class WriteCounts:
    """The counts of some rows of a write.

    ``inserts``: tallies of new rows by partition; ``in_buckets``: how many of them are in each
    bucket of a bucket index; ``moves``: how many of them left another partition. ``changes``:
    tallies by file group of rows whose keys a file holds; ``deletes``: how many of them are
    deletions. ``weight``: the weight of a sample of new rows. ``answers``: how many files told by
    what (``FileAnswer``) which keys they have.
    """

    incoming: int = 0
    dropped: int = 0
    absent_deletes: int = 0
    inserts: dict[str, Tally] = field(default_factory=dict)
    in_buckets: Counter[tuple[str, int]] = field(default_factory=Counter)
    moves: Counter[str] = field(default_factory=Counter)
    changes: dict[int, Tally] = field(default_factory=dict)
    deletes: Counter[int] = field(default_factory=Counter)
    weight: RowWeight = RowWeight()
    answers: Counter[str] = field(default_factory=Counter)

    def add(self, other: WriteCounts) -> None:
        """Add the counts of other rows."""
        self.incoming += other.incoming
        self.dropped += other.dropped
        self.absent_deletes += other.absent_deletes
        _add_tallies(self.inserts, other.inserts)
        _add_tallies(self.changes, other.changes)
        self.in_buckets.update(other.in_buckets)
        self.moves.update(other.moves)
        self.deletes.update(other.deletes)
        self.weight = self.weight.add(other.weight)
        self.answers.update(other.answers)

    def make_workload(self, groups: FileGroupSizes, per_row: float) -> Workload:
        """Return the workload that buckets are assigned for; ``per_row``: a row's bytes."""
        paths = sorted({*self.inserts, *map(groups.get_partition, self.changes)})
        group = np.array(sorted(self.changes), np.int64)
        deletes = np.array([self.deletes[file] for file in group.tolist()], np.int64)
        inserts = [self.inserts.get(path, Tally()).rows for path in paths]
        return Workload(
            partitions=tuple(paths),
            inserts=np.array(inserts, np.int64),
            group=group,
            updates=np.array([self.changes[file].rows for file in group.tolist()], np.int64),
            growth=-np.rint(deletes * per_row).astype(np.int64),
        )


def _add_tallies(total: dict[Any, Tally], tallies: Mapping[Any, Tally]) -> None:
    for key, tally in tallies.items():
        total[key] = total.get(key, Tally()).add(tally)


def count_changes(
    row_job: Broadcast, weighed_rows: int, partition: int, buffers: Iterable[Any]
) -> Iterator[WriteCounts]:
    """Count rows by where they go, and weigh the first ``weighed_rows`` new ones."""
    buffers = list(buffers)
    total, sample = WriteCounts(answers=_count_answers(buffers)), WeightSample(weighed_rows)
    for chunk, matched in read_matched_chunks(partition, buffers, row_job.value):
        sample.add(chunk.rows, matched.new)
        total.add(_count_chunk(chunk, matched))
        if (buckets := row_job.value.index_buckets) is not None:
            total.in_buckets.update(_count_buckets(chunk, matched, buckets))
    if sample.rows:
        total.weight = sample.weigh(row_job.value.settings, row_job.value.instant)
    yield total


def _count_answers(buffers: Iterable[Any]) -> Counter[str]:
    answers: Counter[str] = Counter()
    for block in map(RowBlock.from_bytes, buffers):
        if block.kind is BlockKind.ANSWERS:
            for answer in block.read_batch().to_pylist():
                answers[answer["answer"]] += answer["files"]
    return answers


def _count_chunk(chunk: RowChunk, matched: MatchedRows) -> WriteCounts:
    codes, paths = chunk.encode_paths(matched.new)
    inserts = tally_by_code(codes, chunk.hashes[matched.new], len(paths))
    file = sort_unique(matched.file)
    positions = np.searchsorted(file, matched.file)
    files = file.tolist()
    changes = tally_by_code(positions, chunk.hashes[matched.row], len(file))
    deletes = np.bincount(positions[matched.removes_old_row(chunk)], minlength=len(file))
    deleted_rows = len(sort_unique(matched.row[chunk.is_deletion[matched.row]]))
    return WriteCounts(
        incoming=chunk.incoming_count,
        dropped=chunk.incoming_count - len(chunk.rows),
        absent_deletes=int(chunk.is_deletion.sum()) - deleted_rows,
        inserts=dict(zip(paths, inserts, strict=True)),
        moves=Counter(_count_moves(chunk, matched)),
        changes=dict(zip(files, changes, strict=True)),
        deletes=Counter(dict(zip(files, deletes.tolist(), strict=True))),
    )


def _count_buckets(
    chunk: RowChunk, matched: MatchedRows, buckets: IndexBuckets
) -> dict[tuple[str, int], int]:
    """Return how many new rows are in each bucket of a bucket index, by partition and number."""
    codes, paths = chunk.encode_paths(matched.new)
    numbers = buckets.find_buckets(chunk.rows.column(RECORD_KEY).take(to_arrow(matched.new)))
    slots, counts = np.unique(
        codes.astype(np.int64) * buckets.rule.buckets + numbers, return_counts=True
    )
    found = zip(slots.tolist(), counts.tolist(), strict=True)
    return {
        (paths[slot // buckets.rule.buckets], slot % buckets.rule.buckets): count
        for slot, count in found
    }


def _count_moves(chunk: RowChunk, matched: MatchedRows) -> dict[str, int]:
    codes, paths = chunk.encode_paths(sort_unique(matched.row[matched.is_moved]))
    return dict(zip(paths, np.bincount(codes, minlength=len(paths)).tolist(), strict=True))


def tally_by_code(codes: NDArray[Any], hashes: Hashes, count: int) -> tuple[Tally, ...]:
    """Return a tally of rows and keys per code."""
    rows = np.bincount(codes, minlength=count)
    keys = np.zeros(count, np.uint64)
    np.add.at(keys, codes, hashes)
    pairs = zip(rows.tolist(), keys.tolist(), strict=True)
    return tuple(Tally(rows=rows, keys=keys) for rows, keys in pairs)
