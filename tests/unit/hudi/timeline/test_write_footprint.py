"""Find the file groups that a write touches."""

from __future__ import annotations

import json

import pytest

from reconciler.errors import FormatError
from reconciler.hudi.codecs import avro_container
from reconciler.hudi.timeline.commit import WriteFootprint

PATH = ".hoodie/1.inflight"


def profile(**stats):
    return {
        "partitionToWriteStats": {path.replace("_", "="): found for path, found in stats.items()}
    }


INSERTS = {"fileId": "", "numInserts": 3, "path": None}
NO_INSERTS = {"fileId": "", "numInserts": 0, "path": None}
UPDATE = {"fileId": "f-0", "numInserts": 0, "path": None}
WRITTEN = {"fileId": "f-0", "numInserts": 1, "path": "p=1/f-0_1-0-1_7.parquet"}


def avro_of(record):
    return avro_container.encode_container("HoodieCommitMetadata.avsc", record)


def json_of(record):
    return json.dumps(record).encode()


@pytest.mark.parametrize("encoded", [avro_of, json_of])
def test_a_profile_names_groups_and_partitions_with_new_records(encoded):
    data = encoded(profile(p_1=[INSERTS, UPDATE], p_2=[NO_INSERTS, UPDATE]))

    assert WriteFootprint(
        groups={"p=1": frozenset({"f-0"}), "p=2": frozenset({"f-0"})},
        insert_partitions=frozenset({"p=1"}),
    ) == WriteFootprint.parse(data, PATH)


@pytest.mark.parametrize("encoded", [avro_of, json_of])
def test_a_completed_write_names_its_files(encoded):
    found = WriteFootprint.parse(encoded(profile(p_1=[WRITTEN])), PATH)

    assert frozenset({("p=1", "f-0_1-0-1_7.parquet")}) == found.files
    assert (frozenset(), {"p=1": frozenset({"f-0"})}) == (found.insert_partitions, found.groups)


@pytest.mark.parametrize("encoded", [avro_of, json_of])
def test_a_write_has_its_operation(encoded):
    record = profile(p_1=[WRITTEN])

    assert (
        "CLUSTER"
        == WriteFootprint.parse(encoded(record | {"operationType": "CLUSTER"}), PATH).operation
    )
    assert WriteFootprint.parse(encoded(record), PATH).operation is None
    with pytest.raises(FormatError, match="its operation is not a text"):
        WriteFootprint.parse(json_of(record | {"operationType": 7}), PATH)


def test_replaced_groups_are_in_the_footprint():
    record = profile(p_1=[WRITTEN]) | {"partitionToReplaceFileIds": {"p=1": ["a"], "p=2": ["b"]}}
    found = WriteFootprint.parse(
        avro_container.encode_container("HoodieReplaceCommitMetadata.avsc", record), PATH
    )

    assert {"p=1": frozenset({"f-0", "a"}), "p=2": frozenset({"b"})} == found.groups


@pytest.mark.parametrize("data", [b"", b"{", b"Obj\x01", b"[]", b"{}"])
def test_an_empty_file_is_an_error_that_names_it(data):

    with pytest.raises(FormatError, match=r"^\.hoodie/1\.inflight: "):
        WriteFootprint.parse(data, PATH)


def test_an_empty_profile_is_empty():

    assert WriteFootprint.parse(json_of(profile()), PATH).is_empty
    assert not WriteFootprint.parse(json_of(profile(p_1=[INSERTS])), PATH).is_empty
