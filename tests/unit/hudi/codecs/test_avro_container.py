"""Decode Avro containers strictly, without following a damaged schema."""

from __future__ import annotations

import io
import json

import fastavro
import pytest

from reconciler.errors import FormatError
from reconciler.hudi.codecs import avro_container
from reconciler.hudi.codecs.avro_binary import encode_long

NAME = "HoodieThing"
SCHEMA = {
    "type": "record",
    "name": NAME,
    "namespace": "org.apache.hudi.avro.model",
    "fields": [
        {"name": "time", "type": {"type": "string", "avro.java.string": "String"}},
        {"name": "sizes", "type": {"type": "map", "values": "long"}},
    ],
}
RECORD = {"time": "20260101000000000", "sizes": {"a": 1, "b": -(1 << 40)}}


def container(*records, schema=SCHEMA, **kwargs):
    out = io.BytesIO()
    fastavro.writer(out, schema, records, sync_marker=b"m" * 16, **kwargs)
    return out.getvalue()


def by_hand(schema, body, count=1):
    """Return a container with any bytes as its record."""
    text = json.dumps(schema).encode()
    head = (
        b"Obj\x01"
        + encode_long(1)
        + encode_long(11)
        + b"avro.schema"
        + encode_long(len(text))
        + text
        + encode_long(0)
    )
    return head + b"m" * 16 + encode_long(count) + encode_long(len(body)) + body + b"m" * 16


def of(fields):
    return {"type": "record", "name": NAME, "fields": fields}


def field(kind, name="x"):
    return {"name": name, "type": kind}


WHOLE = container(RECORD)


def test_a_container_decodes_to_its_record():

    assert RECORD == avro_container.decode_container(WHOLE, NAME, "f")
    assert RECORD == avro_container.decode_container(container(RECORD, codec="null"), NAME, "f")


def test_a_full_name_is_as_good_as_a_namespace():
    full = {k: v for k, v in SCHEMA.items() if k != "namespace"}
    full["name"] = f"org.apache.hudi.avro.model.{NAME}"

    assert RECORD == avro_container.decode_container(container(RECORD, schema=full), NAME, "f")


def test_no_prefix_of_a_container_decodes():
    for end in range(len(WHOLE)):
        with pytest.raises(FormatError, match=r"^f: "):
            avro_container.decode_container(WHOLE[:end], NAME, "f")


def test_every_flipped_bit_of_the_frame_is_noticed():
    body = io.BytesIO()
    fastavro.schemaless_writer(body, SCHEMA, RECORD)
    whole, inside = by_hand(SCHEMA, body.getvalue()), [json.dumps(SCHEMA).encode(), body.getvalue()]
    content = {
        at for part in inside for at in range(whole.index(part), whole.index(part) + len(part))
    }

    assert RECORD == avro_container.decode_container(whole, NAME, "f")
    for at in set(range(len(whole))) - content:
        for bit in range(8):
            data = whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :]
            with pytest.raises(FormatError):
                avro_container.decode_container(data, NAME, "f")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "does not start with an Avro header"),
        (b"{}", "does not start with an Avro header"),
        (WHOLE + b"\0", "1 extra bytes"),
        (WHOLE + WHOLE, "extra bytes"),
        (container(), "the file is truncated"),
        (container(RECORD, RECORD), "it holds 2 records, expected 1"),
        (container(RECORD, codec="deflate"), "codec is b'deflate'"),
        (by_hand(of([field("string")]), encode_long(1) + b"ab"), "1 extra bytes"),
        (by_hand(of([field("string")]), b"\x01"), "cannot be decoded"),
        (by_hand(of([field("string")]), encode_long(1) + b"\xff"), "cannot be decoded"),
        (by_hand(of([field("bytes")]), encode_long(1 << 50) + b"a"), "cannot be decoded"),
        (by_hand(["null", "string"], b"\0"), "its schema is not a record"),
        (by_hand("nonsense", b""), "cannot be decoded"),
        (by_hand(of([field("nonsense")]), b""), "cannot be decoded"),
        (by_hand({"type": "record"}, b""), "cannot be decoded"),
    ],
)
def test_everything_else_is_damage_that_names_the_file(data, message):

    with pytest.raises(FormatError, match=f"^a/b: .*{message}"):
        avro_container.decode_container(data, NAME, "a/b")


def test_another_record_is_not_this_one():

    with pytest.raises(FormatError, match="it holds a HoodieThing"):
        avro_container.decode_container(WHOLE, "HoodieOther", "f")


EMPTY = {"type": "record", "name": "E", "fields": [field("null")]}
NO_BYTES = {"type": "fixed", "name": "E", "size": 0}


@pytest.mark.parametrize(
    "kind",
    [NAME, ["null", NAME], {"type": "array", "items": NAME}, {"type": "map", "values": NAME}],
    ids=["always", "perhaps", "a list", "a map"],
)
def test_a_schema_that_contains_itself_is_damaged(kind):
    """The library would recurse until the stack overflows and the process dies."""

    with pytest.raises(FormatError, match=r"^f: .*contains itself"):
        avro_container.decode_container(by_hand(of([field(kind)]), encode_long(1) * 9), NAME, "f")


@pytest.mark.parametrize("items", ["null", EMPTY, NO_BYTES], ids=["null", "empty", "no bytes"])
def test_a_list_whose_items_take_no_bytes_is_damage(items):
    """The library would allocate the stated length, however short the file is."""
    inline = of([field({"type": "array", "items": items})])
    by_name = of([field(items), field({"type": "array", "items": "E"}, "y")])
    for schema in (inline,) if items == "null" else (inline, by_name):
        with pytest.raises(FormatError, match=r"^f: .*items of a list take no bytes"):
            avro_container.decode_container(
                by_hand(schema, encode_long(3) + encode_long(0)), NAME, "f"
            )


@pytest.mark.parametrize(
    "kind",
    ["bytes", "string", {"type": "array", "items": "string"}, {"type": "map", "values": "null"}],
    ids=str,
)
def test_a_length_beyond_the_file_is_damage(kind):

    with pytest.raises(FormatError, match=r"^f: "):
        avro_container.decode_container(
            by_hand(of([field(kind)]), encode_long(1 << 40) + b"\0" * 99), NAME, "f"
        )


def test_a_written_container_holds_only_schema_and_record():
    record = {
        "savepointedBy": "me",
        "savepointedAt": 1,
        "comments": "",
        "partitionMetadata": {},
        "version": 1,
    }
    data = avro_container.encode_container("HoodieSavepointMetadata.avsc", record)
    reader = fastavro.reader(io.BytesIO(data))

    assert [record] == list(reader)
    assert ["avro.schema"] == list(reader.metadata)
    assert data == avro_container.encode_container("HoodieSavepointMetadata.avsc", dict(record))
    assert record == avro_container.decode_container(data, "HoodieSavepointMetadata", "f")


@pytest.mark.parametrize("name", ["", "/", "p=1/", "p=1/..", "..", ".", "a\\b", "a/b\0c"])
def test_a_path_without_a_usable_file_name_is_damage(name):

    with pytest.raises(FormatError, match=r"^where: names"):
        avro_container.parse_file_name(name, "where")


@pytest.mark.parametrize(
    "path", ["a.parquet", "/t/p/a.parquet", "file:/t/a.parquet", "s3://b/../../a.parquet"]
)
def test_only_the_file_name_of_a_path_counts(path):

    assert "a.parquet" == avro_container.parse_file_name(path, "where")
