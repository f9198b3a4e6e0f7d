"""The third stage: rows to the buckets that take them.

New rows go by the hash of their keys: the tasks count how many lie in each bin of its range, and
where the bins reach the planned numbers the buckets of a partition part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.basefile.stamp import RECORD_KEY
from reconciler.exchange.held import Sent
from reconciler.hudi.arrow import booleans, integers, numbers
from reconciler.sizing.buckets import Assignment
from reconciler.sizing.routing import Cuts, Hashes, bits_for, by_md5, cuts, histogram
from reconciler.writer.arrived import Chunk, Located, chunks, located
from reconciler.writer.packs import Kind, Pack, grouped, parted
from reconciler.writer.request import Shared

#: the columns of changes that tell deletions from rows, and those that no event time can stop
DELETION: Final = "reconciler.deletion"
FINAL: Final = "reconciler.final"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Route:
    """The buckets that share the new rows of a partition, and how many each is to get.

    ``cuts``: None where one takes all, or where rows go by Hudi's hash.
    """

    buckets: NDArray[np.int64]
    inserts: NDArray[np.int64]
    cuts: Cuts | None = None

    def of(self, keys: Any, hashes: Hashes) -> NDArray[np.int64]:
        """The bucket of each row."""
        if len(self.buckets) == 1:
            return np.full(len(hashes), self.buckets[0])
        if self.cuts is None:
            return self.buckets[by_md5(keys, self.inserts)]
        return self.buckets[self.cuts.route(hashes)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Routes:
    """``new``: by partition. ``file``: of every group, the bucket of its next file, or -1."""

    new: Mapping[str, Route]
    file: NDArray[np.int64]

    @classmethod
    def of(cls, assignment: Assignment, groups: int) -> Routes:
        """Without cuts, for so many file groups."""
        new = {}
        for code, path in enumerate(assignment.partitions):
            taking = assignment.taking(code)
            buckets = np.arange(taking.start, taking.stop)
            new[path] = Route(buckets=buckets, inserts=assignment.inserts[taking])
        old = np.flatnonzero(~assignment.is_new)
        file = np.full(groups, -1, np.int64)
        file[assignment.group[old]] = old
        return cls(new=new, file=file)

    @property
    def shared(self) -> tuple[str, ...]:
        """The partitions whose new rows several buckets take."""
        return tuple(path for path, route in self.new.items() if len(route.buckets) > 1)

    def cut(self, found: Iterable[tuple[str, Cuts]]) -> Routes:
        """With the cuts of partitions."""
        known = dict(found)
        new = {
            path: Route(buckets=one.buckets, inserts=one.inserts, cuts=known.get(path))
            for path, one in self.new.items()
        }
        return Routes(new=new, file=self.file)


@dataclass(frozen=True, slots=True)
class Binning:
    """New rows of a place as rows a bin, sent to their partition's place; picklable."""

    recipe: Shared
    routes: Shared
    places: int

    def __call__(self, place: int, pieces: Iterator[Any]) -> Iterator[Sent]:
        routes: Routes = self.routes.value
        numbered = {path: number for number, path in enumerate(routes.shared)}
        packs = [Pack.unpacked(piece) for piece in pieces]
        tags = [pack for pack in packs if pack.kind is Kind.TAGS]
        for chunk in chunks(place, packs, self.recipe.value):
            new = located(chunk, tags).new
            hashes = chunk.hashes[new]
            codes, paths = chunk.paths(new)
            for code, rows in grouped(codes):
                path = paths[code]
                if (number := numbered.get(path)) is not None:
                    counts = histogram(hashes[rows], _bits(routes.new[path]))
                    full = np.flatnonzero(counts)
                    columns = [integers(full), integers(counts[full])]
                    data = pa.RecordBatch.from_arrays(columns, ["bin", "rows"])
                    yield (
                        number % self.places,
                        Pack(kind=Kind.BINS, source=place, number=number, data=data),
                    )


@dataclass(frozen=True, slots=True)
class Cutting:
    """The bins of a place's partitions into their cuts; picklable."""

    routes: Shared

    def __call__(self, _place: int, pieces: Iterator[Any]) -> Iterator[tuple[str, Cuts]]:
        routes: Routes = self.routes.value
        shared = routes.shared
        found: dict[int, NDArray[np.int64]] = {}
        for pack in map(Pack.unpacked, pieces):
            route = routes.new[shared[pack.number]]
            counts = found.setdefault(pack.number, np.zeros(1 << _bits(route), np.int64))
            told = pack.batch()
            counts[numbers(told.column("bin"))] += numbers(told.column("rows"))
        for number, counts in found.items():
            path = shared[number]
            yield path, cuts(counts, routes.new[path].inserts)


def _bits(route: Route) -> int:
    return bits_for(len(route.buckets))


@dataclass(frozen=True, slots=True)
class Routing:
    """The rows of a place, sent to their buckets; picklable."""

    recipe: Shared
    routes: Shared

    def __call__(self, place: int, pieces: Iterator[Any]) -> Iterator[Sent]:
        routes: Routes = self.routes.value
        packs = [Pack.unpacked(piece) for piece in pieces]
        tags = [pack for pack in packs if pack.kind is Kind.TAGS]
        for chunk in chunks(place, packs, self.recipe.value):
            where = located(chunk, tags)
            yield from _new(chunk, where.new, routes)
            yield from _changes(chunk, where, routes)


def _new(chunk: Chunk, rows: NDArray[np.int64], routes: Routes) -> Iterator[Sent]:
    codes, paths = chunk.paths(rows)
    hashes = chunk.hashes[rows]
    keys = chunk.rows.column(RECORD_KEY)
    bucket = np.zeros(len(rows), np.int64)
    for code, here in grouped(codes):
        own = keys.take(integers(rows[here]))
        bucket[here] = routes.new[paths[code]].of(own, hashes[here])
    batch = chunk.rows if len(rows) == len(chunk.rows) else chunk.rows.take(integers(rows))
    for to, some in parted(batch, bucket):
        yield to, Pack(kind=Kind.ROWS, source=chunk.source, number=chunk.number, data=some)


def _changes(chunk: Chunk, where: Located, routes: Routes) -> Iterator[Sent]:
    if not len(where.row):
        return
    bucket = routes.file[where.file]
    batch = chunk.rows.take(integers(where.row))
    batch = batch.append_column(DELETION, booleans(where.is_gone(chunk)))
    batch = batch.append_column(FINAL, booleans(where.is_moved))
    for to, some in parted(batch, bucket):
        yield to, Pack(kind=Kind.CHANGES, source=chunk.source, number=chunk.number, data=some)
