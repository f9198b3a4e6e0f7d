"""Fixes of typos in spec files: misspelt names, words and units. Pure.

A fix replaces one word in place. The word must have only one possible meaning, and the field must
be valid afterwards. No digit changes, so counts, durations and paths stay as written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any, Final

from reconciler.errors import Problems, SourcePosition, did_you_mean
from reconciler.lazy_dataclass import dataclass
from reconciler.spec import spelling
from reconciler.spec.field_suggestions import FOREIGN, find_field_by_alias
from reconciler.spec.rules import COUNTS, POLICY_BY_COUNT
from reconciler.spec.schema import KINDS, Schema, find_block, find_field, load_definition
from reconciler.spec.structure import is_valid
from reconciler.spec.yaml_nodes import (
    Entry,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    join_path,
    make_scalar,
)
from reconciler.spec.yaml_parser import parse_yaml

_BREAK: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")  # as YAML counts lines
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, order=True)
class TypoFix:
    """One word to replace; ``start`` counts characters of the text without its byte order mark."""

    position: SourcePosition
    path: str
    old: str
    new: str
    start: int

    def __str__(self) -> str:
        """Return ``file:line:column: field: old → new``."""
        return f"{self.position}: {self.path}: {self.old} → {self.new}"


def find_fixes(data: bytes, file: str) -> tuple[TypoFix, ...]:
    """Return the certain fixes in the order of the file; none for a file that cannot be read.

    No two fixes are at one position.
    """
    documents = parse_yaml(data, file, Problems())
    if not documents:
        return ()
    walk = _FixFinder(_TextIndex(data.decode("utf-8-sig")))
    for document in documents:
        walk.visit_document(document)
    by_start: dict[int, set[TypoFix]] = {}
    for fix in walk.found:
        by_start.setdefault(fix.start, set()).add(fix)
    # an alias may stand at two fields, where a word has two meanings
    return tuple(sorted(fix for same in by_start.values() if len(same) == 1 for fix in same))


def apply_fixes(data: bytes, fixes: Iterable[TypoFix]) -> bytes:
    """Return the bytes with the words replaced and every other byte unchanged."""
    mark = _BOM if data.startswith(_BOM) else b""
    text, parts, end = data.decode("utf-8-sig"), [], 0
    for fix in sorted(fixes, key=lambda fix: fix.start):
        parts += [text[end : fix.start], fix.new]
        end = fix.start + len(fix.old)
    return mark + "".join([*parts, text[end:]]).encode()


def is_kind_spelling_fix(fix: TypoFix) -> bool:
    """Return whether a fix only changes the case or separators of a document's kind."""
    return fix.path == "kind" and spelling.is_same_word(fix.old, fix.new)


