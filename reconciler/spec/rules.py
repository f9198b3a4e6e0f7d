"""Rules for fields that depend on each other, and for what must be declared."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, Final

from reconciler import units
from reconciler.errors import Problems, ReconcilerError, quote_value
from reconciler.spec.compaction_rules import check_bounds, check_compaction
from reconciler.spec.concurrency_rules import check_concurrency
from reconciler.spec.model import (
    ClusteringBudget,
    FileSizes,
    IncrementalConsumer,
    Policy,
    Readers,
)
from reconciler.spec.moments import may_be_after
from reconciler.spec.rule_block import Block
from reconciler.spec.schema import load_definition
from reconciler.spec.timeline_rules import find_keep_problem
from reconciler.spec.yaml_nodes import MappingNode, ScalarNode, SequenceNode

POLICY_BY_COUNT: Final = {
    "commits": Policy.COMMITS,
    "hours": Policy.HOURS,
    "fileVersions": Policy.FILE_VERSIONS,
}
COUNTS: Final = tuple(POLICY_BY_COUNT)
"""The fields of which a retention has exactly one."""
COUNT_BY_POLICY: Final = {policy: count for count, policy in POLICY_BY_COUNT.items()}
#: the curve if none is given; ``mapping: direct`` has no default curve
DEFAULT_CURVE: Final = "kd-tree"
#: fields of ``files`` that declare sizes for existing files, not only for new rows
SIZES_OF_EXISTING_FILES: Final = ("target", "small", "large", "when")
#: ``files.large`` by default, as a multiple of ``files.target``
LARGE_FACTOR: Final = 2
_BIT_CURVES: Final = ("z-order", "hilbert")
_FILE_NAME: Final = "_hoodie_file_name"
#: for messages that are dropped: ``write`` reports errors of the schema
_SCHEMA_FIELD: Final = "table.schema"
_HOUR: Final = 3600
#: seconds; a younger file may belong to a write that nobody has noticed to have ended
LEAST_ORPHAN_AGE: Final = 24 * _HOUR
_CONSUMER_FIELDS: Final = 2  # a name and a lag


def check_rules(spec: Block) -> None:
    """Check every rule of a table's spec."""
    for name, check in (
        ("retention", _check_retention),
        ("index", _check_index),
        ("orphans", _check_orphans),
        ("concurrency", check_concurrency),
    ):
        if block := spec.find_block(name):
            check(block)
    _check_names(spec.problems, spec.node, "queries", spec.path)
    _check_names(spec.problems, spec.node, "savepoints", spec.path)
    _check_savepoints(spec)
    readers = spec.node.get("readers")
    if isinstance(readers, MappingNode):
        _check_names(spec.problems, readers, "incrementalConsumers", f"{spec.path}.readers")
    if files := spec.find_block("files"):
        _check_files(spec, files)
    if clustering := spec.find_block("clustering"):
        _check_clustering(spec, clustering)
    if compaction := spec.find_block("compaction"):
        check_compaction(spec, compaction)
    if timeline := spec.find_block("timeline"):
        _check_timeline(spec, timeline)
    if table := spec.find_block("table"):
        _check_bucket_index(table)
    _check_readers(spec)
    _check_partition_retention(spec)
    _check_query_columns(spec)


def _check_names(problems: Problems, node: MappingNode, field: str, path: str) -> None:
    """Report names that occur twice in a list of blocks."""
    seen, listed = set(), node.get(field)
    for index, item in enumerate(listed.items if isinstance(listed, SequenceNode) else ()):
        name = item.get("name") if isinstance(item, MappingNode) else None
        text = name.value if isinstance(name, ScalarNode) else None
        if not isinstance(text, str) or not text.strip():
            continue
        if text in seen:
            message = f"{quote_value(text)} is in the list twice"
            problems.error(item.position, f"{path}.{field}[{index}]", message)
        seen.add(text)


