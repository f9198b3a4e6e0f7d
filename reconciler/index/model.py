"""The column-statistics index in memory: columns with an element a base file, never an object each.

A statement about a file is either proven or unknown; unknown keeps the file in every read. So a
missing bound is never taken for "no value": a column is all null only where counts say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pyarrow as pa

from reconciler.arrays import to_integer_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: a count that nothing tells
UNKNOWN: Final = -1
#: how the partition of each file is kept
PARTITION: Final = pa.dictionary(pa.int32(), pa.string())


def indexed_type(kind: Any) -> Any:
    """The type in which bounds of a column are kept; None for a column that has none.

    Times are in microseconds, as Spark's are; lists, maps and structs have no bounds.

    >>> kept_type(pa.timestamp("ms", tz="Europe/Vienna")), kept_type(pa.list_(pa.int8()))
    (TimestampType(timestamp[us, tz=UTC]), None)
    """
    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_timestamp(kind):
        return pa.timestamp("us", tz="UTC" if kind.tz else None)
    if types.is_string(kind) or types.is_large_string(kind):
        return pa.string()
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return pa.binary()
    is_kept = (
        types.is_boolean(kind)
        or types.is_signed_integer(kind)
        or types.is_float32(kind)
        or types.is_float64(kind)
        or types.is_decimal128(kind)
        or types.is_date32(kind)
    )
    return kind if is_kept else None


def list_indexable_fields(column: str, kind: Any) -> tuple[str, ...]:
    """The fields of a struct that have bounds, by their names with dots; of others none.

    >>> inner = pa.struct([("lat", pa.float64()), ("tags", pa.list_(pa.string()))])
    >>> fields_within("a", pa.struct([("city", pa.string()), ("at", inner)]))
    ('a.city', 'a.at.lat')
    """
    if not pa.types.is_struct(kind):
        return ()
    named = [(f"{column}.{part.name}", part.type) for part in kind]
    return tuple(
        field
        for name, of in named
        for field in ((name,) if indexed_type(of) is not None else list_indexable_fields(name, of))
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnStats:
    """What files hold in one column; every array has an element a file.

    ``least``, ``greatest``: pyarrow arrays of the column's type (``indexed_type``), one chunk. No
    value but null and NaN lies outside of them; null: unknown, or there is no such value.
    Text compares by its bytes; a least zero of floats is -0.0 and a greatest one 0.0.
    ``nulls``, ``values``: int64, -1 where unknown; ``values`` counts nulls too, so all values are
    null where ``nulls == values``. A null struct has null leaves.
    ``is_exact_least``, ``is_exact_greatest``: the bound is a value that the file holds; False where
    it is only a bound (cut short, rounded) or null. Zeros of floats count as one value.
    ``is_nan_free``: proven to hold no NaN; True for types without NaN.
    """

    least: Any
    greatest: Any
    nulls: NDArray[np.int64]
    values: NDArray[np.int64]
    is_exact_least: NDArray[np.bool_]
    is_exact_greatest: NDArray[np.bool_]
    is_nan_free: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.nulls)

    @property
    def type(self) -> Any:
        return self.least.type

    @property
    def is_all_null(self) -> NDArray[np.bool_]:
        """Whether it is proven that there is no value but null."""
        found: NDArray[np.bool_] = (self.nulls >= 0) & (self.nulls == self.values)
        return found

    @classmethod
    def unknown(cls, kind: Any, files: int) -> Self:
        """Nothing is known of so many files."""
        free = not pa.types.is_floating(kind)
        return cls(
            least=pa.nulls(files, kind),
            greatest=pa.nulls(files, kind),
            nulls=np.full(files, UNKNOWN, np.int64),
            values=np.full(files, UNKNOWN, np.int64),
            is_exact_least=np.zeros(files, np.bool_),
            is_exact_greatest=np.zeros(files, np.bool_),
            is_nan_free=np.full(files, free, np.bool_),
        )

    def take(self, rows: NDArray[np.int64]) -> Self:
        """The statistics of some files, in the order of ``rows``."""
        at = to_integer_array(rows)
        return type(self)(
            least=self.least.take(at),
            greatest=self.greatest.take(at),
            nulls=self.nulls[rows],
            values=self.values[rows],
            is_exact_least=self.is_exact_least[rows],
            is_exact_greatest=self.is_exact_greatest[rows],
            is_nan_free=self.is_nan_free[rows],
        )

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """The statistics of files of one type, one part after another; at least one part."""
        return cls(
            least=pa.concat_arrays([part.least for part in parts]),
            greatest=pa.concat_arrays([part.greatest for part in parts]),
            **{
                name: np.concatenate([getattr(part, name) for part in parts])
                for name in (field.name for field in fields(cls))
                if name not in {"least", "greatest"}
            },
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FileIndex:
    """What base files hold; a file is known by (partition, name, size), and comes once.

    Rows are sorted by (partition, name, size). ``partition``: pyarrow dictionary array of paths
    ("" where the table has none), int32 codes, the dictionary sorted; ``name``: pyarrow string
    array; ``size``: int64, bytes; ``rows``: int64, -1 where unknown; ``columns``: by the column's
    name, with dots into structs.
    """

    partition: Any
    name: Any
    size: NDArray[np.int64]
    rows: NDArray[np.int64]
    columns: Mapping[str, ColumnStats]

    def __len__(self) -> int:
        return len(self.size)
