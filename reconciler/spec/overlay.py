"""Selection of tables by a document, and merging of declarations field by field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from reconciler.lazy_dataclass import dataclass
from reconciler.spec import locations
from reconciler.spec.rules import COUNTS
from reconciler.spec.schema import Schema, find_block, find_field
from reconciler.spec.yaml_nodes import Entry, MappingNode, Node

_EXCLUSIVE: Final = frozenset(("policy", *COUNTS))
"""Fields of a retention that replace each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Selects tables that have all labels and, if there are globs, a location that matches one."""

    labels: Mapping[str, str]
    globs: tuple[locations.LocationGlob, ...] = ()

    def selects(self, labels: Mapping[str, str], location: str | None) -> bool:
        """Return whether a table with these labels at this resolved location is selected."""
        if any(labels.get(name) != value for name, value in self.labels.items()):
            return False
        if not self.globs:
            return True
        return any(glob.matches(location or "") for glob in self.globs)

    @property
    def specificity(self) -> int:
        """The number of conditions: one for each label, and one for paths."""
        return len(self.labels) + bool(self.globs)


def build_selector(data: Mapping[str, Any], folder: str) -> Selector:
    """Return the selector of checked data; relative globs start from ``folder``."""
    globs = tuple(locations.compile_glob(pattern, folder) for pattern in data.get("paths", ()))
    return Selector(labels=data.get("labels", {}), globs=globs)


def merge_nodes(base: MappingNode, top: MappingNode, block: Schema) -> MappingNode:
    """Merge two mappings field by field; ``top`` wins. Lists are replaced as a whole.

    If ``top`` has one of the fields of a retention that replace each other, those of ``base`` are
    dropped: a default for commits does not contradict a table with hours.
    """
    below = dict(base.entries)
    is_retention = block["properties"].keys() >= _EXCLUSIVE
    if is_retention and _EXCLUSIVE & top.entries.keys():
        below = {key: entry for key, entry in below.items() if key not in _EXCLUSIVE}
    merged = {
        key: _merge_entry(below.get(key), entry, key, block) for key, entry in top.entries.items()
    }
    return MappingNode(top.position, {**below, **merged})


def _merge_entry(below: Entry | None, above: Entry, key: str, block: Schema) -> Entry:
    inner = find_block(find_field(block, key))
    if below is None or inner is None:
        return above
    if isinstance(below.node, MappingNode) and isinstance(above.node, MappingNode):
        return Entry(above.position, merge_nodes(below.node, above.node, inner))
    return above


def list_provenance(node: MappingNode, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the dotted path and ``file:line`` of every declared field; a list is one field."""
    for key, entry in node.entries.items():
        inner: Node = entry.node
        if isinstance(inner, MappingNode) and inner.entries:
            yield from list_provenance(inner, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", f"{entry.position.file}:{entry.position.line}"
