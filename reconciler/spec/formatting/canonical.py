"""The one canonical form of spec files and environments. Pure.

Fields stand in the order of the published schema, blocks are indented by two columns, and comments
stay with what they are about. The text of values is not changed.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Final

import yaml

from reconciler.errors import Problems
from reconciler.spec.declarations import read_kind
from reconciler.spec.formatting.comments import attach_comments, find_comments
from reconciler.spec.formatting.model import TextCollection
from reconciler.spec.formatting.reader import read_text
from reconciler.spec.formatting.writer import write_documents
from reconciler.spec.schema import Schema, find_block, load_definition
from reconciler.spec.yaml_nodes import Node, to_plain
from reconciler.spec.yaml_parser import parse_yaml

_RETURNS: Final = re.compile("\r\n?")
_TABS: Final = re.compile("\t[ \t]*")
_MAX_TABS: Final = 1000


def format_file(data: bytes, file: str, problems: Problems) -> bytes | None:
    """Return the bytes of a spec file in canonical form; None if a problem was reported.

    The file declares the same as before and keeps every comment, which is checked.
    """
    found = Problems()
    documents = parse_yaml(data, file, found)
    for document in documents:
        read_kind(document, found)
    problems.extend(found)
    if found.errors:
        return None
    text = _RETURNS.sub("\n", data.decode("utf-8-sig"))
    if not documents:
        return text.encode()
    formatted = _format_faithfully(text, documents)
    if formatted is None:
        message = "cannot be formatted without changing what it says, so it stays as it is"
        hint = "write texts of several lines as blocks (|), and spaces for tabs"
        problems.file_error(file, message, hint)
        return None
    return formatted.encode()


def _format_faithfully(text: str, documents: list[Node]) -> str | None:
    """Return the canonical text; None if it would lose or change a value or a comment."""
    try:
        spaced = _replace_tabs(text)
        formatted = _format_text(spaced, documents)
        is_faithful = _is_equal(spaced, documents, formatted) and _is_stable(formatted)
    except (yaml.YAMLError, ValueError):  # PyYAML's two parsers differ in rare cases
        return None
    return formatted if is_faithful else None


def _replace_tabs(text: str) -> str:
    """Return a text with spaces for the tabs between values, which PyYAML in Python cannot read.

    It names one tab at a time, so only so many are replaced.
    """
    for _ in range(_MAX_TABS if "\t" in text else 0):
        try:
            for _event in yaml.parse(text, Loader=yaml.SafeLoader):
                pass
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            tabs = mark and _TABS.match(text, mark.index)
            if not tabs:
                break
            text = f"{text[: tabs.start()]}{' ' * len(tabs[0])}{text[tabs.end() :]}"
        else:
            break
    return text


def _format_text(text: str, documents: list[Node]) -> str:
    read = read_text(text)
    attach_comments(read)
    for document, node in zip(read.documents, documents, strict=True):
        kind = read_kind(node, Problems())
        if kind is not None and not document.has_aliases:
            _sort_fields(document.root, load_definition(kind))
    return write_documents(read.documents)


def _sort_fields(collection: TextCollection, schema: Schema) -> None:
    """Bring the fields of a block and of its inner blocks into the order of the schema."""
    block = find_block(schema)
    fields = {} if block is None else block["properties"]
    order = {name: number for number, name in enumerate(fields)}
    if collection.is_mapping:
        collection.entries.sort(key=lambda entry: order.get(_read_key(entry.key), len(order)))
    for entry in collection.entries:
        if isinstance(entry.node, TextCollection):
            _sort_fields(entry.node, _find_schema(schema, fields, _read_key(entry.key)))


def _find_schema(schema: Schema, fields: Schema, key: str) -> Schema:
    """Return the schema of a field, of the values of a mapping by name, or of a list's items."""
    parts = (schema, *schema.get("anyOf", ()))
    names = ("items",) if not key else ("additionalProperties",)
    others = (part[name] for name in names for part in parts if name in part)
    found = fields.get(key) or next(others, None)
    return found if isinstance(found, dict) else {}


def _read_key(key: str) -> str:
    return key[1:-1] if key[:1] in ("'", '"') else key


def _is_equal(text: str, before: list[Node], formatted: str) -> bool:
    """Return whether two texts have the same values and comments."""
    problems = Problems()
    after = parse_yaml(formatted.encode(), "", problems)
    same_values = not problems.errors and _describe(before) == _describe(after)
    same_comments = _count_comments(text) == _count_comments(formatted)
    return same_values and same_comments and text.count("#") == formatted.count("#")


def _describe(documents: list[Node]) -> str:
    return json.dumps([to_plain(document) for document in documents], sort_keys=True)


def _count_comments(text: str) -> Counter[str]:
    return Counter(comment.text for comment in find_comments(read_text(text)))


def _is_stable(formatted: str) -> bool:
    return formatted == _format_text(formatted, parse_yaml(formatted.encode(), "", Problems()))
