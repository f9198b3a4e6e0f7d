"""Parser of YAML text into nodes with positions, by YAML 1.2's core schema.

It refuses duplicate keys, merge keys, tags, keys that are no scalars, tabs as indentation, and
documents that are too large. Aliases count as if they were written out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from typing import Final

import yaml

from reconciler.errors import Problems, SourcePosition, quote_value
from reconciler.lazy_dataclass import dataclass
from reconciler.spec.yaml_nodes import (
    Entry,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    make_scalar,
)

MAX_FILE_BYTES: Final = 16 * 1024**2
MAX_NODES: Final = 100_000
MAX_DEPTH: Final = 40

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NOT_YAML: Final = re.compile(
    "[^\\t\\n\\r\\x20-\\x7e\\x85\\xa0-\\ud7ff\\ue000-\\ufefe\\uff00-\\ufffd\\U00010000-\\U0010ffff]"
)
_REMEDIES: Final = {
    "mapping values are not allowed": "add the missing line break, or quote a text with ': '",
    "did not find expected": "check the indentation here, and brackets and quotes above",
    "cannot start any token": "quote the value",
    "undefined alias": "quote a text that starts with *",
}
_TEXT_TAG: Final = "tag:yaml.org,2002:str"


class _RefusedError(Exception):
    """The rest of the file cannot be read; the message says why."""

    def __init__(self, position: SourcePosition, message: str, hint: str = "") -> None:
        super().__init__(position, message, hint)
        self.position, self.message, self.hint = position, message, hint


def parse_yaml(data: bytes, file: str, problems: Problems) -> list[Node]:
    """Return the documents of a file without empty ones; [] after a syntax error."""
    try:
        return list(_compose_documents(_decode_text(data, file), file, problems))
    except _RefusedError as refusal:
        problems.error(refusal.position, "", refusal.message, refusal.hint)
    return []


def _decode_text(data: bytes, file: str) -> str:
    if len(data) > MAX_FILE_BYTES:
        message = f"has {len(data)} bytes; a spec file has at most {MAX_FILE_BYTES}"
        raise _RefusedError(SourcePosition(file), message, "check that this is a spec")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        position = SourcePosition(file, line, error.start - data.rfind(b"\n", 0, error.start))
        raise _RefusedError(position, "is not UTF-8 text", "save the file as UTF-8") from None


def _compose_documents(text: str, file: str, problems: Problems) -> Iterator[Node]:
    try:
        events = iter(_LOADER(text).get_event, None)
        composer = _Composer(file, problems)
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                composer.anchors.clear()
                composer.expanded_nodes = 0
                node = composer.compose_node(next(events), events, 0)
                if not (isinstance(node, ScalarNode) and node.value is None):
                    yield node
    except yaml.YAMLError as error:
        raise _syntax_error(error, text, file) from None


def _syntax_error(error: yaml.YAMLError, text: str, file: str) -> _RefusedError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        return _unprintable_error(text, file)
    position = SourcePosition(file, mark.line + 1, mark.column + 1)
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip())]:
        position = SourcePosition(file, mark.line + 1, line.index("\t") + 1)
        message = "a tab in the indentation, which YAML does not allow"
        return _RefusedError(position, message, "use spaces")
    problem = getattr(error, "problem", None) or "syntax error"
    if "nesting depth" in problem:
        return _depth_error(_find_deep_value(text, file) or position)
    return _RefusedError(position, f"invalid YAML: {problem}", _suggest_remedy(problem))


def _unprintable_error(text: str, file: str) -> _RefusedError:
    match = _NOT_YAML.search(text)
    if match is None:
        return _RefusedError(SourcePosition(file), "is not valid YAML", "save it as plain text")
    line = text.count("\n", 0, match.start()) + 1
    position = SourcePosition(file, line, match.start() - text.rfind("\n", 0, match.start()))
    message = f"the character U+{ord(match[0]):04X} is not allowed in YAML"
    return _RefusedError(position, message, "remove it")


def _depth_error(at: SourcePosition) -> _RefusedError:
    return _RefusedError(at, f"nested more than {MAX_DEPTH} levels deep", "flatten the document")


def _find_deep_value(text: str, file: str) -> SourcePosition | None:
    """Find the first value that is nested too deep.

    The C library reads some 1 000 characters ahead and may meet its own limit before the events of
    that value; the parser in Python has no such limit.
    """
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            return _locate_event(event, file)
        depth += isinstance(event, yaml.CollectionStartEvent)
    return None


def _suggest_remedy(problem: str) -> str:
    remedies = (remedy for part, remedy in _REMEDIES.items() if part in problem)
    return next(remedies, "check the indentation and quotes here and on the line above")


@dataclass(slots=True)
class _Composer:
    """Composes nodes from YAML events. ``expanded_nodes`` counts aliases as if written out."""

    file: str
    problems: Problems
    anchors: dict[str, tuple[Node, int] | None] = field(default_factory=dict)
    expanded_nodes: int = 0

    def compose_node(self, event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> Node:
        at = _locate_event(event, self.file)
        if isinstance(event, yaml.AliasEvent):
            return self._resolve_alias(event, at)
        self._count_nodes(1, at)
        if depth > MAX_DEPTH:
            raise _depth_error(at)
        if isinstance(event, yaml.ScalarEvent):
            self._check_tag(event.tag, at)
            composed: Node = make_scalar(at, event.value, quoted=not event.implicit[0])
            self._set_anchor(event.anchor, composed, 1)
            return composed
        assert isinstance(event, yaml.CollectionStartEvent)
        return self._compose_collection(event, at, events, depth)

    def _compose_collection(
        self,
        event: yaml.CollectionStartEvent,
        at: SourcePosition,
        events: Iterator[yaml.Event],
        depth: int,
    ) -> Node:
        self._check_tag(event.tag, at)
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        before = self.expanded_nodes
        if isinstance(event, yaml.SequenceStartEvent):
            composed: Node = SequenceNode(at, tuple(self._compose_items(events, depth)))
        else:
            composed = MappingNode(at, self._compose_entries(events, depth))
        self._set_anchor(event.anchor, composed, self.expanded_nodes - before + 1)
        return composed

    def _compose_items(self, events: Iterator[yaml.Event], depth: int) -> Iterator[Node]:
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            yield self.compose_node(event, events, depth + 1)

    def _compose_entries(self, events: Iterator[yaml.Event], depth: int) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            at, key = self._compose_key(event, events, depth)
            value = self.compose_node(next(events), events, depth + 1)
            if key in entries:
                first = entries[key].position.line
                message = f"duplicate key {quote_value(key)}, first on line {first}"
                self.problems.error(at, "", message, "keep one of them")
            else:
                entries[key] = Entry(at, value)
        return entries

    def _compose_key(
        self, event: yaml.Event, events: Iterator[yaml.Event], depth: int
    ) -> tuple[SourcePosition, str]:
        at = _locate_event(event, self.file)
        if (
            isinstance(event, yaml.ScalarEvent)
            and event.anchor is None
            and event.tag is None
            and event.value != "<<"
            and depth < MAX_DEPTH
        ):  # as nearly all are
            self._count_nodes(1, at)
            return at, event.value
        node = self.compose_node(event, events, depth + 1)
        if not isinstance(node, ScalarNode):
            raise _RefusedError(at, "a list or mapping is used as a key", "write a plain word")
        if node.text == "<<" and not node.quoted:
            hint = "share fields with kind: TableDefaults"
            raise _RefusedError(at, "merge keys (<<) are not supported", hint)
        return at, node.text

    def _resolve_alias(self, event: yaml.AliasEvent, position: SourcePosition) -> Node:
        name = str(event.anchor)
        if name not in self.anchors:
            message = f"no anchor named {name} for the alias *{name}"
            raise _RefusedError(position, message, "quote a text that starts with *")
        known = self.anchors[name]
        if known is None:
            raise _RefusedError(position, f"*{name} contains itself", "write the value out")
        node, size = known
        self._count_nodes(size, position)
        return node

    def _set_anchor(self, name: str | None, node: Node, size: int) -> None:
        if name is not None:
            self.anchors[name] = (node, size)

    def _check_tag(self, tag: str | None, position: SourcePosition) -> None:
        if tag not in (None, "!", _TEXT_TAG):
            message = f"tags such as {quote_value(tag)} are not supported"
            raise _RefusedError(position, message, "remove it")

    def _count_nodes(self, nodes: int, position: SourcePosition) -> None:
        self.expanded_nodes += nodes
        if self.expanded_nodes > MAX_NODES:
            message = f"the document expands to more than {MAX_NODES} values"
            raise _RefusedError(position, message, "check for aliases nested in aliases")


def _locate_event(event: yaml.Event, file: str) -> SourcePosition:
    mark = event.start_mark
    assert mark is not None
    return SourcePosition(file, mark.line + 1, mark.column + 1)
