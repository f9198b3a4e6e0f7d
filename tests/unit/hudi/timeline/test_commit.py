"""Read commit metadata in both encodings, and report damage."""

from __future__ import annotations

import io
import json

import fastavro
import pytest

from reconciler.errors import FormatError
from reconciler.hudi.codecs import avro_container
from reconciler.hudi.codecs.avro_binary import load_schema_text
from reconciler.hudi.timeline.commit import CommitMetadata

PATH = ".hoodie/20260102000000000.replacecommit"
SCHEMA = "HoodieCommitMetadata.avsc"
RECORD = {
    "partitionToWriteStats": {
        "p=1": [{"fileId": "a", "prevCommit": "null"}, {"fileId": "b", "prevCommit": "2026"}],
        "p=2": [{"fileId": "c", "prevCommit": None}, {"fileId": "d", "prevCommit": "NULL"}],
        "p=3": [],
    },
    "extraMetadata": {"schema": "{}"},
    "operationType": "UPSERT",
}
REPLACED = {"p=1": ["x-0", "y-0"], "p=4": []}


def as_json(record):
    return json.dumps(record, indent=2).encode()


def as_replace(record):
    """Return the Avro form of a replacecommit: a commit with one more field."""
    schema = json.loads(load_schema_text(SCHEMA))
    ids = {"type": "map", "values": {"type": "array", "items": "string"}}
    field = {"name": "partitionToReplaceFileIds", "type": ["null", ids], "default": None}
    schema |= {"name": "HoodieReplaceCommitMetadata", "fields": [*schema["fields"], field]}
    out = io.BytesIO()
    fastavro.writer(out, schema, [record])
    return out.getvalue()


@pytest.mark.parametrize(
    "data",
    [as_json(RECORD), avro_container.encode_container(SCHEMA, RECORD)],
    ids=["json", "avro"],
)
def test_a_commit_names_its_partitions_and_whether_it_updated(data):
    found = CommitMetadata.parse(data, PATH)

    assert {"p=1": True, "p=2": False, "p=3": False} == found.has_updates
    assert "UPSERT" == found.operation
    assert {"schema": "{}"} == found.extra
    assert {} == found.replaced


@pytest.mark.parametrize("encode", [as_json, as_replace])
def test_a_replacecommit_names_the_groups_it_replaced(encode):
    data = encode(RECORD | {"partitionToReplaceFileIds": REPLACED})
    found = CommitMetadata.parse(data, PATH, replaces=True)

    assert {"p=1": ("x-0", "y-0"), "p=4": ()} == found.replaced


@pytest.mark.parametrize(
    "data",
    [as_json(RECORD), avro_container.encode_container(SCHEMA, RECORD), as_replace(RECORD)],
    ids=len,
)
def test_a_replacecommit_without_replaced_groups_is_damaged(data):

    with pytest.raises(FormatError, match="does not name the file groups it replaced"):
        CommitMetadata.parse(data, PATH, replaces=True)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" {}",
        b"{}",
        b"[]",
        b"{",
        b'{"partitionToWriteStats": [1]}',
        b'{"partitionToWriteStats": {"p": "text"}}',
        b'{"partitionToWriteStats": {"p": [1]}}',
        b'{"partitionToWriteStats": {"p\\ud800": []}}',
        b'{"partitionToWriteStats": {"p\xff": []}}',
        b'{"partitionToWriteStats": {}, "operationType": 5}',
        b'{"partitionToWriteStats": {}, "operationType": NaN}',
        b'{"partitionToWriteStats": {}, "extraMetadata": []}',
        b'{"partitionToWriteStats": {}, "partitionToReplaceFileIds": {"p": "abc"}}',
        b'{"partitionToWriteStats": {}, "partitionToReplaceFileIds": {"p": ["\\udcff"]}}',
        b'{"partitionToWriteStats": {}, "partitionToReplaceFileIds": ["p"]}',
        b'{"partitionToWriteStats": {}, "version": ' + b"9" * 5000 + b"}",
        b'{"partitionToWriteStats": ' + b"[" * 100_000,
        b"Obj\x01",
    ],
    ids=lambda data: data[:60].decode("latin-1"),
)
def test_a_file_that_is_not_a_commit_is_one_clear_error(data):

    with pytest.raises(FormatError) as caught:
        CommitMetadata.parse(data, PATH)

    assert PATH == caught.value.path


@pytest.mark.parametrize("field", ["partitionToWriteStats", "prevCommit", "operationType"])
def test_a_schema_whose_field_lost_a_bit_is_damage(field):
    data = avro_container.encode_container(SCHEMA, RECORD)
    broken = data.replace(f'"{field}"'.encode(), f'"{field[:-1]}_"'.encode())

    assert data != broken
    with pytest.raises(FormatError, match="schema"):
        CommitMetadata.parse(broken, PATH)


def test_a_record_of_another_kind_is_damage():
    data = avro_container.encode_container("HoodieCompactionPlan.avsc", {"operations": None})

    with pytest.raises(FormatError, match="it holds a HoodieCompactionPlan"):
        CommitMetadata.parse(data, PATH)
