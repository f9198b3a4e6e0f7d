"""The last stage: what came to a bucket into its files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.basefile.stamp import RECORD_KEY
from reconciler.hudi.arrow import booleans, flags
from reconciler.merge.logs import LogRecords, is_default, ordering_fields, ordering_of
from reconciler.merge.ordering import comparable
from reconciler.merge.slice import SliceReading
from reconciler.rewrite.model import Tally
from reconciler.sizing.routing import key_hashes
from reconciler.writer.bucket import Bucket, BucketWriting, NewBase, Rows
from reconciler.writer.counting import tallies
from reconciler.writer.packs import Kind, Pack, ordered
from reconciler.writer.request import Bench, Operation, Recipe, Shared
from reconciler.writer.routes import DELETION, FINAL


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Filled:
    """What became of a bucket: new rows and changes as they came, and the files."""

    bucket: int
    inserts: Tally
    changes: Tally
    files: tuple[NewBase, ...]


@dataclass(frozen=True, slots=True)
class Filling:
    """The packs of a bucket into its files; picklable. ``buckets``: shared, by place.

    Raises as ``BucketWriting`` does.
    """

    recipe: Shared
    buckets: Shared
    bench: Bench
    blooms: bool

    def __call__(self, place: int, pieces: Iterator[Any]) -> Iterator[Filled]:
        recipe: Recipe = self.recipe.value
        bucket: Bucket = self.buckets.value[place]
        with self.bench.folder() as folder:
            packs = [Pack.unpacked(piece) for piece in on_disk(pieces, folder)]
            if not packs:
                return
            new, changes = ordered(packs, Kind.ROWS), ordered(packs, Kind.CHANGES)
            made = BucketWriting(
                work=recipe.work, bucket=bucket, attempt=self.bench.attempt(), folder=folder
            ).write(
                Rows(
                    records=records_of(changes, recipe) if changes else None,
                    inserts=lambda: (pack.batch() for pack in new),
                ),
                self.bench.open(),
            )
            yield Filled(
                bucket=bucket.number,
                inserts=_tally(new),
                changes=_tally(changes),
                files=made if self.blooms else tuple(map(_without_bloom, made)),
            )


def on_disk(pieces: Iterable[Any], folder: Path) -> Iterator[Any]:
    """Pieces as buffers of mapped memory: those that are bytes go to a file of the folder."""
    ends = [0]
    path = folder / "arrived"
    with path.open("wb") as file:
        for piece in pieces:
            if isinstance(piece, bytes):
                file.write(piece)
                ends.append(ends[-1] + len(piece))
            else:
                yield piece
    if len(ends) > 1:
        with pa.memory_map(str(path)) as mapped:
            data = mapped.read_buffer()
        for start, end in pairwise(ends):
            yield data.slice(start, end - start)
    path.unlink()


def _tally(packs: Iterable[Pack]) -> Tally:
    found = Tally()
    for pack in packs:
        hashes = key_hashes(pack.batch().column(RECORD_KEY))
        (own,) = tallies(np.zeros(len(hashes), np.int64), hashes, 1)
        found = found.plus(own)
    return found


def _without_bloom(made: NewBase) -> NewBase:
    return replace(made, file=replace(made.file, bloom=None))


def records_of(changes: list[Pack], recipe: Recipe) -> LogRecords:
    """Rows that take the place of others, and deletions, as ``Merging`` takes them; one a key.

    A deletion without an event time is final, as in log files (``merge.logs``); so is every one
    of a delete, which has none, and that of a row that moves to another partition.
    """
    batch = pa.concat_batches([pack.batch() for pack in changes])
    is_gone = flags(batch.column(DELETION))
    reading = recipe.work.reading
    rows = batch.filter(booleans(~is_gone))
    is_delete = recipe.operation is Operation.DELETE
    columns = reading.wanted.columns
    own = columns.empty_table() if is_delete else pa.Table.from_batches([rows])
    fields = ordering_fields(reading.rules, reading.schema)
    ordering = ordering_of(batch, fields, "the rows")
    return LogRecords(
        keys=batch.column(RECORD_KEY),
        row=np.where(is_gone, -1, np.cumsum(~is_gone) - 1),
        is_final=np.ones(len(batch), np.bool_)
        if is_delete
        else flags(batch.column(FINAL)) | (is_gone & _timeless(ordering, reading)),
        ordering=tuple(comparable(c, name) for c, name in zip(ordering, fields, strict=True)),
        table=own,
    )


def _timeless(ordering: tuple[Any, ...], reading: SliceReading) -> NDArray[np.bool_] | bool:
    """Whether each row has no event time, as Hudi 1.x sees it; 0.x compares it all the same."""
    if not ordering:
        return True
    if len(ordering) > 1 or reading.rules.precombines:
        return False
    return is_default(ordering[0])