def _check_retention(block: Block) -> None:
    node = block.node
    given = [key for key in node.entries if key in COUNTS]
    policy = block.data.get("policy")
    known = load_definition("retention")["properties"]
    needs_count = node.entries.keys() != {"partitions"}
    if (
        not given
        and needs_count
        and not block.is_partial
        and all(key in known for key in node.entries)
    ):
        needed = COUNT_BY_POLICY[Policy(policy)] if policy else "commits, hours or fileVersions"
        hint = "add it: retention has no default"
        block.problems.error(node.position, block.path, f"{needed} is missing", hint)
    for count in given[1:]:
        line = node.key_position(given[0]).line
        block.error(count, f"contradicts {given[0]} on line {line}", "keep one of them")
    if policy and given and policy != POLICY_BY_COUNT[given[0]] and not given[1:]:
        needed = COUNT_BY_POLICY[Policy(policy)]
        hint = f"remove policy, or give {needed} instead of {given[0]}"
        block.error("policy", f"{policy} contradicts {given[0]}", hint)


def _check_partition_retention(spec: Block) -> None:
    """Report a retention of partitions that removes all of them, or that has none to remove."""
    retention = spec.find_block("retention")
    block = retention.find_block("partitions") if retention else None
    if block is None:
        return
    if block.data.get("olderThan") == 0:
        message = "0 would delete every partition"
        block.error("olderThan", message, "write the age that data may reach, such as 400d")
    table = spec.data.get("table", {})
    if "recordKey" in table and not table.get("partitionBy"):
        message = "table.partitionBy is empty, so the table has no partitions to delete"
        block.problems.error(block.node.position, block.path, message, "remove it")


def _check_files(spec: Block, block: Block) -> None:
    _check_small(block)
    _check_large(block)
    is_used = block.is_partial or any(name in block.data for name in SIZES_OF_EXISTING_FILES)
    for name in ("partitions", "budget", "quiet"):
        if name in block.data and not is_used:
            message = "has no effect: no size is declared for existing files"
            block.warn(name, message, "declare files.target or files.small too")
    if "clustering" in spec.data:
        for name in ("partitions", "budget"):
            if name in block.data and is_used:
                message = f"has no effect beside clustering: clustering.{name} wins"
                block.warn(name, message, "remove it")
        when = block.find_block("when")
        if when and "smallFileShareAbove" in when.data:
            message = "has no effect beside clustering: clustering.when wins"
            when.warn("smallFileShareAbove", message, "remove it")
    else:
        _check_size_conditions(block)
    if "budget" in block.data:
        _check_budget(spec, block)
    if partitions := block.find_block("partitions"):
        check_bounds(partitions)


def _check_size_conditions(block: Block) -> None:
    """Warn about a ``when`` without a condition that is on: only writes follow the sizes then."""
    when = block.data.get("when")
    if when is not None and not block.is_partial and when == {"largeFiles": False}:
        message = "has no condition that is on, so only new files follow the sizes"
        block.warn("when", message, "add smallFileShareAbove: 0.3 to pack existing files too")


def find_large(size: int) -> int:
    """Return twice a file size, or the greatest size that fits a plan."""
    return min(LARGE_FACTOR * size, units.MAX_SIZE)


def _check_large(block: Block) -> None:
    """Report a ``large`` that leaves no room for files between small and large ones."""
    large = block.data.get("large")
    if large is None or block.is_partial:
        return
    target = block.data.get("target", FileSizes().target)
    small = min(block.data.get("small", FileSizes().small), target)
    if large <= target < units.MAX_SIZE:
        message = f"{units.format_size(large)} is not above files.target, "
        message += f"{units.format_size(target)}: full files would be split again and again"
        block.error("large", message, "set it to twice files.target, or leave it out")
    elif large < find_large(small):
        message = f"{units.format_size(large)} is less than twice files.small, "
        message += f"{units.format_size(small)}: the parts of a file just above it would be small"
        least = units.format_size(find_large(small))
        block.error("large", message, f"set it to {least} or more, or lower files.small")


