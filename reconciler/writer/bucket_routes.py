"""The third stage: send rows to the buckets that take them.

New rows are routed by the hash of their keys. Tasks count how many fall into each bin of the hash
range; a partition's buckets divide the range at the bins that reach the planned numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from reconciler.arrays import Integers, to_arrow, to_numpy
from reconciler.file_slices.base_file.meta_columns import RECORD_KEY
from reconciler.layout.sizing.assign import BucketAssignment
from reconciler.layout.sizing.key_routing import (
    Hashes,
    RouteBoundaries,
    count_hashes,
    find_route_boundaries,
    histogram_bits,
    route_by_md5,
)
from reconciler.lazy_dataclass import dataclass
from reconciler.spark.staged_rows import BlockForPartition
from reconciler.writer.index_buckets import IndexBuckets
from reconciler.writer.job import Broadcast
from reconciler.writer.row_blocks import (
    BlockKind,
    MatchedRows,
    RowBlock,
    RowChunk,
    group_rows,
    read_matched_chunks,
    rows_changed_error,
    send_rows,
)

#: columns of changes: whether a row is a deletion, whether it wins over any event time, and the
#: number of the row of the base file that it changes, -1 if that is not known
DELETION: Final = "reconciler.deletion"
FINAL: Final = "reconciler.final"
POSITION: Final = "reconciler.position"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BucketRoute:
    """The buckets that share a partition's new rows, and how many rows each gets.

    ``cuts``: None if one bucket takes all, or if rows go by Hudi's hash, or by a bucket index:
    ``numbers`` are those of the index, ascending, one for each bucket.
    """

    buckets: Integers
    inserts: Integers
    cuts: RouteBoundaries | None = None
    numbers: Integers | None = None

    def choose_buckets(
        self, keys: Any, hashes: Hashes, index: IndexBuckets | None = None
    ) -> Integers:
        """Return the bucket of each row; ``index``: the table's bucket index, if it has one."""
        if index is not None and self.numbers is not None:
            numbers = index.find_buckets(keys)
            at = np.searchsorted(self.numbers, numbers)
            is_planned = (at < len(self.numbers)).all() and (self.numbers[at] == numbers).all()
            if not is_planned:
                raise rows_changed_error()
            return self.buckets[at]
        if len(self.buckets) == 1:
            return np.full(len(hashes), self.buckets[0])
        if self.cuts is None:
            return self.buckets[route_by_md5(keys, self.inserts)]
        return self.buckets[self.cuts.route(hashes)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BucketRoutes:
    """``new``: routes by partition. ``file``: per group, the bucket of its next file, or -1."""

    new: Mapping[str, BucketRoute]
    file: Integers

    @classmethod
    def from_assignment(cls, assignment: BucketAssignment, groups: int) -> BucketRoutes:
        """Return routes without cuts, for so many file groups."""
        new = {}
        for code, path in enumerate(assignment.partitions):
            taking = assignment.insert_buckets(code)
            buckets = np.arange(taking.start, taking.stop)
            numbers = assignment.index_bucket
            new[path] = BucketRoute(
                buckets=buckets,
                inserts=assignment.inserts[taking],
                numbers=None if numbers is None else numbers[taking],
            )
        old = np.flatnonzero(~assignment.is_new)
        file = np.full(groups, -1, np.int64)
        file[assignment.group[old]] = old
        return cls(new=new, file=file)

    @property
    def split_partitions(self) -> tuple[str, ...]:
        """The partitions whose new rows go to several buckets."""
        return tuple(path for path, route in self.new.items() if len(route.buckets) > 1)

    def add_cuts(self, cuts: Iterable[tuple[str, RouteBoundaries]]) -> BucketRoutes:
        """Return the routes with the cuts of partitions."""
        by_path = dict(cuts)
        new = {path: replace(route, cuts=by_path.get(path)) for path, route in self.new.items()}
        return replace(self, new=new)


def count_bins(
    row_job: Broadcast, routes: Broadcast, tasks: int, partition: int, buffers: Iterator[Any]
) -> Iterator[BlockForPartition]:
    """Count new rows per bin, and send each partition's counts to one of ``tasks`` tasks."""
    routing: BucketRoutes = routes.value
    numbers = {path: number for number, path in enumerate(routing.split_partitions)}
    for chunk, matched in read_matched_chunks(partition, buffers, row_job.value):
        hashes = chunk.hashes[matched.new]
        codes, paths = chunk.encode_paths(matched.new)
        for code, rows in group_rows(codes):
            if (number := numbers.get(paths[code])) is None:
                continue
            counts = count_hashes(hashes[rows], _count_bits(routing.new[paths[code]]))
            bins = np.flatnonzero(counts)
            columns = [to_arrow(bins), to_arrow(counts[bins])]
            data = pa.RecordBatch.from_arrays(columns, ["bin", "rows"])
            block = RowBlock(kind=BlockKind.BINS, source=partition, number=number, data=data)
            yield number % tasks, block


def cut_bins(
    routes: Broadcast, _partition: int, buffers: Iterator[Any]
) -> Iterator[tuple[str, RouteBoundaries]]:
    """Cut the bins of partitions into the ranges of their buckets."""
    routing: BucketRoutes = routes.value
    paths = routing.split_partitions
    counts_by_number: dict[int, Integers] = {}
    for block in map(RowBlock.from_bytes, buffers):
        zeros = np.zeros(1 << _count_bits(routing.new[paths[block.number]]), np.int64)
        counts = counts_by_number.setdefault(block.number, zeros)
        bins = block.read_batch()
        counts[to_numpy(bins.column("bin"))] += to_numpy(bins.column("rows"))
    for number, counts in counts_by_number.items():
        path = paths[number]
        yield path, find_route_boundaries(counts, routing.new[path].inserts)


def _count_bits(route: BucketRoute) -> int:
    return histogram_bits(len(route.buckets))


def route_rows(
    row_job: Broadcast, routes: Broadcast, partition: int, buffers: Iterator[Any]
) -> Iterator[BlockForPartition]:
    """Send rows to their buckets."""
    for chunk, matched in read_matched_chunks(partition, buffers, row_job.value):
        yield from _send_new_rows(chunk, matched.new, routes.value, row_job.value.index_buckets)
        if len(matched.row):
            yield from _send_changes(chunk, matched, routes.value)


def _send_new_rows(
    chunk: RowChunk, rows: Integers, routes: BucketRoutes, index: IndexBuckets | None
) -> Iterator[BlockForPartition]:
    codes, paths = chunk.encode_paths(rows)
    hashes = chunk.hashes[rows]
    keys = chunk.rows.column(RECORD_KEY)
    bucket = np.zeros(len(rows), np.int64)
    for code, code_rows in group_rows(codes):
        code_keys = keys.take(to_arrow(rows[code_rows]))
        route = routes.new[paths[code]]
        bucket[code_rows] = route.choose_buckets(code_keys, hashes[code_rows], index)
    batch = chunk.rows if len(rows) == len(chunk.rows) else chunk.rows.take(to_arrow(rows))
    yield from send_rows(batch, bucket, BlockKind.ROWS, chunk.source, chunk.number)


def _send_changes(
    chunk: RowChunk, matched: MatchedRows, routes: BucketRoutes
) -> Iterator[BlockForPartition]:
    batch = chunk.rows.take(to_arrow(matched.row))
    batch = batch.append_column(DELETION, to_arrow(matched.removes_old_row(chunk)))
    batch = batch.append_column(FINAL, to_arrow(matched.is_moved))
    batch = batch.append_column(POSITION, to_arrow(matched.position))
    buckets = routes.file[matched.file]
    yield from send_rows(batch, buckets, BlockKind.CHANGES, chunk.source, chunk.number)
