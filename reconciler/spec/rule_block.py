"""A block of a spec while its rules are checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.errors import Problems
from reconciler.lazy_dataclass import dataclass
from reconciler.spec.yaml_nodes import MappingNode, SequenceNode


@dataclass(frozen=True, slots=True)
class Block:
    """A mapping of a spec and its data. ``is_partial``: other documents complete it."""

    problems: Problems
    data: Mapping[str, Any]
    node: MappingNode
    path: str = "spec"
    is_partial: bool = False

    def find_block(self, name: str) -> Block | None:
        """Return an inner block; None if it is missing or invalid."""
        node = self.node.get(name)
        if name not in self.data or not isinstance(node, MappingNode):
            return None
        return self._enter(self.data[name], node, f"{self.path}.{name}")

    def list_blocks(self, name: str) -> list[Block]:
        """Return the blocks of a list; none if one of them is invalid."""
        data, node = self.data.get(name, ()), self.node.get(name)
        items = node.items if isinstance(node, SequenceNode) else ()
        if len(items) != len(data):
            return []
        return [
            self._enter(inner, item, f"{self.path}.{name}[{nth}]")
            for nth, (inner, item) in enumerate(zip(data, items, strict=True))
            if isinstance(item, MappingNode)
        ]

    def _enter(self, data: Mapping[str, Any], node: MappingNode, path: str) -> Block:
        return Block(self.problems, data, node, path, self.is_partial)

    def error(self, field: str, message: str, hint: str) -> None:
        """Report an error of a field, where it is declared."""
        self.problems.error(self.node.key_position(field), f"{self.path}.{field}", message, hint)

    def warn(self, field: str, message: str, hint: str) -> None:
        """Warn about a field, where it is declared."""
        self.problems.warning(self.node.key_position(field), f"{self.path}.{field}", message, hint)
