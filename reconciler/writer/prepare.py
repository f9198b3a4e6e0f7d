"""The first stage: rows as the table has them, with keys and folders, sent where their keys belong.

Rows of which one a key is written meet at a place by the hash of the key; others stay together as
they came, so that files keep their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np
import pyarrow as pa

from reconciler.basefile.stamp import PARTITION, RECORD_KEY
from reconciler.exchange.held import Sent
from reconciler.merge.evolve import evolve_batch
from reconciler.sizing.routing import key_hashes
from reconciler.writer.keys import record_keys
from reconciler.writer.meta import with_keys
from reconciler.writer.packs import Kind, Pack, gathered, parted
from reconciler.writer.partitions import partition_paths
from reconciler.writer.request import Operation, Recipe, Shared


@dataclass(frozen=True, slots=True)
class Preparing:
    """Batches of Arrow into packs of rows for ``places``; picklable. ``recipe``: shared.

    Raises RowsError and UnsupportedError where rows are none of the table's.
    """

    recipe: Shared
    places: int

    def __call__(self, index: int, batches: Iterator[Any]) -> Iterator[Sent]:
        recipe: Recipe = self.recipe.value
        made = (prepared(batch, recipe) for batch in batches if len(batch))
        for number, rows in enumerate(gathered(made)):
            if recipe.takes_one_a_key:
                hashes = key_hashes(rows.column(RECORD_KEY))
                where = (hashes % np.uint64(self.places)).astype(np.int64)
            else:
                where = np.full(len(rows), index % self.places, np.int64)
            for place, some in parted(rows, where):
                yield place, Pack(kind=Kind.ROWS, source=index, number=number, data=some)


def prepared(batch: Any, recipe: Recipe) -> Any:
    """Record key, partition path, then the table's own columns; of a delete the first two alone."""
    match recipe.operation:
        case Operation.DELETE:
            rows = _columns_of_keys(batch, recipe)
        case Operation.INSERT | Operation.UPSERT | Operation.BULK_INSERT:
            brought = evolve_batch(batch, recipe.brought, "the rows")
            rows = evolve_batch(brought, recipe.columns, "the rows")
        case _:
            assert_never(recipe.operation)
    keys = record_keys(rows, recipe.keys)
    paths = partition_paths(rows, recipe.folders).dictionary_decode()
    if recipe.operation is Operation.DELETE:
        return pa.RecordBatch.from_arrays([keys, paths], [RECORD_KEY, PARTITION])
    return with_keys(rows, keys, paths)


def _columns_of_keys(batch: Any, recipe: Recipe) -> Any:
    """What keys and folders are made of, as far as it is there, in the table's types.

    Whole numbers stay as they come: they are spelled alike, and too great ones are in no file.
    """
    parts = (*recipe.keys.fields, *recipe.folders.fields)
    names = dict.fromkeys(name.partition(".")[0] for name in parts)
    there = [name for name in names if name in batch.schema.names]
    known = [name for name in there if name in recipe.columns.names]
    fields = [_field_of_key(batch.schema.field(n), recipe.columns.field(n)) for n in known]
    return evolve_batch(batch, pa.schema(fields), "the rows")


def _field_of_key(brought: pa.Field, declared: pa.Field) -> pa.Field:
    is_whole = pa.types.is_integer(brought.type) and pa.types.is_integer(declared.type)
    return brought if is_whole else declared