def _check_small(block: Block) -> None:
    target = block.data.get("target", FileSizes().target)
    small = block.data.get("small", FileSizes().small)
    if small <= target:
        return
    has_small = "small" in block.node.entries
    its = "" if has_small else "its default of "
    the = "" if "target" in block.node.entries else "the default of "
    block.problems.warning(
        block.node.key_position("small" if has_small else "target"),
        f"{block.path}.small",
        f"{its}{units.format_size(small)} is above {the}files.target, "
        f"{units.format_size(target)}: full files count as small forever",
        "files.small must be below files.target"
        if has_small
        else "declare files.small too, below files.target",
    )


def _check_index(block: Block) -> None:
    """Warn about a struct beside its own fields: only fields can be indexed."""
    columns = block.data.get("columns", ())
    for column in columns:
        field = next((name for name in columns if name.startswith(f"{column}.")), None)
        if field is not None:
            message = f"{column} is a struct, as {field} shows, and structs cannot be indexed"
            block.warn("columns", message, "list only its fields")


def _check_bucket_index(table: Block) -> None:
    """Report columns that are no part of the record key: an update would look elsewhere."""
    index, record_key = table.find_block("index"), table.data.get("recordKey")
    if index is None or record_key is None:
        return
    others = [name for name in index.data.get("keys", ()) if name not in record_key]
    if others:
        message = f"{others[0]} is no column of table.recordKey ({', '.join(record_key)})"
        index.error("keys", message, "name columns of the record key, or leave keys out")


def _check_orphans(block: Block) -> None:
    age = block.data.get("olderThan")
    if age is not None and age < LEAST_ORPHAN_AGE:
        message = f"{units.format_duration(age)} is less than 24h: a write may still need the file"
        block.error("olderThan", message, "write 24h or more, such as 3d")


def _check_savepoints(spec: Block) -> None:
    """Report savepoints that would have to go before the commit that they pin."""
    for block in spec.list_blocks("savepoints"):
        at, until = block.data.get("at"), block.data.get("until")
        if at and until and not may_be_after(until, at, spec.data.get("timezone")):
            message = f"{until} is not after at, {at}"
            block.error("until", message, "give a later time, or leave it out")


def _check_timeline(spec: Block, block: Block) -> None:
    """Report limits that contradict each other, or the commits that the retention needs."""
    commits = spec.data.get("retention", {}).get("commits")
    if problem := find_keep_problem(block.data.get("keep"), commits):
        block.error("keep", *problem)


def _check_readers(spec: Block) -> None:
    """Warn about readers that need longer than the hours of the retention."""
    hours = spec.data.get("retention", {}).get("hours")
    slowest = _find_slowest_reader(spec.data.get("readers", {}))
    if hours is None or slowest is None or hours * _HOUR >= slowest[1]:
        return
    reader, seconds = slowest
    spec.warn(
        "readers",
        f"{reader} {units.format_duration(seconds)}, and retention.hours is {hours}: what it "
        "may still read is kept longer",
        f"set hours to {-(-seconds // _HOUR)} or more",
    )


