"""Lines of event logs in every framing, whole, cut and damaged."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
import xxhash

from reconciler.errors import UnsupportedError
from reconciler.event_logs import streams
from reconciler.event_logs.files import LogFile, find_event_logs
from reconciler.event_logs.streams import LogLines
from reconciler.storage.api import FolderListing

LINES = [b'{"Event":"%d","x":"%s"}' % (nth, b"y" * (nth % 90)) for nth in range(3000)]
TEXT = b"".join(line + b"\n" for line in LINES)
BLOCK = 32 * 1024


def blocks(data: bytes) -> list[bytes]:
    return [data[at : at + BLOCK] for at in range(0, len(data), BLOCK)]


def write_lz4(data: bytes) -> bytes:
    """As LZ4BlockOutputStream: blocks with checksums, and an empty one at the end."""
    parts = []
    for block in [*blocks(data), b""]:
        packed = pa.Codec("lz4_raw").compress(block, asbytes=True) if block else b""
        check = xxhash.xxh32_intdigest(block, seed=0x9747B28C) & 0xFFFFFFF if block else 0
        method = 0x20 if block else 0x10
        parts += [struct.pack("<8sBiiI", b"LZ4Block", method | 5, len(packed), len(block), check)]
        parts += [packed]
    return b"".join(parts)


def write_snappy(data: bytes) -> bytes:
    """As SnappyOutputStream: a header, and blocks after their lengths."""
    packed = [pa.Codec("snappy").compress(block, asbytes=True) for block in blocks(data)]
    parts = [len(block).to_bytes(4, "big") + block for block in packed]
    return b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + b"".join(parts)


def write_zstd(data: bytes) -> bytes:
    return b"".join(pa.Codec("zstd").compress(block, asbytes=True) for block in blocks(data))


WRITERS = {None: lambda data: data, "lz4": write_lz4, "snappy": write_snappy, "zstd": write_zstd}


def read(
    data: bytes, codec: str | None, *, is_open: bool = False
) -> tuple[list[bytes], str | None]:
    file = LogFile(path="log", size=len(data), codec=codec, is_open=is_open)
    lines = LogLines(file, lambda _, start, length: data[start : start + min(length, 10_000)])
    return [line for line in lines if line], lines.problem


@pytest.mark.parametrize("codec", WRITERS)
def test_every_line_is_read(codec):

    assert (LINES, None) == read(WRITERS[codec](TEXT), codec)
    assert (LINES * 2, None) == read(WRITERS[codec](TEXT) * 2, codec)
    assert ([], None) == read(b"", codec) or codec == "snappy"


@pytest.mark.parametrize("codec", WRITERS)
def test_what_comes_before_a_cut_is_read(codec):
    data = WRITERS[codec](TEXT)
    lines, problem = read(data[: len(data) * 2 // 3], codec, is_open=True)

    assert 1000 < len(lines) < 2900
    assert LINES[: len(lines)] == lines
    assert (codec is None) == (problem is None)


@pytest.mark.parametrize("codec", ["lz4", "snappy"])
def test_a_damaged_block_is_a_problem_after_the_lines_before_it(codec):
    data = bytearray(WRITERS[codec](TEXT))
    data[len(data) // 2] ^= 0x55
    lines, problem = read(bytes(data), codec)

    assert LINES[: len(lines)] == lines[: len(LINES)] or problem is None
    assert problem is None or "block" in problem


def test_a_codec_without_a_library_is_refused_by_name():
    with pytest.raises(UnsupportedError, match=r"log: logs compressed with lzf are not read; set "):
        read(b"ZV\x01", "lzf")


def test_a_line_that_no_writer_would_write_is_left_out(monkeypatch):
    monkeypatch.setattr(streams, "MAX_LINE", 30_000)
    monkeypatch.setattr(streams, "CHUNK", 7_000)
    long = b"x" * 30_001

    assert ([b"a", b"b"], None) == read(b"a\n" + long + b"\nb\n", None)


def test_a_line_without_an_end_counts_only_once_its_application_has_ended():

    assert [b"a", b"b"] == read(b"a\nb", None)[0]
    assert [b"a"] == read(b"a\nb", None, is_open=True)[0]


def test_logs_are_found_by_their_names():
    folders = [
        FolderListing("", ["app-1", "app-2.zstd.inprogress", ".app-1.crc", "empty"], [9, 9, 9, 0]),
        FolderListing(
            "eventlog_v2_app-3",
            ["events_10_app-3.lz4", "events_2_app-3.lz4", "appstatus_app-3", ".events.crc"],
            [9, 9, 9, 9],
        ),
        FolderListing(
            "eventlog_v2_app-4",
            ["events_1_app-4", "events_2_app-4.compact", "events_2_app-4", "events_3_app-4",
             "appstatus_app-4.inprogress"],
            [9, 9, 9, 9, 9],
        ),
        FolderListing("eventlog_v2_app-5", ["appstatus_app-5"], [9]),
    ]  # fmt: skip
    logs = find_event_logs(folders)
    found = {log.name: [file.path.rpartition("/")[2] for file in log.files] for log in logs}
    last = {log.name: (log.files[-1].codec, log.files[-1].is_open) for log in logs}

    assert found == {
        "app-1": ["app-1"],
        "app-2.zstd.inprogress": ["app-2.zstd.inprogress"],
        "eventlog_v2_app-3": ["events_2_app-3.lz4", "events_10_app-3.lz4"],
        "eventlog_v2_app-4": ["events_2_app-4.compact", "events_3_app-4"],
    }
    assert last == {
        "app-1": (None, False),
        "app-2.zstd.inprogress": ("zstd", True),
        "eventlog_v2_app-3": ("lz4", False),
        "eventlog_v2_app-4": (None, True),
    }
