"""The rows of a place: which of them are written, and which are in the table already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
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

    A row is there for each file that has its key; files are indexes into ``Groups``.
    """

    new: NDArray[np.int64]
    row: NDArray[np.int64]
    file: NDArray[np.int64]


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
    found = survivors(rows, keys, paths, _DELETE if is_delete else recipe.dedupe)
    is_whole = len(found.rows) == len(rows)
    return Chunk(
        source=place,
        number=0,
        brought=len(rows),
        rows=rows if is_whole else rows.take(integers(found.rows)),
        is_deletion=np.ones(len(found.rows), np.bool_) if is_delete else found.is_deletion,
    )


def located(chunk: Chunk, tags: Sequence[Pack]) -> Located:
    """Which rows of a place's only chunk are in files, as those tell that looked for them.

    Raises ReconcilerError when the rows are no longer those that were looked for.
    """
    is_new = ~chunk.is_deletion
    if not tags:
        nothing = np.zeros(0, np.int64)
        return Located(new=np.flatnonzero(is_new), row=nothing, file=nothing)
    told = pa.concat_batches([tag.batch() for tag in tags])
    row, file, hashes = (numbers(told.column(name)) for name in ("row", "file", "hash"))
    order = np.lexsort((file, row))
    row, file, hashes = row[order].astype(np.int64), file[order].astype(np.int64), hashes[order]
    if len(row) and (row[-1] >= len(chunk.rows) or (chunk.hashes[row] != hashes).any()):
        raise changed()
    is_new[row] = False
    return Located(new=np.flatnonzero(is_new), row=row, file=file)


def changed() -> ReconcilerError:
    """What is said when two stages did not see the same rows."""
    return ReconcilerError(
        "the rows were not the same when they were read again after a worker was lost; write what "
        "the DataFrame holds to files first (or checkpoint it), and write those"
    )
