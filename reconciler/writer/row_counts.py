"""What the tasks count of a write's rows, and the workload that all of it comes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reconciler.arrays import sort_unique
from reconciler.file_slices.base_file.meta_columns import PARTITION
from reconciler.layout.sizing.buckets import Workload
from reconciler.layout.sizing.key_routing import Hashes
from reconciler.rewrite.model import Tally
from reconciler.writer.job import Broadcast
from reconciler.writer.row_blocks import BlockKind, RowBlock
from reconciler.writer.row_chunks import MatchedRows, RowChunk, build_chunks, match_rows
from reconciler.writer.row_weight import RowWeight, WeightSample


@dataclass(frozen=True, slots=True)
class CountRowsTask:
    """How many rows of each partition came to a place; picklable."""

    def __call__(self, _place: int, blocks: Iterator[Any]) -> Iterator[dict[str, int]]:
        found: Counter[str] = Counter()
        for pack in map(RowBlock.from_bytes, blocks):
            for value in pack.read_batch().column(PARTITION).value_counts().to_pylist():
                found[value["values"]] += value["counts"]
        yield dict(found)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChunkCounts:
    """What a place has of a write.

    ``inserts``: by partition; ``moves``: how many of them have left another one. ``file``: int64,
    ascending indexes into Groups of files that have keys of the place; ``changes``: of each of
    them, and ``deletes``: how many of those are deletions.
    """

    incoming: int
    dropped: int
    absent_deletes: int
    inserts: Mapping[str, Tally]
    moves: Mapping[str, int]
    file: NDArray[np.int64]
    changes: tuple[Tally, ...]
    deletes: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CountChangesTask:
    """The rows of a place, and where they go, as numbers; picklable.

    ``weighed_rows``: of so many new rows the weight is told, too.
    """

    row_job: Broadcast
    weighed_rows: int = 0

    def __call__(self, place: int, blocks: Iterator[Any]) -> Iterator[ChunkCounts | RowWeight]:
        packs = [RowBlock.from_bytes(piece) for piece in blocks]
        tags = [pack for pack in packs if pack.kind is BlockKind.TAGS]
        sample = WeightSample(self.weighed_rows)
        for chunk in build_chunks(place, packs, self.row_job.value):
            where = match_rows(chunk, tags)
            sample.add(chunk.rows, where.new)
            yield count_chunk(chunk, where)
        if sample.rows:
            yield sample.weigh(self.row_job.value.settings)


def count_chunk(chunk: RowChunk, where: MatchedRows) -> ChunkCounts:
    """The numbers of a chunk."""
    hashes = chunk.hashes
    code, paths = chunk.encode_paths(where.new)
    inserts = tally_by_code(code, hashes[where.new], len(paths))
    file = sort_unique(where.file)
    place = np.searchsorted(file, where.file)
    gone = np.zeros(len(file), np.int64)
    np.add.at(gone, place, where.removes_old_row(chunk))
    met = len(sort_unique(where.row[chunk.is_deletion[where.row]]))
    return ChunkCounts(
        incoming=chunk.incoming_count,
        dropped=chunk.incoming_count - len(chunk.rows),
        absent_deletes=int(chunk.is_deletion.sum()) - met,
        inserts=dict(zip(paths, inserts, strict=True)),
        moves=_count_moves(chunk, where),
        file=file,
        changes=tally_by_code(place, hashes[where.row], len(file)),
        deletes=gone,
    )


def _count_moves(chunk: RowChunk, where: MatchedRows) -> dict[str, int]:
    codes, paths = chunk.encode_paths(sort_unique(where.row[where.is_moved]))
    return dict(zip(paths, np.bincount(codes, minlength=len(paths)).tolist(), strict=True))


def tally_by_code(codes: NDArray[Any], hashes: Hashes, count: int) -> tuple[Tally, ...]:
    """The rows of each code, and their keys."""
    rows = np.bincount(codes, minlength=count)
    keys = np.zeros(count, np.uint64)
    np.add.at(keys, codes, hashes)
    pairs = zip(rows.tolist(), keys.tolist(), strict=True)
    return tuple(Tally(rows=rows, keys=keys) for rows, keys in pairs)


@dataclass(slots=True, kw_only=True, eq=False)
class WriteCounts:
    """What all places have together."""

    incoming: int = 0
    dropped: int = 0
    absent_deletes: int = 0
    inserts: dict[str, Tally] = field(default_factory=dict)
    moves: Counter[str] = field(default_factory=Counter)
    changes: dict[int, Tally] = field(default_factory=dict)
    deletes: Counter[int] = field(default_factory=Counter)
    weight: RowWeight = RowWeight()  # noqa: RUF009 (frozen)

    @classmethod
    def from_chunks(cls, found: Iterable[ChunkCounts | RowWeight]) -> WriteCounts:
        """The sums."""
        total = cls()
        for one in found:
            if isinstance(one, RowWeight):
                total.weight = total.weight.add(one)
                continue
            total.incoming += one.incoming
            total.dropped += one.dropped
            total.absent_deletes += one.absent_deletes
            for path, tally in one.inserts.items():
                total.inserts[path] = total.inserts.get(path, Tally()).add(tally)
            total.moves.update(one.moves)
            files = one.file.tolist()
            for file, tally in zip(files, one.changes, strict=True):
                total.changes[file] = total.changes.get(file, Tally()).add(tally)
            total.deletes.update(dict(zip(files, one.deletes.tolist(), strict=True)))
        return total

    def make_workload(self, partitions: Sequence[str], per_row: float) -> Workload:
        """For ``sizing.assign``. ``partitions``: path of each group; ``per_row``: a row's bytes."""
        paths = sorted({*self.inserts, *(partitions[file] for file in self.changes)})
        group = np.array(sorted(self.changes), np.int64)
        gone = np.array([self.deletes[file] for file in group.tolist()], np.int64)
        inserts = [self.inserts.get(path, Tally()).rows for path in paths]
        return Workload(
            partitions=tuple(paths),
            inserts=np.array(inserts, np.int64),
            group=group,
            updates=np.array([self.changes[file].rows for file in group.tolist()], np.int64),
            growth=-np.rint(gone * per_row).astype(np.int64),
        )
