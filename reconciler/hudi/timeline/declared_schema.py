"""The schema that writes declare for the table; pure.

Source: TableSchemaResolver, WriteOperationType (canUpdateSchema: a table service declares what it
found, maybe long ago).
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
    """The Avro schema that a completed write declares for the table; None where it does not."""
    if (operation or "").upper() in _SERVICES:
        return None
    return extra.get(SCHEMA) or None


def list_top_columns(text: str) -> dict[str, str] | None:
    """The columns of an Avro schema, each with ``struct``, ``list`` or ``map``, else empty.

    None where the text is no schema of a record: whoever reads rows says what is wrong with it.

    >>> top_columns('{"type": "record", "name": "t", "fields": [{"name": "id", "type": "int"}]}')
    {'id': ''}
    """
    try:
        fields = json.loads(text)["fields"]
        return {field["name"]: _nested_kind(field["type"]) for field in fields}
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _nested_kind(type_: Any) -> str:
    if isinstance(type_, list):
        return next((kind for each in type_ if (kind := _nested_kind(each))), "")
    return _NESTED.get(str(type_["type"]), "") if isinstance(type_, dict) else ""
