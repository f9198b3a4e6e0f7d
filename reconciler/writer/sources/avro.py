"""Read rows of Avro files as Arrow; Spark needs a separate package for it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from reconciler.errors import FormatError, StorageError
from reconciler.file_slices.merge.avro_schema import to_arrow_schema
from reconciler.storage.redaction import redact_urls

#: rows that are Python objects at the same time
_ROWS_AT_ONCE: Final = 10_000
_REMEDY: Final = "read it with another tool, or write it again"


def read_avro_schema(path: str, options: Mapping[str, Any]) -> str:
    """Return the schema of an Avro file as JSON.

    Raises FormatError for a file that is not Avro, StorageError.
    """
    with _open_avro(path, options) as file:
        schema = file.writer_schema
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise _damage_error(path, "holds no records, but single values, which have no columns")
    return json.dumps(schema)


def check_avro_columns(files: Sequence[str], schema: str, options: Mapping[str, Any]) -> None:
    """Raise FormatError for a file with columns that the first file's schema lacks."""
    known = {field["name"] for field in json.loads(schema)["fields"]}
    for name in files[1:]:
        fields = json.loads(read_avro_schema(name, options))["fields"]
        if unexpected := {field["name"] for field in fields} - known:
            raise FormatError(
                redact_urls(name),
                f"has columns that {redact_urls(files[0])} lacks: {', '.join(sorted(unexpected))}",
                "write files of one schema at a time",
            )


def read_avro_batches(path: str, schema: str, options: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the rows of a file in the columns of a schema, which may differ from the file's.

    Raises FormatError naming the file for damage and for rows that do not fit the schema.
    """
    columns = to_arrow_schema(schema, redact_urls(path))
    with _open_avro(path, options, json.loads(schema)) as file:
        while rows := _read_rows(file, path):
            try:
                yield pa.RecordBatch.from_pylist(rows, schema=columns)
            except (pa.ArrowException, ValueError, TypeError) as error:
                raise _damage_error(path, str(error)) from error


def _read_rows(file: Any, path: str) -> list[Any]:
    try:
        return list(islice(file, _ROWS_AT_ONCE))
    except Exception as error:  # fastavro raises many kinds of errors for damage
        raise _damage_error(path, f"its rows cannot be read: {error}") from error


def _damage_error(path: str, problem: str) -> FormatError:
    return FormatError(redact_urls(path), redact_urls(problem, path), _REMEDY)


@contextmanager
def _open_avro(path: str, options: Mapping[str, Any], schema: Any = None) -> Iterator[Any]:
    """Open fastavro's reader of a file; the file is closed after the block."""
    import fastavro  # noqa: PLC0415 (slow)
    import fsspec  # noqa: PLC0415

    from reconciler.storage.clients import prepare_client  # noqa: PLC0415 (slow)

    prepare_client(path)
    try:
        file = fsspec.open(path, "rb", **options).open()
    except OSError as error:
        problem = redact_urls(error.strerror or str(error), path)
        raise StorageError(redact_urls(path), problem) from error
    with closing(file):
        try:
            reader = fastavro.reader(file, schema)
        except Exception as error:
            raise _damage_error(path, f"is no Avro file: {error}") from error
        yield reader
