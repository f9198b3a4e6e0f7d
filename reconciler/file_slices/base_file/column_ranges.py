"""The ranges of columns while rows are written, for indexes.

From the rows themselves, because footers say nothing of NaN and leave long texts out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import to_numpy_numbers
from reconciler.errors import FormatError
from reconciler.file_slices.merge.ordering import find_column
from reconciler.hudi.metadata.record_encoder import Bound, ColumnRange


class RangeCollector:
    """Takes the rows of a file as it stores them; ``columns`` are names, or dots into structs."""

    def __init__(self, columns: Sequence[str], path: str) -> None:
        self._path = path
        self._ranges = {column: _build_range(column, None, None, 0, 0) for column in columns}

    def add(self, rows: Any) -> None:
        """More rows. Raises FormatError naming the file where a column is not there."""
        for name, before in self._ranges.items():
            column = find_column(rows, name)
            if column is None:
                raise FormatError(self._path, f"rows to be written have no column {name}")
            least, greatest = _find_bounds(column)
            after = _build_range(name, least, greatest, len(column), column.null_count)
            self._ranges[name] = before.merge(after)

    def build_ranges(self, footer: Any) -> tuple[ColumnRange, ...]:
        """The ranges of the finished file, with the sizes that its footer (FileMetaData) says."""
        sizes: dict[str, tuple[int, int]] = {}
        for group in range(footer.num_row_groups if self._ranges else 0):
            of_group = footer.row_group(group)
            for at in range(of_group.num_columns):
                chunk = of_group.column(at)
                small, plain = sizes.get(chunk.path_in_schema, (0, 0))
                sizes[chunk.path_in_schema] = (
                    small + chunk.total_compressed_size,
                    plain + chunk.total_uncompressed_size,
                )
        none = (0, 0)
        return tuple(
            found.merge(_build_range(name, None, None, 0, 0, *sizes.get(name, none)))
            for name, found in self._ranges.items()
        )


def _build_range(  # noqa: PLR0913, PLR0917
    column: str,
    least: Bound | None,
    greatest: Bound | None,
    values: int,
    nulls: int,
    size: int = 0,
    plain_size: int = 0,
) -> ColumnRange:
    return ColumnRange(
        column=column,
        least=least,
        greatest=greatest,
        values=values,
        nulls=nulls,
        size=size,
        plain_size=plain_size,
    )


def _find_bounds(column: Any) -> tuple[Bound | None, Bound | None]:
    """The least and the greatest value as the file stores them; of numbers NaN is the greatest."""
    if pa.types.is_dictionary(column.type):
        column = column.unique().dictionary_decode()  # what it has, not all that there is
    if column.null_count == len(column):
        return None, None
    if not pa.types.is_floating(column.type):
        found = pc.min_max(column)
        return _read_bound(found["min"]), _read_bound(found["max"])
    whole = column.drop_null() if column.null_count else column
    if not pa.types.is_float64(whole.type):
        whole = whole.cast(pa.float64())
    values = to_numpy_numbers(whole)
    least, greatest = values.min(), values.max()  # NaN where there is one
    if math.isnan(least):
        values = values[~np.isnan(values)]
        least = values.min() if len(values) else math.nan
    return float(least), float(greatest)


def _read_bound(scalar: Any) -> Bound:
    kind, types = scalar.type, pa.types
    if types.is_date32(kind) or types.is_timestamp(kind) or types.is_time(kind):
        return int(scalar.value)
    found = scalar.as_py()
    assert isinstance(found, bool | int | str | bytes | Decimal), "indexes keep no other columns"
    return found
