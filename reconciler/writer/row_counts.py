"""Count a write's rows in tasks, and sum the counts up to a workload."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reconciler.arrays import Integers, sort_unique
from reconciler.file_slices.base_file.meta_columns import PARTITION
from reconciler.layout.sizing.buckets import Workload
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.layout.sizing.key_routing import Hashes
from reconciler.rewrite.model import Tally
from reconciler.writer.job import Broadcast
from reconciler.writer.row_blocks import RowBlock
from reconciler.writer.row_chunks import MatchedRows, RowChunk, read_matched_chunks
from reconciler.writer.row_weight import RowWeight, WeightSample


def count_rows(_partition: int, buffers: Iterator[Any]) -> Iterator[dict[str, int]]:
    """Count the rows of each partition of the table."""
    counts: Counter[str] = Counter()
    for block in map(RowBlock.from_bytes, buffers):
        for value in block.read_batch().column(PARTITION).value_counts().to_pylist():
            counts[value["values"]] += value["counts"]
    yield dict(counts)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChunkCounts:
    """The counts of a chunk.

    ``inserts``: by partition; ``moves``: how many of them left another partition. ``file``: int64,
    ascending indexes into FileGroupSizes of files with keys of the chunk; ``changes``: tallies per
    file; ``deletes``: how many of them are deletions.
    """

    incoming: int
    dropped: int
    absent_deletes: int
    inserts: Mapping[str, Tally]
    moves: Mapping[str, int]
    file: Integers
    changes: tuple[Tally, ...]
    deletes: Integers


def count_changes(
    row_job: Broadcast, weighed_rows: int, partition: int, buffers: Iterator[Any]
) -> Iterator[ChunkCounts | RowWeight]:
    """Count rows by where they go, and weigh the first ``weighed_rows`` new ones."""
    sample = WeightSample(weighed_rows)
    for chunk, matched in read_matched_chunks(partition, buffers, row_job.value):
        sample.add(chunk.rows, matched.new)
        yield count_chunk(chunk, matched)
    if sample.rows:
        yield sample.weigh(row_job.value.settings, row_job.value.instant)


def count_chunk(chunk: RowChunk, matched: MatchedRows) -> ChunkCounts:
    """Return the counts of a chunk."""
    hashes = chunk.hashes
    code, paths = chunk.encode_paths(matched.new)
    inserts = tally_by_code(code, hashes[matched.new], len(paths))
    file = sort_unique(matched.file)
    positions = np.searchsorted(file, matched.file)
    deletes = np.zeros(len(file), np.int64)
    np.add.at(deletes, positions, matched.removes_old_row(chunk))
    deleted_rows = len(sort_unique(matched.row[chunk.is_deletion[matched.row]]))
    return ChunkCounts(
        incoming=chunk.incoming_count,
        dropped=chunk.incoming_count - len(chunk.rows),
        absent_deletes=int(chunk.is_deletion.sum()) - deleted_rows,
        inserts=dict(zip(paths, inserts, strict=True)),
        moves=_count_moves(chunk, matched),
        file=file,
        changes=tally_by_code(positions, hashes[matched.row], len(file)),
        deletes=deletes,
    )


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


@dataclass(slots=True, kw_only=True, eq=False)
class WriteCounts:
    """The counts of all chunks together."""

    incoming: int = 0
    dropped: int = 0
    absent_deletes: int = 0
    inserts: dict[str, Tally] = field(default_factory=dict)
    moves: Counter[str] = field(default_factory=Counter)
    changes: dict[int, Tally] = field(default_factory=dict)
    deletes: Counter[int] = field(default_factory=Counter)
    weight: RowWeight = RowWeight()  # noqa: RUF009 (frozen)

    @classmethod
    def from_chunks(cls, counts: Iterable[ChunkCounts | RowWeight]) -> WriteCounts:
        """Return the sums."""
        total = cls()
        for chunk in counts:
            if isinstance(chunk, RowWeight):
                total.weight = total.weight.add(chunk)
                continue
            total.incoming += chunk.incoming
            total.dropped += chunk.dropped
            total.absent_deletes += chunk.absent_deletes
            for path, tally in chunk.inserts.items():
                total.inserts[path] = total.inserts.get(path, Tally()).add(tally)
            total.moves.update(chunk.moves)
            files = chunk.file.tolist()
            for file, tally in zip(files, chunk.changes, strict=True):
                total.changes[file] = total.changes.get(file, Tally()).add(tally)
            total.deletes.update(dict(zip(files, chunk.deletes.tolist(), strict=True)))
        return total

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
