"""Write a log file: blocks of new rows, then a block of deletions.

The rows are Avro records, or a Parquet file where the table's writers choose that. Row numbers of
the base file spare readers to look for keys; without them, readers merge by key. Source:
HoodieAppendHandle, HoodieAvroDataBlock, HoodieParquetDataBlock, HoodieDeleteBlock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from reconciler.arrays import Integers, Mask, to_arrow
from reconciler.file_slices.base_file.column_conversion import convert_column
from reconciler.file_slices.base_file.column_ranges import RangeCollector
from reconciler.file_slices.base_file.meta_columns import FILE_NAME
from reconciler.file_slices.base_file.schema import FileSchema
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.file_slices.base_file.writer import BaseFileWriter
from reconciler.file_slices.log_file.avro_encode import encode_avro_content, encode_records
from reconciler.file_slices.log_file.delete_encode import encode_deletions
from reconciler.file_slices.merge.avro_schema import parse_avro_schema
from reconciler.hudi.codecs.log_blocks import (
    BlockType,
    HeaderKey,
    encode_block,
)
from reconciler.hudi.codecs.roaring import encode_positions
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.hudi.metadata.record_encoder import ColumnRange
from reconciler.lazy_dataclass import dataclass

#: bytes of a block in Arrow's memory, as hoodie.logfile.data.block.max.size
_BLOCK_BYTES: Final = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogFileSettings:
    """The settings that all log files of a write share; picklable.

    ``schema``: the table's columns. ``form``: the settings of Parquet blocks. ``data_block``:
    AVRO_DATA or PARQUET_DATA. ``range_columns``: columns whose ranges are collected.
    """

    schema: FileSchema
    form: BaseFileSettings
    table_version: int
    data_block: BlockType = BlockType.AVRO_DATA
    range_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogChanges:
    """The rows and deletions of a log file.

    ``rows``: a table with all columns of the table's schema, meta columns included, in the types of
    ``to_arrow_schema``. ``deleted_keys``: a string array; ``is_final``: which of them win over any
    event time; ``event_times``: an array per ordering column. ``row_positions``,
    ``deleted_positions``: the rows of the base file that they replace, None if that is not known.
    """

    rows: Any
    deleted_keys: Any
    is_final: Mask
    event_times: Sequence[Any] = ()
    row_positions: Integers | None = None
    deleted_positions: Integers | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogFileHeader:
    """The facts about a log file that its blocks repeat.

    ``instant``: of the write. ``file_id``: of its group, which rows name as their file.
    ``base_instant``: of the base file whose row numbers the changes have, None without any.
    """

    instant: str
    file_id: str
    partition: str
    base_instant: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WrittenLogFile:
    """A finished log file. ``rows``: rows in its data blocks; ``ranges``: of these rows."""

    name: str
    size: int
    rows: int
    deletes: int
    ranges: tuple[ColumnRange, ...] = ()
    bloom: None = field(default=None)


def write_log_file(
    sink: Any, name: str, changes: LogChanges, header: LogFileHeader, settings: LogFileSettings
) -> WrittenLogFile:
    """Write the blocks of a log file to an open binary file; there must be changes.

    Memory: the bytes of one block. Raises FormatError naming the file for a null that the schema
    forbids, UnsupportedError for deletions that blocks cannot hold.
    """
    writer = _LogFileWriter(name, header, settings)
    ranges = RangeCollector(settings.range_columns, name)
    size = 0
    for rows, positions in _split_rows(changes):
        ranges.add(writer.convert_ranges(rows))
        size += sink.write(writer.encode_rows(rows, positions))
    if len(changes.deleted_keys):
        size += sink.write(writer.encode_deletions(changes))
    return WrittenLogFile(
        name=name,
        size=size,
        rows=len(changes.rows),
        deletes=len(changes.deleted_keys),
        ranges=ranges.build_ranges(None),
    )


def _split_rows(changes: LogChanges) -> Iterator[tuple[Any, Integers | None]]:
    """Yield batches of rows, each for one block, with their positions in ascending order."""
    rows, positions = changes.rows, changes.row_positions
    if positions is not None:
        order = np.argsort(positions, kind="stable")
        rows, positions = rows.take(to_arrow(order)), positions[order]
    blocks = max(-(-rows.nbytes // _BLOCK_BYTES), 1)
    per_block = max(-(-len(rows) // blocks), 1)
    for start in range(0, len(rows), per_block):
        (batch,) = rows.slice(start, per_block).combine_chunks().to_batches()
        yield batch, None if positions is None else positions[start : start + per_block]


@dataclass(frozen=True, slots=True)
class _LogFileWriter:
    name: str
    header: LogFileHeader
    settings: LogFileSettings

    def encode_rows(self, rows: Any, positions: Integers | None) -> bytes:
        """Return a data block."""
        named = _set_file_name(rows, self.header.file_id)
        kind = self.settings.data_block
        if kind is BlockType.PARQUET_DATA:
            content = self._encode_parquet(named)
        else:
            schema = parse_avro_schema(self.settings.schema.avro, self.name)
            content = encode_avro_content(encode_records(named, schema, self.name))
        return encode_block(kind, self._make_header(positions), content)

    def encode_deletions(self, changes: LogChanges) -> bytes:
        """Return the delete block."""
        keys, is_final, times = changes.deleted_keys, changes.is_final, changes.event_times
        positions = changes.deleted_positions
        if positions is not None:
            order = np.argsort(positions, kind="stable")
            keys, is_final = keys.take(to_arrow(order)), is_final[order]
            times = [column.take(to_arrow(order)) for column in times]
        content = encode_deletions(
            keys,
            self.header.partition,
            is_final=is_final,
            event_times=times,
            table_version=self.settings.table_version,
        )
        return encode_block(BlockType.DELETE, self._make_header(positions), content)

    def convert_ranges(self, rows: Any) -> Any:
        """Return the columns whose ranges are collected, as base files store them."""
        stored = self.settings.schema.columns
        names = dict.fromkeys(path.partition(".")[0] for path in self.settings.range_columns)
        if FILE_NAME in names:
            rows = _set_file_name(rows, self.header.file_id)
        columns = [
            convert_column(
                rows.column(name), stored.field(name).type, f"{self.name}, column {name}"
            )
            for name in names
        ]
        return pa.RecordBatch.from_arrays(columns, [*names])

    def _make_header(self, positions: Integers | None) -> list[tuple[HeaderKey, str]]:
        header = [
            (HeaderKey.INSTANT_TIME, self.header.instant),
            (HeaderKey.SCHEMA, self.settings.schema.avro),
        ]
        base = self.header.base_instant
        knows = base is not None and positions is not None and self._has_positions
        if knows and base is not None and positions is not None:
            key = HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS
            header += [(key, base), (HeaderKey.RECORD_POSITIONS, encode_positions(positions))]
        return header

    @property
    def _has_positions(self) -> bool:
        return self.settings.table_version >= LOGS_BY_COMPLETION

    def _encode_parquet(self, rows: Any) -> bytes:
        """Return the bytes of a Parquet file without filter and key range, as Hudi writes it."""
        sink = pa.BufferOutputStream()
        form = replace(self.settings.form, bloom=None, has_key_range=False)
        writer = BaseFileWriter(sink, self.header.file_id, self.settings.schema, form)
        writer.write(rows)
        writer.close()
        return bytes(sink.getvalue())


def _set_file_name(rows: Any, file_id: str) -> Any:
    """Return the rows with the id of their file group in place of a file's name, as in Hudi."""
    at = rows.schema.get_field_index(FILE_NAME)
    return rows.set_column(at, FILE_NAME, pa.repeat(pa.scalar(file_id), len(rows)))
