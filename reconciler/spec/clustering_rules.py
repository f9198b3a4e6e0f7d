"""Rules for the fields of a clustering, and for queries that do not gain from it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from reconciler import units
from reconciler.errors import Problems, quote_value
from reconciler.spec.model import ClusteringBudget, FileSizes
from reconciler.spec.yaml_nodes import MappingNode, Node, SequenceNode

#: the curve if none is given; ``mapping: direct`` has no default curve
DEFAULT_CURVE: Final = "kd-tree"
_BIT_CURVES: Final = ("z-order", "hilbert")
_FILE_NAME: Final = "_hoodie_file_name"


@dataclass(frozen=True, slots=True)
class ClusteringRules:
    """Checks the clustering in a table's spec. ``partial``: other documents complete it."""

    problems: Problems
    partial: bool = False

    def check(self, spec: Mapping[str, Any], node: MappingNode, path: str) -> None:
        """Check every rule; ``spec`` is the data of the node."""
        block = node.get("clustering")
        if "clustering" not in spec or not isinstance(block, MappingNode):
            return
        data, at = spec["clustering"], f"{path}.clustering"
        self._check_mapping(data, block, at)
        if data.get("columns"):
            self._check_stable_columns(data, block, at)
            self._check_single_column(data, block, at)
            self._check_queries(spec, node.get("queries"), f"{path}.queries")
        elif "columns" in data:
            self._check_packing_only(data, block, at)
        self._check_budget(spec, block, at)
        partitions = block.get("partitions")
        if "partitions" in data and isinstance(partitions, MappingNode):
            self._check_bounds(data["partitions"], partitions, f"{at}.partitions")

    def _check_mapping(self, data: Mapping[str, Any], node: MappingNode, path: str) -> None:
        if data.get("mapping") != "direct":
            return
        place, field = node.key_position("mapping"), f"{path}.mapping"
        if data.get("curve") == "kd-tree":
            self.problems.error(
                place,
                field,
                "direct is not possible with curve kd-tree, which has no byte mapping",
                "write mapping: rank, or another curve",
            )
        elif data.get("columns") and "curve" not in node.entries and not self.partial:
            self.problems.error(
                place,
                field,
                "direct is not possible with curve kd-tree, the default",
                "write curve: z-order or hilbert, or mapping: rank",
            )
        elif data.get("curve") == "linear":
            self.problems.warning(
                place, field, "direct only affects z-order and hilbert", "remove it"
            )

    def _check_stable_columns(self, data: Mapping[str, Any], node: MappingNode, path: str) -> None:
        if _FILE_NAME in data["columns"]:
            self.problems.error(
                node.key_position("columns"),
                f"{path}.columns",
                f"{_FILE_NAME} changes at every rewrite, so rows cannot be ordered by it",
                "remove it",
            )

    def _check_single_column(self, data: Mapping[str, Any], node: MappingNode, path: str) -> None:
        curve = data.get("curve")
        if len(data["columns"]) > 1 or curve not in _BIT_CURVES:
            return
        why = "orders rows as linear does"
        if data.get("mapping") == "direct":
            why = "orders rows by its first 8 bytes"
        self.problems.warning(
            node.key_position("curve"),
            f"{path}.curve",
            f"{curve} of one column {why}",
            "write curve: linear or kd-tree",
        )

    def _check_packing_only(self, data: Mapping[str, Any], node: MappingNode, path: str) -> None:
        if data.get("curve"):
            self.problems.warning(
                node.key_position("curve"),
                f"{path}.curve",
                "has no effect without columns",
                "remove it",
            )
        when, given = node.get("when"), data.get("when")
        if isinstance(when, MappingNode) and isinstance(given, Mapping) and "overlapAbove" in given:
            self.problems.warning(
                when.key_position("overlapAbove"),
                f"{path}.when.overlapAbove",
                "has no effect without columns: overlap is measured on them",
                "remove it",
            )

    def _check_queries(self, spec: Mapping[str, Any], node: Node | None, path: str) -> None:
        """Warn about queries that do not gain from the order of rows."""
        queries, columns = spec.get("queries", ()), spec["clustering"]["columns"]
        if not isinstance(node, SequenceNode) or len(node.items) != len(queries):
            return
        for nth, (query, item) in enumerate(zip(queries, node.items, strict=True)):
            where = query.get("where")
            if where is None or not isinstance(item, MappingNode) or _is_bounded(where, columns):
                continue
            self.problems.warning(
                item.key_position("where"),
                f"{path}[{nth}].where",
                "does not filter on a clustering column, so clustering does not help it",
                "every OR branch must filter on a clustering column",
            )

    def _check_budget(self, spec: Mapping[str, Any], node: MappingNode, path: str) -> None:
        given = spec["clustering"].get("budget", {}).get("perGroup")
        most = ClusteringBudget().per_group if given is None else given
        target = spec.get("files", {}).get("target", FileSizes().target)
        if most >= target:
            return
        budget = node.get("budget")
        place = (
            budget.key_position("perGroup") if isinstance(budget, MappingNode) else node.position
        )
        self.problems.warning(
            place,
            f"{path}.budget.perGroup",
            f"{units.format_size(most)} is below files.target, {units.format_size(target)}: "
            "groups are too small to fill a file",
            "set it to several times files.target",
        )

    def _check_bounds(self, data: Mapping[str, Any], node: MappingNode, path: str) -> None:
        if "from" in data and "to" in data and data["from"] > data["to"]:
            self.problems.error(
                node.key_position("from"),
                f"{path}.from",
                f"{quote_value(data['from'])} comes after to, {quote_value(data['to'])}, as text",
                "swap them",
            )


def _is_bounded(where: str, columns: Collection[str]) -> bool:
    """Return whether every OR branch of a predicate filters on one of the columns.

    ``layout.curves.workload`` ignores other queries.
    """
    from reconciler.layout.curves.query_boxes import find_boxes  # noqa: PLC0415 - few specs have queries

    known = {column.lower() for column in columns}
    return all(known & box.keys() for box in find_boxes(where))
