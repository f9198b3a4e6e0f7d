"""Read and write Avro records without a container, as log blocks and HFiles hold them.

The writer's schema is stored next to the records: in a log block's header or an HFile's file info.
The same text comes many times, so parsed schemas are cached. Any error that damaged bytes cause
inside the Avro library becomes one FormatError.
"""

from __future__ import annotations

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
#: some libraries repeat the whole input in their messages
_MAX_MESSAGE: Final = 200
#: what the standard library and fastavro raise for damaged bytes
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
    """Raise ValueError with ``problem`` unless the condition holds; ``decoding`` adds the file."""
    if not condition:
        raise ValueError(problem)


@contextmanager
def decoding(path: str, what: str) -> Iterator[None]:
    """Turn any error that damaged bytes raise into a FormatError naming ``path`` and ``what``."""
    try:
        yield
    except FormatError:
        raise
    except _DAMAGE as problem:
        message = str(problem) or type(problem).__name__
        message = message if len(message) <= _MAX_MESSAGE else f"{message[:_MAX_MESSAGE]}…"
        raise FormatError(path, f"{what} cannot be decoded: {message}", _REMEDY) from None


@lru_cache(maxsize=64)
def _parse_schema(text: str) -> Any:
    import fastavro  # noqa: PLC0415
    from fastavro.schema import SchemaParseException, UnknownType  # noqa: PLC0415

    try:
        schema = fastavro.parse_schema(json.loads(text))
    except (SchemaParseException, UnknownType) as problem:
        raise ValueError(str(problem)) from None
    _count_min_bytes(schema, {})
    return schema


def _count_min_bytes(schema: Any, known: dict[str, int | None]) -> int:
    """Return the fewest bytes that a value of the schema takes.

    ``known`` maps a full name to its size, None while the type is still being visited. Raises
    ValueError for a type that contains itself and for a list whose items take no bytes. No schema
    of Hudi has these, and the library would crash or run out of memory on them.
    """
    size: int | None = 1
    match schema:
        case str():
            size = known.get(schema, 0 if schema == "null" else 1)
            require(size is not None, f"type {schema} contains itself")
        case list():
            for branch in schema:
                _count_min_bytes(branch, known)
        case {"type": "record" | "error", "name": name, "fields": fields}:
            known[name] = None
            known[name] = size = sum(_count_min_bytes(field["type"], known) for field in fields)
        case {"type": "fixed", "name": name, "size": size}:
            known[name] = size
        case {"type": "array", "items": items}:
            require(_count_min_bytes(items, known) > 0, "items of a list take no bytes")
        case {"type": "map", "values": values}:
            _count_min_bytes(values, known)
        case {"type": inner} if inner != "enum":
            size = _count_min_bytes(inner, known)
    return size or 0


def parse_schema(text: str, path: str) -> Any:
    """Parse a schema's JSON text for fastavro; raises FormatError naming ``path``."""
    with decoding(path, "the Avro schema"):
        return _parse_schema(text)


def decode_record(data: bytes, schema: Any, path: str, reader: Any = None) -> Any:
    """Decode one record that must fill ``data``; raises FormatError naming ``path``.

    ``reader``: see ``read_record``. A union branch that is a record becomes a plain dict without
    the branch's name.
    """
    with decoding(path, "an Avro record"):
        return read_record(data, schema, reader)


def read_record(data: bytes, schema: Any, reader: Any = None) -> Any:
    """Decode one record that must fill ``data``, as the schema ``reader`` if it is given.

    Raises errors that ``decoding`` turns into a FormatError.
    """
    import fastavro  # noqa: PLC0415 (only if there is something to decode)
    from fastavro.read import SchemaResolutionError  # noqa: PLC0415

    stream = io.BytesIO(data)
    try:
        record = fastavro.schemaless_reader(stream, schema, reader)
    except EOFError:
        raise ValueError("the file is truncated") from None
    except SchemaResolutionError as problem:
        raise ValueError(f"its schema does not match: {problem}") from None
    extra = len(data) - stream.tell()
    require(not extra, f"{extra} extra bytes follow the record")
    return record


def encode_record(record: Any, schema: Any) -> bytes:
    """Encode one record as Avro binary."""
    import fastavro  # noqa: PLC0415

    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, schema, record)
    return stream.getvalue()


@cache
def load_schema_text(schema_file: str) -> str:
    """Return a schema of ``hudi/schemas`` as compact JSON."""
    text = (files("reconciler.hudi") / "schemas" / schema_file).read_text()
    return json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False)


def encode_long(value: int) -> bytes:
    """Encode a non-negative number as Avro's long.

    >>> [*encode_long(48)], [*encode_long(64)]
    ([96], [128, 1])
    """
    return encode_varint(value << 1)


def encode_varint(value: int) -> bytes:
    """Encode a non-negative number in groups of 7 bits, as Avro and protobuf do."""
    out = bytearray()
    while value > 0x7F:  # noqa: PLR2004
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes((value,))
