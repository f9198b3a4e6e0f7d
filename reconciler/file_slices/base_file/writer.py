"""Write Arrow batches as a base file of Hudi: its columns, footer and filters.

It differs from parquet-mr in ways that no reader notices: dictionaries and pages are cut elsewhere,
and the root is named ``schema``. Source: HoodieAvroParquetWriter, HoodieBloomFilterWriteSupport.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa

from reconciler.errors import FormatError
from reconciler.file_slices.base_file.column_conversion import convert_column
from reconciler.file_slices.base_file.column_ranges import NanTracker, RangeCollector
from reconciler.file_slices.base_file.key_footer import KeyFooter
from reconciler.file_slices.base_file.meta_columns import (
    COMMIT_TIME,
    FILE_NAME,
    RECORD_KEY,
    REPEATED_TYPE,
    CommitStamp,
    build_meta_column,
)
from reconciler.file_slices.base_file.parquet import (
    choose_plain_columns,
    list_dictionary_paths,
    open_parquet_writer,
)
from reconciler.file_slices.base_file.schema import FileSchema
from reconciler.file_slices.base_file.settings import (
    AVRO_SCHEMA,
    BLOOM,
    MODEL,
    BaseFileSettings,
)
from reconciler.file_slices.merge.avro_schema import META_COLUMNS
from reconciler.file_slices.merge.repeated_texts import CODED_TEXT, code_texts, sort_texts_by_use
from reconciler.hudi.metadata.record_encoder import ColumnRange
from reconciler.lazy_dataclass import dataclass

#: rows encoded separately to estimate their size before the first row group ends
_SAMPLE: Final = 64 * 1024
#: the fewest rows per text of a dictionary that comes with the rows
_ROWS_PER_TEXT: Final = 4
#: footer bytes per column of a row group, and apart from columns and filters
_CHUNK_FOOTER: Final = 150
_FOOTER: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WrittenFile:
    """A finished base file. ``size``: bytes; the keys are None if the table stores none.

    ``bloom``: the text of the filter in the footer, None without one. ``ranges``: ranges of the
    requested columns. ``footer``: pyarrow's FileMetaData with the statistics of every row group.
    The footer holds the bloom filter too, so extract what is needed before sending a result
    elsewhere.
    """

    name: str
    rows: int
    size: int
    least_key: str | None
    greatest_key: str | None
    bloom: str | None = None
    ranges: tuple[ColumnRange, ...] = ()
    footer: Any = None


class BaseFileWriter:
    """Writes one base file to a sink, which stays open.

    ``sink``: an empty pyarrow output stream or binary Python file. ``stamp``: that of new rows;
    without it, rows bring their meta columns. ``ranges``: columns whose ranges the result has, for
    indexes. Memory: one row group in Arrow and encoded, and a byte per bit of the bloom filter.
    """

    def __init__(
        self,
        sink: Any,
        name: str,
        schema: FileSchema,
        settings: BaseFileSettings,
        *,
        stamp: CommitStamp | None = None,
        ranges: Sequence[str] = (),
    ) -> None:
        self.name, self.rows = name, 0
        self._schema, self._settings, self._stamp = schema, settings, stamp
        self._columns = _build_columns(schema, settings, stamp)
        self._keys, self._ranges = KeyFooter(settings), RangeCollector(ranges, name)
        self._nan_free = NanTracker(self._columns)
        self._sink = sink if isinstance(sink, pa.NativeFile) else pa.PythonFile(sink, "w")
        self._footers: list[Any] = []
        self._parquet: Any = None
        self._dictionaries: Sequence[str] | None = None
        self._waiting: list[Any] = []
        self._row_groups = _RowGroups()

    def continue_filter(self, footer: Any, path: str) -> None:
        """Take over the bloom filter of a file whose keys come first, all and in its order.

        ``footer``: FileMetaData of the file at ``path``. Does nothing for a filter of another form.
        ``write`` raises StaleFilterError if the filter lacks a key of some that it looks up.
        """
        self._keys.continue_filter(footer, path)

    def write(self, batch: Any) -> None:
        """Add rows in the order of the file; extra columns are ignored.

        Raises FormatError if rows lack a column or a key, UnsupportedError if a column cannot have
        the table's type; both name the file.
        """
        if not self.rows:
            self._columns = _keep_codes(self._columns, batch)
        rows = self._convert_batch(batch)
        if not len(rows):
            return
        self.rows += len(rows)
        self._keys.add(rows)
        self._ranges.add(rows)
        self._nan_free.add(rows)
        self._add_to_row_groups(rows)

    def end_row_group(self) -> None:
        """End the current row group; does nothing without rows."""
        self._write_row_group()

    @property
    def estimated_bytes(self) -> int:
        """About the file's size if it were closed now; callers use it to end the file."""
        groups = self._row_groups
        is_first = bool(self._waiting) and not groups.arrow
        if is_first and groups.sampled_rows < min(_SAMPLE, groups.waiting_rows / 4):
            self._measure_sample()
        return self._estimate_size(groups.waiting * groups.encoded_share)

    def free_bytes(self, full: float) -> int:
        """Return the bytes of Arrow memory that surely fit into a file of ``full`` bytes.

        Rows take no more space in a file than in memory, so nothing has to be encoded.
        """
        return max(int(full) - self._estimate_size(self._row_groups.waiting), 0)

    def estimate_encoded(self, arrow: int) -> int:
        """Return about the file bytes of this much Arrow memory, at the current ratio."""
        return int(arrow * self._row_groups.encoded_share)

    def expect_encoded(self, encoded: int) -> None:
        """Set the encoded size of the rows so far, known from a file that has the same rows."""
        groups = self._row_groups
        if groups.waiting and not groups.arrow:  # otherwise its own row groups show the ratio
            groups.encoded_share = encoded / groups.waiting
            groups.sampled_rows = groups.waiting_rows

    def _estimate_size(self, waiting: float) -> int:
        """Return the file's size if the waiting rows take ``waiting`` bytes."""
        chunks = (self._row_groups.count + bool(self._waiting)) * len(self._columns)
        footer = _FOOTER + _CHUNK_FOOTER * chunks + len(self._schema.avro) + self._keys.text_bytes
        return int(self._sink.tell()) + int(waiting) + footer

    def close(self) -> WrittenFile:
        """End the file. Raises FormatError for a null in a required column."""
        self._write_row_group()
        metadata = self._keys.footer_metadata | self._settings.calendar.footer_metadata
        metadata |= {AVRO_SCHEMA: self._schema.avro, MODEL: "avro"}
        metadata |= self._nan_free.build_footer_metadata(self.name)
        if self._parquet is None:
            self._parquet = self._open_writer(
                self._sink, self._columns.empty_table(), self._footers
            )
        self._parquet.add_key_value_metadata(metadata)
        self._parquet.close()
        return WrittenFile(
            name=self.name,
            rows=self.rows,
            size=int(self._sink.tell()),
            least_key=self._keys.range.least,
            greatest_key=self._keys.range.greatest,
            bloom=metadata.get(BLOOM),
            ranges=self._ranges.build_ranges(self._footers[0]),
            footer=self._footers[0],
        )

    def abandon(self) -> None:
        """Release the sink, whose content is not a valid base file and must be deleted."""
        self._waiting.clear()
        with suppress(Exception):  # the original error counts
            if self._parquet is not None:
                self._parquet.close()  # otherwise it writes when garbage-collected

    def _convert_batch(self, batch: Any) -> Any:
        columns = [self._convert_field(field, batch) for field in self._columns]
        return pa.RecordBatch.from_arrays(columns, schema=self._columns)

    def _convert_field(self, field: pa.Field, batch: Any) -> Any:
        where = f"{self.name}, column {field.name}"
        if field.name in META_COLUMNS:
            if not self._settings.has_keys and field.name != FILE_NAME:
                return pa.nulls(len(batch), field.type)
            column = build_meta_column(field.name, batch, self.name, self._stamp, self.rows)
            return convert_column(column, field.type, where)
        at = batch.schema.get_field_index(field.name)
        if at < 0:
            raise FormatError(self.name, f"the rows to write have no column {field.name}")
        return convert_column(batch.column(at), field.type, where)

    def _add_to_row_groups(self, rows: Any) -> None:
        """Distribute rows over row groups; each takes at least one row."""
        groups, settings, start = self._row_groups, self._settings, 0
        width = max(1, rows.nbytes // len(rows))
        while start < len(rows):
            count = max(1, min(len(rows) - start, groups.find_room(settings, width)))
            self._waiting.append(rows.slice(start, count))
            start += count
            groups.waiting_rows += count
            groups.waiting += count * width
            if groups.find_room(settings, width) < 1:
                self._write_row_group()

    def _write_row_group(self) -> None:
        if not self._waiting:
            return
        table = sort_texts_by_use(pa.Table.from_batches(self._waiting, schema=self._columns))
        self._waiting = []
        if self._parquet is None:
            self._parquet = self._open_writer(self._sink, table, self._footers)
        before = self._sink.tell()
        _write_table(self._parquet, table, self.name)
        self._row_groups.end(int(self._sink.tell()) - before)

    def _measure_sample(self) -> None:
        waiting = pa.Table.from_batches(self._waiting, schema=self._columns)
        table = sort_texts_by_use(waiting.slice(0, _SAMPLE))
        aside = pa.BufferOutputStream()
        with self._open_writer(aside, table, []) as parquet:
            _write_table(parquet, table, self.name)
            self._row_groups.encoded_share = aside.tell() / max(1, table.nbytes)
        self._row_groups.sampled_rows = len(table)

    def _open_writer(self, sink: Any, rows: pa.Table, footers: list[Any]) -> Any:
        """Open a Parquet writer; the first rows decide which columns get dictionaries."""
        if self._dictionaries is None:
            plain = choose_plain_columns(rows)
            self._dictionaries = list_dictionary_paths(self._columns, plain)
        return open_parquet_writer(sink, self._columns, self._settings, self._dictionaries, footers)


@dataclass(slots=True)
class _RowGroups:
    """The row groups so far, in Arrow and file bytes, and the rows waiting for the next one."""

    count: int = 0
    arrow: int = 0
    encoded: int = 0
    waiting: int = 0
    waiting_rows: int = 0
    #: encoded bytes per byte of Arrow memory, from row groups or a sample
    encoded_share: float = 1.0
    sampled_rows: int = 0

    def find_room(self, settings: BaseFileSettings, width: int) -> int:
        """Return how many rows of ``width`` bytes still fit into the waiting row group."""
        by_bytes = (settings.group_bytes - self.waiting) // width
        at_most = (settings.most_group_bytes - self.waiting) // width
        few = min(settings.least_group_rows - self.waiting_rows, at_most)
        return min(settings.group_rows - self.waiting_rows, max(by_bytes, few))

    def end(self, encoded: int) -> None:
        self.count += 1
        self.arrow += self.waiting
        self.encoded += encoded
        self.encoded_share = self.encoded / max(1, self.arrow)
        self.waiting = self.waiting_rows = 0


def _build_columns(
    schema: FileSchema, settings: BaseFileSettings, stamp: CommitStamp | None
) -> pa.Schema:
    """Return the file's columns; columns with one value are dictionaries."""
    same = {FILE_NAME} if stamp is None or not settings.has_keys else {FILE_NAME, COMMIT_TIME}
    return pa.schema(
        field.with_type(REPEATED_TYPE) if field.name in same else field for field in schema.columns
    )


def _keep_codes(columns: pa.Schema, batch: Any) -> pa.Schema:
    """Return the columns, of texts as dictionaries where the first rows have few of them so.

    Keys are compared and hashed as text.
    """
    texts = {field.name for field in columns if field.type == pa.string()} - {RECORD_KEY}
    coded = [
        field.name
        for at, field in enumerate(batch.schema)
        if field.type == CODED_TEXT
        and field.name in texts
        and len(batch.column(at).dictionary) * _ROWS_PER_TEXT <= len(batch)
    ]
    return code_texts(columns, coded) if coded else columns


def _write_table(parquet: Any, table: Any, name: str) -> None:
    try:
        parquet.write_table(table, row_group_size=len(table))
    except pa.ArrowException as problem:
        remedy = "evolve the table's schema with Hudi to fit its rows"
        raise FormatError(name, f"rows cannot be written: {problem}", remedy) from None
