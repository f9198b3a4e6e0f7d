"""Writing YAML entries in the canonical form: indentation, spaces, brackets and comments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, assert_never

from reconciler.lazy_dataclass import dataclass
from reconciler.spec.formatting.model import (
    TextCollection,
    TextDocument,
    TextEntry,
    TextScalar,
)

WIDTH: Final = 100
"""Columns that a mapping or list in brackets may reach on one line."""

_STEP: Final = 2
_FAR: Final = 48
"""Columns from which on a line does not decide where the comments of a document stand."""


@dataclass(slots=True)
class _Line:
    """A line of the text.

    ``is_value``: it is one of a value of several lines. ``takes_blanks``: blank lines below it
    would belong to its value.
    """

    code: str
    remark: str = ""
    is_value: bool = False
    takes_blanks: bool = False


def write_documents(documents: Iterable[TextDocument]) -> str:
    """Return the text of documents."""
    return "---\n".join(_write_document(document) for document in documents)


def _write_document(document: TextDocument) -> str:
    lines = [_Line(text) for text in document.head]
    _write_entries(document.root, 0, "", lines)
    while lines and not (lines[-1].code or lines[-1].is_value):
        lines.pop()
    first = next((number for number, line in enumerate(lines) if line.code), 0)
    del lines[:first]
    ends = [len(line.code) for line in lines if line.remark and len(line.code) <= _FAR]
    column = max(ends, default=0)
    return "".join(
        f"{line.code.ljust(column)}  {line.remark}\n" if line.remark else f"{line.code}\n"
        for line in lines
    )


def _write_entries(
    collection: TextCollection, column: int, inline: str, lines: list[_Line]
) -> None:
    """Write the entries of a block; the first one behind ``inline``, the dash of an item."""
    for number, entry in enumerate(collection.entries):
        start = inline if number == 0 and inline else " " * column
        _write_entry(entry, column, start, lines, is_first=number == 0)
    _write_comments(collection.foot, " " * column, lines)


def _write_entry(
    entry: TextEntry, column: int, start: str, lines: list[_Line], *, is_first: bool
) -> None:
    node, begin = entry.node, f"{start}{_format_name(entry)}"
    flow = _format_flow(node) if isinstance(node, TextCollection) else ""
    is_flow = bool(flow) and len(begin) + len(flow) <= WIDTH
    # the block of an item begins behind its dash, where no comment can stand
    is_inline = not (entry.key or isinstance(node, TextScalar) or is_flow or node.properties)
    lead = [*entry.lead, entry.remark] if is_inline and entry.remark else entry.lead
    margin = start[: len(start) - len(start.lstrip(" "))]
    _write_comments(_trim_start(lead) if is_first and column else lead, margin, lines)
    match node:
        case TextScalar():
            _write_scalar(node, column, begin, entry.remark, lines)
        case TextCollection() if is_flow:
            lines.append(_Line(f"{begin}{flow}", entry.remark))
        case TextCollection() if is_inline:
            _write_entries(node, column + _STEP, begin, lines)
        case TextCollection():
            lines.append(_Line(f"{begin}{node.properties}".rstrip(), entry.remark))
            _write_entries(node, column + _STEP, "", lines)
        case _:
            assert_never(node)


def _write_comments(texts: list[str], margin: str, lines: list[_Line]) -> None:
    """Write comments and blank lines, but no blank line that would become part of a value."""
    shown = _trim_start(texts) if lines and lines[-1].takes_blanks else texts
    lines.extend(_Line(margin + text if text else "") for text in shown)


def _write_scalar(
    scalar: TextScalar, column: int, start: str, remark: str, lines: list[_Line]
) -> None:
    first, *others = scalar.lines
    is_block = scalar.block_indent is not None
    margin = " " * (column + (_STEP if scalar.block_indent is None else scalar.block_indent))
    written = [_Line(f"{start}{first}".rstrip())]
    written += [_Line(margin + text if text else "", is_value=True) for text in others]
    written[0 if is_block else -1].remark = remark
    written[-1].takes_blanks = is_block and "+" in first.split()[-1]
    lines.extend(written)


def _format_name(entry: TextEntry) -> str:
    if not entry.key:
        return "- "
    return f"{entry.key} : " if entry.key.startswith("*") else f"{entry.key}: "


def _format_flow(node: TextCollection) -> str:
    """Return a collection in brackets on one line; "" if it must be a block."""
    if node.entries and (not node.is_flow or node.has_comments()):
        return ""
    parts = [_format_flow_entry(entry) for entry in node.entries]
    if None in parts:
        return ""
    inside = ", ".join(filter(None, parts))
    text = f"{{{inside}}}" if node.is_mapping else f"[{inside}]"
    return f"{node.properties} {text}".lstrip()


def _format_flow_entry(entry: TextEntry) -> str | None:
    """Return an entry inside brackets; None if it needs several lines."""
    match entry.node:
        case TextScalar(lines=[text], block_indent=None):
            value = text
        case TextScalar():
            return None
        case TextCollection():
            value = _format_flow(entry.node)
            if not value:
                return None
        case _:
            assert_never(entry.node)
    return f"{_format_name(entry)}{value}" if entry.key else value


def _trim_start(texts: list[str]) -> list[str]:
    """Return comment lines without blank lines above them."""
    first = next((index for index, text in enumerate(texts) if text), len(texts))
    return texts[first:]
