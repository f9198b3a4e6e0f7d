"""Reading YAML text into entries, without comments. The text is known to be valid.

PyYAML's parser in Python is used, because the one in C counts columns otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import yaml
from yaml.error import Mark

from reconciler.lazy_dataclass import dataclass
from reconciler.spec.formatting.model import (
    TextCollection,
    TextDocument,
    TextEntry,
    TextNode,
    TextScalar,
)

LINE_BREAK: Final = re.compile("[\n\x85\u2028\u2029]")
"""What ends a line for YAML, in a text without carriage returns."""

_HEADER: Final = re.compile(r"(?P<properties>(?:[&!]\S*\s+)*)(?P<sign>[|>])(?P<flags>[-+0-9]*)")
_DIGIT: Final = re.compile(r"[1-9]")
_TEXT_TAG: Final = "tag:yaml.org,2002:str"
_USUAL_INDENT: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadText:
    """The documents of a text, and where its scalars are.

    ``lines``: the text by line. ``offsets``: where each begins. ``spans``: first and last offset
    of each scalar. ``inner_lines``: lines inside scalars, which are neither comments nor blank.
    """

    documents: tuple[TextDocument, ...]
    text: str
    lines: tuple[str, ...]
    offsets: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    inner_lines: frozenset[int]


def read_text(text: str) -> ReadText:
    """Return the documents that are mappings or lists."""
    reader = _Reader(text)
    documents = tuple(reader.read_documents())
    return ReadText(
        documents=documents,
        text=text,
        lines=tuple(reader.lines),
        offsets=tuple(reader.offsets),
        spans=tuple(reader.spans),
        inner_lines=frozenset(reader.inner_lines),
    )


@dataclass(frozen=True, slots=True)
class _ReadNode:
    """A node, its first line, and its last line unless entries follow below it."""

    node: TextNode
    first: int
    last: int


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = LINE_BREAK.split(text)
        self.offsets = [0, *(match.end() for match in LINE_BREAK.finditer(text)), len(text) + 1]
        self.spans: list[tuple[int, int]] = []
        self.inner_lines: set[int] = set()
        self._aliases = 0
        self._events = yaml.parse(text, Loader=yaml.SafeLoader)
        tokens = yaml.scan(text, Loader=yaml.SafeLoader)
        dashes = (token for token in tokens if isinstance(token, yaml.BlockEntryToken))
        self._dashes = iter([_find_start(token) for token in dashes])

    def read_documents(self) -> Iterator[TextDocument]:
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                before = self._aliases
                root = self._read_node(next(self._events), 0).node
                if isinstance(root, TextCollection):
                    start, has_aliases = _find_start(event).line, self._aliases > before
                    yield TextDocument(root=root, start=start, has_aliases=has_aliases)

    def _read_node(self, event: yaml.Event, column: int) -> _ReadNode:
        """Read a node; ``column``: that of the entry that it belongs to."""
        if isinstance(event, yaml.CollectionStartEvent):
            return self._read_collection(event)
        self._aliases += isinstance(event, yaml.AliasEvent)
        start, end = _find_start(event), _find_end(event)
        if getattr(event, "style", None) in ("|", ">"):
            return self._read_block(event, column)
        self.spans.append((start.index, end.index))
        self.inner_lines.update(range(start.line + 1, end.line + 1))
        lines = LINE_BREAK.split(self.text[start.index : end.index])
        scalar = TextScalar(lines=[line.strip(" \t") for line in lines])
        return _ReadNode(scalar, start.line, end.line)

    def _read_block(self, event: yaml.Event, column: int) -> _ReadNode:
        start, end = _find_start(event), _find_end(event)
        first, after_last = start.line, end.line if end.column == 0 else end.line + 1
        header = _HEADER.match(self.lines[first][start.column :])
        while header is None:  # the properties stand above it
            first += 1
            header = _HEADER.match(self.lines[first].lstrip(" \t"))
        after = self.offsets[first + 1]
        self.spans += [(start.index, start.index), (after, max(after, end.index))]
        body = self.lines[first + 1 : after_last]
        digit = _DIGIT.search(header["flags"])
        indent = int(digit[0]) if digit else _USUAL_INDENT
        depth = column + indent if digit else _find_depth(body)
        lines = [line[depth:] for line in body]
        flags = header["flags"]
        if lines and end.column > 0:  # the file ends without a line break, and so does the value
            flags = f"{flags.strip('+-')}-"
        while lines and not lines[-1] and "+" not in flags:
            lines.pop()
        self.inner_lines.update(range(first + 1, first + 1 + len(lines)))
        properties = self.text[start.index : after].partition(header["sign"])[0].split()
        text = " ".join([*properties, header["sign"] + flags])
        return _ReadNode(TextScalar(lines=[text, *lines], block_indent=indent), start.line, first)

    def _read_collection(self, event: yaml.CollectionStartEvent) -> _ReadNode:
        is_flow = bool(event.flow_style)
        collection = TextCollection(
            is_mapping=isinstance(event, yaml.MappingStartEvent),
            is_flow=is_flow,
            properties=" ".join(_list_properties(event)),
        )
        first = last = _find_start(event).line
        columns = []
        while not isinstance(child := next(self._events), yaml.CollectionEndEvent):
            dash = next(self._dashes) if not collection.is_mapping and not is_flow else None
            mark = _find_start(child) if dash is None else dash
            columns.append(mark.column)
            collection.entries.append(
                self._read_entry(child, mark, is_mapping=collection.is_mapping)
            )
        collection.column = columns[0] if columns else 0
        if is_flow:
            last = _find_end(child).line
        return _ReadNode(collection, first, last)

    def _read_entry(self, event: yaml.Event, mark: Mark, *, is_mapping: bool) -> TextEntry:
        key = ""
        if is_mapping:
            node = self._read_node(event, mark.column).node
            assert isinstance(node, TextScalar)
            key = " ".join(node.lines)
            event = next(self._events)
        read = self._read_node(event, mark.column)
        ends = frozenset((mark.line, read.first, read.last))
        return TextEntry(key=key, node=read.node, start=mark.line, ends=ends)


def _list_properties(event: yaml.CollectionStartEvent) -> Iterator[str]:
    if event.anchor is not None:
        yield f"&{event.anchor}"
    if event.tag is not None:
        yield "!!str" if event.tag == _TEXT_TAG else event.tag


def _find_depth(lines: list[str]) -> int:
    """Return the indentation of a block: that of its first line with text, else of all blanks."""
    longest = max(map(len, lines), default=0)
    indents = (len(line) - len(line.lstrip(" ")) for line in lines if line.strip(" "))
    return next(indents, longest)


def _find_start(item: yaml.Event | yaml.Token) -> Mark:
    assert isinstance(item.start_mark, Mark)
    return item.start_mark


def _find_end(item: yaml.Event) -> Mark:
    assert isinstance(item.end_mark, Mark)
    return item.end_mark
