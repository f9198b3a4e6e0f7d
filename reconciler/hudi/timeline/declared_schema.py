"""Find the table schema that a write declares.

A table service declares the schema it found, which may be an old one, so it does not count. Source:
TableSchemaResolver, WriteOperationType.canUpdateSchema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

#: the key of a commit's extra metadata
SCHEMA: Final = "schema"
_SERVICES: Final = frozenset({"CLUSTER", "COMPACT", "LOG_COMPACT", "INDEX"})
#: Avro's complex types, which have no order
_NESTED: Final = {"record": "struct", "array": "list", "map": "map"}


def find_declared_schema(operation: str | None, extra: Mapping[str, str]) -> str | None:
    """Return the Avro schema a completed write declares for the table, None if it does not."""
    if (operation or "").upper() in _SERVICES:
        return None
    return extra.get(SCHEMA) or None


def list_top_columns(text: str) -> dict[str, str] | None:
    """Return the columns of an Avro schema, each with ``struct``, ``list``, ``map`` or ``""``.

    Returns None for a text that is not a record schema; the code that reads rows reports what is
    wrong.

    >>> field = '{"name": "id", "type": "int"}'
    >>> list_top_columns('{"type": "record", "name": "t", "fields": [' + field + "]}")
    {'id': ''}
    """
    try:
        fields = json.loads(text)["fields"]
        return {field["name"]: _nested_kind(field["type"]) for field in fields}
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _nested_kind(type_: Any) -> str:
    if isinstance(type_, list):
        return next((kind for branch in type_ if (kind := _nested_kind(branch))), "")
    return _NESTED.get(str(type_["type"]), "") if isinstance(type_, dict) else ""
