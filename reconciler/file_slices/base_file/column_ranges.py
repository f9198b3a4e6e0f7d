"""Collect what indexes need to know of a file's columns while its rows are written.

Ranges come from the rows, because footers ignore NaN and omit long texts. pyarrow leaves NaN out of
the bounds in footers, so a file's float columns without a NaN are recorded: an index that is built
from the footer later needs to know them.

Hudi skips a file whose key range excludes a key (HoodieBloomIndex, KeyRangeLookupTree), comparing
UTF-16 units. Hudi's row writer orders by UTF-8 bytes instead and so misses keys with characters
above U+FFFF. Its Avro writer and this one do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import get_value_offsets, to_arrow, to_numpy
from reconciler.errors import FormatError
from reconciler.file_slices.merge.ordering import find_column
from reconciler.hudi.metadata.record_encoder import Bound, ColumnRange
from reconciler.index.parquet_writers import make_nan_free_pair


class RangeCollector:
    """Collects ranges from the rows of a file as it stores them.

    ``columns`` are names or dotted paths into structs.
    """

    def __init__(self, columns: Sequence[str], path: str) -> None:
        self._path = path
        self._ranges = {column: ColumnRange(column=column) for column in columns}

    def add(self, rows: Any) -> None:
        """Add rows. Raises FormatError naming the file if a column is missing."""
        for name, before in self._ranges.items():
            column = find_column(rows, name)
            if column is None:
                raise FormatError(self._path, f"the rows to write have no column {name}")
            least, greatest = _find_bounds(column)
            counts = {"values": len(column), "nulls": column.null_count}
            more = ColumnRange(column=name, least=least, greatest=greatest, **counts)
            self._ranges[name] = before.merge(more)

    def build_ranges(self, footer: Any) -> tuple[ColumnRange, ...]:
        """Return the ranges of the finished file, with sizes from its footer (FileMetaData).

        ``footer``: None for a log file, whose columns have no sizes.
        """
        ranges = dict(self._ranges)
        for group in range(footer.num_row_groups if ranges and footer is not None else 0):
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


class NanTracker:
    """The float columns of a file, struct fields included, without a NaN so far."""

    def __init__(self, columns: pa.Schema) -> None:
        self._columns = [
            path for field in columns for path in _list_float_paths(field.name, field.type)
        ]

    def add(self, rows: Any) -> None:
        """Examine more rows, as the file stores them."""
        self._columns = [path for path in self._columns if not _has_nan(find_column(rows, path))]

    def build_footer_metadata(self, name: str) -> dict[str, str]:
        """Return the footer's key-value pair for a file name, empty without such columns.

        >>> free = NanTracker(pa.schema([("x", pa.float64()), ("n", pa.int64())]))
        >>> free.add(pa.record_batch([[1.5, None], [1, 2]], names=["x", "n"]))
        >>> free.build_footer_metadata("f.parquet")
        {'reconciler.nan_free': '{"columns":["x"],"file":"f.parquet"}'}
        >>> free.add(pa.record_batch([[float("nan")], [3]], names=["x", "n"]))
        >>> free.build_footer_metadata("f.parquet")
        {}
        """
        return make_nan_free_pair(name, self._columns) if self._columns else {}


def _list_float_paths(path: str, kind: Any) -> Iterator[str]:
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _list_float_paths(f"{path}.{field.name}", field.type)
    elif pa.types.is_floating(kind):
        yield path


def _has_nan(column: Any) -> bool:
    return bool(pc.any(pc.is_nan(column)).as_py())


# --- record keys ---------------------------------------------------------------------------------

#: smallest first UTF-8 byte of a character that takes two UTF-16 units
_BEYOND = 0xF0


class KeyRange:
    """Collects keys in any order; ``least`` and ``greatest`` are None without keys."""

    def __init__(self) -> None:
        self.least: str | None = None
        self.greatest: str | None = None

    def add(self, keys: Any) -> None:
        """Add the keys of a string array without nulls."""
        if not len(keys):
            return
        bounds = pc.min_max(keys)
        ends = [bounds["min"].as_py(), bounds["max"].as_py(), *_find_java_extremes(keys)]
        for key in ends:
            if self.least is None or java_sort_key(key) < java_sort_key(self.least):
                self.least = key
            if self.greatest is None or java_sort_key(key) > java_sort_key(self.greatest):
                self.greatest = key


def java_sort_key(key: str) -> bytes:
    """Return a sort key that orders keys as Java's String.compareTo.

    >>> java_sort_key("😀") < java_sort_key("ｱ")
    True
    """
    return key.encode("utf-16-be")


def _find_java_extremes(keys: Any) -> list[str]:
    """Return the extremes in Java's order, if that differs from the order of bytes."""
    data = np.frombuffer(keys.buffers()[2] or b"", np.uint8)
    ends = get_value_offsets(keys)
    if not (data[ends[0] : ends[-1]] >= _BEYOND).any():
        return []
    positions = np.flatnonzero(data >= _BEYOND)
    after = np.searchsorted(positions, ends)
    odd = keys.take(to_arrow(np.flatnonzero(np.diff(after)))).to_pylist()
    even = pc.min_max(keys.take(to_arrow(np.flatnonzero(np.diff(after) == 0))))
    rest = [key for end in ("min", "max") if (key := even[end].as_py()) is not None]
    return [*rest, min(odd, key=java_sort_key), max(odd, key=java_sort_key)]
