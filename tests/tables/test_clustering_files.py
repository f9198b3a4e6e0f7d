"""The files that real Hudi wrote of a clustering, and ours with the same content."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import fastavro
import pytest

from reconciler.errors import FormatError
from reconciler.file_slices.base_file.write_stat import build_created_stat
from reconciler.file_slices.base_file.writer import WrittenFile
from reconciler.hudi.timeline.commit import CommitMetadata
from reconciler.hudi.timeline.plans import (
    SORT_COLUMNS,
    ClusteringPlan,
    compute_group_metrics,
)
from reconciler.hudi.timeline.write_commit import WriteCommit

HERE = Path(__file__).parent / "clustering"
#: table version -> where its table lay when it was written
PLACES = {
    6: "/tmp/lab/spikes/clu/tables/0.15.0/s12_mor_logs",
    9: "/tmp/lab/spikes/clu/tables/1.2.0/s12_mor_logs",
}
#: (name, bytes, milliseconds that Hudi took) of the file that each clustering wrote
FILES = {
    6: ("5df4dcfd-849b-43d6-a58e-e74a42267dc4-0_0-368-636_20261121043735542.parquet", 528235, 194),
    9: ("f4db77d9-b7de-498e-8661-06a6444b05d0-0_0-283-490_20261121043503236.parquet", 527376, 193),
}


def requested(version):
    return (HERE / f"v{version}.requested").read_bytes()


def completed(version):
    return (HERE / f"v{version}.completed").read_bytes()


def decoded(data):
    reader = fastavro.reader(io.BytesIO(data))
    (record,) = reader
    return reader.metadata["avro.schema"], record


@pytest.mark.parametrize("version", [6, 9])
def test_a_plan_of_hudi_comes_out_as_it_went_in(version):
    data = requested(version)
    plan = ClusteringPlan.parse(data, "x")
    schema, record = decoded(plan.encode(PLACES[version], version=version))
    theirs, expected = decoded(data)

    assert expected == record
    assert json.loads(theirs) == json.loads(schema)
    assert len(data) == len(plan.encode(PLACES[version], version=version))


def test_a_plan_says_what_is_read_and_how():
    plan = ClusteringPlan.parse(requested(9), "x")
    (group,) = plan.groups

    assert {SORT_COLUMNS: "x,y"} == plan.strategy
    assert (1, ()) == (group.output_count, plan.unscheduled_partitions)
    assert ["a", "a"] == [one.partition for one in group.slices]
    assert [".log.1_0-252-453", ".log.1_0-238-438"] == [
        name[-16:] for name in group.slices[0].log_files
    ]
    assert group.metrics == compute_group_metrics([400_000, 400_000], [40_000, 35_586], 1 << 20)


def test_a_plan_keeps_what_we_say_of_ourselves():
    plan = replace(
        ClusteringPlan.parse(requested(9), "x"), extra={"a": "b"}, unscheduled_partitions=None
    )

    assert plan == ClusteringPlan.parse(plan.encode("s3://bucket/t", version=9), "x")


def test_a_request_without_a_plan_is_none():
    _schema, record = decoded(requested(9))
    out = io.BytesIO()
    schema = fastavro.parse_schema(json.loads(decoded(requested(9))[0]))
    fastavro.writer(out, schema, [record | {"clusteringPlan": None}])

    with pytest.raises(FormatError, match=r"x: .*it has no clustering plan"):
        ClusteringPlan.parse(out.getvalue(), "x")


def ours(version):
    name, size, _took = FILES[version]
    written = WrittenFile(name=name, rows=1500, size=size, least_key="a", greatest_key="b")
    found = CommitMetadata.parse(completed(version), "x", replaces=True)
    return WriteCommit(
        operation="CLUSTER",
        stats_by_partition={"a": [build_created_stat(written, "a")]},
        replaced=found.replaced,
        extra=found.extra,
    ).encode(version=version)


def timed(record, version):
    """The record with the time that Hudi took, which ours does not tell."""
    (stat,) = record["partitionToWriteStats"]["a"]
    stat["runtimeStats"]["totalCreateTime"] = FILES[version][2]
    return record


def test_a_completed_clustering_of_version_9_is_what_hudi_writes():
    schema, record = decoded(ours(9))
    theirs, expected = decoded(completed(9))

    assert expected == timed(record, 9)
    assert json.loads(theirs) == json.loads(schema)


def test_a_completed_clustering_of_version_6_is_what_hudi_writes():
    assert json.loads(completed(6)) == timed(json.loads(ours(6)), 6)
