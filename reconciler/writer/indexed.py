"""The second stage where a record index knows every key of the table, whatever its partition.

Keys go to tasks that read the index, each some of its file groups, and from there to tasks that
look into the files where the index says that keys are (``judging``). Source:
SparkMetadataTableRecordIndex.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.basefile.stamp import RECORD_KEY
from reconciler.errors import BusyError, FormatError, NotFoundError
from reconciler.exchange.held import Sent
from reconciler.hudi.arrow import booleans, integers, numbers
from reconciler.hudi.metadata_timeline import ROOT
from reconciler.hudi.record_index import Place, Places, RecordIndex
from reconciler.merge.logs import ordering_fields, ordering_of
from reconciler.merge.ordering import comparable
from reconciler.storage.api import Storage
from reconciler.writer.arrived import Chunk, chunks
from reconciler.writer.packs import Kind, Pack, grouped, parted
from reconciler.writer.request import Bench, Operation, Recipe, Shared, Standing
from reconciler.writer.searching import together

INDEX: Final = f"{ROOT}/record_index"
REMEDY: Final = (
    "drop the index with Hudi (DROP INDEX record_index, or a write with it switched off), which "
    "builds it anew when it is switched on again; without it keys are looked for in the partitions "
    "of their rows"
)
#: the columns of keys on their way, before those of event times
_TOLD: Final = ("key", "row", "folder", "deletes")
TIME: Final = "time{}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lookup:
    """Which tasks look where. ``index``: a record index; ``files``: of the table.

    ``readers``: tasks that read the index; ``lookers``: those that look into files.
    """

    index: RecordIndex
    files: Standing
    readers: int
    lookers: int

    @classmethod
    def of(cls, index: RecordIndex, files: Standing, count: int) -> Lookup:
        """With about so many tasks at a time."""
        return cls(
            index=index,
            files=files,
            readers=min(len(index.slices), max(count, 1)),
            lookers=min(max(len(files.groups), 1), max(count, 1)),
        )

    def path(self, file: int) -> str:
        """Of the newest base file of a group."""
        groups = self.files.groups
        folder, name = groups.partitions[groups.partition[file]], self.files.bases[file].as_py()
        return f"{folder}/{name}" if folder else name


@dataclass(frozen=True, slots=True)
class AskingIndex:
    """Rows of a place into their keys, sent where the index is read that knows them; picklable."""

    recipe: Shared
    lookup: Shared

    def __call__(self, place: int, pieces: Iterator[Any]) -> Iterator[Sent]:
        recipe, lookup = self.recipe.value, self.lookup.value
        for chunk in chunks(place, map(Pack.unpacked, pieces), recipe):
            batch = _told_of(chunk, recipe, lookup.files)
            where = lookup.index.groups(batch.column("key")) % lookup.readers
            for to, some in parted(batch, where):
                yield to, Pack(kind=Kind.KEYS, source=place, number=0, data=some)


def _told_of(chunk: Chunk, recipe: Recipe, files: Standing) -> Any:
    """Key, row, number of the folder (-1: not there yet), whether it removes, event times."""
    rows = np.arange(len(chunk.rows))
    codes, paths = chunk.paths(rows)
    known = {path: code for code, path in enumerate(files.groups.partitions)}
    folder = np.array([known.get(path, -1) for path in paths], np.int32)[codes]
    times = times_of(chunk.rows, recipe, "the rows")
    return pa.RecordBatch.from_arrays(
        [
            chunk.rows.column(RECORD_KEY),
            integers(rows.astype(np.int32)),
            integers(folder),
            booleans(chunk.is_deletion),
            *times,
        ],
        [*_TOLD, *(TIME.format(at) for at in range(len(times)))],
    )


def times_of(batch: Any, recipe: Recipe, where: str) -> list[Any]:
    """The event times by which rows win over others, comparable; none where the later one wins."""
    reading = recipe.work.reading
    if reading.rules.overwrites or recipe.operation is Operation.DELETE:
        return []
    fields = ordering_fields(reading.rules, reading.schema)
    columns = ordering_of(batch, fields, where)
    return [comparable(column, name) for column, name in zip(columns, fields, strict=True)]


@dataclass(frozen=True, slots=True)
class LookingUp:
    """Keys of a place into the file groups that the index has them in; picklable.

    What it does not know is new. Raises FormatError naming the index where it is damaged, or says
    that a key is where no reader looks; BusyError where its files are gone since.
    """

    lookup: Shared
    bench: Bench

    def __call__(self, place: int, pieces: Iterator[Any]) -> Iterator[Sent]:
        lookup: Lookup = self.lookup.value
        storage: Storage | None = None
        for number, packs in enumerate(together(pieces)):
            storage = storage or self.bench.open()
            batch = _with_sources(packs)
            rows, file = _told(lookup, storage, batch.column("key"))
            told = batch.take(integers(rows)).append_column("file", integers(file))
            for to, some in parted(told, file % lookup.lookers):
                yield to, Pack(kind=Kind.KEYS, source=place, number=number, data=some)


def _with_sources(packs: Sequence[Pack]) -> Any:
    """The keys of packs, each with its source."""
    batches = [pack.batch() for pack in packs]
    source = np.repeat([pack.source for pack in packs], [len(batch) for batch in batches])
    whole = pa.concat_batches(batches)
    return whole.append_column("source", integers(source.astype(np.int64)))


def _told(
    lookup: Lookup, storage: Storage, keys: Any
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which of the keys the index knows, and in which file group each is."""
    known: dict[Place, int] = {}
    rows, codes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for group, asked_for in grouped(lookup.index.groups(keys)):
        places = _places(lookup, storage, group, keys.take(integers(asked_for)))
        code = np.array([known.setdefault(one, len(known)) for one in places.known], np.int64)
        rows.append(asked_for[places.key])
        codes.append(code[places.place])
    row, place = np.concatenate(rows), np.concatenate(codes)
    files = _groups_at(lookup.files, [*known])
    lost = np.flatnonzero(files[place] < 0)
    if len(lost):
        path, file_id = [*known][place[lost[0]]]
        raise misplaced(
            keys,
            row[lost],
            f"in partition {path!r}, file group {file_id}, which readers do not see",
        )
    return row, files[place]


def _places(lookup: Lookup, storage: Storage, group: int, keys: Any) -> Places:
    try:
        return lookup.index.places(storage, group, keys)
    except NotFoundError as error:
        raise BusyError(
            f"{INDEX}: its files were cleaned while they were read ({error}); nothing of this "
            "write is in the table, run it again"
        ) from None


def misplaced(keys: Any, rows: NDArray[np.int64], where: str) -> FormatError:
    """What is said of rows whose keys are not where the index says."""
    key = keys[int(rows[0])].as_py()
    said = f"keys are not where it says ({len(rows)} of them, first {key!r}): it says {where}"
    return FormatError(INDEX, said, REMEDY)


def _groups_at(files: Standing, places: Sequence[Place]) -> NDArray[np.int64]:
    """The file groups at some places, -1 where there is no base file that readers see."""
    groups = files.groups
    live = np.flatnonzero(groups.is_live & (groups.base >= 0))
    folders = pa.array(groups.partitions, pa.string()).take(integers(groups.partition[live]))
    there = pc.binary_join_element_wise(folders, groups.file_id.take(integers(live)), "/")
    wanted = pa.array(["/".join(place) for place in places], pa.string())
    at = pc.index_in(wanted, value_set=there).fill_null(-1)
    found = numbers(at).astype(np.int64)
    return np.where(found < 0, -1, live[found]) if len(live) else found
