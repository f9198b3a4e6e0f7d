"""Read source files as DataFrames, in the types of the table that they are written to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, assert_never

import pyarrow as pa

from reconciler.errors import FormatError
from reconciler.file_slices.merge.avro_schema import to_arrow_schema
from reconciler.lazy_dataclass import dataclass
from reconciler.reader.spark_types import to_spark_schema
from reconciler.spark.failures import explain_error
from reconciler.spark.workers import READING_PACKAGES, set_up_workers
from reconciler.storage.open import list_client_packages
from reconciler.storage.redaction import redact_urls
from reconciler.writer.sources.avro import check_avro_columns, read_avro_batches, read_avro_schema
from reconciler.writer.sources.files import SourceFiles
from reconciler.writer.sources.formats import SourceFormat

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: the column in which Spark puts unreadable lines
_CORRUPT: Final = "_corrupt_record"


def read_source_files(
    session: SparkSession, source: SourceFiles, known: pa.Schema | None
) -> DataFrame:
    """Return the rows of the files. ``known``: the table's columns, whose types text is read as.

    Text that does not fit its column's type is an error when rows are requested. Raises
    FormatError.
    """
    files, kind = source.files, source.format
    reader = _FileReader(session, source, files, kind)
    match kind:
        case SourceFormat.PARQUET:
            return reader.load(mergeSchema="true")
        case SourceFormat.CSV | SourceFormat.JSON:
            return reader.load_text(known)
        case SourceFormat.AVRO:
            return _load_avro(session, files, source.store_options)
        case _:
            assert_never(kind)


@dataclass(frozen=True, slots=True)
class _FileReader:
    """Reads files with Spark's reader of their format."""

    session: SparkSession
    source: SourceFiles
    files: Sequence[str]
    format: SourceFormat

    def load(self, columns: Any = None, **options: str) -> DataFrame:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # noqa: PLC0415 (heavy)
        from pyspark.errors import PySparkException  # noqa: PLC0415 (heavy)

        source, files, kind = self.source, self.files, self.format.value
        reader = self.session.read.format(kind).options(**{**options, **source.options})
        if source.columns_below is not None:
            reader = reader.option("basePath", _to_spark_path(source.columns_below))
        if columns is not None:
            reader = reader.schema(columns)
        try:
            return reader.load([_to_spark_path(name) for name in files])
        except (PySparkException, Py4JError) as error:
            problem = redact_urls(explain_error(error), files[0])
            raise FormatError(
                redact_urls(files[0]),
                f"cannot be read as {kind}: {problem}",
                "name the right files, or give --source-format",
            ) from error

    def load_text(self, known: pa.Schema | None) -> DataFrame:
        """Load text files: with the table's types for its columns, inferred types for others."""
        from pyspark.sql.types import StructField, StructType  # noqa: PLC0415 (heavy)

        is_csv = self.format is SourceFormat.CSV
        options = {"header": "true"} if is_csv else {}
        types = {} if known is None else _list_types(known)
        frame = self.load(**options)
        if not set(frame.columns) <= set(types):
            frame = self.load(**options, **({"inferSchema": "true"} if is_csv else {}))
        if _CORRUPT in set(frame.columns) - set(types):
            raise FormatError(
                redact_urls(self.files[0]),
                f"it, or another of the files, has lines that are not {self.format.value}",
                "each line must be a JSON object; a document over several lines needs "
                "--source-option multiLine=true",
            )
        columns = StructType(
            [
                StructField(f.name, merge_types(types.get(f.name, f.dataType), f.dataType))
                for f in frame.schema.fields
            ]
        )
        if is_csv:
            options |= {"enforceSchema": "false"}  # refuse files with other columns
        return self.load(columns, mode="FAILFAST", **options)


def merge_types(known: Any, inferred: Any) -> Any:
    """Return a known type with additional fields of the values, which are new columns."""
    from pyspark.sql.types import ArrayType, StructField, StructType  # noqa: PLC0415 (heavy)

    match known, inferred:
        case StructType(), StructType():
            new_fields = {field.name: field for field in inferred.fields}
            fields = []
            for field in known.fields:
                new = new_fields.pop(field.name, field)
                fields.append(StructField(field.name, merge_types(field.dataType, new.dataType)))
            return StructType([*fields, *new_fields.values()])
        case ArrayType(), ArrayType():
            return ArrayType(merge_types(known.elementType, inferred.elementType))
        case _:
            return known


def _to_spark_path(name: str) -> str:
    """Return a file's name as Spark takes it: with a scheme, and without patterns."""
    url = name if "://" in name else f"file://{Path(name).absolute()}"
    return re.sub(r"([\[\]{}*?])", r"\\\1", url)


def _list_types(known: pa.Schema) -> dict[str, Any]:
    from pyspark.sql.types import StructType  # noqa: PLC0415 (heavy)

    return {f.name: f.dataType for f in StructType.fromJson(to_spark_schema(known)).fields}


def _load_avro(session: SparkSession, files: Sequence[str], store: Mapping[str, Any]) -> DataFrame:
    """Load Avro files, one task per file; all must have the columns of the first."""
    from pyspark.sql.types import StructType  # noqa: PLC0415 (heavy)

    packages = (*READING_PACKAGES, "fastavro", "fsspec", *list_client_packages(files[0]))
    set_up_workers(session.sparkContext, packages)
    schema = read_avro_schema(files[0], store)
    check_avro_columns(files, schema, store)
    columns = StructType.fromJson(to_spark_schema(to_arrow_schema(schema, redact_urls(files[0]))))
    named = session.createDataFrame([(name,) for name in files], "file string")
    return named.repartition(len(files)).mapInArrow(_ReadAvroTask(schema, dict(store)), columns)


@dataclass(frozen=True, slots=True)
class _ReadAvroTask:
    """Reads the rows of files named in a batch; picklable."""

    schema: str
    store: Mapping[str, Any]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for name in batch.column(0).to_pylist():
                yield from read_avro_batches(name, self.schema, self.store)
