"""The published JSON Schema of spec files: the one source of what a spec file may hold.

``table-spec.v1.json`` beside this module is kept by hand; ``schemas/`` has the copy for editors.
docs/spec-schema.md explains its formats and its ``x-`` keywords.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

Schema = Mapping[str, Any]

TEXT: Final = Path(__file__).with_name("table-spec.v1.json").read_text(encoding="utf-8")
"""The schema as it is published."""

_SCHEMA: Final = json.loads(TEXT)
_REFERENCE: Final = "#/$defs/"

KINDS: Final[tuple[str, ...]] = tuple(_SCHEMA["properties"]["kind"]["enum"])
"""The kinds of documents a spec file may hold."""

API_VERSION: Final[str] = _SCHEMA["$defs"]["HudiTable"]["properties"]["apiVersion"]["enum"][0]


@cache
def load_definition(name: str) -> Schema:
    """Return a definition of the schema with every reference in it resolved."""
    definition: Schema = _resolve_references(_SCHEMA["$defs"][name])
    return definition


@cache
def load_envelope(kind: str) -> Schema:
    """Return the schema of a document of that kind whose ``spec`` may hold anything."""
    document = load_definition(kind)
    spec = {"description": document["properties"]["spec"]["description"], "type": "object"}
    return {**document, "properties": {**document["properties"], "spec": spec}}


def find_block(schema: Schema | None) -> Schema | None:
    """Return the part of a schema that describes a mapping with known fields, if it has one.

    >>> sorted(find_block({"anyOf": [{"const": "x"}, {"properties": {"a": {}}}]})["properties"])
    ['a']
    """
    if schema is None:
        return None
    blocks = (part for part in (schema, *schema.get("anyOf", ())) if "properties" in part)
    return next(blocks, None)


def find_field(block: Schema | None, name: str) -> Schema | None:
    """Return the schema of a field of a block; None if the block has no such field."""
    return None if block is None else block["properties"].get(name)


def list_field_paths(block: Schema, prefix: str = "") -> Iterator[str]:
    """Yield the dotted path of every field in a block and its inner blocks, lists excluded."""
    for name, field in block["properties"].items():
        yield prefix + name
        inner = find_block(field)
        if inner is not None:
            yield from list_field_paths(inner, f"{prefix}{name}.")


def _resolve_references(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_resolve_references(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    own = {key: _resolve_references(value) for key, value in schema.items() if key != "$ref"}
    if "$ref" not in schema:
        return own
    return _merge_schemas(load_definition(schema["$ref"].removeprefix(_REFERENCE)), own)


def _merge_schemas(base: Schema, own: Schema) -> dict[str, Any]:
    """Merge keywords that stand beside a reference into the schema that it refers to."""
    merged = dict(base)
    for key, value in own.items():
        is_nested = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merge_schemas(merged[key], value) if is_nested else value
    return merged
