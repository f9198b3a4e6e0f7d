"""Messages about values that do not fit the schema: what is wrong, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from reconciler import units
from reconciler.errors import did_you_mean
from reconciler.spec.field_suggestions import find_meant_word
from reconciler.spec.schema import Schema, find_block
from reconciler.spec.schema_check import Mismatch
from reconciler.spec.yaml_nodes import Node, ScalarNode, describe_node

_YAML_1_1: Final = {
    **dict.fromkeys(("yes", "on", "y"), "true"),
    **dict.fromkeys(("no", "off", "n"), "false"),
}
#: a number as large as this is bytes: nobody means as many MiB
_LEAST_BYTES: Final = 65536
#: fields of a block that a message names
_FIELDS_SHOWN: Final = 8
_WITH_UNIT: Final = {
    "byte-size": "a size such as 120MiB",
    "time-span": "a duration such as 24h",
    "percentage": "a percentage such as 5%",
}


def describe_mismatch(mismatch: Mismatch, node: Node) -> tuple[str, str]:  # noqa: PLR0911
    """Return what is wrong with a node, and what to do about it ("" if nothing is certain)."""
    schema = mismatch.schema
    match mismatch.rule:
        case "pattern" if mismatch.limit == r"\S":
            return "is an empty text", "give it a value, or remove it"
        case "pattern":
            return _expected(node, schema["patternErrorMessage"])
        case "format":
            return mismatch.problem, ""
        case "minimum" | "maximum":
            return _describe_range(schema, node)
        case "minItems":
            return "is an empty list", "give it at least one item"
        case "minProperties":
            words = "".join(f"{word}, or " for word in mismatch.words)
            return "is empty", f"write {words}some of {', '.join(schema['properties'])}"
        case _:
            return _describe_value(schema, node)


def _describe_value(schema: Schema, node: Node) -> tuple[str, str]:  # noqa: PLR0911
    """Describe a value of another type, or one that is not among those that are allowed."""
    text = node.text if isinstance(node, ScalarNode) else ""
    if "anyOf" in schema:
        return _describe_word_or_block(schema, node)
    if "enum" in schema or "const" in schema:
        return _describe_choice(schema, node)
    if example := _WITH_UNIT.get(schema.get("format", "")):
        return _expected(node, example, "add the unit" if isinstance(node, ScalarNode) else "")
    match schema["type"]:
        case "object":
            return _describe_mapping(schema, node)
        case "array":
            return _expected(node, "a list", f"write [{text}]" if text else "")
        case "integer":
            return _expected(node, "a whole number", _suggest_whole(node, schema.get("x-unit", "")))
        case "number":
            return _expected(node, "a number", _suggest_number(node))
        case "boolean":
            return _expected(node, "true or false", _suggest_flag(node))
        case _ if "patternErrorMessage" in schema:
            return _expected(node, schema["patternErrorMessage"])
        case _:
            is_scalar = isinstance(node, ScalarNode)
            return _expected(node, "text", f'put it in quotes: "{text}"' if is_scalar else "")


def _expected(node: Node, what: str, hint: str = "") -> tuple[str, str]:
    if isinstance(node, ScalarNode) and node.value is None:
        return f"has no value; expected {what}", "give it one, or remove the line"
    return f"expected {what}, got {describe_node(node)}", hint


def _list_fields(block: Schema) -> str:
    names = list(block["properties"])
    shown, others = names[:_FIELDS_SHOWN], len(names) - _FIELDS_SHOWN
    more = f" and {others} more" if others > 0 else ""
    return f"its fields are {', '.join(shown)}{more}"


def _describe_mapping(schema: Schema, node: Node) -> tuple[str, str]:
    block = find_block(schema)
    if block is not None and schema.get("format") != "storage-options":
        return _expected(node, "a mapping", _list_fields(block))
    values = schema.get("additionalProperties")
    if values is None:
        return _expected(node, "a mapping")
    is_text = values.get("type") == "string" or "format" in schema
    return _expected(node, "a mapping of text" if is_text else "a mapping", "write name: value")


def _describe_choice(schema: Schema, node: Node) -> tuple[str, str]:
    words = schema["enum"] if "enum" in schema else [schema["const"]]
    if schema.get("type") == "integer":
        hint = _suggest_whole(node, "")
        return _expected(node, f"one of {', '.join(map(str, words))}", hint)
    names = _list_words(words)
    if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
        return _expected(node, names)
    plain = node.value.lower().replace("_", "")
    if any(word in plain for word in schema.get("x-not-built", ())):
        return f"{node.value!r} is not supported yet", f"write {names}"
    close = find_meant_word(node.value, words)
    return _expected(node, names, f"did you mean {close!r}?" if close else "")


def _describe_word_or_block(schema: Schema, node: Node) -> tuple[str, str]:
    block = find_block(schema)
    assert block is not None, "alternatives of texts alone have a type"
    word = next(option["const"] for option in schema["anyOf"] if "const" in option)
    close = did_you_mean(node.text, [word]) if isinstance(node, ScalarNode) else None
    fields = _list_fields(block)
    hint = f"did you mean {close!r}?" if close else fields
    return _expected(node, f"{word!r} or a mapping", hint)


def _describe_range(schema: Mapping[str, Any], node: Node) -> tuple[str, str]:
    assert isinstance(node, ScalarNode), "only numbers have a range"
    value, least, most = node.value, schema.get("minimum"), schema.get("maximum")
    if schema["type"] == "number":
        limits = f"at least {least:g}" if most is None else f"between {least:g} and {most:g}"
        return f"must be {limits}, got {value}", ""
    if most == 0 and isinstance(value, int) and value > most:
        return f"{value} has no unit", f"write {_propose_sizes(value)}"
    noun = " bytes" if schema.get("format") == "byte-size" else ""
    if least is not None and isinstance(value, int) and value < least:
        return f"must be at least {least}{noun}, got {value}", schema.get("x-minimum-reason", "")
    got = "" if noun else f", got {value}"
    return f"must be at most {most}{noun}{got}", ""


def _propose_sizes(number: int) -> str:
    """Return a number with the unit that is probably meant, and with that of bytes.

    >>> _propose_sizes(120), _propose_sizes(125829120), _propose_sizes(1_000_001)
    ('120MiB, or 120B for bytes', '120MiB', '1000001B')
    """
    if number >= _LEAST_BYTES:
        return units.format_size(number)
    return f"{number}MiB, or {number}B for bytes"


def _list_words(words: list[str]) -> str:
    first, *rest = words
    return f"one of {', '.join(words)}" if rest[1:] else " or ".join((first, *rest))


def _suggest_whole(node: Node, unit: str) -> str:
    """Return what to write instead if the text can only mean one whole number."""
    if not isinstance(node, ScalarNode) or not isinstance(node.value, str | float):
        return ""
    if unit and (count := _convert_duration(node.text, units.DURATION_UNITS[unit])):
        return f"write {count}"
    text = node.text.replace("_", "").removesuffix(".0").strip()
    if not re.fullmatch(r"-?[0-9]{1,20}", text):
        return ""
    return "remove the quotes" if node.quoted and text == node.text else f"write {int(text)}"


def _convert_duration(text: str, factor: int) -> int | None:
    """A duration as a count of ``factor`` seconds, when it is a whole one."""
    try:
        seconds = units.parse_duration(text)
    except ValueError:
        return None
    return seconds // factor if seconds % factor == 0 else None


def _suggest_number(node: Node) -> str:
    if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
        return ""
    if re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,9})?%", node.text):
        return f"write {float(node.text[:-1]) / 100:g}"
    return "remove the quotes" if re.fullmatch(r"[0-9.]{1,20}", node.text) else ""


def _suggest_flag(node: Node) -> str:
    if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
        return ""
    meant = _YAML_1_1.get(node.value.lower(), node.value.lower())
    return f"write {meant}" if meant in ("true", "false") else ""
