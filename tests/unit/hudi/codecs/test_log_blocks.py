from __future__ import annotations

import json
import struct
from contextlib import suppress

import fastavro
import pytest

from reconciler.errors import FormatError
from reconciler.hudi.codecs.avro_binary import encode_record
from reconciler.hudi.codecs.log_blocks import (
    MAGIC,
    BlockType,
    HeaderKey,
    LogBlock,
    encode_block,
    read_avro_records,
    read_blocks,
    read_delete_keys,
)

PATH = "p=1/.f_1.log.1_0-0-0"
SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "string"}]}
HEADER = [(HeaderKey.INSTANT_TIME, "20240101000000000"), (HeaderKey.SCHEMA, json.dumps(SCHEMA))]


def avro_block(*values):
    parsed = fastavro.parse_schema(SCHEMA)
    content = struct.pack(">ii", 3, len(values))
    for value in values:
        record = encode_record({"a": value}, parsed)
        content += struct.pack(">i", len(record)) + record
    return encode_block(BlockType.AVRO_DATA, HEADER, content)


ONE, TWO = avro_block("x", "y"), avro_block("z")


def kinds(data):
    return [block.type for block in read_blocks(data, PATH)]


def test_a_block_comes_back_as_it_was_written():
    (block,) = read_blocks(ONE, PATH)

    assert (BlockType.AVRO_DATA, dict(HEADER)) == (block.type, block.header)
    assert "20240101000000000" == block.instant
    assert [{"a": "x"}, {"a": "y"}] == read_avro_records(block)
    assert (PATH, 0) == (block.path, block.start)


def test_blocks_follow_each_other():

    assert [0, len(ONE)] == [block.start for block in read_blocks(ONE + TWO, PATH)]
    assert [] == list(read_blocks(b"", PATH))


@pytest.mark.parametrize("cut", range(1, len(TWO)))
def test_a_cut_off_block_at_the_end_is_corrupt_and_the_one_before_it_stands(cut):
    first, *rest = read_blocks(ONE + TWO[:-cut], PATH)

    assert [{"a": "x"}, {"a": "y"}] == read_avro_records(first)
    assert [BlockType.CORRUPT] == [block.type for block in rest]


def test_garbage_between_blocks_makes_the_block_before_it_corrupt():
    # Hudi's rule: the end of the file or another block must follow a block
    assert [BlockType.CORRUPT, BlockType.AVRO_DATA] == kinds(ONE + b"garbage" + TWO)


def test_a_wrong_size_at_the_end_makes_a_block_corrupt():
    wrong = ONE[:-1] + bytes([ONE[-1] ^ 1])

    assert [BlockType.CORRUPT, BlockType.AVRO_DATA] == kinds(wrong + TWO)


def test_a_wrong_magic_at_the_start_is_an_error_with_the_path():
    with pytest.raises(
        FormatError, match=r"p=1/\.f_1\.log\.1_0-0-0: no log block starts at byte 0"
    ):
        list(read_blocks(b"#WRONG" + ONE, PATH))


@pytest.mark.parametrize("value", [0, 1, 0x7F, 0x80, 0xFF])
def test_any_single_byte_may_be_wrong_without_a_traceback(value):
    data = ONE + TWO
    for at in range(len(data)):
        damaged = data[:at] + bytes([value]) + data[at + 1 :]
        with suppress(FormatError):
            for block in read_blocks(damaged, PATH):
                if block.type is BlockType.AVRO_DATA:
                    read_avro_records(block)


def damaged_header(*, version=1, kind=3, key=0, count=1):
    body = struct.pack(">iiiii", version, kind, count, key, 1) + b"7"
    body += struct.pack(">q", 0) + struct.pack(">i", 0)
    size = len(body) + 8
    return MAGIC + struct.pack(">q", size) + body + struct.pack(">q", size + 6)


def test_an_undamaged_header_of_the_same_make_is_read():

    assert ["7"] == [block.instant for block in read_blocks(damaged_header(), PATH)]


@pytest.mark.parametrize(
    "wrong",
    [{"version": 2}, {"kind": 7}, {"kind": -1}, {"key": 99}, {"count": -1}, {"count": 2**31 - 1}],
)
def test_contradictions_in_a_well_framed_block_are_errors(wrong):
    with pytest.raises(FormatError, match="bad log block at byte 0"):
        list(read_blocks(damaged_header(**wrong), PATH))


def test_records_need_a_schema():
    block = LogBlock(type=BlockType.AVRO_DATA, header={}, content=b"", path=PATH)

    with pytest.raises(FormatError, match="has no schema"):
        read_avro_records(block)


def test_records_must_fill_their_block():
    block = LogBlock(
        type=BlockType.AVRO_DATA,
        header=dict(HEADER),
        content=struct.pack(">ii", 3, 0) + b"more",
        path=PATH,
    )

    with pytest.raises(FormatError, match="4 extra bytes follow its 0 records"):
        read_avro_records(block)


def test_a_delete_block_names_keys():
    record = struct.pack("B", 2) + bytes([2, 2]) + b"k" + bytes([2, 2]) + b"p" + bytes([0]) + b"\0"
    content = struct.pack(">ii", 3, len(record)) + record
    block = LogBlock(type=BlockType.DELETE, header={}, content=content, path=PATH)

    assert ["k"] == read_delete_keys(block)


def test_the_delete_block_that_starts_a_file_group_has_no_keys():
    content = struct.pack(">ii", 3, 1) + b"\0"

    assert [] == read_delete_keys(LogBlock(type=BlockType.DELETE, header={}, content=content))
