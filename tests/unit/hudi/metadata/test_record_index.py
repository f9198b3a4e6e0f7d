from __future__ import annotations

import json
import uuid

import pyarrow as pa
import pytest

from reconciler.errors import FormatError
from reconciler.hudi.codecs import hfile_writer
from reconciler.hudi.codecs.avro_binary import encode_record, parse_schema
from reconciler.hudi.metadata.record_index import RecordIndex
from reconciler.hudi.metadata.table import MetadataSlice
from reconciler.hudi.timeline.active import Timeline
from tests.memory_source import MemorySource

LAST = uuid.UUID(int=(1 << 128) - 1)
UID = uuid.UUID("8a3c0f52-0000-4000-9000-0123456789ab")
SAID = {
    "partitionName": "string",
    "fileIdHighBits": "long",
    "fileIdLowBits": "long",
    "fileIndex": "int",
    "fileId": "string",
    "fileIdEncoding": "int",
}
FIELDS = [{"name": name, "type": kind} for name, kind in SAID.items()]
SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "HoodieMetadataRecord",
        "fields": [
            {
                "name": "recordIndexMetadata",
                "type": ["null", {"type": "record", "name": "Where", "fields": FIELDS}],
            }
        ],
    }
)
NAME = "record-index-0000-0_0-0-0_1.hfile"


def value(partition="p=a", uid=UID, number=0, **more):
    halves = [uid.int >> 64, uid.int & (1 << 64) - 1]
    high, low = (half - (1 << 64) if half >> 63 else half for half in halves)
    location = {
        "partitionName": partition,
        "fileIdHighBits": high,
        "fileIdLowBits": low,
        "fileIndex": number,
        "fileId": "",
        "fileIdEncoding": 0,
        **more,
    }
    return encode_record({"recordIndexMetadata": location}, parse_schema(SCHEMA, "f"))


class Counted(MemorySource):
    """The ranges read of the only file group's base file."""

    def __init__(self, cells):
        data = hfile_writer.encode_hfile(sorted(cells.items()), SCHEMA, is_base_file=True)
        self.path = f".hoodie/metadata/record_index/{NAME}"
        self.files, self.reads = {self.path: data}, []
        over = MetadataSlice(
            partition="record_index",
            file_group="record-index-0000-0",
            base=(NAME, len(data)),
            logs=(),
            newest_instant="1",
            next_log_version=1,
        )
        nothing = Timeline.from_files([])
        self.index = RecordIndex(
            version=9, metadata_timeline=nothing, data_timeline=nothing, slices=(over,)
        )

    def read_range(self, path, start, length):
        self.reads.append(length)
        return super().read_range(path, start, length)

    def places(self, *keys):
        found = self.index.locate_keys(self, 0, pa.array(keys, pa.string()))
        assert sorted(found.key_index.tolist()) == found.key_index.tolist()
        return {
            keys[key]: found.locations[place]
            for key, place in zip(
                found.key_index.tolist(), found.location_code.tolist(), strict=True
            )
        }


@pytest.mark.parametrize(
    ("cell", "place"),
    [
        (value(), ("p=a", f"{UID}-0")),
        (value("", number=12), ("", f"{UID}-12")),
        (value(uid=LAST), ("p=a", f"{LAST}-0")),
        (value(number=-1), ("p=a", str(UID))),
        (value(fileIdEncoding=1, fileId="00000003-any text"), ("p=a", "00000003-any text")),
    ],
)  # fmt: skip
def test_a_location_is_a_partition_and_a_file_id(cell, place):
    assert {"k": place} == Counted({b"k": cell}).places("k")


def test_keys_of_any_order_and_letters_are_found_and_others_not():
    cells = {f"k{n:03}".encode(): value(number=n % 7) for n in range(500)}
    table = Counted(cells | {"é😀".encode(): value("p=ů"), b"": value(number=99)})

    found = table.places("zz", "k499", "é😀", "a", "k000", "", "k250x", "k250")
    assert found == {
        "k499": ("p=a", f"{UID}-2"),
        "é😀": ("p=ů", f"{UID}-0"),
        "k000": ("p=a", f"{UID}-0"),
        "": ("p=a", f"{UID}-99"),
        "k250": ("p=a", f"{UID}-5"),
    }


def test_only_blocks_that_may_hold_a_key_are_read():
    cells = {b"k%06d" % n: value(number=n % 7) for n in range(100_000)}
    table = Counted(cells)
    size = len(table.files[table.path])

    assert {"k050000": ("p=a", f"{UID}-6")} == table.places("k050000", "k050000x")
    assert sum(table.reads) < 80_000 < size / 4
    table.reads.clear()
    everything = [key.decode() for key in cells]
    assert len(cells) == len(table.places(*everything))
    assert len(table.reads) <= 2 + size / (8 << 20)


def test_an_entry_without_a_location_is_damaged():
    nothing = encode_record({"recordIndexMetadata": None}, parse_schema(SCHEMA, "f"))
    with pytest.raises(FormatError, match=NAME):
        Counted({b"k": nothing}).places("k")
