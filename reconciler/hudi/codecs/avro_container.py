"""Hudi's Avro payloads: one record in an object container, decoded strictly, encoded as Hudi does.

The schemas are those that real Hudi wrote into its files (``hudi/schemas``); records are checked by
name, so that a file of another kind is damage and not a surprise.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from reconciler.errors import FormatError
from reconciler.hudi.codecs.avro_binary import (
    decoding,
    encode_container,
    load_schema_text,
    parse_schema,
    require,
)

_MAGIC: Final = b"Obj\x01"
_MARKER: Final = 16
_NAMES: Final = re.compile(r'"name"\s*:\s*"([^"]*)"')


def is_container(data: bytes) -> bool:
    """Whether the bytes begin like an Avro object container."""
    return data[:4] == _MAGIC


def decode_container(
    data: bytes, record_name: str, path: str, *, schema_file: str | None = None
) -> dict[str, Any]:
    """The one record of a container, whose schema must be named ``make_record_name``.

    ``schema_file`` of ``hudi/schemas`` fills fields that older writers did not know with their
    defaults; fields of newer ones are dropped. Without it the record is as its writer declared it.
    Raises FormatError naming ``path`` for anything else: other bytes, another record, more than
    one, bytes cut off or left over.
    """

    def as_declared(name: str, written: str) -> Any:
        require(name == record_name, f"it holds a {name}")
        if schema_file is None:
            return None
        ours = load_schema_text(schema_file)
        theirs, known = _find_names(written), _find_names(ours)
        # an older writer lacks names, a newer one has more; both at once is a bit that flipped
        require(theirs <= known or known <= theirs, f"its schema is not one of {record_name}")
        return parse_schema(ours, path)

    with decoding(path, f"{record_name} (Avro)"):
        return decode_with_schema(data, path, as_declared)


def encode_record_file(schema_file: str, record: Mapping[str, Any]) -> bytes:
    """A container with one record of a schema of ``hudi/schemas``; same record, same bytes."""
    return encode_container(schema_file, record)


def decode_with_schema(
    data: bytes, path: str, choose_schema: Callable[[str, str], Any]
) -> dict[str, Any]:
    """The one record of a container, read with the schema that ``choose_schema`` gives.

    It is asked with the record's short name and the writer's schema as JSON text; None: read it as
    written. Raises what ``decoding`` turns into a FormatError that names ``path``.
    """
    import fastavro  # noqa: PLC0415 (only when there is something to decode)
    from fastavro.read import SchemaResolutionError  # noqa: PLC0415

    text, body = _split_container(data)
    written = parse_schema(text, path)
    require(isinstance(written, dict) and written.get("type") == "record", "it holds no record")
    reader = choose_schema(str(written["name"]).rpartition(".")[2], text)
    stream = io.BytesIO(body)
    try:
        record = fastavro.schemaless_reader(stream, written, reader)
    except SchemaResolutionError as problem:
        raise ValueError(f"its schema does not fit: {problem}") from None
    require(stream.tell() == len(body), f"{len(body) - stream.tell()} bytes are left over")
    found: dict[str, Any] = record
    return found


def _find_names(schema: str) -> set[str]:
    return {name.rpartition(".")[2] for name in _NAMES.findall(schema)}


def _split_container(data: bytes) -> tuple[str, bytes]:
    """The schema and the body of the one record in a container without compression.

    Header (magic, map of metadata, marker), then one block of (count, size, bytes, marker).
    """
    require(is_container(data), "it does not begin with an Avro header")
    metadata, at = _read_header(data)
    codec = metadata.get(b"avro.codec", b"null")
    require(codec == b"null", f"its codec {codec!r} is not the null of Hudi's files")
    require(b"avro.schema" in metadata, "its header has no schema")
    marker = data[at : at + _MARKER]
    require(len(marker) == _MARKER, "its header is cut off")
    count, at = _read_long(data, at + _MARKER)
    require(count == 1, f"{count} records where one must be")
    body, at = _read_bytes(data, at)
    require(data[at : at + _MARKER] == marker, "its block does not end in the file's marker")
    require(at + _MARKER == len(data), f"{len(data) - at - _MARKER} bytes are left over")
    return metadata[b"avro.schema"].decode(), body


def _read_header(data: bytes) -> tuple[dict[bytes, bytes], int]:
    """The map behind the magic, and the place after it."""
    found: dict[bytes, bytes] = {}
    count, at = _read_long(data, len(_MAGIC))
    while count != 0:
        if count < 0:  # then the size in bytes follows
            count, (_size, at) = -count, _read_long(data, at)
        for _ in range(count):
            key, at = _read_bytes(data, at)
            found[key], at = _read_bytes(data, at)
        count, at = _read_long(data, at)
    return found, at


def _read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _read_long(data, at)
    require(0 <= size <= len(data) - at, "it is cut off")
    return data[at : at + size], at + size


def _read_long(data: bytes, at: int) -> tuple[int, int]:
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


def read_strings(value: Any) -> tuple[str, ...]:
    """A list of strings, or nothing; raises ValueError for what is neither."""
    if value is None:
        return ()
    require(
        isinstance(value, list) and all(isinstance(v, str) for v in value), "not a list of strings"
    )
    return tuple(value)


def read_text_map(value: Any) -> dict[str, str]:
    """A map of strings without its nulls; raises ValueError for what is none."""
    if value is None:
        return {}
    require(isinstance(value, Mapping), "not a map of strings")
    return {str(key): str(item) for key, item in value.items() if item is not None}


def parse_file_name(path: str, where: str) -> str:
    """The last part of a path inside a plan: plans hold absolute paths of another place or time.

    Raises FormatError naming ``where`` for a path without a usable file name.

    >>> file_name("file:/tmp/t/p=1/a.parquet", "x")
    'a.parquet'
    """
    name = path.rpartition("/")[2]
    if name in ("", ".", "..") or "\\" in name or "\0" in name:
        raise FormatError(where, f"it names {path!r}, which is no file", "the file is damaged")
    return name


def parse_partition_path(path: str, where: str) -> str:
    """A partition's path, ``""`` where the table has none.

    Raises FormatError naming ``where`` for one that leads out of the table or into its ``.hoodie``.

    >>> partition_path("dt=2026-01-01/h=1", "x")
    'dt=2026-01-01/h=1'
    """
    parts = path.split("/") if path else []
    if any(part in ("", ".", "..") or "\0" in part for part in parts) or parts[:1] == [".hoodie"]:
        raise FormatError(where, f"it names {path!r}, which is no partition", "the file is damaged")
    return path
