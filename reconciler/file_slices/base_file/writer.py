"""Arrow batches into a base file as Hudi writes them: its columns, its footer, its filters.

Source: HoodieAvroParquetWriter, HoodieBloomFilterWriteSupport. What parquet-mr would do otherwise
and no reader minds: dictionaries and pages are cut elsewhere, and the root's name is ``schema``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from reconciler.errors import FormatError
from reconciler.file_slices.base_file.column_conversion import convert_column
from reconciler.file_slices.base_file.column_ranges import RangeCollector
from reconciler.file_slices.base_file.dictionaries import (
    choose_plain_columns,
    list_dictionary_paths,
)
from reconciler.file_slices.base_file.key_range import KeyRange
from reconciler.file_slices.base_file.meta_columns import (
    COMMIT_TIME,
    FILE_NAME,
    REPEATED_TYPE,
    CommitStamp,
    build_meta_column,
)
from reconciler.file_slices.base_file.nan_tracker import NanTracker
from reconciler.file_slices.base_file.parquet import open_parquet_writer
from reconciler.file_slices.base_file.schema import FileSchema
from reconciler.file_slices.base_file.settings import (
    AVRO_SCHEMA,
    BLOOM,
    BLOOM_CODE,
    MAX_KEY,
    MIN_KEY,
    MODEL,
    BaseFileSettings,
)
from reconciler.file_slices.merge.avro_schema import META_COLUMNS
from reconciler.hudi.codecs.bloom import BloomBuilder
from reconciler.hudi.metadata.record_encoder import ColumnRange

#: rows that are encoded aside to see how small they become, before the first row group is
_SAMPLE: Final = 64 * 1024
#: bytes in the footer for a column of a row group, and beside columns and filters
_CHUNK_FOOTER: Final = 150
_FOOTER: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WrittenFile:
    """A finished base file. ``size`` in bytes; the keys are None where the table stores none.

    ``bloom``: the text of the filter in the footer, None without one. ``ranges``: of the columns
    that were asked for. ``footer_metadata``: pyarrow's FileMetaData with the statistics of every row group;
    it holds the bloom filter too, so take from it what is needed before a result is sent elsewhere.
    """

    name: str
    rows: int
    size: int
    least_key: str | None
    greatest_key: str | None
    bloom: str | None = None
    ranges: tuple[ColumnRange, ...] = ()
    footer: Any = None


def write_base_file(  # noqa: PLR0913
    batches: Iterable[Any],
    sink: Any,
    name: str,
    schema: FileSchema,
    settings: BaseFileSettings,
    *,
    stamp: CommitStamp | None = None,
    ranges: Sequence[str] = (),
) -> WrittenFile:
    """All batches in one file; arguments and errors are those of BaseFileWriter."""
    writer = BaseFileWriter(sink, name, schema, settings, stamp=stamp, ranges=ranges)
    try:
        for batch in batches:
            writer.write(batch)
        return writer.close()
    except BaseException:
        writer.abandon()
        raise


class BaseFileWriter:
    """Writes one base file to a sink, which it leaves open.

    ``sink``: a pyarrow output stream or a Python file opened to write bytes, still empty. ``stamp``
    for rows that are new; without one, rows bring their meta columns with them. ``ranges``: the
    columns whose ranges the result tells, for indexes. Memory: one row group as Arrow holds it and
    encoded, and a byte for every bit of the bloom filter.
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
        self._keys, self._ranges = _KeyFooter(settings), RangeCollector(ranges, name)
        self._nan_free = NanTracker(self._columns)
        self._sink = sink if isinstance(sink, pa.NativeFile) else pa.PythonFile(sink, "w")
        self._footers: list[Any] = []
        self._parquet: Any = None
        self._dictionaries: Sequence[str] | None = None
        self._waiting: list[Any] = []
        self._row_groups = _RowGroups()

    def write(self, batch: Any) -> None:
        """More rows, in the order of the file; columns by name, others than the schema's left out.

        Raises FormatError where rows lack a column or a key, UnsupportedError where a column cannot
        be of the table's type; both name the file.
        """
        rows = self._convert_batch(batch)
        if not len(rows):
            return
        self.rows += len(rows)
        self._keys.add(rows)
        self._ranges.add(rows)
        self._nan_free.add(rows)
        self._add_to_row_groups(rows)

    def end_row_group(self) -> None:
        """What was written until now is in row groups of its own; no rows, no row group."""
        self._write_row_group()

    @property
    def estimated_bytes(self) -> int:
        """About the file's size if it were closed now: what tells where to end it."""
        groups = self._row_groups
        is_first = bool(self._waiting) and not groups.arrow
        if is_first and groups.sampled_rows < min(_SAMPLE, groups.waiting_rows / 4):
            self._measure_sample()
        return self._estimate_size(groups.waiting * groups.encoded_share)

    def free_bytes(self, full: float) -> int:
        """Bytes of Arrow's memory that fit for sure into ``full`` bytes of the file.

        Rows take no more in a file than in memory, so that nothing has to be encoded to know.
        """
        return max(int(full) - self._estimate_size(self._row_groups.waiting), 0)

    def estimate_encoded(self, arrow: int) -> int:
        """About the bytes of the file that so many of Arrow's memory take, as its others do."""
        return int(arrow * self._row_groups.encoded_share)

    def expect_encoded(self, encoded: int) -> None:
        """What was written until now takes about so many bytes, as a file shows that has it."""
        groups = self._row_groups
        if groups.waiting and not groups.arrow:  # else its own row groups show it
            groups.encoded_share, groups.sampled_rows = (
                encoded / groups.waiting,
                groups.waiting_rows,
            )

    def _estimate_size(self, waiting: float) -> int:
        """The file's size if what waits takes so many bytes."""
        chunks = (self._row_groups.count + bool(self._waiting)) * len(self._columns)
        footer = _FOOTER + _CHUNK_FOOTER * chunks + len(self._schema.avro) + self._keys.text_bytes
        return int(self._sink.tell()) + int(waiting) + footer

    def close(self) -> WrittenFile:
        """End the file. Raises FormatError where a column that may not be null is."""
        self._write_row_group()
        said = self._keys.footer_metadata | self._settings.calendar.footer_metadata
        said |= {
            AVRO_SCHEMA: self._schema.avro,
            MODEL: "avro",
        } | self._nan_free.build_footer_metadata(self.name)
        if self._parquet is None:
            self._parquet = self._open_writer(
                self._sink, self._columns.empty_table(), self._footers
            )
        self._parquet.add_key_value_metadata(said)
        self._parquet.close()
        return WrittenFile(
            name=self.name,
            rows=self.rows,
            size=int(self._sink.tell()),
            least_key=self._keys.range.least,
            greatest_key=self._keys.range.greatest,
            bloom=said.get(BLOOM),
            ranges=self._ranges.build_ranges(self._footers[0]),
            footer=self._footers[0],
        )

    def abandon(self) -> None:
        """Let go of the sink, which then holds no base file of Hudi's and is to be thrown away."""
        self._waiting.clear()
        with suppress(Exception):  # as it was given up for another one
            if self._parquet is not None:
                self._parquet.close()  # else it writes when the garbage collector comes

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
            raise FormatError(self.name, f"rows to be written have no column {field.name}")
        return convert_column(batch.column(at), field.type, where)

    def _add_to_row_groups(self, rows: Any) -> None:
        """Into row groups: each takes what it has room for, and at least a row."""
        groups, form, start = self._row_groups, self._settings, 0
        width = max(1, rows.nbytes // len(rows))
        while start < len(rows):
            room = (form.group_bytes - groups.waiting) // width
            count = max(1, min(len(rows) - start, form.group_rows - groups.waiting_rows, room))
            self._waiting.append(rows.slice(start, count))
            start += count
            groups.waiting_rows += count
            groups.waiting += count * width
            if groups.waiting_rows >= form.group_rows or groups.waiting + width > form.group_bytes:
                self._write_row_group()

    def _write_row_group(self) -> None:
        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting, schema=self._columns)
        self._waiting = []
        if self._parquet is None:
            self._parquet = self._open_writer(self._sink, table, self._footers)
        before = self._sink.tell()
        _write_table(self._parquet, table, self.name)
        self._row_groups.end(int(self._sink.tell()) - before)

    def _measure_sample(self) -> None:
        table = pa.Table.from_batches(self._waiting, schema=self._columns).slice(0, _SAMPLE)
        aside = pa.BufferOutputStream()
        with self._open_writer(aside, table, []) as parquet:
            _write_table(parquet, table, self.name)
            self._row_groups.encoded_share = aside.tell() / max(1, table.nbytes)
        self._row_groups.sampled_rows = len(table)

    def _open_writer(self, sink: Any, rows: pa.Table, footers: list[Any]) -> Any:
        """A Parquet writer; the first rows that there are say which columns get dictionaries."""
        if self._dictionaries is None:
            plain = choose_plain_columns(rows)
            self._dictionaries = list_dictionary_paths(self._columns, plain)
        return open_parquet_writer(sink, self._columns, self._settings, self._dictionaries, footers)


