"""The proof that a file's floats hold no NaN, kept while its rows are written.

pyarrow leaves NaN out of the bounds in footers, so they say nothing of it; an index that is built
from the footer later needs to know.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.index.nans import nan_free_pair
from reconciler.merge.ordering import column_at


class NanFree:
    """The float columns of a file, fields of structs too, that have held no NaN until now."""

    def __init__(self, columns: pa.Schema) -> None:
        self._left = [path for field in columns for path in _floats(field.name, field.type)]

    def add(self, rows: Any) -> None:
        """More rows, as the file stores them."""
        self._left = [path for path in self._left if not _has_nan(column_at(rows, path))]

    def footer(self, name: str) -> dict[str, str]:
        """The key-value pair of the file of that name; none where there is nothing to say.

        >>> free = NanFree(pa.schema([("x", pa.float64()), ("n", pa.int64())]))
        >>> free.add(pa.record_batch([[1.5, None], [1, 2]], names=["x", "n"]))
        >>> free.footer("f.parquet")
        {'reconciler.nan_free': '{"columns":["x"],"file":"f.parquet"}'}
        >>> free.add(pa.record_batch([[float("nan")], [3]], names=["x", "n"]))
        >>> free.footer("f.parquet")
        {}
        """
        return nan_free_pair(name, self._left) if self._left else {}


def _floats(path: str, kind: Any) -> Iterator[str]:
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _floats(f"{path}.{field.name}", field.type)
    elif pa.types.is_floating(kind):
        yield path


def _has_nan(column: Any) -> bool:
    return bool(pc.any(pc.is_nan(column)).as_py())
