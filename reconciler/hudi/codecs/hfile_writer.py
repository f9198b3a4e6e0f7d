"""Write an HFile (version 3) that HBase's reader and Hudi's own reader accept.

It serves log blocks and base files. It uses gzip, CRC32 and one index level with whole cell keys,
and has no bloom filter, since no reader needs one. Source: HBase's HFileWriterImpl and
HoodieHFileDataBlock (Hudi 0.15, 1.0); 1.1 and 1.2 accept it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from reconciler.arrays import to_numpy
from reconciler.hudi.codecs import hfile_block as blocks
from reconciler.hudi.codecs.avro_binary import encode_varint
from reconciler.hudi.codecs.hfile_block import ChecksumType, Codec
from reconciler.lazy_dataclass import dataclass

_BLOCK: Final = 64 * 1024
#: family length 0, the newest timestamp, type Put
_CELL_TAIL: Final = b"\x00\x7f" + b"\xff" * 7 + b"\x04"
_COMPARATOR: Final = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"
#: bytes of the longest record key
MAX_KEY_BYTES: Final = 0x7FFF
_MINOR: Final = 3
#: bytes of a cell key in addition to its record key
_FRAME: Final = 2 + len(_CELL_TAIL)
#: array rows framed per batch
_BATCH_ROWS: Final = 1 << 14
_ORDER: Final = "the keys of an HFile must ascend strictly"
#: cell key's length, value's length, record key's length
_HEAD: Final = np.dtype([("cell", ">i4"), ("value", ">i4"), ("key", ">i2")])
_LENGTH: Final = f"an HFile key has at most {MAX_KEY_BYTES} bytes"


def encode_hfile(
    cells: Sequence[tuple[bytes, bytes]], schema: str, *, is_base_file: bool = False
) -> bytes:
    """Encode (record key, value) pairs as an HFile with the schema's JSON in its file info.

    ``is_base_file`` adds the first and last key to the file info. Raises ValueError when there is
    no pair, the keys do not ascend strictly, or a key is too long.
    """
    keys = [key for key, _value in cells]
    if not cells or any(a >= b for a, b in pairwise(keys)):
        raise ValueError(_ORDER)
    if max(map(len, keys)) > MAX_KEY_BYTES:
        raise ValueError(_LENGTH)
    totals = _Totals(
        count=len(cells),
        key_bytes=sum(map(len, keys)) + len(keys) * _FRAME,
        value_bytes=sum(len(value) for _key, value in cells),
        last=keys[-1],
        first=keys[0] if is_base_file else None,
    )
    return _assemble(_split_blocks(cells), totals, schema)


def encode_hfile_arrays(
    keys: Any, values: Any, schema: str, *, rows: Any = None, is_base_file: bool = False
) -> bytes:
    """Encode binary arrays without nulls as an HFile, without a Python object per row.

    ``rows``: for each key, the index of its value, for values in another order. The values are
    never copied as a whole. Otherwise like ``encode_hfile``.
    """
    import pyarrow.compute as pc  # noqa: PLC0415

    if not len(keys) or pc.any(pc.less_equal(keys[1:], keys[:-1])).as_py():
        raise ValueError(_ORDER)
    lengths = pc.binary_length(keys)
    if pc.max(lengths).as_py() > MAX_KEY_BYTES:
        raise ValueError(_LENGTH)
    sizes = pc.binary_length(values)
    totals = _Totals(
        count=len(keys),
        key_bytes=pc.sum(lengths).as_py() + len(keys) * _FRAME,
        value_bytes=pc.sum(sizes if rows is None else sizes.take(rows)).as_py(),
        last=keys[-1].as_py(),
        first=keys[0].as_py() if is_base_file else None,
    )
    return _assemble(_split_array_blocks(keys, values, rows), totals, schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Totals:
    """Sums over all cells. ``key_bytes`` count frames too; ``first``: key of a base file."""

    count: int
    key_bytes: int
    value_bytes: int
    last: bytes
    first: bytes | None = None


def _assemble(data: Iterable[tuple[bytes, bytes]], totals: _Totals, schema: str) -> bytes:
    """Build an HFile of data blocks, each given with its first cell key."""
    out = _BlockWriter()
    pointers = [(*out.append_block(blocks.DATA, plain), first) for first, plain in data]
    load = len(out.data)
    index = b"".join(_encode_index_entry(*pointer) for pointer in pointers)
    out.append_block(blocks.ROOT_INDEX, index)
    out.append_block(blocks.ROOT_INDEX, b"")  # the index of meta blocks, which is empty
    info_at = len(out.data)
    info = _encode_file_info(totals, schema)
    out.append_block(blocks.FILE_INFO, b"PBUF" + encode_varint(len(info)) + info, chained=False)
    numbers: dict[int, int | bytes] = {
        1: info_at,
        2: load,
        3: len(index),
        4: out.plain,
        5: len(pointers),
        6: 0,
        7: totals.count,
        8: 1,
        9: 0,
        10: pointers[-1][0],
        11: _COMPARATOR,
        12: Codec.GZ,
    }
    trailer = b"".join(_encode_field(number, value) for number, value in numbers.items())
    head = blocks.TRAILER + encode_varint(len(trailer)) + trailer
    out.data += head.ljust(blocks.TRAILER_SIZE - 4, b"\0") + bytes((_MINOR, 0, 0, 3))
    return bytes(out.data)


class _BlockWriter:
    """Appends blocks; each one holds the offset of the previous block of its kind."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.plain = 0
        self._last: dict[bytes, int] = {}

    def append_block(self, magic: bytes, plain: bytes, *, chained: bool = True) -> tuple[int, int]:
        """Append a block; return its offset and its size with header and checksums."""
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


