"""Rows of Avro files as Arrow; Spark reads them with a package of its own alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from reconciler.errors import FormatError, StorageError
from reconciler.merge.avro_schema import arrow_schema
from reconciler.storage.redaction import without_credentials

#: rows that are objects at once
_TOGETHER: Final = 10_000
_REMEDY: Final = "read it with another tool, or write it again"


def avro_schema_of(path: str, options: Mapping[str, Any]) -> str:
    """The schema that an Avro file was written with, as JSON.

    Raises FormatError for what is no Avro file, StorageError.
    """
    with _opened(path, options) as file:
        schema = file.writer_schema
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise _damaged(path, "holds no records, but single values, which have no columns")
    return json.dumps(schema)


def avro_batches(path: str, schema: str, options: Mapping[str, Any]) -> Iterator[Any]:
    """The rows of a file in the columns of a schema, which may be another than its own.

    Raises FormatError naming the file for damage and for rows that do not fit the schema.
    """
    columns = arrow_schema(schema, without_credentials(path))
    with _opened(path, options, json.loads(schema)) as file:
        while rows := _some(file, path):
            try:
                yield pa.RecordBatch.from_pylist(rows, schema=columns)
            except (pa.ArrowException, ValueError, TypeError) as error:
                raise _damaged(path, str(error)) from error


def _some(file: Any, path: str) -> list[Any]:
    try:
        return list(islice(file, _TOGETHER))
    except Exception as error:  # fastavro raises what comes of the bytes
        raise _damaged(path, f"its rows cannot be read: {error}") from error


def _damaged(path: str, said: str) -> FormatError:
    return FormatError(without_credentials(path), without_credentials(said, path), _REMEDY)


class _opened:  # noqa: N801 (a function, as contextlib's are)
    """fastavro's reader of a file, which is closed after the block."""

    def __init__(self, path: str, options: Mapping[str, Any], schema: Any = None) -> None:
        self._path, self._options, self._schema = path, options, schema

    def __enter__(self) -> Any:
        import fastavro  # noqa: PLC0415 (slow)
        import fsspec  # noqa: PLC0415

        try:
            self._file = fsspec.open(self._path, "rb", **self._options).open()
        except OSError as error:
            said = without_credentials(error.strerror or str(error), self._path)
            raise StorageError(without_credentials(self._path), said) from error
        try:
            return fastavro.reader(self._file, self._schema)
        except Exception as error:
            self._file.close()
            raise _damaged(self._path, f"is no Avro file: {error}") from error

    def __exit__(self, *_raised: object) -> None:
        self._file.close()
