"""Which columns of a file are worth a dictionary: for the others it costs time and saves nothing.

Parquet writers begin with a dictionary and give it up once it is full; for keys and measurements
that takes half of all the time that a file takes to write. Java's gives it up too where it makes a
column no smaller (FallbackValuesWriter, DictionaryValuesWriter.isCompressionSatisfying).
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import to_integer_array

#: bytes that a dictionary may have: that of parquet-mr and of pyarrow
LIMIT: Final = 1 << 20
#: values that are looked at, and how few say nothing
_SAMPLE_ROWS: Final = 2048
_MIN_SAMPLE: Final = 256
#: mixes bits as splitmix64 does
_ODD: Final = np.uint64(0xBF58_476D_1CE4_E5B9)
_SAMPLED_TYPES: Final = (
    pa.types.is_primitive,
    pa.types.is_decimal,
    pa.types.is_string,
    pa.types.is_binary,
    pa.types.is_fixed_size_binary,
)


def choose_plain_columns(rows: pa.Table) -> frozenset[str]:
    """The columns of numbers or text with too many values for a dictionary.

    It would hold less than half of them, or be no smaller, codes included, than the rows without.
    ``rows`` are a file's first ones. Columns that are nested, or dictionaries already, are not
    looked at: they get one.
    """
    names = [field.name for field in rows.schema if _can_be_plain(field.type)]
    sample = _sample_rows(rows.select(names))
    return frozenset(name for name in names if _has_too_many_values(sample.column(name), len(rows)))


def _sample_rows(rows: pa.Table) -> pa.Table:
    """Some of the rows, as if drawn: rows so far from each other never are of one run of values."""
    mixed = np.arange(_SAMPLE_ROWS, dtype=np.uint64) * _ODD
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _ODD  # multiples alone would lie at even distances
    at = np.unique((mixed >> np.uint64(33)).astype(np.int64) % max(len(rows), 1))
    found, start = [], 0
    for batch in rows.to_batches():
        here = at[slice(*np.searchsorted(at, [start, start + len(batch)]))] - start
        found.append(batch.take(to_integer_array(here)))
        start += len(batch)
    return pa.Table.from_batches(found, schema=rows.schema)


def list_dictionary_paths(schema: pa.Schema, plain: frozenset[str]) -> list[str]:
    """The Parquet columns that get a dictionary: all but the plain ones, nested ones by leaf."""
    if not any(pa.types.is_nested(field.type) for field in schema):
        return [name for name in schema.names if name not in plain]
    import pyarrow.parquet as pq  # noqa: PLC0415

    empty = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), empty, version="1.0")  # only Parquet knows its names
    leaves = pq.read_metadata(pa.BufferReader(empty.getvalue())).schema
    paths = [leaves.column(nth).path for nth in range(len(leaves))]
    return [path for path in paths if path not in plain]


def _can_be_plain(kind: pa.DataType) -> bool:
    return not pa.types.is_boolean(kind) and any(is_one(kind) for is_one in _SAMPLED_TYPES)


def _has_too_many_values(sample: Any, rows: int) -> bool:
    """Whether the values of so many rows are too many, by those of a sample of them.

    Of so many values drawn from n, about values^2 / 2n were drawn before; n is taken for smaller
    than it is where some values are more frequent, which keeps the dictionary.
    """
    found = len(sample) - sample.null_count
    if found < _MIN_SAMPLE:
        return False
    width = sample.nbytes / len(sample)
    again = found - pc.count_distinct(sample).as_py()
    if again <= found**2 * width / (4 * LIMIT):
        return True
    among, held = found**2 / (2 * again), rows * found / len(sample)
    values = among * -math.expm1(-held / among)
    codes = held * math.ceil(math.log2(max(values, 2))) / 8
    return bool(values * width + codes >= held * width)
