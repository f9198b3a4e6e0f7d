"""Read source files in this process, as the rows and types that Spark's readers give them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.errors import FormatError, StorageError
from reconciler.file_slices.merge.avro_schema import to_arrow_schema
from reconciler.lazy_dataclass import dataclass
from reconciler.reader.spark_types import to_spark_schema
from reconciler.storage.redaction import redact_urls
from reconciler.writer.sources.avro import check_avro_columns, read_avro_batches, read_avro_schema
from reconciler.writer.sources.files import SourceFiles
from reconciler.writer.sources.formats import SourceFormat
from reconciler.writer.sources.stores import measure_file, open_file

#: rows of a batch
_BATCH_ROWS: Final = 64 * 1024
#: compressed bytes of the row groups that a part of a file has at least, where there are more
_PART_BYTES: Final = 16 * 1024 * 1024
#: keys of a Parquet footer: of files by Spark, and of those with dates in the hybrid calendar
_SPARK_VERSION: Final = b"org.apache.spark.version"
_SPARK_SCHEMA: Final = b"org.apache.spark.sql.parquet.row.metadata"
#: the metadata of a column of CHAR or VARCHAR
_CHARACTERS: Final = "__CHAR_VARCHAR_TYPE_STRING"
_ENUM: Final = "Enum"
#: Spark wrote in the hybrid calendar before
_FIRST_PROLEPTIC: Final = b"3"
_LEGACY: Final = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
#: Spark asks which calendar earlier days are in if the file does not say so
_FIRST: Final = {"Date": np.datetime64("1582-10-15"), "Timestamp": np.datetime64("1900-01-01")}
_UNITS: Final = {"": "D", "milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
_SAME: Final = (
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(),
    pa.string(), pa.binary(), pa.date32(),
)  # fmt: skip


class NeedsSparkError(Exception):
    """Why only Spark reads source files as it would."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSource:
    """Source files that this process reads.

    ``schema``, ``bytes``: of their rows; ``rows``: how many, None if files do not say it.
    ``pieces``: their parts, each a file and its row groups, () for all. ``avro``: the schema of
    Avro files.
    """

    source: SourceFiles
    schema: pa.Schema
    bytes: int
    pieces: tuple[tuple[str, tuple[int, ...]], ...]
    rows: int | None = None
    avro: str = ""

    @property
    def parts(self) -> list[FileRows]:
        """The rows in parts; they can be iterated again and again."""
        return [FileRows(self, name, groups) for name, groups in self.pieces]


@dataclass(frozen=True, slots=True)
class FileRows:
    """The rows of a part of a file, as batches."""

    of: LocalSource
    name: str
    groups: tuple[int, ...] = ()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        source = self.of.source
        if self.of.avro:
            yield from read_avro_batches(self.name, self.of.avro, source.store_options)
            return
        with _open_parquet(self.name, source.store_options) as file:
            for batch in file.iter_batches(_BATCH_ROWS, row_groups=list(self.groups)):
                table = pa.Table.from_batches([batch]).cast(self.of.schema)
                yield from table.combine_chunks().to_batches()


def open_local_source(source: SourceFiles) -> LocalSource:
    """Return how this process reads source files.

    Raises NeedsSparkError for what Spark reads in its own way, FormatError and StorageError.
    """
    if source.options:
        raise NeedsSparkError("the sources have options of Spark's readers")
    match source.format:
        case SourceFormat.AVRO:
            text = read_avro_schema(source.files[0], source.store_options)
            check_avro_columns(source.files, text, source.store_options)
            schema = to_arrow_schema(text, redact_urls(source.files[0]))
            size = _sum_sizes(source)
            pieces = tuple((name, ()) for name in source.files)
            return LocalSource(source=source, schema=schema, bytes=size, pieces=pieces, avro=text)
        case SourceFormat.PARQUET:
            return _open_parquet_source(source)
        case SourceFormat.CSV | SourceFormat.JSON:
            raise NeedsSparkError(f"the sources are {source.format.value}")


def _sum_sizes(source: SourceFiles) -> int:
    sizes = []
    for name in source.files:
        try:
            sizes.append(measure_file(name, source.store_options))
        except OSError as error:
            problem = redact_urls(error.strerror or str(error), name)
            raise StorageError(redact_urls(name), problem) from error
    return sum(sizes)


def _open_parquet_source(source: SourceFiles) -> LocalSource:
    files = source.files
    if source.columns_below is not None:
        raise NeedsSparkError("names of source folders may be columns")
    schemas: list[pa.Schema] = []
    pieces: list[tuple[str, tuple[int, ...]]] = []
    size = rows = 0
    for name in files:
        with _open_parquet(name, source.store_options) as file:
            _check_calendar(name, file.metadata)
            schemas.append(_make_schema(name, file.schema_arrow))
            _check_types(name, file.metadata, schemas[-1])
            rows += file.metadata.num_rows
            sizes = _list_group_sizes(file.metadata)
        size += sum(sizes)
        pieces += [(name, groups) for groups in _split_groups(sizes)]
    if any(schema != schemas[0] for schema in schemas):
        raise NeedsSparkError("the source files have different columns")
    return LocalSource(
        source=source, schema=schemas[0], bytes=size, pieces=tuple(pieces), rows=rows
    )


def _list_group_sizes(footer: Any) -> list[int]:
    """Return the compressed bytes of each row group of a file."""
    groups = (footer.row_group(number) for number in range(footer.num_row_groups))
    return [
        sum(group.column(at).total_compressed_size for at in range(group.num_columns))
        for group in groups
    ]


