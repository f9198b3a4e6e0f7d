"""What fields say together: contradictions, and counts that must be there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from reconciler import units
from reconciler.errors import Problems, quote_value
from reconciler.spec.clustering_rules import ClusteringRules
from reconciler.spec.model import FileSizes, IncrementalConsumer, Policy, Readers
from reconciler.spec.query_columns import check_query_columns
from reconciler.spec.schema import load_definition
from reconciler.spec.yaml_nodes import MappingNode, Node, ScalarNode, SequenceNode

POLICY_BY_COUNT: Final = {
    "commits": Policy.COMMITS,
    "hours": Policy.HOURS,
    "fileVersions": Policy.FILE_VERSIONS,
}
COUNTS: Final = tuple(POLICY_BY_COUNT)
"""The fields of which a retention has exactly one."""
COUNT_BY_POLICY: Final = {policy: count for count, policy in POLICY_BY_COUNT.items()}
_HOUR: Final = 3600
_CONSUMER_FIELDS: Final = 2  # a name and a lag


@dataclass(frozen=True, slots=True)
class SpecRules:
    """Checks of data that was read from the node beside it. ``partial`` asks for no count."""

    problems: Problems
    partial: bool = False

    def check(self, spec: Mapping[str, Any], node: MappingNode, path: str) -> None:
        """Every rule of a table's spec."""
        for name, rule in (
            ("retention", self._check_retention),
            ("files", self._check_files),
            ("index", self._check_index),
            ("concurrency", self._check_concurrency),
        ):
            inner = node.get(name)
            if name in spec and isinstance(inner, MappingNode):
                rule(spec[name], inner, f"{path}.{name}")
        self._check_names(node.get("queries"), f"{path}.queries")
        readers = node.get("readers")
        if isinstance(readers, MappingNode):
            consumers = readers.get("incrementalConsumers")
            self._check_names(consumers, f"{path}.readers.incrementalConsumers")
        ClusteringRules(self.problems, self.partial).check(spec, node, path)
        self._check_readers(spec, node, path)
        check_query_columns(self.problems, spec, node, path)

    def _check_names(self, node: Node | None, path: str) -> None:
        """Report names that occur twice in a list of blocks."""
        seen = set()
        for index, item in enumerate(node.items if isinstance(node, SequenceNode) else ()):
            name = item.get("name") if isinstance(item, MappingNode) else None
            text = name.value if isinstance(name, ScalarNode) else None
            if not isinstance(text, str) or not text.strip():
                continue
            if text in seen:
                message = f"{quote_value(text)} is in the list twice"
                self.problems.error(item.position, f"{path}[{index}]", message)
            seen.add(text)

    def _check_retention(self, data: Mapping[str, Any], node: MappingNode, path: str) -> None:
        given = [key for key in node.entries if key in COUNTS]
        policy = data.get("policy")
        known = load_definition("retention")["properties"]
        if not given and not self.partial and all(key in known for key in node.entries):
            needs = (
                f"{COUNT_BY_POLICY[Policy(policy)]} is"
                if policy
                else "commits, hours or fileVersions is"
            )
            self.problems.error(
                node.position, path, f"{needs} missing", "how much is kept has no default"
            )
        for count in given[1:]:
            self.problems.error(
                node.key_position(count),
                f"{path}.{count}",
                f"contradicts {given[0]} on line {node.key_position(given[0]).line}",
                "keep one of them",
            )
        if policy and given and policy != POLICY_BY_COUNT[given[0]] and not given[1:]:
            self.problems.error(
                node.key_position("policy"),
                f"{path}.policy",
                f"{policy} contradicts {given[0]}",
                f"leave policy out, or give {COUNT_BY_POLICY[Policy(policy)]} instead of {given[0]}",
            )

    def _check_files(self, data: Mapping[str, Any], node: MappingNode, path: str) -> None:
        target = data.get("target", FileSizes().target)
        small = data.get("small", FileSizes().small)
        if small <= target:
            return
        has_small = "small" in node.entries
        its = "" if has_small else "its default of "
        the = "" if "target" in node.entries else "the default of "
        self.problems.warning(
            node.key_position("small" if has_small else "target"),
            f"{path}.small",
            f"{its}{units.format_size(small)} is above {the}files.target, "
            f"{units.format_size(target)}: a full file stays small forever",
            "make small the lesser" if has_small else "declare small too, below target",
        )

    def _check_index(self, data: Mapping[str, Any], node: MappingNode, path: str) -> None:
        """A struct has no order, its fields do; both cannot be meant by one name."""
        columns = data.get("columns", ())
        for column in columns:
            field = next((name for name in columns if name.startswith(f"{column}.")), None)
            if field is not None:
                self.problems.warning(
                    node.key_position("columns"),
                    f"{path}.columns",
                    f"{column} is a struct, as {field} says, and a struct cannot be indexed",
                    "name its fields alone",
                )

    def _check_readers(self, spec: Mapping[str, Any], node: MappingNode, path: str) -> None:
        """Readers that need more than hours keep: their files stay, whatever hours say."""
        hours = spec.get("retention", {}).get("hours")
        slowest = _find_slowest_reader(spec.get("readers", {}))
        if hours is None or slowest is None or hours * _HOUR >= slowest[1]:
            return
        reader, seconds = slowest
        self.problems.warning(
            node.key_position("readers"),
            f"{path}.readers",
            f"{reader} {units.format_duration(seconds)}, and retention.hours is {hours}: what it "
            "may still read is kept longer than hours say",
            f"let hours be {-(-seconds // _HOUR)} or more",
        )

    def _check_concurrency(self, data: Mapping[str, Any], node: MappingNode, path: str) -> None:
        if data.get("staleAfter") == 0:
            self.problems.warning(
                node.key_position("staleAfter"),
                f"{path}.staleAfter",
                "0 takes over cleans that are still running",
                "give running cleans time, as in 1h",
            )


def _find_slowest_reader(data: Mapping[str, Any]) -> tuple[str, int] | None:
    """Who needs the longest time of the readers that are written down whole."""
    consumers = [
        each for each in data.get("incrementalConsumers", ()) if len(each) == _CONSUMER_FIELDS
    ]
    lags = (IncrementalConsumer(name=each["name"], max_lag=each["maxLag"]) for each in consumers)
    return Readers(
        longest_query=data.get("longestQuery"), incremental_consumers=tuple(lags)
    ).slowest_reader
