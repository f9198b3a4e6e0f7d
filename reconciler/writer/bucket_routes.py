"""The third stage: send rows to the buckets that take them.

New rows are routed by the hash of their keys. Tasks count how many fall into each bin of the hash
range; a partition's buckets divide the range where the bins reach the planned numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.arrays import to_arrow, to_numpy
from reconciler.file_slices.base_file.meta_columns import RECORD_KEY
from reconciler.layout.sizing.buckets import BucketAssignment
from reconciler.layout.sizing.key_routing import (
    Hashes,
    RouteBoundaries,
    count_hashes,
    find_route_boundaries,
    histogram_bits,
    route_by_md5,
)
from reconciler.spark.staged_rows import BlockForPartition
from reconciler.writer.job import Broadcast
from reconciler.writer.row_blocks import BlockKind, RowBlock, group_rows, split_by_code
from reconciler.writer.row_chunks import MatchedRows, RowChunk, build_chunks, match_rows

#: columns of changes: whether a row is a deletion, and whether it wins over any event time
DELETION: Final = "reconciler.deletion"
FINAL: Final = "reconciler.final"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BucketRoute:
    """The buckets that share a partition's new rows, and how many rows each gets.

    ``cuts``: None where one bucket takes all, or where rows go by Hudi's hash.
    """

    buckets: NDArray[np.int64]
    inserts: NDArray[np.int64]
    cuts: RouteBoundaries | None = None

    def choose_buckets(self, keys: Any, hashes: Hashes) -> NDArray[np.int64]:
        """Return the bucket of each row."""
        if len(self.buckets) == 1:
            return np.full(len(hashes), self.buckets[0])
        if self.cuts is None:
            return self.buckets[route_by_md5(keys, self.inserts)]
        return self.buckets[self.cuts.route(hashes)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BucketRoutes:
    """``new``: routes by partition. ``file``: per group, the bucket of its next file, or -1."""

    new: Mapping[str, BucketRoute]
    file: NDArray[np.int64]

    @classmethod
    def from_assignment(cls, assignment: BucketAssignment, groups: int) -> BucketRoutes:
        """Return routes without cuts, for so many file groups."""
        new = {}
        for code, path in enumerate(assignment.partitions):
            taking = assignment.insert_buckets(code)
            buckets = np.arange(taking.start, taking.stop)
            new[path] = BucketRoute(buckets=buckets, inserts=assignment.inserts[taking])
        old = np.flatnonzero(~assignment.is_new)
        file = np.full(groups, -1, np.int64)
        file[assignment.group[old]] = old
        return cls(new=new, file=file)

    @property
    def split_partitions(self) -> tuple[str, ...]:
        """The partitions whose new rows go to several buckets."""
        return tuple(path for path, route in self.new.items() if len(route.buckets) > 1)

    def add_cuts(self, found: Iterable[tuple[str, RouteBoundaries]]) -> BucketRoutes:
        """Return the routes with the cuts of partitions."""
        known = dict(found)
        new = {
            path: BucketRoute(buckets=route.buckets, inserts=route.inserts, cuts=known.get(path))
            for path, route in self.new.items()
        }
        return BucketRoutes(new=new, file=self.file)


@dataclass(frozen=True, slots=True)
class CountBinsTask:
    """Counts new rows per bin and sends the counts by partition; picklable."""

    row_job: Broadcast
    routes: Broadcast
    partitions: int

    def __call__(self, partition: int, buffers: Iterator[Any]) -> Iterator[BlockForPartition]:
        routes: BucketRoutes = self.routes.value
        numbered = {path: number for number, path in enumerate(routes.split_partitions)}
        blocks = [RowBlock.from_bytes(buffer) for buffer in buffers]
        tags = [block for block in blocks if block.kind is BlockKind.TAGS]
        for chunk in build_chunks(partition, blocks, self.row_job.value):
            new = match_rows(chunk, tags).new
            hashes = chunk.hashes[new]
            codes, paths = chunk.encode_paths(new)
            for code, rows in group_rows(codes):
                path = paths[code]
                if (number := numbered.get(path)) is not None:
                    counts = count_hashes(hashes[rows], _count_bits(routes.new[path]))
                    full = np.flatnonzero(counts)
                    columns = [to_arrow(full), to_arrow(counts[full])]
                    data = pa.RecordBatch.from_arrays(columns, ["bin", "rows"])
                    yield (
                        number % self.partitions,
                        RowBlock(kind=BlockKind.BINS, source=partition, number=number, data=data),
                    )


@dataclass(frozen=True, slots=True)
class CutBinsTask:
    """Cuts the bins of partitions into the ranges of their buckets; picklable."""

    routes: Broadcast

    def __call__(
        self, _place: int, buffers: Iterator[Any]
    ) -> Iterator[tuple[str, RouteBoundaries]]:
        routes: BucketRoutes = self.routes.value
        shared = routes.split_partitions
        found: dict[int, NDArray[np.int64]] = {}
        for block in map(RowBlock.from_bytes, buffers):
            route = routes.new[shared[block.number]]
            counts = found.setdefault(block.number, np.zeros(1 << _count_bits(route), np.int64))
            bins = block.read_batch()
            counts[to_numpy(bins.column("bin"))] += to_numpy(bins.column("rows"))
        for number, counts in found.items():
            path = shared[number]
            yield path, find_route_boundaries(counts, routes.new[path].inserts)


def _count_bits(route: BucketRoute) -> int:
    return histogram_bits(len(route.buckets))


@dataclass(frozen=True, slots=True)
class RouteRowsTask:
    """Sends rows to their buckets; picklable."""

    row_job: Broadcast
    routes: Broadcast

    def __call__(self, partition: int, buffers: Iterator[Any]) -> Iterator[BlockForPartition]:
        routes: BucketRoutes = self.routes.value
        blocks = [RowBlock.from_bytes(buffer) for buffer in buffers]
        tags = [block for block in blocks if block.kind is BlockKind.TAGS]
        for chunk in build_chunks(partition, blocks, self.row_job.value):
            where = match_rows(chunk, tags)
            yield from _send_new_rows(chunk, where.new, routes)
            yield from _send_changes(chunk, where, routes)


def _send_new_rows(
    chunk: RowChunk, rows: NDArray[np.int64], routes: BucketRoutes
) -> Iterator[BlockForPartition]:
    codes, paths = chunk.encode_paths(rows)
    hashes = chunk.hashes[rows]
    keys = chunk.rows.column(RECORD_KEY)
    bucket = np.zeros(len(rows), np.int64)
    for code, code_rows in group_rows(codes):
        own = keys.take(to_arrow(rows[code_rows]))
        bucket[code_rows] = routes.new[paths[code]].choose_buckets(own, hashes[code_rows])
    batch = chunk.rows if len(rows) == len(chunk.rows) else chunk.rows.take(to_arrow(rows))
    for bucket_number, some in split_by_code(batch, bucket):
        yield (
            bucket_number,
            RowBlock(kind=BlockKind.ROWS, source=chunk.source, number=chunk.number, data=some),
        )


def _send_changes(
    chunk: RowChunk, where: MatchedRows, routes: BucketRoutes
) -> Iterator[BlockForPartition]:
    if not len(where.row):
        return
    bucket = routes.file[where.file]
    batch = chunk.rows.take(to_arrow(where.row))
    batch = batch.append_column(DELETION, to_arrow(where.removes_old_row(chunk)))
    batch = batch.append_column(FINAL, to_arrow(where.is_moved))
    for bucket_number, some in split_by_code(batch, bucket):
        yield (
            bucket_number,
            RowBlock(kind=BlockKind.CHANGES, source=chunk.source, number=chunk.number, data=some),
        )