def _split_groups(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the numbers of row groups in parts of about ``_PART_BYTES``.

    >>> list(_split_groups([1, 20 << 20, 3]))
    [(0, 1), (2,)]
    """
    part: list[int] = []
    for number in range(len(sizes)):
        part.append(number)
        if sum(sizes[at] for at in part) >= _PART_BYTES:
            yield tuple(part)
            part = []
    if part:
        yield tuple(part)


@contextmanager
def _open_parquet(name: str, options: Mapping[str, Any]) -> Iterator[pq.ParquetFile]:
    """Open a file for the block; raises FormatError and StorageError for errors in it."""
    shown = redact_urls(name)
    try:
        with open_file(name, options) as data, pq.ParquetFile(data) as file:
            yield file
    except pa.ArrowException as error:
        problem = redact_urls(str(error).partition("\n")[0], name)
        remedy = "name the right files, or give --source-format"
        raise FormatError(shown, f"cannot be read as parquet: {problem}", remedy) from error
    except OSError as error:
        raise StorageError(shown, redact_urls(error.strerror or str(error), name)) from error


def _make_schema(name: str, schema: pa.Schema) -> pa.Schema:
    """Return a file's columns in the types that Spark gives them, all of which may be null."""
    if _has_same_names(list(schema)):
        raise NeedsSparkError(f"{redact_urls(name)} has names that differ in their case only")
    fields = []
    for field in schema:
        kind = _convert_type(field.type)
        if kind is None:
            raise NeedsSparkError(
                f"only it has a type for the source column {field.name} ({field.type})"
            )
        fields.append(pa.field(field.name, kind))
    return pa.schema(fields)


def _has_same_names(fields: Sequence[pa.Field]) -> bool:
    """True if names are the same but for their case, here or in a struct below."""
    names = {field.name.lower() for field in fields}
    kinds = [field.type for field in fields]
    below = ([kind.field(at) for at in range(kind.num_fields)] for kind in kinds)
    return len(names) < len(fields) or any(map(_has_same_names, below))


def _check_types(name: str, footer: Any, schema: pa.Schema) -> None:
    """Raise NeedsSparkError for types of Parquet or Spark that Arrow does not tell."""
    columns = map(footer.schema.column, range(footer.num_columns))
    if any(json.loads(column.logical_type.to_json())["Type"] == _ENUM for column in columns):
        raise NeedsSparkError(f"{redact_urls(name)} has a column of ENUM")
    text = (footer.metadata or {}).get(_SPARK_SCHEMA)
    if text is None:
        return
    try:
        is_same = _list_types(json.loads(text)) == _list_types(to_spark_schema(schema))
    except (ValueError, KeyError, TypeError):
        is_same = False
    if not is_same:
        raise NeedsSparkError(f"{redact_urls(name)} has types of Spark's own")


def _list_types(kind: Any) -> Any:
    """Return a type of Spark's JSON without what does not change its values."""
    if not isinstance(kind, dict):
        return kind
    if kind["type"] == "struct":
        return [
            (field["name"], _list_types(field["type"]), _CHARACTERS in field["metadata"])
            for field in kind["fields"]
        ]
    parts = {"array": ("elementType",), "map": ("keyType", "valueType")}[kind["type"]]
    return (kind["type"], *(_list_types(kind[part]) for part in parts))


def _convert_type(  # noqa: PLR0911 (a case for each kind of type)
    kind: pa.DataType,
) -> pa.DataType | None:
    """Return the type that Spark reads a column of Parquet as; None if Spark must say it."""
    types = pa.types
    if kind in _SAME or types.is_decimal128(kind):
        return kind
    if types.is_large_string(kind) or types.is_large_binary(kind):
        return pa.string() if types.is_large_string(kind) else pa.binary()
    if types.is_dictionary(kind):  # of Arrow's types only, as Pandas writes them
        return _convert_type(kind.value_type)
    if types.is_timestamp(kind) and kind.unit in ("ms", "us"):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if types.is_struct(kind):
        parts = [(field.name, _convert_type(field.type)) for field in kind]
        return None if any(part is None for _, part in parts) else pa.struct(parts)
    if types.is_list(kind) or types.is_large_list(kind):
        item = _convert_type(kind.value_type)
        return None if item is None else pa.list_(pa.field("element", item))
    if types.is_map(kind):
        key, item = _convert_type(kind.key_type), _convert_type(kind.item_type)
        return None if key is None or item is None else pa.map_(key, item)
    return None


def _check_calendar(name: str, footer: Any) -> None:
    """Raise NeedsSparkError for a file whose early dates may be in the hybrid calendar."""
    keys = footer.metadata or {}
    if any(key in keys for key in _LEGACY):
        raise NeedsSparkError(f"{redact_urls(name)} has dates in the hybrid calendar")
    if keys.get(_SPARK_VERSION, b"") >= _FIRST_PROLEPTIC:
        return
    for group in range(footer.num_row_groups):
        for column in range(footer.num_columns):
            logical = footer.schema.column(column).logical_type
            if _may_be_early(footer.row_group(group).column(column), logical):
                text = "has, or may have, dates before 1582 or times before 1900"
                raise NeedsSparkError(f"{redact_urls(name)} {text}")


def _may_be_early(chunk: Any, logical: Any) -> bool:
    statistics, kind = chunk.statistics, json.loads(logical.to_json())
    if kind["Type"] not in _FIRST:
        return bool(chunk.physical_type == "INT96")
    if statistics is None:
        return True
    if not statistics.has_min_max:
        return bool(statistics.null_count != chunk.num_values)
    first = _FIRST[kind["Type"]].astype(f"datetime64[{_UNITS[kind.get('timeUnit', '')]}]")
    # as whole numbers, because Python has no times after the year 9999
    return bool(statistics.min_raw < first.astype(np.int64))
