"""Write rows as Parquet as base files hold them, and measure the size.

Parquet writers start with a dictionary and drop it once it is full. For keys and measurements, that
takes half of the time to write a file. So the columns that get a dictionary are chosen before.
parquet-mr also drops a dictionary that does not make the column smaller (FallbackValuesWriter,
DictionaryValuesWriter.isCompressionSatisfying).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from reconciler.arrays import to_arrow
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.lazy_dataclass import dataclass

#: most bytes of a dictionary, in parquet-mr and pyarrow
LIMIT: Final = 1 << 20
#: rows in the sample, the fewest values needed for an estimate, and the most examined of lists
_SAMPLE_ROWS: Final = 2048
_MIN_SAMPLE: Final = 256
_MAX_SAMPLE: Final = 8192
#: a dictionary with its codes takes at most this share of the plain values: hashing each value
#: takes five times as long as copying it
_MAX_SHARE: Final = 7 / 8
#: multiplier of splitmix64
_ODD: Final = np.uint64(0xBF58_476D_1CE4_E5B9)
_SAMPLED_TYPES: Final = (
    pa.types.is_primitive,
    pa.types.is_decimal,
    pa.types.is_string,
    pa.types.is_binary,
    pa.types.is_fixed_size_binary,
)


def open_parquet_writer(
    sink: Any,
    columns: pa.Schema,
    settings: BaseFileSettings,
    dictionaries: Sequence[str],
    footers: list[Any],
) -> Any:
    """Open a writer for format version 1.0 with page indexes, as parquet-mr writes.

    It does not store Arrow's schema. Pages are plain or have codes of a dictionary: delta encodings
    would be smaller, but Hudi's reader for Flink (AbstractColumnReader) refuses them, and so do
    vectorised readers of Spark before 3.3.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415

    more = {}
    if any(pa.types.is_time(field.type) for field in columns):
        more["write_time_adjusted_to_utc"] = True
    return pq.ParquetWriter(
        sink,
        columns,
        version="1.0",
        use_dictionary=list(dictionaries),
        compression=settings.codec,
        compression_level=settings.compression_level,
        store_schema=False,
        write_page_index=True,
        metadata_collector=footers,
        **more,
    )


def count_row_bytes(footer: Any) -> int:
    """Return the compressed bytes of all row groups of a pyarrow FileMetaData."""
    groups = map(footer.row_group, range(footer.num_row_groups))
    return sum(g.column(at).total_compressed_size for g in groups for at in range(g.num_columns))


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedSize:
    """Bytes of a file: its rows, and its footer without extra metadata."""

    row_bytes: int
    footer_bytes: int


def measure_encoded_size(rows: pa.Table, settings: BaseFileSettings) -> EncodedSize:
    """Return the size of the rows in a base file of their own with one row group.

    The rows are encoded in memory. Raises pyarrow's errors if they cannot be written.
    """
    sink = pa.BufferOutputStream()
    dictionaries = list_dictionary_paths(rows.schema, choose_plain_columns(rows))
    with open_parquet_writer(sink, rows.schema, settings, dictionaries, []) as parquet:
        parquet.write_table(rows, row_group_size=max(len(rows), 1))
        data = int(sink.tell())
    return EncodedSize(row_bytes=data, footer_bytes=int(sink.tell()) - data)


# --- dictionaries --------------------------------------------------------------------------------


def choose_plain_columns(rows: pa.Table) -> frozenset[str]:
    """Return the Parquet columns of numbers or text with too many values for a dictionary.

    The dictionary would hold less than half of the values, or together with its codes save less
    than an eighth of the plain values. ``rows`` are the first rows of a file. Dictionary columns
    are not examined and get a dictionary.
    """
    sample = _sample_rows(rows)
    if not len(sample):
        return frozenset()
    leaves = (
        leaf
        for field, column in zip(sample.schema, sample.columns, strict=True)
        for leaf in _list_leaves(field.name, column)
    )
    return frozenset(
        path
        for path, values in leaves
        if _can_be_plain(values.type)
        and _has_too_many_values(
            values.slice(0, _MAX_SAMPLE), round(len(rows) * len(values) / len(sample))
        )
    )


def _list_leaves(path: str, column: Any) -> Iterator[tuple[str, Any]]:
    """Yield the Parquet columns of a column by their paths; its arrays begin at their buffers."""
    kind, types = column.type, pa.types
    if not types.is_nested(kind):
        yield path, column
        return
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if types.is_struct(kind):
        for field, child in zip(kind, whole.flatten(), strict=True):
            yield from _list_leaves(f"{path}.{field.name}", child)
    elif types.is_map(kind):
        yield from _list_leaves(f"{path}.key_value.key", whole.keys)
        yield from _list_leaves(f"{path}.key_value.value", whole.items)
    else:
        yield from _list_leaves(f"{path}.list.element", whole.flatten())


def _sample_rows(rows: pa.Table) -> pa.Table:
    """Return rows at pseudo-random positions, so that runs of equal values are not oversampled."""
    hashes = np.arange(_SAMPLE_ROWS, dtype=np.uint64) * _ODD
    hashes = (hashes ^ (hashes >> np.uint64(29))) * _ODD  # plain multiples would be evenly spaced
    positions = np.unique((hashes >> np.uint64(33)).astype(np.int64) % max(len(rows), 1))
    batches, start = [], 0
    for batch in rows.to_batches():
        in_batch = (
            positions[slice(*np.searchsorted(positions, [start, start + len(batch)]))] - start
        )
        batches.append(batch.take(to_arrow(in_batch)))
        start += len(batch)
    return pa.Table.from_batches(batches, schema=rows.schema)


def list_dictionary_paths(schema: pa.Schema, plain: frozenset[str]) -> list[str]:
    """Return the Parquet columns that get a dictionary: all except the ``plain`` ones."""
    if not any(pa.types.is_nested(field.type) for field in schema):
        return [name for name in schema.names if name not in plain]
    import pyarrow.parquet as pq  # noqa: PLC0415

    empty = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), empty, version="1.0")  # only Parquet knows the leaf paths
    leaves = pq.read_metadata(pa.BufferReader(empty.getvalue())).schema
    paths = [leaves.column(nth).path for nth in range(len(leaves))]
    return [path for path in paths if path not in plain]


def _can_be_plain(kind: pa.DataType) -> bool:
    return not pa.types.is_boolean(kind) and any(is_one(kind) for is_one in _SAMPLED_TYPES)


def _has_too_many_values(sample: Any, rows: int) -> bool:
    """Return whether a column of ``rows`` rows has too many values, judged by a sample.

    In a sample of v values from n distinct ones, about v^2 / 2n are repeats. Where some values are
    more frequent, the estimate of n is too small, which keeps the dictionary.
    """
    values_in_sample = len(sample) - sample.null_count
    if values_in_sample < _MIN_SAMPLE:
        return False
    width = sample.nbytes / len(sample)
    distinct_in_sample = len(sample.unique()) - (sample.null_count > 0)  # faster than counting
    repeats = values_in_sample - distinct_in_sample
    if repeats <= values_in_sample**2 * width / (4 * LIMIT):
        return True
    distinct, expected = values_in_sample**2 / (2 * repeats), rows * values_in_sample / len(sample)
    expected_distinct = distinct * -math.expm1(-expected / distinct)
    codes = expected * math.ceil(math.log2(max(expected_distinct, 2))) / 8
    return bool(expected_distinct * width + codes > _MAX_SHARE * expected * width)
