"""YAML nodes as the published schema describes them: plain data, and every problem on the way.

Sizes become bytes, durations seconds and percentages shares of 1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from reconciler.errors import Problems, quote_value
from reconciler.lazy_dataclass import dataclass
from reconciler.spec.field_suggestions import find_meant_field, suggest_field
from reconciler.spec.options import read_options
from reconciler.spec.schema import Schema, find_block
from reconciler.spec.schema_check import UNIT_PARSERS, Location, Mismatch, find_mismatches
from reconciler.spec.storage_options import read_storage_options
from reconciler.spec.structure_messages import describe_mismatch
from reconciler.spec.yaml_nodes import (
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    join_path,
    to_plain,
)

INVALID: Final[Any] = object()
"""What a value is read as when it has a problem; a field that is INVALID is left out."""

_OPTIONS: Final = {"program-options": read_options, "storage-options": read_storage_options}
"""Formats of mappings that another program reads, and what reads them here."""

_PARTIAL: Final = ("additionalProperties", "propertyNames", "required", "uniqueItems")
"""Keywords that concern a part of a mapping or list; the rest of it is read all the same."""

_ORDER: Final = (
    "type", "const", "enum", "anyOf", "pattern", "format",
    "minimum", "maximum", "minItems", "minProperties",
)  # fmt: skip
"""Of several mismatches of one value, the first in this order is reported."""


def read_structure(
    node: Node, schema: Schema, problems: Problems, path: str = "spec", *, is_partial: bool = False
) -> Any:
    """Return the value of a node as plain data, or INVALID after at least one error.

    ``path`` is the dotted path of the node in messages. Fields with an error are left out.
    ``is_partial``: required fields may be missing, because another document may supply them.
    """
    mismatches: dict[Location, list[Mismatch]] = defaultdict(list)
    for mismatch in find_mismatches(to_plain(node), schema):
        if not (is_partial and mismatch.keyword == "required"):
            mismatches[mismatch.location].append(mismatch)
    return _Conversion(problems, mismatches).convert(node, schema, path, ())


def is_valid(node: Node, schema: Schema) -> bool:
    """Return whether a node fits a schema; required fields may be missing."""
    problems = Problems()
    read_structure(node, schema, problems, "", is_partial=True)
    return not problems.errors


@dataclass(frozen=True, slots=True)
class _Conversion:
    """One document on its way to plain data; ``mismatches`` by the location of the value."""

    problems: Problems
    mismatches: Mapping[Location, Sequence[Mismatch]]

    def convert(self, node: Node, schema: Schema, path: str, at: Location) -> Any:
        whole = [error for error in self.mismatches.get(at, ()) if error.keyword not in _PARTIAL]
        if whole:
            problem = describe_mismatch(min(whole, key=_rank), node)
            self.problems.error(node.position, path, *problem)
            return INVALID
        if isinstance(node, MappingNode):
            return self._convert_mapping(node, schema, path, at)
        if isinstance(node, SequenceNode):
            return self._convert_list(node, schema, path, at)
        return self._convert_scalar(node, schema, path)

    def _convert_mapping(self, node: MappingNode, schema: Schema, path: str, at: Location) -> Any:
        wrong_names = self._report_names(node, path, at)
        entries = {key: entry for key, entry in node.entries.items() if key not in wrong_names}
        block = find_block(schema)
        values: Any = schema.get("additionalProperties")
        if read := _OPTIONS.get(schema.get("format", "")):
            return read(MappingNode(node.position, entries), path, self.problems)
        if block is None and values is None:
            return to_plain(node)
        fields = dict.fromkeys(entries, values) if block is None else block["properties"]
        if block is not None:
            self._report_missing(node, block, path, at)
        converted = {}
        for key, entry in entries.items():
            inner = join_path(path, key)
            if key in fields:
                converted[key] = self.convert(entry.node, fields[key], inner, (*at, key))
            else:
                hint = suggest_field(key, {"properties": {}} if block is None else block, path)
                self.problems.error(entry.position, inner, "unknown field", hint)
        return {key: value for key, value in converted.items() if value is not INVALID}

    def _has_mismatch(self, keyword: str, at: Location) -> bool:
        return any(mismatch.keyword == keyword for mismatch in self.mismatches.get(at, ()))

    def _report_missing(self, node: MappingNode, block: Schema, path: str, at: Location) -> None:
        if not self._has_mismatch("required", at):
            return
        unknown = [key for key in node.entries if key not in block["properties"]]
        meant = {find_meant_field(key, block, path) for key in unknown}
        for name in block["required"]:
            inner = join_path(path, name)
            if name not in node.entries and inner not in meant:
                hint = f"add it: {_lower_first(block['properties'][name]['description'])}"
                self.problems.error(node.position, inner, "is missing", hint)

    def _report_names(self, node: MappingNode, path: str, at: Location) -> set[str]:
        """Report the keys that cannot be names in this mapping, and return them."""
        wrong = set()
        for mismatch in self.mismatches.get(at, ()):
            if mismatch.keyword != "propertyNames":
                continue
            key = mismatch.value
            position = node.entries[key].position
            wrong.add(key)
            if not key.strip():
                self.problems.error(position, path, "has an empty name")
            else:
                problem = describe_mismatch(mismatch, ScalarNode(position, key, key))
                self.problems.error(position, join_path(path, key), *problem)
        return wrong

    def _convert_list(self, node: SequenceNode, schema: Schema, path: str, at: Location) -> Any:
        items = [
            self.convert(item, schema["items"], f"{path}[{index}]", (*at, index))
            for index, item in enumerate(node.items)
        ]
        if self._has_mismatch("uniqueItems", at):
            for index, value in enumerate(items):
                if value is not INVALID and value in items[:index]:
                    message = f"{quote_value(value)} is in the list twice"
                    self.problems.error(node.items[index].position, f"{path}[{index}]", message)
        return [value for value in items if value is not INVALID]

    def _convert_scalar(self, node: ScalarNode, schema: Schema, path: str) -> Any:
        parse = UNIT_PARSERS.get(schema.get("format", ""))
        if parse is None or not isinstance(node.value, str):
            is_number = schema.get("type") == "number" and isinstance(node.value, int)
            return float(node.value or 0) if is_number else node.value
        value = parse(node.value)
        least = schema.get("minimum")
        if least is not None and value < least:  # the schema compares numbers alone
            message = f"must be at least {least} bytes, got {value}"
            self.problems.error(node.position, path, message)
            return INVALID
        return value


def _rank(mismatch: Mismatch) -> int:
    if mismatch.keyword == "pattern" and mismatch.schema.get("format") in UNIT_PARSERS:
        return len(_ORDER)  # the parser says why; the pattern is for editors
    return _ORDER.index(mismatch.keyword)


def _lower_first(text: str) -> str:
    first = text[0] if text.startswith("Hudi") else text[0].lower()
    return first + text[1:].rstrip(".")
