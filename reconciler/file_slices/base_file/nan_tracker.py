"""The proof that a file's floats hold no NaN, kept while its rows are written.

pyarrow leaves NaN out of the bounds in footers, so they say nothing of it; an index that is built
from the footer later needs to know.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.file_slices.merge.ordering import find_column
from reconciler.index.nan_free import make_nan_free_pair


class NanTracker:
    """The float columns of a file, fields of structs too, that have held no NaN until now."""

    def __init__(self, columns: pa.Schema) -> None:
        self._columns = [
            path for field in columns for path in _list_float_paths(field.name, field.type)
        ]

    def add(self, rows: Any) -> None:
        """More rows, as the file stores them."""
        self._columns = [path for path in self._columns if not _has_nan(find_column(rows, path))]

    def build_footer_metadata(self, name: str) -> dict[str, str]:
        """The key-value pair of the file of that name; none where there is nothing to say.

        >>> free = NanFree(pa.schema([("x", pa.float64()), ("n", pa.int64())]))
        >>> free.add(pa.record_batch([[1.5, None], [1, 2]], names=["x", "n"]))
        >>> free.footer("f.parquet")
        {'reconciler.nan_free': '{"columns":["x"],"file":"f.parquet"}'}
        >>> free.add(pa.record_batch([[float("nan")], [3]], names=["x", "n"]))
        >>> free.footer("f.parquet")
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
