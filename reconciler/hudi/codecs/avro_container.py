"""Read and write Hudi's Avro payloads: one record in an Avro object container.

The schemas in ``hudi/schemas`` are those that real Hudi writes. A record's name is checked, so a
file of another kind is reported as damaged.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from reconciler.errors import FormatError
from reconciler.hudi.codecs.avro_binary import (
    decoding,
    encode_record,
    load_schema_text,
    parse_schema,
    read_record,
    require,
)

_MAGIC: Final = b"Obj\x01"
_SCHEMA_KEY: Final = "avro.schema"
#: a container with one block, as an Avro schema (Avro 1.11, Object Container Files)
_CONTAINER: Final = json.dumps(
    {
        "type": "record",
        "name": "Container",
        "fields": [
            {"name": "magic", "type": {"type": "fixed", "name": "Magic", "size": 4}},
            {"name": "metadata", "type": {"type": "map", "values": "bytes"}},
            {"name": "marker", "type": {"type": "fixed", "name": "Sync", "size": 16}},
            {"name": "count", "type": "long"},
            {"name": "block", "type": "bytes"},
            {"name": "end", "type": "Sync"},
        ],
    }
)
_NAMES: Final = re.compile(r'"name"\s*:\s*"([^"]*)"')


def is_container(data: bytes) -> bool:
    """Return whether the bytes start with the magic of an Avro object container."""
    return data[:4] == _MAGIC


def decode_container(
    data: bytes, record_name: str, path: str, *, schema_file: str | None = None
) -> dict[str, Any]:
    """Decode the one record of a container, whose schema must be named ``record_name``.

    ``schema_file`` names a file of ``hudi/schemas``. With it, fields that an older writer did not
    know get their defaults, and fields that only a newer writer knows are dropped. Without it, the
    record is decoded with the writer's own schema.

    Raises FormatError naming ``path`` for other bytes, another record name, more than one record,
    and missing or extra bytes.
    """

    def as_declared(name: str, written: str) -> Any:
        require(name == record_name, f"it holds a {name} record")
        if schema_file is None:
            return None
        reader_schema = load_schema_text(schema_file)
        written_names, known_names = _find_names(written), _find_names(reader_schema)
        # an older writer lacks names, a newer one has more; both at once mean damaged bytes
        require(
            written_names <= known_names or known_names <= written_names,
            f"its schema is not a {record_name} schema",
        )
        return parse_schema(reader_schema, path)

    with decoding(path, f"{record_name} (Avro)"):
        return decode_with_schema(data, path, as_declared)


@contextmanager
def decoding_container(
    data: bytes, record_name: str, path: str, *, schema_file: str | None = None
) -> Iterator[dict[str, Any]]:
    """Give the record as ``decode_container`` does, and report errors of the block likewise."""
    record = decode_container(data, record_name, path, schema_file=schema_file)
    with decoding(path, record_name):
        yield record


def encode_container(schema_file: str, record: Mapping[str, Any]) -> bytes:
    """Encode one record as an uncompressed Avro container with a schema of ``hudi/schemas``.

    The header holds only the schema with its namespaces, as Avro's Java writer does. The sync
    marker is a digest of the body, so the same record gives the same bytes.
    """
    text = load_schema_text(schema_file)
    body = encode_record(record, parse_schema(text, ""))
    marker = hashlib.md5(body, usedforsecurity=False).digest()
    container = {
        "magic": _MAGIC,
        "metadata": {_SCHEMA_KEY: text.encode()},
        "marker": marker,
        "count": 1,
        "block": body,
        "end": marker,
    }
    return encode_record(container, parse_schema(_CONTAINER, ""))


def decode_with_schema(
    data: bytes, path: str, choose_schema: Callable[[str, str], Any]
) -> dict[str, Any]:
    """Decode the one record of a container with the schema that ``choose_schema`` returns.

    ``choose_schema`` receives the record's short name and the writer's schema as JSON text. When it
    returns None, the writer's schema is used. Raises errors that ``decoding`` turns into a
    FormatError naming ``path``.
    """
    text, body = _split_container(data)
    written = parse_schema(text, path)
    is_record = isinstance(written, dict) and written.get("type") == "record"
    require(is_record, "its schema is not a record")
    reader = choose_schema(str(written["name"]).rpartition(".")[2], text)
    record: dict[str, Any] = read_record(body, written, reader)
    return record


def _find_names(schema: str) -> set[str]:
    return {name.rpartition(".")[2] for name in _NAMES.findall(schema)}


def _split_container(data: bytes) -> tuple[str, bytes]:
    """Return the schema and the body of the one record in an uncompressed container."""
    require(is_container(data), "it does not start with an Avro header")
    container = read_record(data, parse_schema(_CONTAINER, ""))
    metadata, count = container["metadata"], container["count"]
    codec = metadata.get("avro.codec", b"null")
    require(codec == b"null", f"its codec is {codec!r}; Hudi writes null")
    require(_SCHEMA_KEY in metadata, "its header has no schema")
    require(count == 1, f"it holds {count} records, expected 1")
    is_closed = container["end"] == container["marker"]
    require(is_closed, "its block does not end with the sync marker")
    return metadata[_SCHEMA_KEY].decode(), container["block"]


def read_strings(value: Any) -> tuple[str, ...]:
    """Return a list of strings as a tuple, empty for None; ValueError for anything else."""
    if value is None:
        return ()
    require(
        isinstance(value, list) and all(isinstance(v, str) for v in value), "not a list of strings"
    )
    return tuple(value)


def read_text_map(value: Any) -> dict[str, str]:
    """Return a map of strings without its nulls, empty for None; ValueError for anything else."""
    if value is None:
        return {}
    require(isinstance(value, Mapping), "not a map of strings")
    return {str(key): str(item) for key, item in value.items() if item is not None}


def parse_file_name(path: str, where: str) -> str:
    """Return the last part of a path in a plan.

    A plan holds absolute paths, which may be of another machine or an earlier location. Raises
    FormatError naming ``where`` for a path that has no usable file name.

    >>> parse_file_name("file:/tmp/t/p=1/a.parquet", "x")
    'a.parquet'
    """
    name = path.rpartition("/")[2]
    if name in ("", ".", "..") or "\\" in name or "\0" in name:
        raise FormatError(
            where,
            f"names {path!r}, which is not a file name",
            "the file is damaged; restore it from a copy",
        )
    return name


def read_file_names(paths: Any, where: str) -> tuple[str, ...]:
    """Return the file name of each path of a list, as ``parse_file_name`` does."""
    return tuple(parse_file_name(path, where) for path in read_strings(paths))


def parse_partition_path(path: str, where: str) -> str:
    """Return a partition's path, which is ``""`` in a table without partitions.

    Raises FormatError naming ``where`` for a path that leaves the table or enters ``.hoodie``.

    >>> parse_partition_path("dt=2026-01-01/h=1", "x")
    'dt=2026-01-01/h=1'
    """
    parts = path.split("/") if path else []
    if any(part in ("", ".", "..") or "\0" in part for part in parts) or parts[:1] == [".hoodie"]:
        raise FormatError(
            where,
            f"names {path!r}, which is not a partition path",
            "the file is damaged; restore it from a copy",
        )
    return path
