"""Avro records without a container, as log blocks and HFiles hold them.

The writer's schema stands beside the records (a block's header, an HFile's file info), so the same
text comes again and again: parsing is cached. Whatever bad bytes provoke inside the Avro library
becomes one FormatError.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final

from reconciler.errors import FormatError

_REMEDY: Final = "the file is damaged; restore it from a copy"
#: some libraries put the whole of what they choke on into their message
_LONGEST: Final = 200
#: what the standard library and fastavro raise for bytes that are not what they claim
_DAMAGE: Final = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)


def require(condition: bool, problem: str) -> None:  # noqa: FBT001
    """Raise ValueError for ``decoding`` to name the file, unless the bytes are as they must be."""
    if not condition:
        raise ValueError(problem)


@contextmanager
def decoding(path: str, what: str) -> Iterator[None]:
    """Turn what damaged bytes raise into a FormatError that names ``path`` and ``what``."""
    try:
        yield
    except FormatError:
        raise
    except _DAMAGE as problem:
        said = str(problem) or type(problem).__name__
        said = said if len(said) <= _LONGEST else f"{said[:_LONGEST]}…"
        raise FormatError(path, f"{what} cannot be decoded: {said}", _REMEDY) from None


@lru_cache(maxsize=64)
def _parse_schema(text: str) -> Any:
    import fastavro  # noqa: PLC0415
    from fastavro.schema import SchemaParseException, UnknownType  # noqa: PLC0415

    try:
        schema = fastavro.parse_schema(json.loads(text))
    except (SchemaParseException, UnknownType) as problem:
        raise ValueError(str(problem)) from None
    _count_least_bytes(schema, {})
    return schema


def _count_least_bytes(schema: Any, known: dict[str, int | None]) -> int:
    """The fewest bytes that a value takes; ``known``: full name -> those, None while it is open.

    Raises ValueError for what no schema of Hudi's has and what would end the process or eat its
    memory inside the library: a type within itself, and lists whose items take no bytes.
    """
    size: int | None = 1
    match schema:
        case str():
            size = known.get(schema, 0 if schema == "null" else 1)
            require(size is not None, f"{schema} holds itself")
        case list():
            for branch in schema:
                _count_least_bytes(branch, known)
        case {"type": "record" | "error", "name": name, "fields": fields}:
            known[name] = None
            known[name] = size = sum(_count_least_bytes(field["type"], known) for field in fields)
        case {"type": "fixed", "name": name, "size": size}:
            known[name] = size
        case {"type": "array", "items": items}:
            require(_count_least_bytes(items, known) > 0, "its lists hold nothing")
        case {"type": "map", "values": values}:
            _count_least_bytes(values, known)
        case {"type": inner} if inner != "enum":
            size = _count_least_bytes(inner, known)
    return size or 0


def parse_schema(text: str, path: str) -> Any:
    """The schema of a JSON text, ready for fastavro; raises FormatError naming ``path``."""
    with decoding(path, "the Avro schema"):
        return _parse_schema(text)


def decode_record(data: bytes, schema: Any, path: str) -> Any:
    """One record that fills ``data``; raises FormatError naming ``path``.

    Union branches that are records come back as plain dicts, without the branch's name.
    """
    import fastavro  # noqa: PLC0415

    with decoding(path, "an Avro record"):
        stream = io.BytesIO(data)
        record = fastavro.schemaless_reader(stream, schema, None)
        require(stream.tell() == len(data), f"{len(data) - stream.tell()} bytes are left over")
        return record


def encode_record(record: Any, schema: Any) -> bytes:
    """The Avro binary of one record."""
    import fastavro  # noqa: PLC0415

    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, schema, record)
    return stream.getvalue()


def encode_container(schema_file: str, record: Any) -> bytes:
    """An Avro container (no compression) with one record of a schema of ``hudi/schemas``.

    As Avro's Java writer makes it: the header holds the schema alone, with its namespaces. The same
    record gives the same bytes: the sync marker is made of them.
    """
    text = load_schema_text(schema_file)
    body = encode_record(record, parse_schema(text, ""))
    marker = hashlib.md5(body, usedforsecurity=False).digest()
    schema = text.encode()
    header = (
        b"Obj\x01"
        + encode_long(1)
        + _encode_bytes(b"avro.schema")
        + _encode_bytes(schema)
        + encode_long(0)
        + marker
    )
    return header + encode_long(1) + _encode_bytes(body) + marker


@cache
def load_schema_text(schema_file: str) -> str:
    """A schema of ``hudi/schemas`` as compact JSON."""
    text = (files("reconciler.hudi") / "schemas" / schema_file).read_text()
    return json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False)


def _encode_bytes(data: bytes) -> bytes:
    return encode_long(len(data)) + data


def encode_long(value: int) -> bytes:
    """Avro's long, not negative.

    >>> [*long(48)], [*long(64)]
    ([96], [128, 1])
    """
    value <<= 1
    out = bytearray()
    while value > 0x7F:  # noqa: PLR2004
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes((value,))
