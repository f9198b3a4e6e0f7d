"""Hudi's Avro payloads: one record in an object container, decoded strictly, encoded as Hudi does.

The schemas are those that real Hudi wrote into its files (``hudi/schemas``); records are checked by
name, so that a file of another kind is damage and not a surprise.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from reconciler.errors import FormatError
from reconciler.hudi.schemaless import decoding, encode_container, require

_MAGIC: Final = b"Obj\x01"
_MARKER: Final = 16
_CODECS: Final = (b"null", b"deflate")


def is_container(data: bytes) -> bool:
    """Whether the bytes begin like an Avro object container."""
    return data[:4] == _MAGIC


def decode(data: bytes, record_name: str, path: str) -> dict[str, Any]:
    """The one record of a container, whose schema must be named ``record_name``.

    Raises FormatError naming ``path`` for anything else: other bytes, another record, more than
    one, bytes cut off or left over.
    """
    with decoding(path, f"{record_name} (Avro)"):
        check_framing(data)
        name, record = _read(data)
        require(name == record_name, f"it holds a {name}")
        require(isinstance(record, dict), "it holds no record")
        found: dict[str, Any] = record
        return found


def encode(schema_file: str, record: Mapping[str, Any]) -> bytes:
    """A container with one record of a schema of ``hudi/schemas``; same record, same bytes."""
    return encode_container(schema_file, record)


def _read(data: bytes) -> tuple[str, Any]:
    schema, records = container(data)
    require(len(records) == 1, f"{len(records)} records where one must be")
    return str(schema.get("name")), records[0]


def container(
    data: bytes, project: Callable[[str], Any] | None = None
) -> tuple[dict[str, Any], list[Any]]:
    """The writer's schema and the records.

    ``project`` gives the schema to read with, by the name of the writer's. Raises ValueError for a
    schema that is none or that the projection doesn't fit.
    """
    import io  # noqa: PLC0415

    import fastavro  # noqa: PLC0415 (only when there is something to decode)
    from fastavro.read import SchemaResolutionError  # noqa: PLC0415
    from fastavro.schema import SchemaParseException  # noqa: PLC0415

    try:
        reader = fastavro.reader(io.BytesIO(data))
        schema = json.loads(reader.metadata["avro.schema"])
        if project is not None:
            reader = fastavro.reader(io.BytesIO(data), project(str(schema.get("name"))))
        return schema, list(reader)
    except (SchemaParseException, SchemaResolutionError) as problem:
        raise ValueError(f"its schema does not fit: {problem}") from None


def check_framing(data: bytes) -> None:
    """Walk the container's frame: a library may stop early and call that the end.

    Header (magic, map of metadata, marker), then blocks of (count, size, bytes, marker) to the end.
    """
    require(is_container(data), "it does not begin with an Avro header")
    at = 4
    codec = b"null"
    while (count := (read := _long(data, at))[0]) != 0:
        at = read[1]
        if count < 0:
            count, at = -count, _long(data, at)[1]
        for _ in range(count):
            key, at = _bytes(data, at)
            value, at = _bytes(data, at)
            codec = value if key == b"avro.codec" else codec
    at = read[1]
    require(codec in _CODECS, f"its codec {codec!r} is not known")
    marker = data[at : at + _MARKER]
    require(len(marker) == _MARKER, "its header is cut off")
    at += _MARKER
    while at < len(data):
        _count, at = _long(data, at)
        _content, at = _bytes(data, at)
        require(data[at : at + _MARKER] == marker, "a block does not end in the file's marker")
        at += _MARKER


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _long(data, at)
    require(0 <= size <= len(data) - at, "it is cut off")
    return data[at : at + size], at + size


def _long(data: bytes, at: int) -> tuple[int, int]:
    """A zig-zag variable-length integer and the place after it."""
    value = shift = 0
    while True:
        require(at < len(data) and shift < 64, "it is cut off")  # noqa: PLR2004 (bits)
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # noqa: PLR2004 (no continuation bit)
            return (value >> 1) ^ -(value & 1), at


def names(value: Any) -> tuple[str, ...]:
    """A list of strings, or nothing; raises ValueError for what is neither."""
    if value is None:
        return ()
    require(
        isinstance(value, list) and all(isinstance(v, str) for v in value), "not a list of strings"
    )
    return tuple(value)


def text_map(value: Any) -> dict[str, str]:
    """A map of strings without its nulls; raises ValueError for what is none."""
    if value is None:
        return {}
    require(isinstance(value, Mapping), "not a map of strings")
    return {str(key): str(item) for key, item in value.items() if item is not None}


def file_name(path: str, where: str) -> str:
    """The last part of a path inside a plan: plans hold absolute paths of another place or time.

    Raises FormatError naming ``where`` for a path without a usable file name.

    >>> file_name("file:/tmp/t/p=1/a.parquet", "x")
    'a.parquet'
    """
    name = path.rpartition("/")[2]
    if name in ("", ".", "..") or "\\" in name or "\0" in name:
        raise FormatError(where, f"it names {path!r}, which is no file", "the file is damaged")
    return name
