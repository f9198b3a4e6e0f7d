"""The second stage by a record index, in the files that it names: which rows change, move or stay.

A key is in one place only: a row that is brought for another partition moves, if it is not older
than the one that is there. Every key has to be where the index says: what it knows wrongly would be
there twice. Source: HoodieIndexUtils.mergeForPartitionUpdatesIfNeeded, as Hudi does where
hoodie.record.index.update.partition.path is true.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.errors import FormatError
from reconciler.exchange.held import Sent
from reconciler.hudi.arrow import flags, integers, numbers
from reconciler.merge.keys import keys_of
from reconciler.merge.logs import ordering_fields
from reconciler.merge.ordering import compared
from reconciler.merge.slice import FileSliceRef, read_slice
from reconciler.storage.api import Storage
from reconciler.writer.arrived import Fate, chunks, located, tags_of
from reconciler.writer.indexed import INDEX, REMEDY, Lookup, misplaced, times_of
from reconciler.writer.locating import held_keys
from reconciler.writer.packs import Kind, Pack, grouped
from reconciler.writer.request import Bench, Recipe, Shared
from reconciler.writer.searching import Search, answers, asked, found, together


@dataclass(frozen=True, slots=True)
class Judging:
    """Keys of a place into what becomes of their rows, by the files that have them; picklable.

    Raises FormatError naming the index for a key that is not where it says, and as ``read_slice``.
    """

    recipe: Shared
    lookup: Shared
    bench: Bench

    def __call__(self, place: int, pieces: Iterator[Any]) -> Iterator[Sent]:
        lookup: Lookup = self.lookup.value
        storage: Storage | None = None
        for number, packs in enumerate(together(pieces)):
            storage = storage or self.bench.open()
            batch = pa.concat_batches([pack.batch() for pack in packs])
            tags = []
            for file, rows in grouped(numbers(batch.column("file"))):
                some = batch.take(integers(rows))
                fate = _fate(some, file, self.recipe.value, lookup, storage)
                row, source = numbers(some.column("row")), numbers(some.column("source"))
                tags.append((source, tags_of(file, row, some.column("key"), fate)))
            yield from answers(place, number, tags)


def _fate(
    batch: Any, file: int, recipe: Recipe, lookup: Lookup, storage: Storage
) -> NDArray[np.int8]:
    """What becomes of rows whose keys are in a file."""
    keys, path = batch.column("key"), lookup.path(file)
    size = int(lookup.files.groups.base[file])
    there = held_keys(storage, path, size, keys)
    if len(there) < len(keys):
        lost = np.setdiff1d(np.arange(len(keys)), there, assume_unique=True)
        raise misplaced(keys, lost, f"in {path}")
    own = lookup.files.groups.partition[file]
    moves = (numbers(batch.column("folder")) != own) & ~flags(batch.column("deletes"))
    fate = np.where(moves, Fate.MOVES, Fate.CHANGES).astype(np.int8)
    times = [batch.column(name) for name in batch.schema.names if name.startswith("time")]
    if times and moves.any():
        rows = np.flatnonzero(moves)
        some = [column.take(integers(rows)) for column in times]
        ref = FileSliceRef(base=path, base_size=size)
        older = _older(keys.take(integers(rows)), some, ref, recipe, storage)
        fate[rows[older]] = Fate.STAYS
    return fate


def _older(
    keys: Any, times: Sequence[Any], file: FileSliceRef, recipe: Recipe, storage: Storage
) -> NDArray[np.bool_]:
    """Whether each key has a row in the file that is newer than its event times say."""
    reading = recipe.work.reading
    fields = ordering_fields(reading.rules, reading.schema)
    columns = dict.fromkeys(name.partition(".")[0] for name in (*reading.rules.keys, *fields))
    narrow = replace(reading, columns=tuple(columns))
    older = np.zeros(len(keys), np.bool_)
    path = file.base or ""
    for batch in read_slice(file, narrow, storage):
        met = pc.index_in(keys_of(batch, reading.rules, path), value_set=keys)
        at, which = np.flatnonzero(flags(met.is_valid())), numbers(met.drop_null())
        old = times_of(batch.take(integers(at)), recipe, path)
        ours = [column.take(integers(which)) for column in times]
        older[which[compared(ours, old) < 0]] = True
    return older


@dataclass(frozen=True, slots=True)
class AskingMoved:
    """Rows that are new in their partition since they leave another: their keys; picklable."""

    recipe: Shared
    search: Shared

    def __call__(self, place: int, pieces: Iterator[Any]) -> Iterator[Sent]:
        packs = [Pack.unpacked(piece) for piece in pieces]
        tags = [pack for pack in packs if pack.kind is Kind.TAGS]
        for chunk in chunks(place, packs, self.recipe.value):
            where = located(chunk, tags)
            yield from asked(chunk, where.row[where.is_moved], place, self.search.value)


@dataclass(frozen=True, slots=True)
class FindingTwice:
    """Keys that the index has in one partition, and a file in another; picklable.

    Such a table has keys that are only told apart by their partitions: to move rows would be to
    lose some. Raises FormatError naming one.
    """

    search: Shared
    bench: Bench

    def __call__(self, place: int, pieces: Iterator[Any]) -> Iterator[Never]:
        search: Search = self.search.value
        for packs in together(pieces):
            for one in found(search, place, packs, self.bench.open()):
                raise FormatError(
                    INDEX,
                    f"says that key {one.keys[0].as_py()!r} is in another partition, and "
                    f"{search.path[one.file]} has it as well: keys of this table are in several "
                    "partitions, of which the index knows one",
                    REMEDY,
                )
        yield from ()
