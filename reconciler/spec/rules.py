"""Rules for fields that depend on each other, and for what must be declared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from reconciler import units
from reconciler.errors import Problems, ReconcilerError, quote_value
from reconciler.spec.clustering_rules import ClusteringRules
from reconciler.spec.model import FileSizes, IncrementalConsumer, Policy, Readers
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
#: for messages that are dropped: ``write`` reports errors of the schema
_SCHEMA_FIELD: Final = "table.schema"
_HOUR: Final = 3600
_CONSUMER_FIELDS: Final = 2  # a name and a lag


@dataclass(frozen=True, slots=True)
class SpecRules:
    """Checks the data of a node. ``partial``: a retention may lack its count."""

    problems: Problems
    partial: bool = False

    def check(self, spec: Mapping[str, Any], node: MappingNode, path: str) -> None:
        """Check every rule of a table's spec."""
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
        _check_query_columns(self.problems, spec, node, path)

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
                node.position, path, f"{needs} missing", "add it: retention has no default"
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
                f"remove policy, or give {COUNT_BY_POLICY[Policy(policy)]} instead of {given[0]}",
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
            f"{units.format_size(target)}: full files count as small forever",
            "files.small must be below files.target"
            if has_small
            else "declare files.small too, below files.target",
        )

    def _check_index(self, data: Mapping[str, Any], node: MappingNode, path: str) -> None:
        """Warn about a struct beside its own fields: only fields can be indexed."""
        columns = data.get("columns", ())
        for column in columns:
            field = next((name for name in columns if name.startswith(f"{column}.")), None)
            if field is not None:
                self.problems.warning(
                    node.key_position("columns"),
                    f"{path}.columns",
                    f"{column} is a struct, as {field} shows, and structs cannot be indexed",
                    "list only its fields",
                )

    def _check_readers(self, spec: Mapping[str, Any], node: MappingNode, path: str) -> None:
        """Warn about readers that need longer than the hours of the retention."""
        hours = spec.get("retention", {}).get("hours")
        slowest = _find_slowest_reader(spec.get("readers", {}))
        if hours is None or slowest is None or hours * _HOUR >= slowest[1]:
            return
        reader, seconds = slowest
        self.problems.warning(
            node.key_position("readers"),
            f"{path}.readers",
            f"{reader} {units.format_duration(seconds)}, and retention.hours is {hours}: what it "
            "may still read is kept longer",
            f"set hours to {-(-seconds // _HOUR)} or more",
        )

    def _check_concurrency(self, data: Mapping[str, Any], node: MappingNode, path: str) -> None:
        if data.get("staleAfter") == 0:
            self.problems.warning(
                node.key_position("staleAfter"),
                f"{path}.staleAfter",
                "0 takes over cleans that are still running",
                "give running cleans time, such as 1h",
            )


def _find_slowest_reader(data: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return the slowest of the readers that are declared completely."""
    consumers = [
        each for each in data.get("incrementalConsumers", ()) if len(each) == _CONSUMER_FIELDS
    ]
    lags = (IncrementalConsumer(name=each["name"], max_lag=each["maxLag"]) for each in consumers)
    return Readers(
        longest_query=data.get("longestQuery"), incremental_consumers=tuple(lags)
    ).slowest_reader


def _check_query_columns(
    problems: Problems, spec: Mapping[str, Any], node: MappingNode, path: str
) -> None:
    """Warn about names in ``queries`` that are similar to a column of ``table.schema``.

    Other unknown names are accepted: columns may have been added after the table was created.
    """
    asked, queries = spec.get("queries", ()), node.get("queries")
    schema = spec.get("table", {}).get("schema")
    if not isinstance(queries, SequenceNode) or len(asked) != len(queries.items) or not schema:
        return
    columns = _schema_columns(schema)
    if columns is None:
        return
    from reconciler.index.predicate_columns import find_unknown_names  # noqa: PLC0415 - few specs have both

    for nth, (query, item) in enumerate(zip(asked, queries.items, strict=True)):
        place = item.key_position("where") if isinstance(item, MappingNode) else item.position
        for unknown in find_unknown_names(query.get("where", ""), columns):
            if unknown.suggestion is not None:
                problems.warning(
                    place,
                    f"{path}.queries[{nth}].where",
                    f"table.schema has no column {unknown.name!r}",
                    f"did you mean {unknown.suggestion!r}?",
                )


def _schema_columns(schema: Any) -> Any:
    """Return the columns of an Avro schema as Arrow's, with Hudi's own; None if it is invalid."""
    from reconciler.file_slices.merge.avro_schema import add_meta_columns, to_arrow_schema  # noqa: PLC0415

    try:
        return add_meta_columns(to_arrow_schema(json.dumps(schema), _SCHEMA_FIELD))
    except (ReconcilerError, TypeError, ValueError):
        return None
