"""The rows of a place: which of them are written, and which are in the table already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.basefile.stamp import PARTITION, RECORD_KEY
from reconciler.errors import ReconcilerError
from reconciler.hudi.arrow import integers, numbers
from reconciler.merge.marked import is_deletion
from reconciler.sizing.routing import Hashes, key_hashes
from reconciler.writer.dedupe import DedupeRule, survivors
from reconciler.writer.packs import Kind, Pack, ordered
from reconciler.writer.request import Operation, Recipe

_DELETE = DedupeRule()


class Fate(IntEnum):
    """What becomes of a row whose key a file has.

    ``CHANGES``: it takes the place of the file's row, or removes it. ``MOVES``: the file's row
    goes, and it is a new one in its own partition. ``STAYS``: the file's row is newer, and stays.
    """

    CHANGES = 0
    MOVES = 1
    STAYS = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Chunk:
    """Rows that came together. ``brought``: how many did before one a key was chosen.

    ``rows``: those that are written, with key and path. ``is_deletion``: of each whether it removes
    its key. ``source`` and ``number``: their order among all chunks.
    """

    source: int
    number: int
    brought: int
    rows: Any
    is_deletion: NDArray[np.bool_]

    @cached_property
    def hashes(self) -> Hashes:
        """Of the keys."""
        return key_hashes(self.rows.column(RECORD_KEY))

    def paths(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int32], list[str]]:
        """The partition paths of some rows: codes, and what they stand for."""
        column = self.rows.column(PARTITION).take(integers(rows)).dictionary_encode()
        return numbers(column.indices), column.dictionary.to_pylist()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Located:
    """``new``: rows whose keys no file has, without deletions. ``row``, ``file``: which others do.

    A row is there for each file that has its key; files are indexes into ``Groups``. ``is_moved``:
    of each of these, whether the row is among the new ones too, and the file's row goes.
    """

    new: NDArray[np.int64]
    row: NDArray[np.int64]
    file: NDArray[np.int64]
    is_moved: NDArray[np.bool_]

    def is_gone(self, chunk: Chunk) -> NDArray[np.bool_]:
        """Of each row and file, whether the file's row is to go."""
        return chunk.is_deletion[self.row] | self.is_moved


def chunks(place: int, packs: Iterable[Pack], recipe: Recipe) -> Iterator[Chunk]:
    """What is written of the rows that came to a place; one chunk where one a key is."""
    found = ordered(packs, Kind.ROWS)
    if not recipe.takes_one_a_key:
        for pack in found:
            rows = pack.batch()
            yield Chunk(
                source=pack.source,
                number=pack.number,
                brought=len(rows),
                rows=rows,
                is_deletion=is_deletion(rows, recipe.dedupe.delete_marker),
            )
        return
    if found:
        yield _chosen(place, pa.concat_batches([pack.batch() for pack in found]), recipe)


def _chosen(place: int, rows: Any, recipe: Recipe) -> Chunk:
    keys, paths = rows.column(RECORD_KEY), rows.column(PARTITION).dictionary_encode()
    is_delete = recipe.operation is Operation.DELETE
    rule = replace(_DELETE, is_global=recipe.dedupe.is_global) if is_delete else recipe.dedupe
    found = survivors(rows, keys, paths, rule)
    is_whole = len(found.rows) == len(rows)
    return Chunk(
        source=place,
        number=0,
        brought=len(rows),
        rows=rows if is_whole else rows.take(integers(found.rows)),
        is_deletion=np.ones(len(found.rows), np.bool_) if is_delete else found.is_deletion,
    )


def tags_of(
    file: int, row: NDArray[np.int32], keys: Any, fate: NDArray[np.int8] | None = None
) -> Any:
    """What ``located`` is told of rows whose keys a file has: all change there without ``fate``."""
    if fate is None:
        fate = np.full(len(row), Fate.CHANGES, np.int8)
    columns: list[NDArray[Any]] = [row, np.full(len(row), file), key_hashes(keys), fate]
    return pa.RecordBatch.from_arrays([*map(integers, columns)], ["row", "file", "hash", "fate"])


def located(chunk: Chunk, tags: Sequence[Pack]) -> Located:
    """Which rows of a place's only chunk are in files, as those tell that looked for them.

    Raises ReconcilerError when the rows are no longer those that were looked for.
    """
    is_new = ~chunk.is_deletion
    if not tags:
        nothing = np.zeros(0, np.int64)
        none = np.zeros(0, np.bool_)
        return Located(new=np.flatnonzero(is_new), row=nothing, file=nothing, is_moved=none)
    told = pa.concat_batches([tag.batch() for tag in tags])
    row, file, hashes, fate = (numbers(told.column(name)) for name in told.schema.names)
    order = np.lexsort((file, row))
    row, file, hashes = row[order].astype(np.int64), file[order].astype(np.int64), hashes[order]
    if len(row) and (row[-1] >= len(chunk.rows) or (chunk.hashes[row] != hashes).any()):
        raise changed()
    fate = fate[order]
    is_new[row] = False
    is_new[row[fate == Fate.MOVES]] = True
    acts = fate != Fate.STAYS
    return Located(
        new=np.flatnonzero(is_new),
        row=row[acts],
        file=file[acts],
        is_moved=fate[acts] == Fate.MOVES,
    )


def changed() -> ReconcilerError:
    """What is said when two stages did not see the same rows."""
    return ReconcilerError(
        "the rows were not the same when they were read again after a worker was lost; write what "
        "the DataFrame holds to files first (or checkpoint it), and write those"
    )
