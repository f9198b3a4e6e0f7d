"""Merge records of partition_stats over each other."""

from __future__ import annotations

import io
from importlib.resources import files

import fastavro
import pytest

from reconciler.errors import FormatError, UnsupportedError
from reconciler.hudi.codecs import hfile_reader, hfile_writer
from reconciler.hudi.codecs.avro_binary import parse_schema
from reconciler.hudi.codecs.log_blocks import BlockType, HeaderKey, LogBlock, encode_deletes
from reconciler.hudi.metadata.index_keys import hash_name
from reconciler.hudi.metadata.partition_stats import merge_ranges, read_partition_ranges
from reconciler.hudi.metadata.record_encoder import ColumnRange
from reconciler.hudi.metadata.table import MetadataSlice
from tests.memory_source import MemorySource

MODEL = "org.apache.hudi.avro.model"
SCHEMA = (files("reconciler.hudi") / "schemas" / "HoodieMetadataRecord.v9.avsc").read_text()
KEY = (hash_name("c") + hash_name("p")).encode()


class Table:
    """One file group of partition_stats: log blocks, oldest first, over a base file."""

    def __init__(self, *blocks, base=None):
        self.source = MemorySource()
        self.source.files = {}
        self.records = [*blocks]
        self.base = None
        if base is not None:
            data = hfile_writer.encode_hfile([(KEY, base)], SCHEMA, is_base_file=True)
            self.source.files[".hoodie/metadata/partition_stats/b"] = data
            self.base = ("b", len(data))

    def list_slices(self, partition):
        assert partition == "partition_stats"
        return (
            MetadataSlice(
                partition=partition,
                file_group="g",
                base=self.base,
                logs=(),
                newest_instant="0",
                next_log_version=1,
            ),
        )

    def open_base_file(self, file_slice):
        if file_slice.base is None:
            return None
        path = file_slice.file_path(file_slice.base[0])
        return hfile_reader.parse_hfile(self.source.files[path], path)

    def read_visible_blocks(self, file_slice):
        assert "g" == file_slice.file_group
        return [
            LogBlock(
                type=BlockType.DELETE if record is None else BlockType.HFILE_DATA,
                header={HeaderKey.SCHEMA: SCHEMA},
                content=encode_deletes([KEY.decode()], "partition_stats")
                if record is None
                else hfile_writer.encode_hfile([(KEY, record)], SCHEMA),
                path="log",
                start=0,
            )
            for record in self.records
        ]


def record(least, greatest, *, tight=True, deleted=False, values=2, nulls=0, wrapper="LongWrapper"):
    """Return a record of the column c in the partition p."""
    parsed = parse_schema(SCHEMA, "")
    stats = {
        "fileName": "p",
        "columnName": "c",
        "minValue": None if least is None else (f"{MODEL}.{wrapper}", {"value": least}),
        "maxValue": None if greatest is None else (f"{MODEL}.{wrapper}", {"value": greatest}),
        "valueCount": values,
        "nullCount": nulls,
        "totalSize": 10,
        "totalUncompressedSize": 20,
        "isDeleted": deleted,
        "isTightBound": tight,
        "valueType": None,
    }
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, parsed, {"key": "", "type": 6, "ColumnStatsMetadata": stats})
    return sink.getvalue()


def known(table):
    """Return least, greatest, values and nulls of c in p; None where they were deleted."""
    (found,) = read_partition_ranges(table, ["c", "d"], ["p", "q"]).values()
    return found and (found.least, found.greatest, found.values, found.nulls)


def test_a_missing_record_gives_no_range():
    assert {} == read_partition_ranges(Table(), ["c"], ["p"])
    assert {} == read_partition_ranges(Table(record(1, 2)), ["d"], ["p"])


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (Table(record(1, 2)), (1, 2, 2, 0)),
        (Table(base=record(1, 2)), (1, 2, 2, 0)),
        # a tight record replaces all earlier ones, another one widens them
        (Table(record(1, 9), record(3, 4), base=record(0, 99)), (3, 4, 2, 0)),
        (Table(record(1, 9), record(5, 12, tight=False), base=record(0, 99)), (1, 12, 4, 0)),
        (Table(record(5, 12, tight=False), base=record(0, 9, nulls=1)), (0, 12, 4, 1)),
        (Table(record(5, 6, tight=False), record(7, 8, tight=False)), (5, 8, 4, 0)),
        # a deletion hides everything below it
        (Table(record(1, 2), record(None, None, deleted=True)), None),
        (Table(record(1, 2, deleted=True), record(5, 6, tight=False)), (5, 6, 2, 0)),
        (Table(record(None, None, deleted=True), base=record(0, 99)), None),
        (Table(None, record(5, 6, tight=False), base=record(0, 99)), (5, 6, 2, 0)),
    ],
)
def test_newer_records_are_merged_as_in_hudi(table, expected):
    assert expected == known(table)


def test_a_record_deleted_by_key_is_ignored():
    assert {} == read_partition_ranges(Table(record(1, 2), None, base=record(0, 99)), ["c"], ["p"])


def test_bounds_of_nulls_alone_are_none():
    assert (None, None, 2, 2) == known(Table(record(0, 0, nulls=2)))
    assert (3, 7, 4, 2) == known(Table(record(0, 0, nulls=2), record(3, 7, tight=False)))


def test_damage_names_the_file():
    with pytest.raises(FormatError, match="log"):
        known(Table(b"\x00\x01\x02"))


def one(least, greatest):
    return ColumnRange(
        column="c", least=least, greatest=greatest, values=1, nulls=0, size=1, plain_size=1
    )


def test_bounds_of_two_types_are_not_merged():
    assert 1 == merge_ranges(one(1, 2), one(None, None), "p").least
    with pytest.raises(UnsupportedError, match="p, column c: the new bounds have another type"):
        merge_ranges(one(1, 2), one("a", "b"), "p")
