"""YAML text as entries with their comments: what formatting moves and writes.

A scalar keeps its text, so writing it again does not change what it means. Values of this module
are built up while a text is read, and so are not frozen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from reconciler.lazy_dataclass import dataclass


@dataclass(slots=True, kw_only=True)
class TextScalar:
    """A scalar or an alias, with anchor and tag; one item of ``lines`` a line, not indented.

    ``block_indent``: columns by which the lines after the first are indented if the first is the
    header of a block (``|`` or ``>``), else None.
    """

    lines: list[str]
    block_indent: int | None = None


@dataclass(slots=True, kw_only=True)
class TextCollection:
    """A mapping or a list. ``properties``: its anchor and tag. ``column``: where entries begin.

    ``is_flow``: it is written in brackets. ``foot``: comments below its entries.
    """

    is_mapping: bool
    is_flow: bool
    properties: str
    column: int = 0
    entries: list[TextEntry] = field(default_factory=list)
    foot: list[str] = field(default_factory=list)

    def has_comments(self) -> bool:
        """Return whether there is a comment on, above or below one of the entries."""
        return any(self.foot) or any(entry.has_comments() for entry in self.entries)


TextNode = TextScalar | TextCollection


@dataclass(slots=True, kw_only=True)
class TextEntry:
    """A field of a mapping, or an item of a list, whose ``key`` is empty.

    ``start``: its first line. ``ends``: lines at whose end a comment belongs to it. ``lead``:
    comments above it, with "" for a blank line. ``remark``: the comment behind it.
    """

    key: str
    node: TextNode
    start: int
    ends: frozenset[int]
    lead: list[str] = field(default_factory=list)
    remark: str = ""

    def has_comments(self) -> bool:
        """Return whether the entry or one inside it has a comment."""
        if self.remark or any(self.lead):
            return True
        return isinstance(self.node, TextCollection) and self.node.has_comments()


@dataclass(slots=True, kw_only=True)
class TextDocument:
    """One document. ``start``: its first line. ``head``: comments above its first field."""

    root: TextCollection
    start: int
    has_aliases: bool
    head: list[str] = field(default_factory=list)


Surrounded = tuple[TextEntry, tuple[TextCollection, ...]]
"""An entry with the collections around it, the outermost first."""


def iterate_entries(
    collection: TextCollection, around: tuple[TextCollection, ...] = ()
) -> Iterator[Surrounded]:
    """Yield every entry in the order of the text."""
    inside = (*around, collection)
    for entry in collection.entries:
        yield entry, inside
        if isinstance(entry.node, TextCollection):
            yield from iterate_entries(entry.node, inside)
