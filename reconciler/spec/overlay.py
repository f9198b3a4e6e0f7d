"""Which tables a document selects, and layers of declarations merged field by field."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.spec import locations
from reconciler.spec.fields import Block, WordOr
from reconciler.spec.nodes import Entry, MappingNode, Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Tables that have all of the labels and, if there are globs, lie at one of them."""

    labels: Mapping[str, str]
    globs: tuple[re.Pattern[str], ...] = ()

    def selects(self, labels: Mapping[str, str], location: str | None) -> bool:
        """Whether a table with these labels at this resolved location is meant."""
        if any(labels.get(name) != value for name, value in self.labels.items()):
            return False
        if not self.globs:
            return True
        place = locations.comparable(location or "")
        return any(glob.fullmatch(place) for glob in self.globs)

    @property
    def conditions(self) -> int:
        """How specific it is: one for each label, one for having paths."""
        return len(self.labels) + bool(self.globs)


def selector(data: Mapping[str, Any], folder: str) -> Selector:
    """The selector of checked data; ``folder`` is where relative globs start."""
    globs = tuple(locations.glob(pattern, folder) for pattern in data.get("paths", ()))
    return Selector(labels=data.get("labels", {}), globs=globs)


def overlay(base: MappingNode, top: MappingNode, block: Block) -> MappingNode:
    """Both, field by field; the top wins. Lists are replaced whole.

    Where the top has one of a block's exclusive fields, the base's are gone: a table that keeps
    hours is not bothered by a default for commits.
    """
    below = dict(base.entries)
    if block.exclusive & top.entries.keys():
        below = {key: entry for key, entry in below.items() if key not in block.exclusive}
    merged = {key: _merged(below.get(key), entry, key, block) for key, entry in top.entries.items()}
    return MappingNode(top.at, {**below, **merged})


def _merged(below: Entry | None, above: Entry, key: str, block: Block) -> Entry:
    field = block.field(key)
    inner = field.kind if field is not None else None
    inner = inner.block if isinstance(inner, WordOr) else inner
    if below is None or not isinstance(inner, Block):
        return above
    if isinstance(below.node, MappingNode) and isinstance(above.node, MappingNode):
        return Entry(above.at, overlay(below.node, above.node, inner))
    return above


def provenance(node: MappingNode, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Dotted field and ``file:line`` of everything declared; a list is one field."""
    for key, entry in node.entries.items():
        inner: Node = entry.node
        if isinstance(inner, MappingNode) and inner.entries:
            yield from provenance(inner, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", f"{entry.at.file}:{entry.at.line}"
