"""Prove that a file's float columns hold no NaN, while its rows are written.

pyarrow leaves NaN out of the bounds in footers. An index that is built from the footer later needs
to know whether there is any.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.file_slices.merge.ordering import find_column
from reconciler.index.nan_free import make_nan_free_pair


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
