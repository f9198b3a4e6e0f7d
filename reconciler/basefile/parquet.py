"""Rows as Parquet in the way base files hold them, and what they take so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from reconciler.basefile.dictionaries import dictionary_paths, without_dictionary
from reconciler.basefile.form import FileForm


def parquet_writer(
    sink: Any, columns: pa.Schema, form: FileForm, dictionaries: Sequence[str], footers: list[Any]
) -> Any:
    """Format version 1.0 with page indexes, as parquet-mr writes; no schema of Arrow's own."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    more = {}
    if any(pa.types.is_time(field.type) for field in columns):
        more["write_time_adjusted_to_utc"] = True
    return pq.ParquetWriter(
        sink,
        columns,
        version="1.0",
        use_dictionary=list(dictionaries),
        compression=form.codec,
        compression_level=form.compression_level,
        store_schema=False,
        write_page_index=True,
        metadata_collector=footers,
        **more,
    )


def rows_bytes(footer: Any) -> int:
    """Compressed bytes of all row groups; ``footer``: pyarrow's FileMetaData."""
    groups = map(footer.row_group, range(footer.num_row_groups))
    return sum(g.column(at).total_compressed_size for g in groups for at in range(g.num_columns))


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """Bytes of a file: its rows, and its footer without what that says beside of columns."""

    rows: int
    footer: int


def encoded_bytes(rows: pa.Table, form: FileForm) -> Encoded:
    """What the rows take in a base file of them alone, in one row group.

    Encodes them in memory. Raises pyarrow's errors where they cannot be written.
    """
    sink = pa.BufferOutputStream()
    dictionaries = dictionary_paths(rows.schema, without_dictionary(rows))
    with parquet_writer(sink, rows.schema, form, dictionaries, []) as parquet:
        parquet.write_table(rows, row_group_size=max(len(rows), 1))
        data = int(sink.tell())
    return Encoded(rows=data, footer=int(sink.tell()) - data)
