"""Count a write's rows in tasks, and sum the counts up to a workload."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reconciler.arrays import sort_unique
from reconciler.file_slices.base_file.meta_columns import PARTITION
from reconciler.layout.sizing.assign import Workload
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.layout.sizing.key_routing import Hashes
from reconciler.rewrite.model import Tally
from reconciler.writer.job import Broadcast
from reconciler.writer.row_blocks import MatchedRows, RowBlock, RowChunk, read_matched_chunks
from reconciler.writer.row_weight import RowWeight, WeightSample


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

    ``inserts``: tallies of new rows by partition; ``moves``: how many of them left another
    partition. ``changes``: tallies by file group of rows whose keys a file holds; ``deletes``: how
    many of them are deletions. ``weight``: of a sample of new rows.
    """

    incoming: int = 0
    dropped: int = 0
    absent_deletes: int = 0
    inserts: dict[str, Tally] = field(default_factory=dict)
    moves: Counter[str] = field(default_factory=Counter)
    changes: dict[int, Tally] = field(default_factory=dict)
    deletes: Counter[int] = field(default_factory=Counter)
    weight: RowWeight = RowWeight()  # noqa: RUF009 (frozen)

    def add(self, other: WriteCounts) -> None:
        """Add the counts of other rows."""
        self.incoming += other.incoming
        self.dropped += other.dropped
        self.absent_deletes += other.absent_deletes
        _add_tallies(self.inserts, other.inserts)
        _add_tallies(self.changes, other.changes)
        self.moves.update(other.moves)
        self.deletes.update(other.deletes)
        self.weight = self.weight.add(other.weight)

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
    row_job: Broadcast, weighed_rows: int, partition: int, buffers: Iterator[Any]
) -> Iterator[WriteCounts]:
    """Count rows by where they go, and weigh the first ``weighed_rows`` new ones."""
    total, sample = WriteCounts(), WeightSample(weighed_rows)
    for chunk, matched in read_matched_chunks(partition, buffers, row_job.value):
        sample.add(chunk.rows, matched.new)
        total.add(_count_chunk(chunk, matched))
    if sample.rows:
        total.weight = sample.weigh(row_job.value.settings, row_job.value.instant)
    yield total


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
