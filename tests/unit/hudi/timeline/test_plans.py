"""Read savepoints, compaction plans and clustering plans: file names, damage."""

from __future__ import annotations

import io

import fastavro
import pytest

from reconciler.errors import FormatError
from reconciler.hudi.codecs import avro_container
from reconciler.hudi.timeline.plans import (
    CompactionOperation,
    InputSlice,
    RequestedReplace,
    parse_compaction,
)
from reconciler.hudi.timeline.savepoint import SavepointMetadata

PATH = ".hoodie/timeline/20260102000000000.compaction.requested"
COMPACTION = "HoodieCompactionPlan.avsc"
OPERATION = {
    "partitionPath": "p=1",
    "fileId": "f-0",
    "baseInstantTime": "2026",
    "dataFilePath": "f-0_1-0-1_2026.parquet",
    "deltaFilePaths": [".f-0_2026.log.1_0-1-2"],
}
TEXTS = {"type": "array", "items": "string"}


def field(name, kind):
    return {"name": name, "type": kind}


def recorded(name, *fields):
    return {"type": "record", "name": name, "fields": list(fields)}


SLICE = recorded(
    "HoodieSliceInfo",
    field("dataFilePath", ["null", "string"]),
    field("deltaFilePaths", ["null", TEXTS]),
    field("fileId", ["null", "string"]),
    field("partitionPath", ["null", "string"]),
)
GROUP = recorded("Group", field("slices", ["null", {"type": "array", "items": SLICE}]))
PLAN = recorded("Plan", field("inputGroups", ["null", {"type": "array", "items": GROUP}]))
REQUESTED = recorded(
    "HoodieRequestedReplaceMetadata",
    field("operationType", ["null", "string"]),
    field("clusteringPlan", ["null", PLAN]),
)
PINNED = recorded(
    "HoodieSavepointPartitionMetadata",
    field("partitionPath", "string"),
    field("savepointDataFile", TEXTS),
)
SAVEPOINT = recorded(
    "HoodieSavepointMetadata",
    field("savepointedBy", "string"),
    field("savepointedAt", "long"),
    field("comments", "string"),
    field("partitionMetadata", {"type": "map", "values": PINNED}),
)


def written(schema, record):
    out = io.BytesIO()
    fastavro.writer(out, schema, [record])
    return out.getvalue()


def compaction_of(**changes):
    return avro_container.encode_container(COMPACTION, {"operations": [OPERATION | changes]})


def clustering_of(**changes):
    given = {"dataFilePath": "file:/t/p=1/a.parquet", "deltaFilePaths": ["s3://b/t/p=1/.a.log.1"]}
    given |= {"fileId": "a-0", "partitionPath": "p=1"} | changes
    plan = {"inputGroups": [{"slices": [given]}, {"slices": None}]}
    return written(REQUESTED, {"operationType": "CLUSTER", "clusteringPlan": plan})


def test_a_compaction_plan_names_slices():
    operation = CompactionOperation(
        partition="p=1",
        file_id="f-0",
        base_instant="2026",
        base_file="f-0_1-0-1_2026.parquet",
        log_files=(".f-0_2026.log.1_0-1-2",),
    )

    assert (operation,) == parse_compaction(compaction_of(), PATH)


def test_a_slice_of_logs_alone_has_no_base_file():
    (operation,) = parse_compaction(compaction_of(dataFilePath=None), PATH)
    (given,) = RequestedReplace.parse(clustering_of(dataFilePath=""), PATH).slices

    assert (None, None) == (operation.base_file, given.base_file)


def test_a_compaction_plan_may_be_empty():

    assert () == parse_compaction(
        avro_container.encode_container(COMPACTION, {"operations": None}), PATH
    )


def test_a_clustering_plan_names_its_inputs_without_folders():
    found = RequestedReplace.parse(clustering_of(), PATH)
    given = InputSlice(
        partition="p=1", file_id="a-0", base_file="a.parquet", log_files=(".a.log.1",)
    )

    assert (True, "CLUSTER", (given,)) == (found.is_clustering, found.operation, found.slices)


def test_a_clustering_plan_has_its_strategy_if_any():
    parameters = {"hoodie.clustering.plan.strategy.sort.columns": "a,b"}
    params = field("strategyParams", ["null", {"type": "map", "values": "string"}])
    strategy = recorded("Strategy", params)
    plan = recorded("Plan", *PLAN["fields"], field("strategy", ["null", strategy]))
    schema = recorded(
        "HoodieRequestedReplaceMetadata",
        field("operationType", ["null", "string"]),
        field("clusteringPlan", ["null", plan]),
    )

    def strategy_of(strategy):
        plan = {"inputGroups": None, "strategy": strategy}
        record = {"operationType": "CLUSTER", "clusteringPlan": plan}
        return RequestedReplace.parse(written(schema, record), PATH).strategy

    assert parameters == strategy_of({"strategyParams": parameters})
    assert {} == strategy_of({"strategyParams": None}) == strategy_of(None)
    assert {} == RequestedReplace.parse(clustering_of(), PATH).strategy


@pytest.mark.parametrize("operation", [None, "INSERT_OVERWRITE", "DELETE_PARTITION"])
def test_an_overwrite_names_no_inputs(operation):
    record = {"operationType": operation, "clusteringPlan": None}
    found = RequestedReplace.parse(written(REQUESTED, record), PATH)

    assert (False, operation, ()) == (found.is_clustering, found.operation, found.slices)


def test_a_savepoint_names_what_it_pins():
    pinned = {"p=1": {"partitionPath": "p=1", "savepointDataFile": ["a", "file:/t/p=1/b"]}}
    record = {
        "savepointedBy": "me",
        "savepointedAt": 7,
        "comments": "",
        "partitionMetadata": pinned,
    }

    assert {"p=1": ("a", "b")} == SavepointMetadata.parse(written(SAVEPOINT, record), PATH).files


@pytest.mark.parametrize("name", ["fileId", "partitionPath"])
def test_a_slice_without_group_or_partition_is_damaged(name):
    for parse, data in (
        (parse_compaction, compaction_of(**{name: None})),
        (RequestedReplace.parse, clustering_of(**{name: None})),
    ):
        with pytest.raises(FormatError, match="has no") as caught:
            parse(data, PATH)

        assert PATH == caught.value.path


@pytest.mark.parametrize(
    "parse", [parse_compaction, RequestedReplace.parse, SavepointMetadata.parse]
)
@pytest.mark.parametrize("data", [b"", b"Obj\x01", b"{}", clustering_of() + b"\0"], ids=len)
def test_other_bytes_are_damage(parse, data):

    with pytest.raises(FormatError) as caught:
        parse(data, PATH)

    assert PATH == caught.value.path
