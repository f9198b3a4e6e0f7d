"""A YAML document as values that know their place; what every check of a spec walks over."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, assert_never

from reconciler.errors import SourcePosition, quote_value

_NULLS: Final = frozenset(("", "~", "null", "Null", "NULL"))
_BOOLEANS: Final = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,39})")
_FLOAT: Final = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+"
)


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """One value. ``text`` is as written; ``quoted`` says whether it can only be text."""

    position: SourcePosition
    text: str
    value: str | int | float | bool | None
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class SequenceNode:
    position: SourcePosition
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class MappingEntry:
    """One field of a mapping; ``position`` is the place of its key."""

    position: SourcePosition
    node: Node


@dataclass(frozen=True, slots=True)
class MappingNode:
    position: SourcePosition
    entries: Mapping[str, MappingEntry]

    def key_position(self, key: str) -> SourcePosition:
        """Where the field is, or where the mapping starts when it has none of that name."""
        entry = self.entries.get(key)
        return self.position if entry is None else entry.position

    def get(self, key: str) -> Node | None:
        entry = self.entries.get(key)
        return None if entry is None else entry.node


Node = ScalarNode | SequenceNode | MappingNode


def make_scalar(position: SourcePosition, text: str, *, quoted: bool) -> ScalarNode:
    """A scalar by YAML 1.2's core schema, less hexadecimal, octal, infinities and NaN.

    So ``on``, ``2026-01-01``, ``12:30``, ``1_000`` and ``007`` are text, as written.
    """
    return ScalarNode(position, text, text if quoted else _resolve_scalar(text), quoted)


def _resolve_scalar(text: str) -> str | float | bool | None:
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    return text


def to_plain(node: Node) -> Any:
    """The bare JSON-able value."""
    match node:
        case ScalarNode(value=value):
            return value
        case SequenceNode(items=items):
            return [to_plain(item) for item in items]
        case MappingNode(entries=entries):
            return {key: to_plain(entry.node) for key, entry in entries.items()}
        case _:
            assert_never(node)


def from_plain(value: Any, position: SourcePosition) -> Node:
    """The node of a JSON value that came from somewhere without lines; all share one place."""
    if isinstance(value, Mapping):
        entries = {
            str(key): MappingEntry(position, from_plain(item, position))
            for key, item in value.items()
        }
        return MappingNode(position, entries)
    if isinstance(value, list | tuple):
        return SequenceNode(position, tuple(from_plain(item, position) for item in value))
    if value is None or isinstance(value, str | bool | int | float):
        return ScalarNode(position, str(value), value, isinstance(value, str))
    return ScalarNode(position, repr(value), repr(value), quoted=True)


def join_path(path: str, key: str) -> str:
    """The field's dotted path; keys that are no plain words are quoted.

    >>> join_path("spec", "path"), join_path("", "a b")
    ('spec.path', "'a b'")
    """
    name = key if re.fullmatch(r"[\w.-]+", key) else quote_value(key)
    return f"{path}.{name}" if path else name


def describe_node(node: Node) -> str:
    """The node in half a sentence: "got …"."""
    match node:
        case ScalarNode(value=None):
            return "nothing"
        case ScalarNode(value=bool() as value):
            return "true" if value else "false"
        case ScalarNode(value=str() as value):
            return f"the text {quote_value(value)}"
        case ScalarNode(text=text):
            return f"the number {text}"
        case SequenceNode():
            return "a list"
        case MappingNode():
            return "a mapping"
        case _:
            assert_never(node)
