"""Parse the schema of what Spark reads of a table, as its plans write it; pure.

Source: StructType.catalogString of Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

#: a type as text, or the fields of a struct by their names in lower case
ColumnType = str | Mapping[str, "ColumnType"]

_NAME: Final = re.compile(r"[^:<>,]+(?=:)")
_SIMPLE: Final = re.compile(r"[a-z_]+(?:\([0-9, ]+\))?")
_MAX_DEPTH: Final = 30


class _UnknownSchemaError(Exception):
    """The text is no schema, or was shortened."""


def parse_read_schema(text: str) -> Mapping[str, ColumnType]:
    """Return the types of columns by their names; none if the text is not a whole schema.

    >>> parse_read_schema("struct<id:bigint,Addr:struct<zip:int>,tags:array<string>>")
    {'id': 'bigint', 'Addr': {'zip': 'int'}, 'tags': 'array'}
    >>> parse_read_schema("struct<id:bigint,na...")
    {}
    """
    try:
        found, end = _parse_type(text, 0, 0)
    except (_UnknownSchemaError, IndexError):
        return {}
    return found if end == len(text) and not isinstance(found, str) else {}


def find_type(
    types: Mapping[str, ColumnType], parts: Sequence[str], *, is_long: bool
) -> str | None:
    """Return the type of a column or of a field of a struct; None if it is unknown.

    ``is_long``: whether the plan marks the column as bigint. Case is ignored.
    """
    found: ColumnType | None = types
    for part in parts:
        if found is None or isinstance(found, str):
            return None
        found = next((kind for name, kind in found.items() if name.lower() == part.lower()), None)
    if found is None:
        return "bigint" if is_long and len(parts) == 1 else None
    return found if isinstance(found, str) else "struct"


def merge_types(schemas: Iterable[Mapping[str, ColumnType]]) -> Mapping[str, ColumnType]:
    """Return the types of columns that all schemas with the column agree on."""
    merged: dict[str, ColumnType] = {}
    conflicts: set[str] = set()
    for schema in schemas:
        for name, kind in schema.items():
            if merged.setdefault(name, kind) != kind:
                conflicts.add(name)
    return {name: kind for name, kind in merged.items() if name not in conflicts}


def _parse_type(text: str, at: int, depth: int) -> tuple[ColumnType, int]:
    if depth > _MAX_DEPTH:
        raise _UnknownSchemaError
    if text.startswith("struct<", at):
        return _parse_fields(text, at + len("struct<"), depth)
    for word in ("array<", "map<"):
        if text.startswith(word, at):
            end = at + len(word)
            _, end = _parse_type(text, end, depth + 1)
            if word == "map<":
                _, end = _parse_type(text, _expect(text, end, ","), depth + 1)
            return word[:-1], _expect(text, end, ">")
    match = _SIMPLE.match(text, at)
    if match is None:
        raise _UnknownSchemaError
    return match[0].replace(" ", ""), match.end()


def _parse_fields(text: str, at: int, depth: int) -> tuple[Mapping[str, ColumnType], int]:
    fields: dict[str, ColumnType] = {}
    if text[at] == ">":
        return fields, at + 1
    while True:
        name = _NAME.match(text, at)
        if name is None:
            raise _UnknownSchemaError
        fields[name[0]], at = _parse_type(text, name.end() + 1, depth + 1)
        if text[at] == ">":
            return fields, at + 1
        at = _expect(text, at, ",")


def _expect(text: str, at: int, sign: str) -> int:
    if text[at] != sign:
        raise _UnknownSchemaError
    return at + 1
