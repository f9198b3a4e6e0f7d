"""Hudi's five columns for rows that are written for the first time; pure, by column.

Source: HoodieCreateHandle, HoodieRecord.generateSequenceId. Rows on their way to a file carry key
and partition path; the writer of base files stamps the other three (``basefile.stamp``).
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from reconciler.errors import RowsError
from reconciler.file_slices.base_file.meta_columns import (
    PARTITION,
    RECORD_KEY,
    CommitStamp,
    build_meta_column,
)
from reconciler.file_slices.merge.avro_schema import META_COLUMNS


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


def add_meta_columns(batch: Any, stamp: CommitStamp, file_name: str, *, first: int = 0) -> Any:
    """Rows with key and path (``add_keys``) as their file holds them: all five columns in front.

    ``first``: how many rows of this commit the file has already. Raises FormatError naming the file
    for rows without key or path.
    """
    own = [name for name in batch.schema.names if name not in META_COLUMNS]
    made = [build_meta_column(name, batch, file_name, stamp, first) for name in META_COLUMNS]
    columns = [*made, *(batch.column(name) for name in own)]
    return pa.RecordBatch.from_arrays(columns, [*META_COLUMNS, *own])