def _split_blocks(cells: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return (first cell key, plain bytes) of each data block; a block ends after 64 KiB."""
    finished: list[tuple[bytes, bytes]] = []
    block, first = bytearray(), b""
    for key, value in cells:
        cell_key = _encode_cell_key(key)
        first = first or cell_key
        # the zero at the end is the cell's version (mvcc)
        block += struct.pack(">ii", len(cell_key), len(value)) + cell_key + value + b"\0"
        if len(block) >= _BLOCK:
            finished.append((first, bytes(block)))
            block, first = bytearray(), b""
    if block:
        finished.append((first, bytes(block)))
    return finished


def _split_array_blocks(keys: Any, values: Any, rows: Any) -> Iterator[tuple[bytes, bytes]]:
    """Yield the same blocks as ``_split_blocks``, from arrays."""
    first, block = b"", bytearray()
    for start in range(0, len(keys), _BATCH_ROWS):
        batch = keys.slice(start, _BATCH_ROWS)
        if rows is None:
            batch_values = values.slice(start, _BATCH_ROWS)
        else:
            batch_values = values.take(rows.slice(start, _BATCH_ROWS))
        data, ends = _frame_cells(batch, batch_values)
        start_row = 0
        while start_row < len(batch):
            first = first or _encode_cell_key(batch[start_row].as_py())
            at = int(ends[start_row])
            # end the block after the cell that fills it
            until = int(np.searchsorted(ends[1:], at + _BLOCK - len(block))) + 1
            until = min(max(until, start_row + 1), len(batch))
            block += data[at : int(ends[until])]
            start_row = until
            if len(block) >= _BLOCK:
                yield first, bytes(block)
                first, block = b"", bytearray()
    if block:
        yield first, bytes(block)


def _frame_cells(keys: Any, values: Any) -> tuple[memoryview, Any]:
    """Return the concatenated cells, and the offsets of their starts and of the end."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    wide = pa.large_binary()
    heads = np.empty(len(keys), _HEAD)
    heads["key"] = lengths = to_numpy(pc.cast(pc.binary_length(keys), pa.int32()))
    heads["cell"] = lengths + _FRAME
    heads["value"] = to_numpy(pc.cast(pc.binary_length(values), pa.int32()))
    fixed = pa.Array.from_buffers(
        pa.binary(_HEAD.itemsize), len(keys), [None, pa.py_buffer(heads)]
    ).cast(wide)
    # the zero at the end is the cell's version (mvcc)
    parts = (
        fixed,
        keys.cast(wide),
        _binary_scalar(_CELL_TAIL),
        values.cast(wide),
        _binary_scalar(b"\0"),
    )
    joined = pc.binary_join_element_wise(*parts, _binary_scalar(b""))
    ends = np.frombuffer(joined.buffers()[1], np.int64)[: len(keys) + 1]
    return memoryview(joined.buffers()[2]), ends


def _binary_scalar(data: bytes) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    return pa.scalar(data, pa.large_binary())


def _encode_cell_key(key: bytes) -> bytes:
    return struct.pack(">h", len(key)) + key + _CELL_TAIL


def _encode_index_entry(offset: int, size: int, key: bytes) -> bytes:
    return struct.pack(">qi", offset, size) + _encode_hadoop_vint(len(key)) + key


def _encode_file_info(totals: _Totals, schema: str) -> bytes:
    entries = {
        b"KEY_VALUE_VERSION": struct.pack(">i", 1),
        b"MAX_MEMSTORE_TS_KEY": struct.pack(">q", 0),
        b"hfile.AVG_KEY_LEN": struct.pack(">i", totals.key_bytes // totals.count),
        b"hfile.AVG_VALUE_LEN": struct.pack(">i", totals.value_bytes // totals.count),
        b"hfile.CREATE_TIME_TS": struct.pack(">q", 0),
        b"hfile.LASTKEY": _encode_cell_key(totals.last),
        b"schema": schema.encode(),
    }
    if totals.first is not None:  # HoodieAvroHFileReaderImplBase.KEY_MIN_RECORD, KEY_MAX_RECORD
        entries |= {b"minRecordKey": totals.first, b"maxRecordKey": totals.last}
    return b"".join(
        _encode_field(1, _encode_field(1, key) + _encode_field(2, entries[key]))
        for key in sorted(entries)
    )


def _encode_field(number: int, value: int | bytes) -> bytes:
    """Encode one field of a protobuf message: a varint or bytes."""
    if isinstance(value, int):
        return encode_varint(number << 3) + encode_varint(value)
    return encode_varint(number << 3 | 2) + encode_varint(len(value)) + value


def _encode_hadoop_vint(value: int) -> bytes:
    """Encode a non-negative number as Hadoop's variable-length number (WritableUtils)."""
    if value <= 127:  # noqa: PLR2004
        return bytes((value,))
    digits = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return struct.pack("b", -112 - len(digits)) + digits
