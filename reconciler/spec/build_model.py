"""Conversion of checked data into the values of the model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from reconciler.spec.clustering_rules import DEFAULT_CURVE
from reconciler.spec.model import (
    Clustering,
    ClusteringBudget,
    ClusteringTrigger,
    Concurrency,
    FileSizes,
    IncrementalConsumer,
    IndexColumns,
    Lock,
    NewTable,
    PartitionFilter,
    Query,
    Readers,
    Retention,
    TableSpec,
)
from reconciler.spec.rules import POLICY_BY_COUNT

Data = Mapping[str, Any]


def build_spec(data: Data, *, name: str, path: str) -> TableSpec:
    """Return the spec of data without structural errors or broken rules."""
    return TableSpec(
        name=name,
        path=path,
        labels=data.get("labels", {}),
        owner=data.get("owner"),
        timezone=data.get("timezone"),
        suspend=data.get("suspend", False),
        retention=_build_retention(data["retention"]) if "retention" in data else None,
        files=FileSizes(**_to_attributes(data["files"])) if "files" in data else None,
        clustering=_build_clustering(data["clustering"]) if "clustering" in data else None,
        index=IndexColumns(**_to_attributes(data["index"])) if "index" in data else None,
        queries=tuple(Query(**_to_attributes(query)) for query in data.get("queries", ())),
        readers=_build_readers(data["readers"]) if "readers" in data else None,
        concurrency=_build_concurrency(data["concurrency"]) if "concurrency" in data else None,
        table=NewTable(**_to_attributes(data["table"])) if "table" in data else None,
        storage_options=data.get("storageOptions", {}),
    )


def _build_retention(data: Data) -> Retention:
    count = next(count for count in POLICY_BY_COUNT if count in data)
    rest = {key: value for key, value in data.items() if key not in ("policy", count)}
    return Retention(policy=POLICY_BY_COUNT[count], keep=data[count], **_to_attributes(rest))


def _build_clustering(data: Data) -> Clustering:
    blocks: dict[str, Any] = {}
    if "partitions" in data:
        blocks["partitions"] = PartitionFilter(**_to_attributes(data["partitions"]))
    if "when" in data:
        blocks["when"] = _build_trigger(data["when"])
    if "budget" in data:
        blocks["budget"] = ClusteringBudget(**_to_attributes(data["budget"]))
    if data["columns"] and "curve" not in data:
        blocks["curve"] = DEFAULT_CURVE
    return Clustering(**{**_to_attributes(data), **blocks})


def _build_trigger(data: str | Data) -> ClusteringTrigger:
    """Return the trigger; conditions missing in a given ``when`` are off."""
    if isinstance(data, str):
        return ClusteringTrigger(always=True, small_file_share_above=None, overlap_above=None)
    return ClusteringTrigger(
        small_file_share_above=data.get("smallFileShareAbove"),
        overlap_above=data.get("overlapAbove"),
    )


def _build_readers(data: Data) -> Readers:
    consumers = data.get("incrementalConsumers", ())
    return Readers(
        longest_query=data.get("longestQuery"),
        incremental_consumers=tuple(
            IncrementalConsumer(**_to_attributes(each)) for each in consumers
        ),
    )


def _build_concurrency(data: Data) -> Concurrency:
    fields = _to_attributes(data)
    if "lock" in data:
        fields["lock"] = Lock(**_to_attributes(data["lock"]))
    return Concurrency(**fields)


def _to_attributes(data: Data) -> dict[str, Any]:
    """Return the data with the model's attribute names, and tuples for lists."""
    return {
        _attribute_name(key): tuple(value) if isinstance(value, list) else value
        for key, value in data.items()
    }


def _attribute_name(name: str) -> str:
    return "from_" if name == "from" else re.sub("([A-Z])", r"_\1", name).lower()
