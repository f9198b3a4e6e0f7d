"""What the tasks count of a write's rows, and the workload that all of it comes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reconciler.basefile.stamp import PARTITION
from reconciler.hudi.arrow import unique
from reconciler.rewrite.model import Tally
from reconciler.sizing.buckets import Workload
from reconciler.sizing.routing import Hashes
from reconciler.writer.arrived import Chunk, Located, chunks, located
from reconciler.writer.packs import Kind, Pack
from reconciler.writer.request import Shared
from reconciler.writer.weighing import Sample, Weight


@dataclass(frozen=True, slots=True)
class CountingRows:
    """How many rows of each partition came to a place; picklable."""

    def __call__(self, _place: int, pieces: Iterator[Any]) -> Iterator[dict[str, int]]:
        found: Counter[str] = Counter()
        for pack in map(Pack.unpacked, pieces):
            for value in pack.batch().column(PARTITION).value_counts().to_pylist():
                found[value["values"]] += value["counts"]
        yield dict(found)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counted:
    """What a place has of a write.

    ``inserts``: by partition; ``moves``: how many of them have left another one. ``file``: int64,
    ascending indexes into Groups of files that have keys of the place; ``changes``: of each of
    them, and ``deletes``: how many of those are deletions.
    """

    brought: int
    dropped: int
    idle: int
    inserts: Mapping[str, Tally]
    moves: Mapping[str, int]
    file: NDArray[np.int64]
    changes: tuple[Tally, ...]
    deletes: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CountingWork:
    """The rows of a place, and where they go, as numbers; picklable.

    ``weighed``: of so many new rows the weight is told, too.
    """

    recipe: Shared
    weighed: int = 0

    def __call__(self, place: int, pieces: Iterator[Any]) -> Iterator[Counted | Weight]:
        packs = [Pack.unpacked(piece) for piece in pieces]
        tags = [pack for pack in packs if pack.kind is Kind.TAGS]
        sample = Sample(self.weighed)
        for chunk in chunks(place, packs, self.recipe.value):
            where = located(chunk, tags)
            sample.add(chunk.rows, where.new)
            yield counted(chunk, where)
        if sample.rows:
            yield sample.weight(self.recipe.value.work)


def counted(chunk: Chunk, where: Located) -> Counted:
    """The numbers of a chunk."""
    hashes = chunk.hashes
    code, paths = chunk.paths(where.new)
    inserts = tallies(code, hashes[where.new], len(paths))
    file = unique(where.file)
    place = np.searchsorted(file, where.file)
    gone = np.zeros(len(file), np.int64)
    np.add.at(gone, place, where.is_gone(chunk))
    met = len(unique(where.row[chunk.is_deletion[where.row]]))
    return Counted(
        brought=chunk.brought,
        dropped=chunk.brought - len(chunk.rows),
        idle=int(chunk.is_deletion.sum()) - met,
        inserts=dict(zip(paths, inserts, strict=True)),
        moves=_moves(chunk, where),
        file=file,
        changes=tallies(place, hashes[where.row], len(file)),
        deletes=gone,
    )


def _moves(chunk: Chunk, where: Located) -> dict[str, int]:
    codes, paths = chunk.paths(unique(where.row[where.is_moved]))
    return dict(zip(paths, np.bincount(codes, minlength=len(paths)).tolist(), strict=True))


def tallies(codes: NDArray[Any], hashes: Hashes, count: int) -> tuple[Tally, ...]:
    """The rows of each code, and their keys."""
    rows = np.bincount(codes, minlength=count)
    keys = np.zeros(count, np.uint64)
    np.add.at(keys, codes, hashes)
    pairs = zip(rows.tolist(), keys.tolist(), strict=True)
    return tuple(Tally(rows=rows, keys=keys) for rows, keys in pairs)


@dataclass(slots=True, kw_only=True, eq=False)
class Totalled:
    """What all places have together."""

    brought: int = 0
    dropped: int = 0
    idle: int = 0
    inserts: dict[str, Tally] = field(default_factory=dict)
    moves: Counter[str] = field(default_factory=Counter)
    changes: dict[int, Tally] = field(default_factory=dict)
    deletes: Counter[int] = field(default_factory=Counter)
    weight: Weight = Weight()  # noqa: RUF009 (frozen)

    @classmethod
    def of(cls, found: Iterable[Counted | Weight]) -> Totalled:
        """The sums."""
        total = cls()
        for one in found:
            if isinstance(one, Weight):
                total.weight = total.weight.plus(one)
                continue
            total.brought += one.brought
            total.dropped += one.dropped
            total.idle += one.idle
            for path, tally in one.inserts.items():
                total.inserts[path] = total.inserts.get(path, Tally()).plus(tally)
            total.moves.update(one.moves)
            files = one.file.tolist()
            for file, tally in zip(files, one.changes, strict=True):
                total.changes[file] = total.changes.get(file, Tally()).plus(tally)
            total.deletes.update(dict(zip(files, one.deletes.tolist(), strict=True)))
        return total

    def workload(self, partitions: Sequence[str], per_row: float) -> Workload:
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
