"""Conversion of an effective spec to the JSON document that a plan carries, and back.

The document is complete, stable and free of credentials. Defaults of declared blocks are filled in,
sizes are bytes, and durations have the largest unit that divides them. It is the table's ``spec``
with a resolved ``path``, plus ``labels``, ``owner`` and ``storageOptions``. Secrets are names of
variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from reconciler import units
from reconciler.errors import Problems, SourcePosition, quote_value
from reconciler.spec.build_model import build_spec
from reconciler.spec.model import (
    Clustering,
    ClusteringTrigger,
    Concurrency,
    FileSizes,
    FromEnv,
    IndexColumns,
    NewTable,
    Option,
    PartitionFilter,
    Query,
    Readers,
    Retention,
    TableSpec,
)
from reconciler.spec.rules import COUNT_BY_POLICY, SpecRules
from reconciler.spec.schema import Schema, load_definition
from reconciler.spec.structure import StructureReader
from reconciler.spec.yaml_nodes import MappingNode, from_plain


def spec_from_document(document: Mapping[str, Any], name: str, path: str) -> TableSpec:
    """Return the spec of a plan's table; the inverse of ``spec_to_document``.

    ``source``, ``provenance`` and ``guarded_by`` are not in a document, so they are empty. Raises
    SpecError for a document that ``spec_to_document`` cannot have made.
    """
    problems = Problems()
    place = SourcePosition(f"plan of {name}")
    declared = {key: value for key, value in document.items() if key != "path"}
    if document.get("path") != path:
        found = quote_value(document.get("path"))
        problems.error(place, "spec.path", f"is {found}, but the table's path is {path}")
    node = from_plain(declared, place)
    data = StructureReader(problems).read(node, _document_schema(), "spec")
    if isinstance(node, MappingNode):
        SpecRules(problems).check(data, node, "spec")
    problems.raise_errors()
    return replace(build_spec(data, name=name, path=path), document=dict(document))


@cache
def _document_schema() -> Schema:
    """Build the schema of an effective spec without its path: table, metadata and options."""
    table, metadata = load_definition("completeTable"), load_definition("metadata")
    options = load_definition("environment")["properties"]["storageOptions"]
    fields = {**metadata["properties"], **table["properties"], "storageOptions": options}
    del fields["name"], fields["path"]
    return {**table, "properties": fields}


def spec_to_document(spec: TableSpec) -> dict[str, Any]:
    """Return a spec as JSON data: everything that decides what is done to the table."""
    blocks = {
        "path": spec.path,
        "labels": dict(spec.labels) or None,
        "owner": spec.owner,
        "timezone": spec.timezone,
        "suspend": spec.suspend,
        "retention": spec.retention and _retention(spec.retention),
        "files": spec.files and _files(spec.files),
        "clustering": spec.clustering and _clustering(spec.clustering),
        "index": spec.index and _index(spec.index),
        "queries": [_query(query) for query in spec.queries] or None,
        "readers": spec.readers and _readers(spec.readers),
        "concurrency": spec.concurrency and _concurrency(spec.concurrency),
        "table": spec.table and _table(spec.table),
        "storageOptions": {name: _option(each) for name, each in spec.storage_options.items()}
        or None,
    }
    return _drop_missing(blocks)


def _option(option: Option) -> str | dict[str, str]:
    return {"fromEnv": option.variable} if isinstance(option, FromEnv) else option


def _retention(retention: Retention) -> dict[str, Any]:
    return _drop_missing(
        {
            "policy": str(retention.policy),
            COUNT_BY_POLICY[retention.policy]: retention.keep,
            "scan": retention.scan,
            "afterCommits": retention.after_commits,
            "maxCommitsPerRun": retention.max_commits_per_run,
            "failedWrites": retention.failed_writes,
        }
    )


def _files(files: FileSizes) -> dict[str, Any]:
    return {
        "target": files.target,
        "small": files.small,
        "assign": files.assign,
        "recordSize": files.record_size,
    }


def _clustering(clustering: Clustering) -> dict[str, Any]:
    budget = clustering.budget
    return _drop_missing(
        {
            "columns": list(clustering.columns),
            "curve": clustering.curve,
            "mapping": clustering.mapping,
            "afterCommits": clustering.after_commits,
            "partitions": _partitions(clustering.partitions) or None,
            "when": _when(clustering.when),
            "singleFile": clustering.single_file,
            "budget": _drop_missing(
                {"rewrite": budget.rewrite, "perGroup": budget.per_group, "groups": budget.groups}
            ),
        }
    )


def _partitions(partitions: PartitionFilter) -> dict[str, Any]:
    return _drop_missing(
        {
            "include": list(partitions.include) or None,
            "exclude": list(partitions.exclude) or None,
            "from": partitions.from_,
            "to": partitions.to,
            "skipLatest": partitions.skip_latest,
            "latest": partitions.latest,
        }
    )


def _when(when: ClusteringTrigger) -> str | dict[str, Any]:
    if when.always:
        return "always"
    return _drop_missing(
        {"smallFileShareAbove": when.small_file_share_above, "overlapAbove": when.overlap_above}
    )


def _index(index: IndexColumns) -> dict[str, Any]:
    return {"columns": list(index.columns), "hudi": index.hudi}


def _query(query: Query) -> dict[str, Any]:
    share = None if query.max_scan is None else units.format_percent(query.max_scan)
    return _drop_missing({"name": query.name, "where": query.where, "maxScan": share})


def _readers(readers: Readers) -> dict[str, Any]:
    longest = readers.longest_query
    consumers = [
        {"name": consumer.name, "maxLag": units.format_duration(consumer.max_lag)}
        for consumer in readers.incremental_consumers
    ]
    return _drop_missing(
        {
            "longestQuery": None if longest is None else units.format_duration(longest),
            "incrementalConsumers": consumers or None,
        }
    )


def _concurrency(concurrency: Concurrency) -> dict[str, Any]:
    lock = concurrency.lock
    return _drop_missing(
        {
            "lock": lock and {"provider": lock.provider, "path": lock.path, "expire": lock.expire},
            "staleAfter": units.format_duration(concurrency.stale_after),
        }
    )


def _table(table: NewTable) -> dict[str, Any]:
    return _drop_missing(
        {
            "type": table.type,
            "version": table.version,
            "recordKey": list(table.record_key),
            "partitionBy": list(table.partition_by),
            "ordering": list(table.ordering),
            "hiveStyle": table.hive_style,
            "schema": None if table.schema is None else dict(table.schema),
        }
    )


def _drop_missing(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
