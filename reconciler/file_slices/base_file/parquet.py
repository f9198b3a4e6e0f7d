"""Write rows as Parquet as base files hold them, and measure the size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from reconciler.file_slices.base_file.dictionaries import (
    choose_plain_columns,
    list_dictionary_paths,
)
from reconciler.file_slices.base_file.settings import BaseFileSettings


def open_parquet_writer(
    sink: Any,
    columns: pa.Schema,
    settings: BaseFileSettings,
    dictionaries: Sequence[str],
    footers: list[Any],
) -> Any:
    """Open a writer for format version 1.0 with page indexes, as parquet-mr writes.

    It does not store Arrow's schema.
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

    The rows are encoded in memory. Raises pyarrow's errors where they cannot be written.
    """
    sink = pa.BufferOutputStream()
    dictionaries = list_dictionary_paths(rows.schema, choose_plain_columns(rows))
    with open_parquet_writer(sink, rows.schema, settings, dictionaries, []) as parquet:
        parquet.write_table(rows, row_group_size=max(len(rows), 1))
        data = int(sink.tell())
    return EncodedSize(row_bytes=data, footer_bytes=int(sink.tell()) - data)
