"""One HFile (version 3) that HBase's reader and Hudi's own both accept, as a log block's content.

Gzip, CRC32, one index level with whole cell keys, no bloom filter: log blocks need none.
Source: HBase's HFileWriterImpl and HoodieHFileDataBlock (Hudi 0.15, 1.0); accepted by 1.1 and 1.2.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from reconciler.hudi import hfile_block as blocks
from reconciler.hudi.hfile_block import ChecksumType, Codec

_BLOCK: Final = 64 * 1024
#: family length 0, the newest timestamp, type Put
_CELL_TAIL: Final = b"\x00\x7f" + b"\xff" * 7 + b"\x04"
_COMPARATOR: Final = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"
_LONGEST_KEY: Final = 0x7FFF
_MINOR: Final = 3


def encode(cells: Sequence[tuple[bytes, bytes]], schema: str) -> bytes:
    """The bytes of an HFile with these (record key, value), and the schema's JSON in its file info.

    Keys must ascend strictly and there must be at least one. Raises ValueError otherwise.
    """
    keys = [key for key, _value in cells]
    if not cells or any(a >= b for a, b in pairwise(keys)):
        raise ValueError("the keys of an HFile must ascend strictly")
    if max(map(len, keys)) > _LONGEST_KEY:
        raise ValueError(f"an HFile key has at most {_LONGEST_KEY} bytes")
    out = _Writer()
    pointers = [(*out.block(blocks.DATA, data), first) for first, data in _data_blocks(cells)]
    load = len(out.data)
    index = b"".join(_index_entry(*pointer) for pointer in pointers)
    out.block(blocks.ROOT_INDEX, index)
    out.block(blocks.ROOT_INDEX, b"")  # the index of meta blocks: there are none
    info_at = len(out.data)
    info = _file_info(cells, schema)
    out.block(blocks.FILE_INFO, b"PBUF" + _varint(len(info)) + info, chained=False)
    numbers: dict[int, int | bytes] = {
        1: info_at,
        2: load,
        3: len(index),
        4: out.plain,
        5: len(pointers),
        6: 0,
        7: len(cells),
        8: 1,
        9: 0,
        10: pointers[-1][0],
        11: _COMPARATOR,
        12: Codec.GZ,
    }
    trailer = b"".join(_field(number, value) for number, value in numbers.items())
    head = blocks.TRAILER + _varint(len(trailer)) + trailer
    out.data += head.ljust(blocks.TRAILER_SIZE - 4, b"\0") + bytes((_MINOR, 0, 0, 3))
    return bytes(out.data)


class _Writer:
    """Blocks one behind the other, each knowing where the last of its kind is."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.plain = 0
        self._last: dict[bytes, int] = {}

    def block(self, magic: bytes, plain: bytes, *, chained: bool = True) -> tuple[int, int]:
        """Append a block; its offset and its size with header and checksums."""
        packer = zlib.compressobj(wbits=31)
        payload = packer.compress(plain) + packer.flush()
        covered = blocks.HEADER.size + len(payload)
        sums = 4 * -(-covered // blocks.CHUNK)
        header = blocks.HEADER.pack(
            magic,
            len(payload) + sums,
            len(plain),
            self._last.get(magic, -1) if chained else -1,
            ChecksumType.CRC32,
            blocks.CHUNK,
            covered,
        )
        whole = header + payload
        offset = self._last[magic] = len(self.data)
        self.data += whole
        for start in range(0, covered, blocks.CHUNK):
            self.data += struct.pack(">I", zlib.crc32(whole[start : start + blocks.CHUNK]))
        self.plain += blocks.HEADER.size + len(plain)
        return offset, covered + sums


def _data_blocks(cells: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """(first cell key, plain bytes) of each data block: full as soon as it reaches 64 KiB."""
    found: list[tuple[bytes, bytes]] = []
    block, first = bytearray(), b""
    for key, value in cells:
        cell_key = struct.pack(">h", len(key)) + key + _CELL_TAIL
        first = first or cell_key
        # the zero at the end is the cell's version (mvcc)
        block += struct.pack(">ii", len(cell_key), len(value)) + cell_key + value + b"\0"
        if len(block) >= _BLOCK:
            found.append((first, bytes(block)))
            block, first = bytearray(), b""
    if block:
        found.append((first, bytes(block)))
    return found


def _index_entry(offset: int, size: int, key: bytes) -> bytes:
    return struct.pack(">qi", offset, size) + _hadoop_vint(len(key)) + key


def _file_info(cells: Sequence[tuple[bytes, bytes]], schema: str) -> bytes:
    last = cells[-1][0]
    key_bytes = sum(len(key) + 2 + len(_CELL_TAIL) for key, _value in cells)
    entries = {
        b"KEY_VALUE_VERSION": struct.pack(">i", 1),
        b"MAX_MEMSTORE_TS_KEY": struct.pack(">q", 0),
        b"hfile.AVG_KEY_LEN": struct.pack(">i", key_bytes // len(cells)),
        b"hfile.AVG_VALUE_LEN": struct.pack(">i", sum(len(v) for _, v in cells) // len(cells)),
        b"hfile.CREATE_TIME_TS": struct.pack(">q", 0),
        b"hfile.LASTKEY": struct.pack(">h", len(last)) + last + _CELL_TAIL,
        b"schema": schema.encode(),
    }
    return b"".join(_field(1, _field(1, key) + _field(2, entries[key])) for key in sorted(entries))


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:  # noqa: PLR2004
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes((value,))


def _field(number: int, value: int | bytes) -> bytes:
    """One field of a protobuf message: a varint or bytes."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _hadoop_vint(value: int) -> bytes:
    """Hadoop's variable-length number (WritableUtils), not negative."""
    if value <= 127:  # noqa: PLR2004
        return bytes((value,))
    digits = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return struct.pack("b", -112 - len(digits)) + digits
