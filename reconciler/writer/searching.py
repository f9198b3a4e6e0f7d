"""The second stage: which base files hold the keys of a write, as Hudi's bloom index finds them.

The keys of a partition go to tasks that have its files among them, and what each file holds goes
back to where the rows are. No task has more than a share of keys in memory, and the driver none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.basefile.stamp import RECORD_KEY
from reconciler.exchange.held import Sent
from reconciler.hudi.arrow import integers, numbers
from reconciler.sizing.routing import key_hashes
from reconciler.storage.api import Storage
from reconciler.writer.arrived import chunks
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
        search: Search = self.search.value
        codes = {path: code for code, path in enumerate(search.partitions)}
        for chunk in chunks(place, map(Pack.unpacked, pieces), self.recipe.value):
            keys = chunk.rows.column(RECORD_KEY)
            where, paths = chunk.paths(np.arange(len(chunk.rows)))
            number = np.array([codes.get(path, -1) for path in paths], np.int64)[where]
            rows = np.flatnonzero(number >= 0)
            batch = pa.RecordBatch.from_arrays(
                [keys.take(integers(rows)), integers(rows.astype(np.int32))], ["key", "row"]
            )
            for code, some in parted(batch, number[rows]):
                pack = Pack(kind=Kind.KEYS, source=place, number=code, data=some)
                for to in search.places[code]:
                    yield to, pack


@dataclass(frozen=True, slots=True)
class Searching:
    """Keys of a place into what its files hold of them, sent back to the rows; picklable.

    Raises FormatError naming a file that is damaged or has no keys.
    """

    search: Shared
    bench: Bench

    def __call__(self, place: int, pieces: Iterator[Any]) -> Iterator[Sent]:
        search: Search = self.search.value
        storage: Storage | None = None
        asked: list[Pack] = []
        number = count = 0
        for pack in map(Pack.unpacked, pieces):
            asked.append(pack)
            count += len(pack.batch())
            if count >= _TOGETHER:
                storage = storage or self.bench.open()
                yield from self._found(search, place, number, asked, storage)
                number, count, asked = number + 1, 0, []
        if asked:
            yield from self._found(search, place, number, asked, storage or self.bench.open())

    def _found(
        self, search: Search, place: int, number: int, asked: list[Pack], storage: Storage
    ) -> Iterator[Sent]:
        """Number of the pack, source, row and hash of every key that a file holds, and the file."""
        files = search.files[place]
        found = []
        for code in sorted({pack.number for pack in asked}):
            packs = [pack for pack in asked if pack.number == code]
            batches = [pack.batch() for pack in packs]
            counts = [len(batch) for batch in batches]
            source = np.repeat([pack.source for pack in packs], counts).astype(np.int64)
            batch = pa.concat_batches(batches)
            keys, row = batch.column("key"), numbers(batch.column("row"))
            for file in files[code].tolist():
                at = held_keys(storage, search.path[file], search.size[file], keys)
                tags = pa.RecordBatch.from_arrays(
                    [
                        integers(row[at]),
                        integers(np.full(len(at), file, np.int32)),
                        integers(key_hashes(keys.take(integers(at)))),
                    ],
                    ["row", "file", "hash"],
                )
                found.append((source[at], tags))
        if found:
            sources = np.concatenate([source for source, _ in found])
            every = pa.concat_batches([tags for _, tags in found])
            for to, some in parted(every, sources):
                yield to, Pack(kind=Kind.TAGS, source=place, number=number, data=some)
