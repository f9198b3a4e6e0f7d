"""The column-statistics index in memory: arrays with an element per base file.

Each statement about a file is proven or unknown; an unknown one keeps the file in every read.
A missing bound never means "no value": only counts prove that a column is all null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from reconciler.arrays import Integers, Mask, to_arrow
from reconciler.lazy_dataclass import dataclass

#: an unknown count
UNKNOWN: Final = -1
#: the type of the partition column
PARTITION: Final = pa.dictionary(pa.int32(), pa.string())
#: the fields of ColumnStats that are numpy arrays
_NUMPY_FIELDS: Final = ("nulls", "values", "is_exact_least", "is_exact_greatest", "is_nan_free")


def indexed_type(kind: Any) -> Any:
    """Return the type in which a column's bounds are kept; None for a type without bounds.

    Times are kept in microseconds, as Spark does; lists, maps and structs have no bounds.

    >>> indexed_type(pa.timestamp("ms", tz="Europe/Vienna")), indexed_type(pa.list_(pa.int8()))
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
    """Return the names, with dots, of a struct's fields that have bounds; () for other types.

    >>> inner = pa.struct([("lat", pa.float64()), ("tags", pa.list_(pa.string()))])
    >>> list_indexable_fields("a", pa.struct([("city", pa.string()), ("at", inner)]))
    ('a.city', 'a.at.lat')
    """
    if not pa.types.is_struct(kind):
        return ()
    names: list[str] = []
    for field in kind:
        name = f"{column}.{field.name}"
        is_indexable = indexed_type(field.type) is not None
        names += [name] if is_indexable else list_indexable_fields(name, field.type)
    return tuple(names)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnStats:
    """Statistics of one column; every array has an element per file.

    ``least``, ``greatest``: pyarrow arrays of the column's type (``indexed_type``), in one chunk.
    Only null and NaN lie outside the bounds. A null bound is unknown, or no value exists.
    Text compares by its bytes. A least zero of floats is -0.0, a greatest zero is 0.0.
    ``nulls``, ``values``: int64, -1 if unknown. ``values`` counts nulls too: all values are null if
    ``nulls == values``. A null struct has null leaves.
    ``is_exact_least``, ``is_exact_greatest``: True if the bound is a value of the file, not a
    truncated or rounded one; False for null. Both zeros of floats count as one value.
    ``is_nan_free``: True if the file is proven to hold no NaN, and for types without NaN.
    """

    least: Any
    greatest: Any
    nulls: Integers
    values: Integers
    is_exact_least: Mask
    is_exact_greatest: Mask
    is_nan_free: Mask

    def __len__(self) -> int:
        return len(self.nulls)

    @property
    def type(self) -> Any:
        return self.least.type

    @property
    def is_all_null(self) -> Mask:
        """A mask of the files that are proven to hold only nulls."""
        mask: Mask = (self.nulls >= 0) & (self.nulls == self.values)
        return mask

    @classmethod
    def unknown(cls, kind: Any, files: int) -> Self:
        """Return statistics of ``files`` files of which nothing is known."""
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

    def take(self, rows: Integers) -> Self:
        """Return the statistics of some files, in the order of ``rows``."""
        at = to_arrow(rows)
        return type(self)(
            least=self.least.take(at),
            greatest=self.greatest.take(at),
            **{name: getattr(self, name)[rows] for name in _NUMPY_FIELDS},
        )

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """Concatenate statistics of one type; at least one part."""
        return cls(
            least=pa.concat_arrays([part.least for part in parts]),
            greatest=pa.concat_arrays([part.greatest for part in parts]),
            **{
                name: np.concatenate([getattr(part, name) for part in parts])
                for name in _NUMPY_FIELDS
            },
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FileKeys:
    """The keys (partition, name, size) of base files in any order.

    ``partition``: pyarrow dictionary array of paths ("" for unpartitioned tables), with int32
    codes. ``name``: pyarrow string array. ``size``: int64, bytes.
    """

    partition: Any
    name: Any
    size: Integers

    def __len__(self) -> int:
        return len(self.size)

    def take(self, rows: Integers) -> FileKeys:
        """Return the keys of some files, in the order of ``rows``."""
        at = to_arrow(rows)
        return FileKeys(
            partition=self.partition.take(at), name=self.name.take(at), size=self.size[rows]
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FileIndex(FileKeys):
    """Statistics of base files, one row per file.

    Rows are sorted by the key of the file, each key occurs once, and the dictionary of partitions
    is sorted. ``rows``: int64, -1 if unknown. ``columns``: statistics by column name, with dots
    into structs.
    """

    rows: Integers
    columns: Mapping[str, ColumnStats]
