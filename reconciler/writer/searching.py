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

from reconciler.basefile.stamp import RECORD_KEY
from reconciler.exchange.held import Sent
from reconciler.hudi.arrow import integers, numbers
from reconciler.storage.api import Storage
from reconciler.writer.arrived import Chunk, chunks, tags_of
from reconciler.writer.locating import held_keys
from reconciler.writer.packs import Kind, Pack, parted
from reconciler.writer.request import Bench, Shared, Standing

#: keys that a task looks for at a time: each time it reads the files' footers, or more of them
_TOGETHER: Final = 2_000_000
#: keys of a partition that are sent, all copies together, before fewer tasks share its files
_COPIES: Final = 200_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Search:
    """Which place looks into which files.

    ``partitions``: paths. ``places``: for each of them those that get its keys. ``files``: for each
    place, of each partition by its number, the groups that it looks into. ``path``, ``size``: of
    the newest base file of every group that is looked into.
    """

    partitions: tuple[str, ...]
    places: tuple[range, ...]
    files: tuple[Mapping[int, NDArray[np.int64]], ...]
    path: Mapping[int, str]
    size: Mapping[int, int]

    @classmethod
    def of(cls, standing: Standing, keys: Mapping[str, int], count: int) -> Search:
        """For so many rows by partition, and about so many places; none where there are no files.

        A partition's files are shared out by their number in proportion to all.
        """
        groups = standing.groups
        found = {path: _files(standing, path) for path in sorted(keys)}
        found = {path: files for path, files in found.items() if len(files)}
        total = sum(map(len, found.values()))
        places: list[range] = []
        files: list[dict[int, NDArray[np.int64]]] = []
        for code, (path, of) in enumerate(found.items()):
            most = max(1, _COPIES // max(keys[path], 1))
            shares = min(len(of), max(1, round(count * len(of) / total)), most)
            places.append(range(len(files), len(files) + shares))
            files += [{code: of[nth::shares]} for nth in range(shares)]
        every = np.concatenate([np.zeros(0, np.int64), *found.values()]).tolist()
        names = standing.bases.take(integers(np.array(every, np.int64))).to_pylist()
        folders = [groups.partitions[groups.partition[at]] for at in every]
        paths = (f"{at}/{name}" if at else name for at, name in zip(folders, names, strict=True))
        return cls(
            partitions=tuple(found),
            places=tuple(places),
            files=tuple(files),
            path=dict(zip(every, paths, strict=True)),
            size={at: int(groups.base[at]) for at in every},
        )


def _files(standing: Standing, path: str) -> NDArray[np.int64]:
    """The groups of a partition that have a base file that readers see."""
    within = standing.groups.within(path)
    is_one = standing.groups.is_live[within] & (standing.groups.base[within] >= 0)
    found: NDArray[np.int64] = np.flatnonzero(is_one) + within.start
    return found


@dataclass(frozen=True, slots=True)
class Asking:
    """Rows of a place into their keys, sent where their partition's files are; picklable."""

    recipe: Shared
    search: Shared

    def __call__(self, place: int, pieces: Iterator[Any]) -> Iterator[Sent]:
        for chunk in chunks(place, map(Pack.unpacked, pieces), self.recipe.value):
            yield from asked(chunk, np.arange(len(chunk.rows)), place, self.search.value)


def asked(chunk: Chunk, rows: NDArray[np.int64], place: int, search: Search) -> Iterator[Sent]:
    """The keys of some rows, sent where their partitions' files are."""
    codes = {path: code for code, path in enumerate(search.partitions)}
    keys = chunk.rows.column(RECORD_KEY)
    where, paths = chunk.paths(rows)
    number = np.array([codes.get(path, -1) for path in paths], np.int64)[where]
    rows, number = rows[number >= 0], number[number >= 0]
    batch = pa.RecordBatch.from_arrays(
        [keys.take(integers(rows)), integers(rows.astype(np.int32))], ["key", "row"]
    )
    for code, some in parted(batch, number):
        pack = Pack(kind=Kind.KEYS, source=place, number=code, data=some)
        for to in search.places[code]:
            yield to, pack


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InFile:
    """Keys that a file holds. ``file``: its group; ``source``, ``row``: whence each key came."""

    file: int
    source: NDArray[np.int64]
    row: NDArray[np.int32]
    keys: Any


@dataclass(frozen=True, slots=True)
class Searching:
    """Keys of a place into what its files hold of them, sent back to the rows; picklable.

    Raises FormatError naming a file that is damaged or has no keys.
    """

    search: Shared
    bench: Bench

    def __call__(self, place: int, pieces: Iterator[Any]) -> Iterator[Sent]:
        storage: Storage | None = None
        for number, packs in enumerate(together(pieces)):
            storage = storage or self.bench.open()
            tags = [
                (one.source, tags_of(one.file, one.row, one.keys))
                for one in found(self.search.value, place, packs, storage)
            ]
            yield from answers(place, number, tags)


def together(pieces: Iterator[Any]) -> Iterator[list[Pack]]:
    """Packs of keys, about as many keys at a time as a task has in memory."""
    some: list[Pack] = []
    count = 0
    for pack in map(Pack.unpacked, pieces):
        some.append(pack)
        count += len(pack.batch())
        if count >= _TOGETHER:
            yield some
            count, some = 0, []
    if some:
        yield some


def found(search: Search, place: int, packs: Sequence[Pack], storage: Storage) -> Iterator[InFile]:
    """What each file of a place holds of the keys that are looked for in its partition."""
    for code in sorted({pack.number for pack in packs}):
        some = [pack for pack in packs if pack.number == code]
        batches = [pack.batch() for pack in some]
        counts = [len(batch) for batch in batches]
        source = np.repeat([pack.source for pack in some], counts).astype(np.int64)
        batch = pa.concat_batches(batches)
        keys, row = batch.column("key"), numbers(batch.column("row"))
        for file in search.files[place][code].tolist():
            at = held_keys(storage, search.path[file], search.size[file], keys)
            if len(at):
                yield InFile(
                    file=file, source=source[at], row=row[at], keys=keys.take(integers(at))
                )


def answers(
    place: int, number: int, tags: Sequence[tuple[NDArray[np.int64], Any]]
) -> Iterator[Sent]:
    """Tags (``tags_of``) with the source of each row, sent there in packs of this number."""
    if tags:
        sources = np.concatenate([source for source, _ in tags])
        for to, some in parted(pa.concat_batches([one for _, one in tags]), sources):
            yield to, Pack(kind=Kind.TAGS, source=place, number=number, data=some)
