"""Collect the ranges of columns for indexes while rows are written.

Ranges come from the rows, because footers ignore NaN and omit long texts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import to_numpy
from reconciler.errors import FormatError
from reconciler.file_slices.merge.ordering import find_column
from reconciler.hudi.metadata.record_encoder import Bound, ColumnRange


class RangeCollector:
    """Collects ranges from the rows of a file as it stores them.

    ``columns`` are names or dotted paths into structs.
    """

    def __init__(self, columns: Sequence[str], path: str) -> None:
        self._path = path
        self._ranges = {column: ColumnRange(column=column) for column in columns}

    def add(self, rows: Any) -> None:
        """Add rows. Raises FormatError naming the file where a column is missing."""
        for name, before in self._ranges.items():
            column = find_column(rows, name)
            if column is None:
                raise FormatError(self._path, f"the rows to write have no column {name}")
            least, greatest = _find_bounds(column)
            self._ranges[name] = before.merge(
                ColumnRange(
                    column=name,
                    least=least,
                    greatest=greatest,
                    values=len(column),
                    nulls=column.null_count,
                )
            )

    def build_ranges(self, footer: Any) -> tuple[ColumnRange, ...]:
        """Return the ranges of the finished file, with sizes from its footer (FileMetaData)."""
        ranges = dict(self._ranges)
        for group in range(footer.num_row_groups if ranges else 0):
            row_group = footer.row_group(group)
            for at in range(row_group.num_columns):
                chunk = row_group.column(at)
                name = chunk.path_in_schema
                if name in ranges:
                    size, plain_size = chunk.total_compressed_size, chunk.total_uncompressed_size
                    more = ColumnRange(column=name, size=size, plain_size=plain_size)
                    ranges[name] = ranges[name].merge(more)
        return tuple(ranges.values())


def _find_bounds(column: Any) -> tuple[Bound | None, Bound | None]:
    """Return the smallest and largest value as the file stores them; NaN is the greatest number."""
    if pa.types.is_dictionary(column.type):
        column = column.unique().dictionary_decode()  # only the values in use
    if column.null_count == len(column):
        return None, None
    if not pa.types.is_floating(column.type):
        bounds = pc.min_max(column)
        return _read_bound(bounds["min"]), _read_bound(bounds["max"])
    whole = column.drop_null() if column.null_count else column
    if not pa.types.is_float64(whole.type):
        whole = whole.cast(pa.float64())
    values = to_numpy(whole)
    least, greatest = values.min(), values.max()  # NaN if there is any
    if math.isnan(least):
        values = values[~np.isnan(values)]
        least = values.min() if len(values) else math.nan
    return float(least), float(greatest)


def _read_bound(scalar: Any) -> Bound:
    kind, types = scalar.type, pa.types
    if types.is_date32(kind) or types.is_timestamp(kind) or types.is_time(kind):
        return int(scalar.value)
    value = scalar.as_py()
    assert isinstance(value, bool | int | str | bytes | Decimal), "indexes hold no other types"
    return value