@dataclass(slots=True)
class _RowGroups:
    """Row groups so far, in bytes of Arrow's memory and of the file, and what waits to be one."""

    count: int = 0
    arrow: int = 0
    encoded: int = 0
    waiting: int = 0
    waiting_rows: int = 0
    #: encoded bytes for each of Arrow's, as groups or a sample of so many rows had it
    encoded_share: float = 1.0
    sampled_rows: int = 0

    def end(self, encoded: int) -> None:
        self.count += 1
        self.arrow += self.waiting
        self.encoded += encoded
        self.encoded_share = self.encoded / max(1, self.arrow)
        self.waiting = self.waiting_rows = 0


class _KeyFooter:
    """What the footer says of record keys."""

    def __init__(self, form: BaseFileSettings) -> None:
        self._form = form
        self._bloom = BloomBuilder(form.bloom) if form.bloom and form.has_keys else None
        self.range = KeyRange()

    def add(self, rows: Any) -> None:
        if self._form.has_keys:
            keys = rows.column("_hoodie_record_key")
            self.range.add(keys)
            if self._bloom:
                self._bloom.add(keys)

    @property
    def text_bytes(self) -> int:
        return self._bloom.text_bytes if self._bloom else 0

    @property
    def footer_metadata(self) -> dict[str, str]:
        said = {}
        if self._bloom:
            said[BLOOM] = self._bloom.build().text
            if self._form.bloom and self._form.bloom.code != "SIMPLE":  # Hudi names no other kind
                said[BLOOM_CODE] = self._form.bloom.code
        if self.range.least is not None and self.range.greatest is not None:
            said |= {MIN_KEY: self.range.least, MAX_KEY: self.range.greatest}
        return said


def _build_columns(
    schema: FileSchema, form: BaseFileSettings, stamp: CommitStamp | None
) -> pa.Schema:
    """The file's columns, those of one value as dictionaries."""
    same = {FILE_NAME} if stamp is None or not form.has_keys else {FILE_NAME, COMMIT_TIME}
    return pa.schema(
        field.with_type(REPEATED_TYPE) if field.name in same else field for field in schema.columns
    )


def _write_table(parquet: Any, table: Any, name: str) -> None:
    try:
        parquet.write_table(table, row_group_size=len(table))
    except pa.ArrowException as problem:
        raise FormatError(
            name,
            f"its rows cannot be written: {problem}",
            "make the table's schema fit its rows with Hudi",
        ) from None
