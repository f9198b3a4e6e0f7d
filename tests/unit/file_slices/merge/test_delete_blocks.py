"""Decode delete blocks: keys and event times."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from reconciler.errors import FormatError, UnsupportedError
from reconciler.file_slices.merge.delete_blocks import decode_deletions
from reconciler.hudi.codecs.log_blocks import BlockType, LogBlock, read_blocks
from tests.memory_slices import MODEL, delete_block


def read(types, *records):
    (block,) = read_blocks(delete_block("1", *records), "a.log")
    return decode_deletions(block, types)


@pytest.mark.parametrize(
    ("kind", "wrapper", "value", "found"),
    [
        (pa.bool_(), "BooleanWrapper", True, True),
        (pa.int32(), "IntWrapper", 7, 7),
        (pa.int64(), "LongWrapper", 0, 0),
        (pa.int64(), "IntWrapper", 7, 7),
        (pa.float32(), "FloatWrapper", 0.5, 0.5),
        (pa.float64(), "DoubleWrapper", 0.1, 0.1),
        (pa.string(), "StringWrapper", "é", "é"),
        (pa.date32(), "DateWrapper", 1, date(1970, 1, 2)),
        (pa.decimal128(12, 2), "DecimalWrapper", Decimal("1.50"), Decimal("1.50")),
    ],
)
def test_event_times_take_the_column_s_type(kind, wrapper, value, found):
    one = read([kind], ("k", wrapper, {"value": value}), ("l",))

    assert ["k", "l"] == one.keys.to_pylist()
    assert kind == one.ordering[0].type
    assert [found, None] == one.ordering[0].to_pylist()
    assert [False, True] == one.is_final.tolist()


def test_several_event_times_come_together():
    both = {"wrappedValues": [(MODEL + "IntWrapper", {"value": 0}), None]}
    one = read(
        [pa.int32(), pa.string()], ("k", "ArrayWrapper", both), ("l", "IntWrapper", {"value": 0})
    )

    assert [[0, None], [None, None]] == [column.to_pylist() for column in one.ordering]
    assert [False, True] == one.is_final.tolist()


@pytest.mark.parametrize(
    ("types", "record"),
    [
        ([pa.int32()], ("k", "ArrayWrapper", {"wrappedValues": None})),
        ([pa.int32(), pa.int32()], ("k", "IntWrapper", {"value": 1})),
    ],
)
def test_event_times_that_do_not_match_the_fields_are_refused(types, record):
    with pytest.raises(UnsupportedError, match=r"a\.log: a deletion's event time does not match"):
        read(types, record)


def test_event_times_of_another_type_are_damage():
    with pytest.raises(FormatError, match=r"a\.log: the delete block at byte 0"):
        read([pa.int32()], ("k", "StringWrapper", {"value": "x"}))


@pytest.mark.parametrize(
    "content", [b"", b"\0\0\0\2\0\0\0\0", b"\0\0\0\3\0\0\0\1", b"\0\0\0\3\0\0\0\1\2"]
)
def test_damage_is_found(content):
    block = LogBlock(type=BlockType.DELETE, header={}, content=content, path="a.log")

    with pytest.raises(FormatError, match=r"a\.log: the delete block at byte 0"):
        decode_deletions(block, [])
