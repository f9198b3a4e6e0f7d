"""YAML nodes: the values of a spec file with their positions."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final, assert_never

from reconciler.errors import SourcePosition, quote_value
from reconciler.lazy_dataclass import dataclass

_NULLS: Final = frozenset(("", "~", "null", "Null", "NULL"))
_BOOLEANS: Final = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,39})")
_FLOAT: Final = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+"
)
_PLAIN_KEY: Final = re.compile(r"[\w.-]+")


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """One value. ``text`` is as written; a ``quoted`` value is always text."""

    position: SourcePosition
    text: str
    value: str | int | float | bool | None
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class SequenceNode:
    position: SourcePosition
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One field of a mapping; ``position`` is that of its key."""

    position: SourcePosition
    node: Node


@dataclass(frozen=True, slots=True)
class MappingNode:
    position: SourcePosition
    entries: Mapping[str, Entry]

    def key_position(self, key: str) -> SourcePosition:
        """Return the position of a field's key, or of the mapping if it has no such field."""
        entry = self.entries.get(key)
        return self.position if entry is None else entry.position

    def get(self, key: str) -> Node | None:
        entry = self.entries.get(key)
        return None if entry is None else entry.node


Node = ScalarNode | SequenceNode | MappingNode


def make_scalar(position: SourcePosition, text: str, *, quoted: bool) -> ScalarNode:
    """Return a scalar by YAML 1.2's core schema, without hexadecimal, octal, infinities and NaN.

    So ``on``, ``2026-01-01``, ``12:30``, ``1_000`` and ``007`` are text.
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
    """Return the value of a node as JSON data."""
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
    """Return the node of JSON data that has no lines; all its nodes get one position."""
    if isinstance(value, Mapping):
        entries = {
            str(key): Entry(position, from_plain(item, position)) for key, item in value.items()
        }
        return MappingNode(position, entries)
    if isinstance(value, list | tuple):
        return SequenceNode(position, tuple(from_plain(item, position) for item in value))
    if value is None or isinstance(value, str | bool | int | float):
        return ScalarNode(position, str(value), value, isinstance(value, str))
    return ScalarNode(position, repr(value), repr(value), quoted=True)


def join_path(path: str, key: str) -> str:
    """Return the dotted path of a field; unusual keys are quoted.

    >>> join_path("spec", "path"), join_path("", "a b")
    ('spec.path', "'a b'")
    """
    name = key if _PLAIN_KEY.fullmatch(key) else quote_value(key)
    return f"{path}.{name}" if path else name


def describe_node(node: Node) -> str:
    """Return the node as part of a sentence: "got …"."""
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
