"""Read the parts of an HFile (version 3): blocks with checksums and variable-length integers.

A block is a 33-byte header, a payload that may be compressed, and one checksum per chunk of header
and payload.

Source: HBase's HFileBlock and HFileContext; Hudi's own org.apache.hudi.io.hfile.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import Final

from reconciler.errors import FormatError, UnsupportedError
from reconciler.hudi.codecs.avro_binary import require
from reconciler.lazy_dataclass import dataclass

DATA: Final = b"DATABLK*"
ROOT_INDEX: Final = b"IDXROOT2"
LEAF_INDEX: Final = b"IDXLEAF2"
INTERMEDIATE_INDEX: Final = b"IDXINTE2"
FILE_INFO: Final = b"FILEINF2"
TRAILER: Final = b'TRABLK"$'
TRAILER_SIZE: Final = 4096
HEADER: Final = struct.Struct(">8siiqbii")
CHUNK: Final = 16384  # bytes covered by one checksum
REMEDY: Final = "the HFile is damaged; restore it or rebuild the metadata table"


class Codec(IntEnum):
    """A compression codec; the value is HBase's ordinal (Compression.Algorithm)."""

    LZO = 0
    GZ = 1
    NONE = 2
    SNAPPY = 3
    LZ4 = 4
    BZIP2 = 5
    ZSTD = 6


class ChecksumType(IntEnum):
    """A checksum algorithm; the value is HBase's ordinal. Hudi's own writer uses NULL."""

    NULL = 0
    CRC32 = 1
    CRC32C = 2


@dataclass(frozen=True, slots=True)
class HFileBlock:
    """One block as read: views into the source bytes, not verified yet."""

    magic: bytes
    payload: memoryview
    plain_size: int
    checksum: ChecksumType
    chunks: list[memoryview]
    checksums: memoryview
    end: int


def read_frame(data: memoryview, at: int) -> HFileBlock:
    """Read the block at an offset of ``data``; raises ValueError or struct.error if it is none."""
    magic, on_disk, plain, _previous, kind, chunk, covered = HEADER.unpack_from(data, at)
    end = at + HEADER.size + on_disk
    require(plain >= 0 and HEADER.size <= covered <= end - at, "the block sizes are out of range")
    require(end <= len(data), f"a block of {end - at} bytes extends past the end")
    require(chunk > 0, f"the checksum chunk size is {chunk}")
    whole = data[at : at + covered]
    return HFileBlock(
        magic=magic,
        payload=whole[HEADER.size :],
        plain_size=plain,
        checksum=ChecksumType(kind),
        chunks=[whole[i : i + chunk] for i in range(0, covered, chunk)],
        checksums=data[at + covered : end],
        end=end,
    )


def verify_checksums(frames: Sequence[HFileBlock]) -> None:
    """Verify the checksums of all blocks; raises ValueError at the first wrong one."""
    for kind, compute in _CHECKSUMS.items():
        checked = [frame for frame in frames if frame.checksum is kind]
        pieces = [chunk for frame in checked for chunk in frame.chunks]
        for frame in checked:
            require(len(frame.checksums) == 4 * len(frame.chunks), "checksums are missing")
        sums = b"".join(frame.checksums for frame in checked)
        expected = struct.unpack(f">{len(pieces)}I", sums)
        require(not pieces or tuple(compute(pieces)) == expected, "a checksum is wrong")


def _compute_crc32(pieces: Sequence[memoryview]) -> list[int]:
    return [zlib.crc32(piece) for piece in pieces]


def _compute_crc32c(pieces: Sequence[memoryview]) -> list[int]:
    import google_crc32c  # noqa: PLC0415 (few HFiles need it)

    return [google_crc32c.value(bytes(piece)) for piece in pieces]


_CHECKSUMS: Final[dict[ChecksumType, Callable[[Sequence[memoryview]], list[int]]]] = {
    ChecksumType.CRC32: _compute_crc32,
    ChecksumType.CRC32C: _compute_crc32c,
}


def decompress(frame: HFileBlock, codec: Codec) -> bytes:
    """Return the uncompressed payload; raises ValueError, zlib.error."""
    if codec is Codec.NONE:
        require(len(frame.payload) == frame.plain_size, "the block size differs from its header")
        return bytes(frame.payload)
    # one byte more than the header's size, to notice a larger payload without decompressing it all
    stream = zlib.decompressobj(wbits=31)
    plain = stream.decompress(frame.payload, frame.plain_size + 1)
    require(len(plain) == frame.plain_size and stream.eof, "the block size differs from its header")
    return plain


def check_codec(ordinal: int, path: str) -> Codec:
    """Return the codec if it is GZ or NONE; UnsupportedError names any other."""
    try:
        codec = Codec(ordinal)
    except ValueError:
        raise FormatError(path, f"HFile codec number {ordinal} is unknown", REMEDY) from None
    if codec not in (Codec.GZ, Codec.NONE):
        raise UnsupportedError(
            f"{path}: HFiles compressed with {codec.name} cannot be read; rebuild the metadata "
            "table with hoodie.hfile.compression.algorithm=gzip"
        )
    return codec


def decode_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """Decode a protobuf varint; return it and its end. Raises ValueError, IndexError.

    >>> decode_varint(bytes([0xAC, 0x02]), 0)
    (300, 2)
    """
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004
            return value, at
    raise ValueError("a varint is longer than 10 bytes")


def read_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each protobuf field; raises ValueError, IndexError."""
    at = 0
    while at < len(data):
        tag, at = decode_varint(data, at)
        value, at = decode_varint(data, at)
        wire = tag & 7
        require(wire in (0, 2), f"unknown protobuf wire type {wire}")
        if wire == 0:
            yield tag >> 3, value
        else:
            require(value <= len(data) - at, f"a field of {value} bytes extends past the end")
            yield tag >> 3, data[at : at + value]
            at += value


def decode_hadoop_vint(data: bytes, at: int) -> tuple[int, int]:
    """Decode Hadoop's variable-length number (WritableUtils); return it and its end.

    >>> decode_hadoop_vint(bytes([0x8F, 200]), 0), decode_hadoop_vint(bytes([57]), 0)
    ((200, 2), (57, 1))
    """
    first = data[at] - 256 if data[at] > 127 else data[at]  # noqa: PLR2004
    if first >= -112:  # noqa: PLR2004
        require(first >= 0, "a length is negative")
        return first, at + 1
    size = -112 - first
    require(size <= 8 and at + size < len(data), "a number extends past the end")  # noqa: PLR2004
    return int.from_bytes(data[at + 1 : at + 1 + size], "big"), at + 1 + size