def _find_slowest_reader(data: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return the slowest of the readers that are declared completely."""
    consumers = tuple(
        IncrementalConsumer(name=consumer["name"], max_lag=consumer["maxLag"])
        for consumer in data.get("incrementalConsumers", ())
        if len(consumer) == _CONSUMER_FIELDS
    )
    readers = Readers(longest_query=data.get("longestQuery"), incremental_consumers=consumers)
    return readers.slowest_reader


def _check_query_columns(spec: Block) -> None:
    """Warn about names in ``queries`` that are similar to a column of ``table.schema``.

    Other unknown names are accepted: columns may have been added after the table was created.
    """
    queries, schema = spec.list_blocks("queries"), spec.data.get("table", {}).get("schema")
    columns = _schema_columns(schema) if queries and schema else None
    if columns is None:
        return
    from reconciler.index.predicate_columns import find_unknown_names  # noqa: PLC0415 - few specs have both

    for query in queries:
        for unknown in find_unknown_names(query.data.get("where", ""), columns):
            if unknown.suggestion is not None:
                message = f"table.schema has no column {unknown.name!r}"
                query.warn("where", message, f"did you mean {unknown.suggestion!r}?")


def _schema_columns(schema: Any) -> Any:
    """Return the columns of an Avro schema as Arrow's, with Hudi's own; None if it is invalid."""
    from reconciler.file_slices.merge.avro_schema import add_meta_columns, to_arrow_schema  # noqa: PLC0415

    try:
        return add_meta_columns(to_arrow_schema(json.dumps(schema), _SCHEMA_FIELD))
    except (ReconcilerError, TypeError, ValueError):
        return None


# --- clustering ----------------------------------------------------------------------------------


def _check_clustering(spec: Block, block: Block) -> None:
    _check_mapping(block)
    if block.data.get("columns"):
        _check_columns(block)
        _check_queries(spec, block.data["columns"])
    elif "columns" in block.data:
        _check_packing_only(block)
    _check_budget(spec, block)
    if partitions := block.find_block("partitions"):
        check_bounds(partitions)


def _check_mapping(block: Block) -> None:
    data = block.data
    if data.get("mapping") != "direct":
        return
    impossible = f"direct is not possible with curve {DEFAULT_CURVE}"
    if data.get("curve") == DEFAULT_CURVE:
        hint = "write mapping: rank, or another curve"
        block.error("mapping", f"{impossible}, which has no byte mapping", hint)
    elif data.get("columns") and "curve" not in block.node.entries and not block.is_partial:
        hint = "write curve: z-order or hilbert, or mapping: rank"
        block.error("mapping", f"{impossible}, the default", hint)
    elif data.get("curve") == "linear":
        block.warn("mapping", "direct only affects z-order and hilbert", "remove it")


def _check_columns(block: Block) -> None:
    columns, curve = block.data["columns"], block.data.get("curve")
    if _FILE_NAME in columns:
        message = f"{_FILE_NAME} changes at every rewrite, so rows cannot be ordered by it"
        block.error("columns", message, "remove it")
    if len(columns) == 1 and curve in _BIT_CURVES:
        is_direct = block.data.get("mapping") == "direct"
        why = "orders rows by its first 8 bytes" if is_direct else "orders rows as linear does"
        block.warn("curve", f"{curve} of one column {why}", "write curve: linear or kd-tree")


def _check_packing_only(block: Block) -> None:
    if block.data.get("curve"):
        block.warn("curve", "has no effect without columns", "remove it")
    when = block.find_block("when")
    if when and "overlapAbove" in when.data:
        message = "has no effect without columns: overlap is measured on them"
        when.warn("overlapAbove", message, "remove it")
    if when and "gainAbove" in when.data:
        message = "has no effect without columns: reads are predicted for them"
        when.warn("gainAbove", message, "remove it")


def _check_queries(spec: Block, columns: Collection[str]) -> None:
    """Warn about queries that do not gain from the order of rows."""
    for query in spec.list_blocks("queries"):
        if "where" in query.data and not _is_bounded(query.data["where"], columns):
            query.warn(
                "where",
                "does not filter on a clustering column, so clustering does not help it",
                "every OR branch must filter on a clustering column",
            )


def _check_budget(spec: Block, block: Block) -> None:
    given = block.data.get("budget", {}).get("perGroup")
    most = ClusteringBudget().per_group if given is None else given
    target = spec.data.get("files", {}).get("target", FileSizes().target)
    if most >= target:
        return
    budget = block.node.get("budget")
    block.problems.warning(
        (budget if isinstance(budget, MappingNode) else block.node).key_position("perGroup"),
        f"{block.path}.budget.perGroup",
        f"{units.format_size(most)} is below files.target, {units.format_size(target)}: "
        "groups are too small to fill a file",
        "set it to several times files.target",
    )


def _is_bounded(where: str, columns: Collection[str]) -> bool:
    """Return whether every OR branch of a predicate filters on one of the columns.

    ``layout.curves.workload`` ignores other queries.
    """
    from reconciler.layout.curves.query_boxes import find_boxes  # noqa: PLC0415 - few specs have queries

    known = {column.lower() for column in columns}
    return all(known & box.keys() for box in find_boxes(where))
