"""The first stage: convert rows to the table's columns, and send them by their keys.

Where one row per key is written, rows meet in the shuffle partition of their key's hash. Other rows
stay together as they came, so that files keep their order.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from reconciler.writer.row_blocks import BlockKind, combine_batches, send_rows


def prepare_rows(
    row_job: Broadcast, partitions: int, index: int, batches: Iterator[Any]
) -> Iterator[BlockForPartition]:
    """Convert Arrow batches into blocks of rows for shuffle partitions.

    Raises RowsError and UnsupportedError for rows that do not fit the table.
    """
    job: RowJob = row_job.value
    prepared = (prepare_batch(batch, job) for batch in batches if len(batch))
    for number, rows in enumerate(combine_batches(prepared)):
        if job.keeps_one_per_key:
            hashes = hash_record_keys(rows.column(RECORD_KEY))
            tasks = (hashes % np.uint64(partitions)).astype(np.int64)
        else:
            tasks = np.full(len(rows), index % partitions, np.int64)
        yield from send_rows(rows, tasks, BlockKind.ROWS, index, number)


def prepare_batch(batch: Any, row_job: RowJob) -> Any:
    """Return record key, partition path and the table's columns; for a delete no columns."""
    match row_job.operation:
        case RowOperation.DELETE:
            rows = _select_key_columns(batch, row_job)
        case RowOperation.INSERT | RowOperation.UPSERT | RowOperation.BULK_INSERT:
            converted = evolve_batch(batch, row_job.rules.incoming, "the rows")
            rows = evolve_batch(converted, row_job.rules.columns, "the rows")
        case _:
            assert_never(row_job.operation)
    keys = make_record_keys(rows, row_job.rules.key)
    paths = make_partition_paths(rows, row_job.rules.partition).dictionary_decode()
    if row_job.operation is RowOperation.DELETE:
        return pa.RecordBatch.from_arrays([keys, paths], [RECORD_KEY, PARTITION])
    return add_keys(rows, keys, paths)


def _select_key_columns(batch: Any, row_job: RowJob) -> Any:
    """Return the columns of keys and folders that are present, in the table's types.

    Integers keep their type: they are spelled alike, and values that are too large are in no file.
    """
    rules = row_job.rules
    parts = (*rules.key.fields, *rules.partition.fields)
    names = dict.fromkeys(name.partition(".")[0] for name in parts)
    present = [name for name in names if name in batch.schema.names]
    fields = [
        _choose_field(batch.schema.field(name), rules.columns.field(name))
        for name in present
        if name in rules.columns.names
    ]
    return evolve_batch(batch, pa.schema(fields), "the rows")


def _choose_field(converted: pa.Field, declared: pa.Field) -> pa.Field:
    is_whole = pa.types.is_integer(converted.type) and pa.types.is_integer(declared.type)
    return converted if is_whole else declared


def add_keys(batch: Any, keys: Any, paths: Any) -> Any:
    """Return the rows with record keys and partition paths before their own columns.

    ``keys``, ``paths``: strings without nulls, a value per row. Meta columns of the rows are
    dropped. Raises RowsError if lengths differ or a key is null.
    """
    for values in (keys, paths):
        if len(values) != len(batch) or values.null_count:
            raise RowsError(
                f"{len(batch)} rows have {len(values)} keys or partition paths, of which "
                f"{values.null_count} are null; every row needs one"
            )
    names = [name for name in batch.schema.names if name not in META_COLUMNS]
    columns = [keys, paths, *map(batch.column, names)]
    return pa.RecordBatch.from_arrays(columns, [RECORD_KEY, PARTITION, *names])
