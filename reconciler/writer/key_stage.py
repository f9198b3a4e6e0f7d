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

from reconciler.errors import RowsError
from reconciler.file_slices.base_file.meta_columns import PARTITION, RECORD_KEY
from reconciler.file_slices.merge.avro_schema import META_COLUMNS
from reconciler.file_slices.merge.schema_evolution import evolve_batch
from reconciler.layout.sizing.key_routing import hash_record_keys
from reconciler.spark.staged_rows import BlockForPartition
from reconciler.writer.job import Broadcast, RowJob, RowOperation
from reconciler.writer.partition_paths import make_partition_paths
from reconciler.writer.record_keys import make_record_keys
from reconciler.writer.row_blocks import BlockKind, RowBlock, combine_batches, split_by_code


@dataclass(frozen=True, slots=True)
class PrepareTask:
    """Batches of Arrow into packs of rows for ``partitions``; picklable. ``row_job``: shared.

    Raises RowsError and UnsupportedError where rows are none of the table's.
    """

    row_job: Broadcast
    partitions: int

    def __call__(self, index: int, batches: Iterator[Any]) -> Iterator[BlockForPartition]:
        recipe: RowJob = self.row_job.value
        made = (prepare_batch(batch, recipe) for batch in batches if len(batch))
        for number, rows in enumerate(combine_batches(made)):
            if recipe.keeps_one_per_key:
                hashes = hash_record_keys(rows.column(RECORD_KEY))
                where = (hashes % np.uint64(self.partitions)).astype(np.int64)
            else:
                where = np.full(len(rows), index % self.partitions, np.int64)
            for place, some in split_by_code(rows, where):
                yield place, RowBlock(kind=BlockKind.ROWS, source=index, number=number, data=some)


def prepare_batch(batch: Any, row_job: RowJob) -> Any:
    """Record key, partition path, then the table's own columns; of a delete the first two alone."""
    match row_job.operation:
        case RowOperation.DELETE:
            rows = _select_key_columns(batch, row_job)
        case RowOperation.INSERT | RowOperation.UPSERT | RowOperation.BULK_INSERT:
            brought = evolve_batch(batch, row_job.incoming, "the rows")
            rows = evolve_batch(brought, row_job.columns, "the rows")
        case _:
            assert_never(row_job.operation)
    keys = make_record_keys(rows, row_job.key_rule)
    paths = make_partition_paths(rows, row_job.partition_rule).dictionary_decode()
    if row_job.operation is RowOperation.DELETE:
        return pa.RecordBatch.from_arrays([keys, paths], [RECORD_KEY, PARTITION])
    return add_keys(rows, keys, paths)


def _select_key_columns(batch: Any, row_job: RowJob) -> Any:
    """What keys and folders are made of, as far as it is there, in the table's types.

    Whole numbers stay as they come: they are spelled alike, and too great ones are in no file.
    """
    parts = (*row_job.key_rule.fields, *row_job.partition_rule.fields)
    names = dict.fromkeys(name.partition(".")[0] for name in parts)
    there = [name for name in names if name in batch.schema.names]
    known = [name for name in there if name in row_job.columns.names]
    fields = [_choose_field(batch.schema.field(n), row_job.columns.field(n)) for n in known]
    return evolve_batch(batch, pa.schema(fields), "the rows")


def _choose_field(brought: pa.Field, declared: pa.Field) -> pa.Field:
    is_whole = pa.types.is_integer(brought.type) and pa.types.is_integer(declared.type)
    return brought if is_whole else declared


def add_keys(batch: Any, keys: Any, paths: Any) -> Any:
    """The rows with their record keys and partition paths before their own columns.

    ``keys``, ``paths``: strings without nulls, a value a row, the latter a dictionary array. Meta
    columns that the rows bring are left out. Raises RowsError when the lengths differ or a key is
    null.
    """
    for values in (keys, paths):
        if len(values) != len(batch) or values.null_count:
            raise RowsError(
                f"{len(batch)} rows came with {len(values)} keys or partition paths, of which "
                f"{values.null_count} are null; every row needs one"
            )
    own = [name for name in batch.schema.names if name not in META_COLUMNS]
    columns = [batch.column(name) for name in own]
    return pa.RecordBatch.from_arrays([keys, paths, *columns], [RECORD_KEY, PARTITION, *own])
