"""Read cleaner plans and clean metadata, and report damage."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import fastavro
import pytest

from reconciler.errors import FormatError
from reconciler.hudi.codecs import avro_container
from reconciler.hudi.codecs.avro_binary import load_schema_text
from reconciler.hudi.timeline.clean import CleanedPartition, CleanerPlan, CleanMetadata

PLAN_SCHEMA = "HoodieCleanerPlan.avsc"
METADATA_SCHEMA = "HoodieCleanMetadata.avsc"
PATH = ".hoodie/timeline/20260102000000000.clean.requested"
PLAN = CleanerPlan(
    policy="KEEP_LATEST_COMMITS",
    earliest_instant="20260101000000000",
    last_completed_commit="20260101120000000",
    files={"p=1": ("a_0-1-2_1.parquet", ".a_1.log.1_0-1-2"), "p=é": ("b_0-1-2_1.parquet",)},
    delete_partitions=("p=2",),
    extra={"savepointed_timestamps": "20260101000000000"},
)
METADATA = CleanMetadata(
    started="20260102000000000",
    duration_ms=12,
    earliest_instant="20260101000000000",
    last_completed_commit="20260101120000000",
    partitions={
        "p=1": CleanedPartition(
            policy="KEEP_LATEST_COMMITS", planned=("a", "b", "c"), deleted=("a", "b"), failed=("c",)
        ),
        "": CleanedPartition(
            policy="KEEP_LATEST_COMMITS", planned=(), deleted=(), is_folder_deleted=True
        ),
    },
    extra={"owner": "someone"},
)


def record_of(data):
    """Return the record that fastavro reads, and the schema in the file."""
    reader = fastavro.reader(io.BytesIO(data))
    return next(reader), json.loads(reader.metadata["avro.schema"])


def plan_record(**changes):
    record, _ = record_of(PLAN.encode("/t"))
    return avro_container.encode_container(PLAN_SCHEMA, record | changes)


def written_by_an_older_hudi(schema_file, data, without):
    """Return the record with a schema that lacks some fields, as fastavro writes it."""
    schema = json.loads(load_schema_text(schema_file))
    schema["fields"] = [f for f in schema["fields"] if f["name"] not in without]
    record, _ = record_of(data)
    out = io.BytesIO()
    fastavro.writer(out, schema, [{k: v for k, v in record.items() if k not in without}])
    return out.getvalue()


def test_a_plan_is_read_as_it_was_written():

    assert PLAN == CleanerPlan.parse(PLAN.encode("/tables/t"), PATH)


def test_a_plan_without_an_earliest_instant_is_read_as_it_was_written():
    plan = replace(PLAN, policy="KEEP_LATEST_FILE_VERSIONS", earliest_instant=None)

    assert plan == CleanerPlan.parse(plan.encode("s3://b/t"), PATH)


def test_bootstrap_sources_keep_their_full_paths():
    plan = replace(PLAN, bootstrap_files={"p=1": ("s3://old/a.parquet",), "p=9": ("s3://old/b",)})
    read = CleanerPlan.parse(plan.encode("/t"), PATH)

    assert plan.bootstrap_files == read.bootstrap_files
    assert {**plan.files, "p=9": ()} == read.files


@pytest.mark.parametrize(
    ("location", "partition", "path"),
    [
        ("/tables/t", "p=1", "file:/tables/t/p=1/f"),
        ("s3://bucket/t", "p=1", "s3://bucket/t/p=1/f"),
        ("/tables/t", "", "file:/tables/t/f"),
    ],
)
def test_paths_in_a_plan_are_absolute(location, partition, path):
    plan = replace(PLAN, files={partition: ("f",)})
    record, _ = record_of(plan.encode(location))

    (info,) = record["filePathsToBeDeletedPerPartition"][partition]
    assert {"filePath": path, "isBootstrapBaseFile": False} == info


def test_a_plan_of_version_1_names_its_files_in_the_old_field():
    data = plan_record(
        version=1,
        filesToBeDeletedPerPartition={"p=1": ["a", "b"], "p=3": []},
        filePathsToBeDeletedPerPartition=None,
    )

    assert {"p=1": ("a", "b"), "p=3": ()} == CleanerPlan.parse(data, PATH).files


def test_a_plan_that_fills_both_fields_names_all_of_them():
    record, _ = record_of(PLAN.encode("/t"))
    data = avro_container.encode_container(
        PLAN_SCHEMA, record | {"filesToBeDeletedPerPartition": {"p=1": ["old"]}}
    )

    assert ("old", *PLAN.files["p=1"]) == CleanerPlan.parse(data, PATH).files["p=1"]


@pytest.mark.parametrize("path", ["../elsewhere", "/p=1", "p=1//h", "p=1/./h", ".hoodie/timeline"])
def test_a_partition_outside_the_table_is_damage(path):
    for changes in (
        {"partitionsToBeDeleted": [path]},
        {"filesToBeDeletedPerPartition": {path: ["a"]}},
        {"filePathsToBeDeletedPerPartition": {path: []}},
    ):
        with pytest.raises(FormatError, match="not a partition path") as caught:
            CleanerPlan.parse(plan_record(**changes), PATH)

        assert PATH == caught.value.path


@pytest.mark.parametrize("path", [None, "", "file:/t/p=1/", "file:/t/p=1/..", "a\\b", "a\0b"])
def test_a_path_without_a_file_name_is_damage(path):
    infos = {"p=1": [{"filePath": path, "isBootstrapBaseFile": False}]}

    with pytest.raises(FormatError) as caught:
        CleanerPlan.parse(plan_record(filePathsToBeDeletedPerPartition=infos), PATH)

    assert PATH == caught.value.path


def test_metadata_is_read_as_it_was_written():

    assert METADATA == CleanMetadata.parse(METADATA.encode(), PATH)


def test_metadata_counts_what_was_deleted():
    record, _ = record_of(METADATA.encode())

    assert (2, 2, {}) == (
        record["totalFilesDeleted"],
        record["version"],
        record["bootstrapPartitionMetadata"],
    )


def test_metadata_of_version_1_names_full_paths():
    found = CleanedPartition(
        policy="P", planned=("/t/p=1/a",), deleted=("s3://b/t/p=1/a",), failed=("c",)
    )
    read = CleanMetadata.parse(replace(METADATA, partitions={"p=1": found}).encode(), PATH)

    assert (
        CleanedPartition(policy="P", planned=("a",), deleted=("a",), failed=("c",))
        == (read.partitions["p=1"])
    )


def test_files_of_older_hudi_lack_fields_which_take_their_defaults():
    """Hudi 0.14 has no extra metadata; older versions have no last completed commit."""
    plan = written_by_an_older_hudi(
        PLAN_SCHEMA,
        PLAN.encode("/t"),
        {"extraMetadata", "lastCompletedCommitTimestamp", "partitionsToBeDeleted"},
    )
    metadata = written_by_an_older_hudi(
        METADATA_SCHEMA, METADATA.encode(), {"extraMetadata", "lastCompletedCommitTimestamp"}
    )

    bare = replace(PLAN, extra={}, last_completed_commit="", delete_partitions=())
    assert bare == CleanerPlan.parse(plan, PATH)
    assert replace(METADATA, extra={}, last_completed_commit="") == CleanMetadata.parse(
        metadata, PATH
    )


def test_unknown_fields_of_newer_hudi_are_ignored():
    schema = json.loads(load_schema_text(METADATA_SCHEMA))
    schema["fields"].append({"name": "novelty", "type": "long", "default": 0})
    record, _ = record_of(METADATA.encode())
    out = io.BytesIO()
    fastavro.writer(out, schema, [record | {"novelty": 3}])

    assert METADATA == CleanMetadata.parse(out.getvalue(), PATH)


def test_a_damaged_field_name_is_not_taken_for_an_older_version():
    data = METADATA.encode().replace(b'"extraMetadata"', b'"extraMetadatq"')

    with pytest.raises(FormatError, match="not a HoodieCleanMetadata schema"):
        CleanMetadata.parse(data, PATH)


@pytest.mark.parametrize("time", ["yesterday", "2026-01-01", "\u0663"])
def test_an_earliest_instant_that_is_not_a_time_is_damaged(time):

    with pytest.raises(FormatError, match="not an instant time"):
        CleanMetadata.parse(replace(METADATA, earliest_instant=time).encode(), PATH)


def test_a_record_of_another_kind_is_damage():

    with pytest.raises(FormatError, match="it holds a HoodieCleanMetadata"):
        CleanerPlan.parse(METADATA.encode(), PATH)


def test_a_block_that_does_not_end_in_the_marker_of_the_header_is_damage():
    data = METADATA.encode()

    with pytest.raises(FormatError, match="marker"):
        CleanMetadata.parse(data[:-1] + bytes([data[-1] ^ 1]), PATH)


@pytest.mark.parametrize(
    ("count", "message"), [(0, "the file is truncated"), (2, "it holds 2 records, expected 1")]
)
def test_a_file_holds_one_record(count, message):
    record, schema = record_of(METADATA.encode())
    out = io.BytesIO()
    fastavro.writer(out, schema, [record] * count)

    with pytest.raises(FormatError, match=message):
        CleanMetadata.parse(out.getvalue(), PATH)


def test_compression_is_damage_since_hudi_uses_none():
    record, schema = record_of(METADATA.encode())
    out = io.BytesIO()
    fastavro.writer(out, schema, [record], codec="deflate")

    with pytest.raises(FormatError, match="codec"):
        CleanMetadata.parse(out.getvalue(), PATH)


def test_the_same_plan_has_the_same_bytes():

    assert PLAN.encode("/t") == replace(PLAN).encode("/t")
    assert PLAN.encode("/t") != replace(PLAN, policy="KEEP_LATEST_BY_HOURS").encode("/t")
