"""Checked data into the model's values. Nothing is wrong any more at this point."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from reconciler.spec.clustering import CURVE
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
from reconciler.spec.rules import POLICY_OF

Data = Mapping[str, Any]


def spec_of(data: Data, *, name: str, path: str) -> TableSpec:
    """The spec of data that a Reader read and Rules had nothing against."""
    return TableSpec(
        name=name,
        path=path,
        labels=data.get("labels", {}),
        owner=data.get("owner"),
        timezone=data.get("timezone"),
        suspend=data.get("suspend", False),
        retention=_retention(data["retention"]) if "retention" in data else None,
        files=FileSizes(**_fields(data["files"])) if "files" in data else None,
        clustering=_clustering(data["clustering"]) if "clustering" in data else None,
        index=IndexColumns(**_fields(data["index"])) if "index" in data else None,
        queries=tuple(Query(**_fields(query)) for query in data.get("queries", ())),
        readers=_readers(data["readers"]) if "readers" in data else None,
        concurrency=_concurrency(data["concurrency"]) if "concurrency" in data else None,
        table=NewTable(**_fields(data["table"])) if "table" in data else None,
        storage_options=data.get("storageOptions", {}),
    )


def _retention(data: Data) -> Retention:
    count = next(count for count in POLICY_OF if count in data)
    rest = {key: value for key, value in data.items() if key not in ("policy", count)}
    return Retention(policy=POLICY_OF[count], keep=data[count], **_fields(rest))


def _clustering(data: Data) -> Clustering:
    blocks: dict[str, Any] = {}
    if "partitions" in data:
        blocks["partitions"] = PartitionFilter(**_fields(data["partitions"]))
    if "when" in data:
        blocks["when"] = _when(data["when"])
    if "budget" in data:
        blocks["budget"] = ClusteringBudget(**_fields(data["budget"]))
    if data["columns"] and "curve" not in data:
        blocks["curve"] = CURVE
    return Clustering(**{**_fields(data), **blocks})


def _when(data: str | Data) -> ClusteringTrigger:
    """What is not said in a ``when`` that is there triggers nothing."""
    if isinstance(data, str):
        return ClusteringTrigger(always=True, small_file_share_above=None, overlap_above=None)
    return ClusteringTrigger(
        small_file_share_above=data.get("smallFileShareAbove"),
        overlap_above=data.get("overlapAbove"),
    )


def _readers(data: Data) -> Readers:
    consumers = data.get("incrementalConsumers", ())
    return Readers(
        longest_query=data.get("longestQuery"),
        incremental_consumers=tuple(IncrementalConsumer(**_fields(each)) for each in consumers),
    )


def _concurrency(data: Data) -> Concurrency:
    fields = _fields(data)
    if "lock" in data:
        fields["lock"] = Lock(**_fields(data["lock"]))
    return Concurrency(**fields)


def _fields(data: Data) -> dict[str, Any]:
    """Names as the model spells them, lists as tuples."""
    return {
        _attribute(key): tuple(value) if isinstance(value, list) else value
        for key, value in data.items()
    }


def _attribute(name: str) -> str:
    return "from_" if name == "from" else re.sub("([A-Z])", r"_\1", name).lower()
