"""JSON documents: their canonical bytes and digests, and dataclasses as documents."""

from __future__ import annotations

import hashlib
import json
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, fields, is_dataclass
from functools import cache
from numbers import Integral
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)
_PLAIN_TYPES = (str, int, float, types.NoneType)


def to_bytes(document: Any) -> bytes:
    """Return the canonical bytes: sorted keys, compact, UTF-8, no NaN, no newline at the end.

    >>> to_bytes({"b": 1, "a": "é"}).decode()
    '{"a":"é","b":1}'
    """
    return _ENCODER.encode(document).encode()


def digest_document(document: Any) -> str:
    """Return ``sha256:`` and the hexadecimal digest of the canonical bytes.

    >>> digest_document({})
    'sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a'
    """
    return digest_bytes(to_bytes(document))


def digest_bytes(data: bytes | memoryview) -> str:
    """Return the digest of canonical bytes."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


# --- dataclasses as documents --------------------------------------------------------------------


def to_document(value: Any) -> Any:
    """Return a value as plain JSON data; a dataclass becomes an object with camelCase keys.

    Tuples become lists and numpy integers become ints. Keys of a mapping stay as they are.
    The metadata of a field may change its key: ``{"name": "of"}`` gives another name,
    ``{"name": None}`` leaves the field out, and ``{"optional": True}`` leaves it out if it is None.

    >>> from dataclasses import dataclass, field
    >>> @dataclass
    ... class Sample:
    ...     row_groups: int
    ...     total: int = field(metadata={"name": "of"})
    >>> to_document((Sample(2, 9),))
    [{'rowGroups': 2, 'of': 9}]
    """
    if isinstance(value, _PLAIN_TYPES):
        return value
    if is_dataclass(value):
        kind: Any = type(value)
        document = {}
        for key, field in _keys(kind):
            inner = getattr(value, field.name)
            if inner is not None or "optional" not in field.metadata:
                document[key] = to_document(inner)
        return document
    if isinstance(value, Mapping):
        return {key: to_document(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [to_document(inner) for inner in value]
    return int(value) if isinstance(value, Integral) else value


def from_document(kind: Callable[..., T], document: Mapping[str, Any], **others: Any) -> T:
    """Return the dataclass that ``to_document`` wrote; a missing key means the field's default.

    Fields may be other dataclasses, tuples of any length, mappings and plain values, and each of
    them may be None. ``others``: values of fields that the document does not have. Raises TypeError
    or AttributeError for a value of another type.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Range:
    ...     from_size: int
    ...     to_size: int | None = None
    >>> from_document(Range, {"fromSize": 1})
    Range(from_size=1, to_size=None)
    """
    hints = _type_hints(kind)
    return kind(
        **{
            field.name: _decode_value(hints[field.name], document[key])
            for key, field in _keys(kind)
            if key in document
        },
        **others,
    )


def _decode_value(kind: Any, value: Any) -> Any:
    if kind is Any or type(value) is kind:
        return value
    origin, first, has_fields = _split_kind(kind)
    if origin in (Union, types.UnionType):
        return None if value is None else _decode_value(first, value)
    if origin is tuple:
        return tuple(_decode_value(first, inner) for inner in value)
    if has_fields:
        return from_document(kind, value)
    if isinstance(kind, type):
        allowed = (int, float) if kind is float else kind
        if not isinstance(value, allowed):
            raise TypeError(f"expected {kind.__name__}, got {value!r}")
    return value


@cache
def _split_kind(kind: Any) -> tuple[Any, Any, bool]:
    """Return the origin of a type, its first argument, and whether it is a dataclass."""
    first = next(iter(get_args(kind)), None)
    return get_origin(kind), first, isinstance(kind, type) and is_dataclass(kind)


@cache
def _keys(kind: Any) -> tuple[tuple[str, Field[Any]], ...]:
    """Return the key of every field that documents have."""
    return tuple(_find_keys(kind))


def _find_keys(kind: Any) -> Iterator[tuple[str, Field[Any]]]:
    for field in fields(kind):
        first, *others = field.name.split("_")
        name = field.metadata.get("name", first + "".join(map(str.capitalize, others)))
        if name is not None:
            yield name, field


@cache
def _type_hints(kind: Any) -> dict[str, Any]:
    """Return the types of the fields that documents have; only type checkers may know others."""
    written = types.SimpleNamespace(__annotations__={f.name: f.type for _, f in _keys(kind)})
    return get_type_hints(written, vars(sys.modules[kind.__module__]))
