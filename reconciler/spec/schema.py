"""The JSON Schema of specs, for editors; made from the fields that loading checks.

``python -m reconciler.spec.schema`` prints it. What structure cannot say (two counts of different
blocks, zones, tables declared twice) is left to loading.
"""

from __future__ import annotations

import json
import re
import sys
from itertools import combinations
from typing import Any, Final, assert_never

from reconciler import units
from reconciler.spec.fields import (
    Anything,
    Block,
    Choice,
    Duration,
    Field,
    Flag,
    Kind,
    ListOf,
    MapOf,
    Number,
    Options,
    Percent,
    Size,
    Text,
    TextMap,
    TextOr,
    Whole,
    WholeOf,
    WordOr,
)
from reconciler.spec.grammar import COUNTS, RETENTION
from reconciler.spec.kinds import KINDS
from reconciler.spec.rules import POLICY_BY_COUNT

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_FILLED: Final = {"type": "string", "pattern": r"\S"}
_MERGED: Final = ("HudiTable", "TableDefaults")
_REFERENCE: Final = Block(
    fields=(Field("fromEnv", Text(), "The variable that holds the text.", required=True),)
)


def table_spec_schema() -> dict[str, Any]:
    """The schema of one document of a spec file, whatever its kind."""
    return {
        "$schema": _DIALECT,
        "title": "reconciler spec",
        "description": "Apache Hudi tables as they should be, defaults for them, policies on them.",
        "type": "object",
        "required": ["apiVersion", "kind"],
        "properties": {"kind": {"enum": list(KINDS)}},
        "allOf": [
            {
                "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
                "then": {"$ref": f"#/$defs/{kind}"},
            }
            for kind in KINDS
        ],
        "$defs": {
            kind: _mergeable(_block(block)) if kind in _MERGED else _block(block)
            for kind, block in KINDS.items()
        },
    }


def main() -> None:
    """Print the schema, as it is checked in."""
    sys.stdout.write(json.dumps(table_spec_schema(), indent=2, ensure_ascii=False) + "\n")


def _block(block: Block) -> dict[str, Any]:
    required = [field.name for field in block.fields if field.required]
    return {
        "type": "object",
        "properties": {field.name: _field(field) for field in block.fields},
        "additionalProperties": False,
        **({"required": required} if required else {}),
        **(_one_count() if block is RETENTION else {}),
    }


def _field(field: Field) -> dict[str, Any]:
    found = {"description": field.says, **_kind(field.kind)}
    return found if field.default is None else {**found, "default": field.default}


def _one_count() -> dict[str, Any]:
    """Not two counts, and no policy that is another count's; which is missing, defaults may say."""
    pairs = [{"not": {"required": list(pair)}} for pair in combinations(COUNTS, 2)]
    contradictions = [
        {
            "if": {"properties": {"policy": {"const": str(policy)}}, "required": ["policy"]},
            "then": {"properties": {other: False for other in COUNTS if other != count}},
        }
        for count, policy in POLICY_BY_COUNT.items()
    ]
    return {"allOf": [*pairs, *contradictions]}


def _mergeable(document: dict[str, Any]) -> dict[str, Any]:
    """Nothing is required below ``spec``: defaults and an environment make a table whole."""
    properties = document["properties"]
    return {**document, "properties": {**properties, "spec": _partial(properties["spec"])}}


def _partial(schema: dict[str, Any]) -> dict[str, Any]:
    """Without required fields at any depth; lists are never merged, so their items stay whole."""
    kept = {key: value for key, value in schema.items() if key != "required"}
    inner = {name: _partial(each) for name, each in kept.get("properties", {}).items()}
    return {**kept, "properties": inner} if inner else kept


def _kind(kind: Kind) -> dict[str, Any]:  # noqa: C901, PLR0911, PLR0912, PLR0915 (a case a kind)
    match kind:
        case Text(pattern=pattern):
            return {"type": "string", "pattern": pattern} if pattern else dict(_FILLED)
        case Choice(words=words):
            return {"enum": list(words)}
        case Whole(least=least, most=most):
            return {"type": "integer", "minimum": least, "maximum": most}
        case WholeOf(numbers=numbers):
            return {"enum": list(numbers)}
        case Number(least=least, most=most):
            limit = {} if most is None else {"maximum": most}
            return {"type": "number", "minimum": least, **limit}
        case Flag():
            return {"type": "boolean"}
        case Size(least=least):
            number = {"type": "integer", "minimum": least, "maximum": units.LARGEST_SIZE}
            return {"anyOf": [number, {"type": "string", "pattern": units.SIZE_PATTERN}]}
        case Duration():
            return {"type": "string", "pattern": units.DURATION_PATTERN}
        case Percent():
            return {"type": "string", "pattern": units.PERCENT_PATTERN}
        case ListOf(item=item, least=least, unique=unique):
            once = {"uniqueItems": True} if unique == "items" else {}
            return {"type": "array", "items": _kind(item), "minItems": least, **once}
        case TextMap():
            return {"type": "object", "additionalProperties": dict(_FILLED)}
        case MapOf(name=Text(pattern=pattern), item=item):
            names = {"propertyNames": {"pattern": pattern}} if pattern else {}
            return {"type": "object", **names, "additionalProperties": _kind(item)}
        case Options(prefix=prefix):
            names = {"propertyNames": {"pattern": f"^{re.escape(prefix)}"}} if prefix else {}
            each = {"anyOf": [dict(_FILLED), _block(_REFERENCE)]}
            return {"type": "object", **names, "additionalProperties": each}
        case Anything():
            return {"type": "object"}
        case Block():
            return _block(kind)
        case WordOr(word=word, block=block):
            return {"anyOf": [{"const": word}, {**_block(block), "minProperties": 1}]}
        case TextOr(text=text, block=block):
            return {"anyOf": [_kind(text), {**_block(block), "minProperties": 1}]}
        case _:
            assert_never(kind)


if __name__ == "__main__":
    main()