class _TextIndex:
    """Finds the offsets of positions in a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = [0, *(found.end() for found in _BREAK.finditer(text))]

    def find_start(self, position: SourcePosition, word: str, *, quoted: bool) -> int | None:
        """Return the offset of a word at a position; None if it is not there literally.

        That is so for a word with escapes, over several lines, in a block or behind an anchor.
        """
        if not 0 < position.line <= len(self._lines):
            return None
        start = self._lines[position.line - 1] + position.column - 1
        quote = self._text[start : start + 1] if quoted else ""
        if quote not in ("", '"', "'"):
            return None
        written = f"{quote}{word}{quote}"
        is_there = word and self._text.startswith(written, start)
        return start + len(quote) if is_there else None


@dataclass(slots=True)
class _FixFinder:
    """Walks over nodes and their schema; each method returns the node as fixed."""

    text: _TextIndex
    found: list[TypoFix] = field(default_factory=list)

    def visit_document(self, node: Node) -> None:
        """Visit a document of a kind, which may be misspelt."""
        kind = node.get("kind") if isinstance(node, MappingNode) else None
        if not isinstance(kind, ScalarNode) or not isinstance(kind.value, str):
            return
        word = kind.value if kind.value in KINDS else spelling.find_certain_word(kind.value, KINDS)
        if word is not None:
            self.visit_node(node, load_definition(word), "")

    def visit_node(self, node: Node, schema: Schema, path: str) -> Node:
        if schema.get("format") == "storage-options":  # a client has names that are alike
            return node
        if isinstance(node, MappingNode) and (block := find_block(schema)):
            return self._visit_block(node, block, path)
        if "anyOf" in schema:
            words = (option for option in schema["anyOf"] if "properties" not in option)
            return self._visit_word(node, next(words), path)
        if "items" in schema:
            return self._visit_items(node, schema["items"], path)
        if schema.get("type") == "object":
            values: Any = schema.get("additionalProperties")
            is_free = schema.get("format") == "program-options" or not isinstance(values, dict)
            return node if is_free else self._visit_values(node, values, path)
        return self._visit_word(node, schema, path)

    def _visit_values(self, node: Node, item: Schema, path: str) -> Node:
        if not isinstance(node, MappingNode):
            return node
        inner = {}
        for key, entry in node.entries.items():
            value = self.visit_node(entry.node, item, join_path(path, key))
            inner[key] = Entry(entry.position, value)
        return MappingNode(node.position, inner)

    def _visit_items(self, node: Node, item: Schema, path: str) -> Node:
        if not isinstance(node, SequenceNode):
            return node
        each = (self.visit_node(child, item, f"{path}[{i}]") for i, child in enumerate(node.items))
        return SequenceNode(node.position, tuple(each))

    def _visit_block(self, node: MappingNode, block: Schema, path: str) -> Node:
        names = _UnknownKeys(node, block, path)
        entries: dict[str, Entry] = {}
        for key, entry in node.entries.items():
            known = find_field(block, key)
            if known is not None:
                inner = self.visit_node(entry.node, known, join_path(path, key))
                entries[key] = Entry(entry.position, inner)
            elif (meant := names.find_meant_field(key)) is not None:
                name, kept = self._rename_key(key, meant, entry, path)
                entries[name] = kept
            else:
                entries[key] = entry
        return MappingNode(node.position, entries)

    def _rename_key(
        self, key: str, meant: tuple[str, Schema], entry: Entry, path: str
    ) -> tuple[str, Entry]:
        """Return the meant name and the fixed value, if the value is valid there."""
        name, schema = meant
        start = self._find_key_start(entry.position, key)
        trial = _FixFinder(self.text)
        inner = trial.visit_node(entry.node, schema, join_path(path, name))
        if start is None or not is_valid(inner, schema):
            return key, entry
        fix = TypoFix(entry.position, join_path(path, key), key, name, start)
        self.found += [fix, *trial.found]
        return name, Entry(entry.position, inner)

    def _find_key_start(self, position: SourcePosition, key: str) -> int | None:
        plain = self.text.find_start(position, key, quoted=False)
        return self.text.find_start(position, key, quoted=True) if plain is None else plain

    def _visit_word(self, node: Node, schema: Schema, path: str) -> Node:
        if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
            return node
        if is_valid(node, schema):
            return node
        word = _correct_word(node, schema)
        start = self.text.find_start(node.position, node.text, quoted=node.quoted)
        if word is None or start is None:
            return node
        respelt = make_scalar(node.position, word, quoted=node.quoted)
        if not is_valid(respelt, schema):
            return node
        self.found.append(TypoFix(node.position, path, node.text, word, start))
        return respelt


class _UnknownKeys:
    """The unknown keys of a mapping, and the fields that they mean."""

    def __init__(self, node: MappingNode, block: Schema, path: str) -> None:
        self._node, self._fields, self._path = node, block["properties"], path
        self._is_of_table = FOREIGN not in block
        self._meant = {key: self._candidates(key) for key in node.entries}
        self._taken = Counter(name for names in self._meant.values() for name in names)

    def find_meant_field(self, key: str) -> tuple[str, Schema] | None:
        """Return the meant field; None if another key has, means or contradicts it."""
        name = self._find_certain_field(key)
        if name is None or not self._is_free(name, key):
            return None
        if name in COUNTS and "policy" in self._fields:
            free = all(self._is_free(count, key) for count in COUNTS)
            return (name, self._fields[name]) if free and self._agrees_with_policy(name) else None
        return name, self._fields[name]

    def _find_certain_field(self, key: str) -> str | None:
        """Return the field of this block with this alias (such as Hudi's) or similar spelling."""
        parent, _, name = (find_field_by_alias(key) or "").rpartition(".")
        if parent == self._path and name in self._fields and self._is_of_table:
            return name
        return spelling.find_certain_word(key, self._fields)

    def _candidates(self, key: str) -> set[str]:
        if key in self._fields:
            return {key}
        near = (self._find_certain_field(key), did_you_mean(key, self._fields))
        return {name for name in near if name}

    def _is_free(self, name: str, key: str) -> bool:
        return self._taken[name] == (name in self._meant[key])

    def _agrees_with_policy(self, count: str) -> bool:
        """Return whether the policy of a retention, if there is one, is that of the count."""
        meant = [self._node.get(key) for key, names in self._meant.items() if "policy" in names]
        texts = {policy.text if isinstance(policy, ScalarNode) else "" for policy in meant}
        policies = {spelling.find_certain_word(text, POLICY_BY_COUNT.values()) for text in texts}
        return policies <= {POLICY_BY_COUNT[count]}


_CORRECTIONS: Final[Mapping[str, Callable[[str], str | None]]] = {
    "time-zone": spelling.correct_zone,
    "byte-size": spelling.correct_size,
    "time-span": spelling.correct_duration,
    "percentage": spelling.correct_percent,
}


def _correct_word(node: ScalarNode, schema: Schema) -> str | None:
    """Return the one value that was meant. It may still be wrong, because it is in quotes."""
    words: list[Any] = [schema["const"]] if "const" in schema else schema.get("enum", [])
    if words:
        is_text = isinstance(words[0], str)
        return spelling.find_certain_word(node.text, words) if is_text else None
    correct = _CORRECTIONS.get(schema.get("format", ""))
    if correct is not None:
        return correct(node.text)
    match schema.get("type"):
        case "integer":
            return spelling.correct_whole_number(node.text, schema.get("x-unit", ""))
        case "boolean":
            return spelling.correct_flag(node.text)
        case _:
            return None
