"""Read Hudi's HFiles (version 3): all entries in key order, or only a few keys.

Reads the files of HBase's writer (Hudi 0.15, 1.0: checksums, gzip, several index levels) and of
Hudi's own writer (since 1.1). Keys are record keys without the cell's frame.

Source: HBase's HFileReaderImpl, HFileBlockIndex, FixedFileTrailer; Hudi's HFileReaderImpl.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import chain, pairwise
from typing import Final, TypeVar, cast

from reconciler.errors import FormatError, UnsupportedError
from reconciler.hudi.codecs import hfile_block as blocks
from reconciler.hudi.codecs.avro_binary import decoding, require
from reconciler.hudi.codecs.hfile_block import Codec
from reconciler.lazy_dataclass import dataclass

#: ``length`` bytes from ``start`` of one file; fewer at its end
Fetch = Callable[[int, int], bytes]
_T = TypeVar("_T")
#: record key and value
Cell = tuple[bytes, bytes]
#: start and end of a slice of the wanted keys, and the entries of the block they fall into
KeyBlock = tuple[int, int, list[Cell]]

_MAJOR: Final = 3
_TAIL: Final = 64 * 1024  # enough for trailer, indexes and file info of most files
_BATCH: Final = 8 * 1024 * 1024  # data blocks read and verified together
_MAX_GAP: Final = 256 * 1024  # reading these bytes costs less than another request
_MAX_LEVELS: Final = 6
_PUT: Final = 4
_CELL: Final = struct.Struct(">iih")  # lengths of cell key, value and record key
_ONE_BYTE: Final = 127  # the largest Hadoop number encoded in one byte
_CELL_TAIL: Final = 10  # family length, timestamp and type behind the record key


@dataclass(frozen=True, slots=True)
class _Pointer:
    """The position of a block, and its index key.

    The index key is above all keys before the block and not above the block's first key.
    """

    offset: int
    size: int
    key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class HFile:
    """An open HFile. ``info``: the file info; ``count``: the number of entries in the trailer."""

    path: str
    info: Mapping[bytes, bytes]
    count: int
    _fetch: Fetch = field(repr=False)
    _codec: Codec = field(repr=False)
    _levels: int = field(repr=False)
    _root: Sequence[_Pointer] = field(repr=False)
    _index_end: int = field(repr=False)

    def read_schema(self) -> str:
        """Return its values' Avro schema as JSON, "" if it stores none; raises FormatError."""
        with decoding(self.path, "its schema"):
            return self.info.get(b"schema", b"").decode()

    def scan_all(self) -> Iterator[Cell]:
        """Yield every (record key, value) in key order; raises FormatError, UnsupportedError."""
        count = 0
        for cell in self.scan_prefix(b""):
            count += 1
            yield cell
        if count != self.count:
            problem = f"has {count} entries, its trailer says {self.count}"
            raise FormatError(self.path, problem, blocks.REMEDY)

    def get(self, keys: Collection[bytes]) -> dict[bytes, bytes]:
        """Return the values of the keys that exist, reading only blocks that may hold them.

        Raises FormatError, UnsupportedError.
        """
        wanted = sorted(set(keys))
        values: dict[bytes, bytes] = {}
        for start, end, cells in self.scan_blocks_with_keys(wanted):
            block_keys = set(wanted[start:end])
            values.update((key, value) for key, value in cells if key in block_keys)
        return values

    def scan_blocks_with_keys(self, keys: Sequence[bytes]) -> Iterator[KeyBlock]:
        """Yield each block that may hold some of the ascending keys, with its entries.

        Each result is (start, end, entries): ``keys[start:end]`` are the keys the block would hold.
        Blocks close to each other are read in one request. Raises FormatError, UnsupportedError.
        """
        blocks_with_keys = self._find_blocks(self._root, self._levels, keys, (0, len(keys)))
        for (start, end), cells in self._read_blocks(blocks_with_keys):
            yield start, end, cells

    def scan_prefix(self, prefix: bytes) -> Iterator[Cell]:
        """Yield the entries whose keys start with ``prefix``, in key order.

        Blocks that cannot hold such keys are not read. Raises FormatError, UnsupportedError.
        """
        pointers = self._find_data_blocks(self._root, self._levels, prefix)
        for _pointer, cells in self._read_blocks((pointer, pointer) for pointer in pointers):
            yield from (cell for cell in cells if cell[0].startswith(prefix)) if prefix else cells

    def sample_prefixes(self, width: int) -> Iterator[Cell]:
        """Yield entries that include the first one of every distinct key prefix of ``width`` bytes.

        Entries come in key order. A block is skipped when its neighbours prove that it starts no
        new prefix. Raises FormatError, UnsupportedError.
        """
        before: bytes | None = None
        waiting: _Pointer | None = None
        for pointer in self._find_data_blocks(self._root, self._levels):
            if waiting is not None:
                start = waiting.key[:width]
                if not before == start == pointer.key[:width]:
                    yield from next(self._decode_blocks([waiting]))
                before = start
            waiting = pointer
        if waiting is not None:
            yield from next(self._decode_blocks([waiting]))

    def _find_blocks(
        self,
        level: Sequence[_Pointer],
        depth: int,
        keys: Sequence[bytes],
        span: tuple[int, int],
    ) -> Iterator[tuple[_Pointer, tuple[int, int]]]:
        """Yield the data blocks below an index level that may hold keys of a span, and the keys."""
        start, stop = span
        while start < stop and level:
            at = bisect_right(level, keys[start], key=lambda pointer: pointer.key) - 1
            above = level[at + 1].key if at + 1 < len(level) else None
            end = stop if above is None else bisect_left(keys, above, start, stop)
            if at >= 0 and depth == 1:
                yield level[at], (start, end)
            elif at >= 0:
                yield from self._find_blocks(
                    self._read_index_block(level[at]), depth - 1, keys, (start, end)
                )
            start = end

    def _read_blocks(self, pairs: Iterable[tuple[_Pointer, _T]]) -> Iterator[tuple[_T, list[Cell]]]:
        """Yield each block's companion and entries; near blocks are read in one request."""
        batch: list[tuple[_Pointer, _T]] = []
        for block in chain(pairs, (None,)):
            if batch and (block is None or not _is_near(batch[0][0], batch[-1][0], block[0])):
                cells = self._decode_blocks([pointer for pointer, _what in batch])
                yield from zip((what for _pointer, what in batch), cells, strict=True)
                batch = []
            if block is not None:
                batch.append(block)

    def _find_data_blocks(
        self, level: Sequence[_Pointer], depth: int, prefix: bytes = b""
    ) -> Iterator[_Pointer]:
        """Yield the blocks below an index level that may hold keys starting with ``prefix``."""
        first = max(bisect_left(level, prefix, key=lambda pointer: pointer.key) - 1, 0)
        for pointer in level[first:]:
            if pointer.key[: len(prefix)] > prefix:
                break
            if depth == 1:
                yield pointer
            else:
                yield from self._find_data_blocks(
                    self._read_index_block(pointer), depth - 1, prefix
                )

    def _read_index_block(self, pointer: _Pointer) -> tuple[_Pointer, ...]:
        (frame,) = self._read_frames([pointer])
        with decoding(self.path, f"the index block at byte {pointer.offset}"):
            is_index = frame.magic in (blocks.LEAF_INDEX, blocks.INTERMEDIATE_INDEX)
            require(is_index, f"it is a {frame.magic!r} block")
            pointers = _parse_deep_index(blocks.decompress(frame, self._codec))
            _check_order(pointers, self._index_end)
            return pointers

    def _decode_blocks(self, pointers: Sequence[_Pointer]) -> Iterator[list[Cell]]:
        """Yield the entries of each block, given in ascending order."""
        frames = self._read_frames(pointers)
        has_version = self.info.get(b"KEY_VALUE_VERSION") == struct.pack(">i", 1)
        for pointer, frame in zip(pointers, frames, strict=True):
            if frame.magic != blocks.DATA:
                raise UnsupportedError(
                    f"{self.path}: the block at byte {pointer.offset} is of kind "
                    f"{frame.magic!r}; encoded data blocks cannot be read"
                )
            with decoding(self.path, f"the data block at byte {pointer.offset}"):
                cells = _parse_cells(blocks.decompress(frame, self._codec), has_version=has_version)
            yield cells

    def _read_frames(self, pointers: Sequence[_Pointer]) -> list[blocks.HFileBlock]:
        """Read the blocks of ascending pointers in one request and verify their checksums."""
        if not pointers:
            return []
        start = pointers[0].offset
        data = memoryview(self._fetch(start, pointers[-1].offset + pointers[-1].size - start))
        with decoding(self.path, f"a block after byte {start}"):
            frames = []
            for pointer in pointers:
                frame = blocks.read_frame(data, pointer.offset - start)
                require(
                    frame.end == pointer.offset - start + pointer.size,
                    "its size differs from the index",
                )
                frames.append(frame)
            blocks.verify_checksums(frames)
        return frames


def parse_hfile(data: bytes, path: str) -> HFile:
    """Open an HFile in memory; raises FormatError, UnsupportedError naming ``path``."""
    view = memoryview(data)
    return open_hfile(
        lambda start, length: cast("bytes", view[start : start + length]), len(data), path
    )


def open_hfile(fetch: Fetch, size: int, path: str) -> HFile:
    """Open an HFile of ``size`` bytes that ``fetch`` reads.

    Reads the end of the file, and the index separately if it is long. Raises FormatError,
    UnsupportedError naming ``path``.
    """
    start = max(0, size - _TAIL)
    tail = bytes(fetch(start, size - start))
    with decoding(path, "the HFile's trailer"):
        require(len(tail) == size - start and size > blocks.TRAILER_SIZE, "the file is truncated")
        numbers = _parse_trailer(tail[-blocks.TRAILER_SIZE :], path)
        load, info_at, end = numbers[2], numbers[1], size - blocks.TRAILER_SIZE
        require(0 <= load <= info_at < end, "its offsets are out of range")
        levels = numbers.get(8, 1)
        require(1 <= levels <= _MAX_LEVELS, f"it has {levels} index levels")
    if load < start:
        tail, start = bytes(fetch(load, end - load)), load
    codec = blocks.check_codec(numbers.get(12, Codec.NONE), path)
    with decoding(path, "the HFile's index"):
        view = memoryview(tail)[load - start : end - start]
        root = blocks.read_frame(view, 0)
        file_info = blocks.read_frame(view, info_at - load)
        kinds = (root.magic, file_info.magic)
        require(kinds == (blocks.ROOT_INDEX, blocks.FILE_INFO), f"blocks of kinds {kinds}")
        blocks.verify_checksums([root, file_info])
        pointers = _parse_root_index(blocks.decompress(root, codec), numbers.get(5, 0))
        _check_order(pointers, load)
        info = _parse_file_info(blocks.decompress(file_info, codec))
    if b"hfile.MAX_TAGS_LEN" in info:
        raise UnsupportedError(f"{path}: HFile cells with tags cannot be read")
    return HFile(
        path=path,
        info=info,
        count=numbers.get(7, 0),
        _fetch=fetch,
        _codec=codec,
        _levels=levels,
        _root=pointers,
        _index_end=load,
    )


def _is_near(first: _Pointer, last: _Pointer, pointer: _Pointer) -> bool:
    """Return whether a block can join the read that covers the blocks from first to last."""
    is_small = pointer.offset + pointer.size - first.offset <= _BATCH
    return is_small and pointer.offset - last.offset - last.size <= _MAX_GAP


def _parse_trailer(data: bytes, path: str) -> dict[int, int]:
    """Return the trailer's numeric fields by protobuf number; raises ValueError, IndexError."""
    require(data.startswith(blocks.TRAILER), "the trailer is missing")
    major = int.from_bytes(data[-3:], "big")
    if major != _MAJOR:
        raise UnsupportedError(f"{path}: HFile version {major} cannot be read, only {_MAJOR}")
    length, at = blocks.decode_varint(data, len(blocks.TRAILER))
    require(length <= len(data) - at - 4, "the trailer is longer than the file")
    fields = dict(blocks.read_fields(data[at : at + length]))
    if 13 in fields:  # noqa: PLR2004
        raise UnsupportedError(f"{path}: encrypted HFiles cannot be read")
    return {number: value for number, value in fields.items() if isinstance(value, int)}


def _parse_file_info(data: bytes) -> dict[bytes, bytes]:
    """Return the file info as keys and values; raises ValueError, LookupError."""
    require(data.startswith(b"PBUF"), "the file info is not a protobuf message")
    length, at = blocks.decode_varint(data, 4)
    info: dict[bytes, bytes] = {}
    for _number, entry in blocks.read_fields(data[at : at + length]):
        require(isinstance(entry, bytes), "a file info entry is a number")
        pair = dict(blocks.read_fields(cast("bytes", entry)))
        info[cast("bytes", pair[1])] = cast("bytes", pair.get(2, b""))
    return info


def _parse_root_index(data: bytes, count: int) -> tuple[_Pointer, ...]:
    """Return the first ``count`` entries of the root index; raises ValueError, LookupError."""
    at, pointers = 0, []
    require(0 <= count <= len(data) // 13, f"the index claims {count} entries")
    for _ in range(count):
        offset, size = struct.unpack_from(">qi", data, at)
        length, at = blocks.decode_hadoop_vint(data, at + 12)
        pointers.append(_Pointer(offset, size, _extract_record_key(data[at : at + length])))
        at += length
    return tuple(pointers)


def _parse_deep_index(data: bytes) -> tuple[_Pointer, ...]:
    """Return the entries of a leaf or intermediate index; raises ValueError, struct.error."""
    (count,) = struct.unpack_from(">i", data)
    require(0 < count <= len(data) // 4, f"the index claims {count} entries")
    offsets = struct.unpack_from(f">{count + 1}i", data, 4)
    base = 8 + 4 * count
    pointers = []
    for start, end in pairwise(offsets):
        require(
            0 <= start <= end - 12 <= len(data) - base - 12, "an index entry extends past the end"
        )
        offset, size = struct.unpack_from(">qi", data, base + start)
        pointers.append(
            _Pointer(offset, size, _extract_record_key(data[base + start + 12 : base + end]))
        )
    return tuple(pointers)


def _check_order(pointers: Sequence[_Pointer], limit: int) -> None:
    """Raise ValueError unless the blocks follow each other and end before ``limit``."""
    end = 0
    for pointer in pointers:
        require(end <= pointer.offset and pointer.size > 0, "index offsets do not ascend")
        end = pointer.offset + pointer.size
    require(end <= limit, "the index points past the data")


def _extract_record_key(cell: bytes) -> bytes:
    """Return the record key of a cell key, which may be cut off after it.

    Raises ValueError, struct.error.
    """
    (length,) = struct.unpack_from(">h", cell)
    require(0 <= length <= len(cell) - 2, f"a record key of {length} bytes extends past the end")
    return cell[2 : 2 + length]


def _parse_cells(data: bytes, *, has_version: bool) -> list[Cell]:
    """Return the (record key, value) pairs of a data block; raises ValueError and its kin."""
    at, cells, size = 0, [], len(data)
    while at < size:  # runs once per record: keep it minimal
        key_length, value_length, length = _CELL.unpack_from(data, at)
        start = at + _CELL.size
        middle = at + 8 + key_length
        end = middle + value_length
        if not start < middle <= end <= size:
            raise ValueError("a cell extends past the end")
        if not 0 <= length <= key_length - 2 - _CELL_TAIL:
            raise ValueError("a cell key is truncated")
        if data[middle - 1] != _PUT:
            raise ValueError(f"a cell has type {data[middle - 1]}")
        cells.append((data[start : start + length], data[middle:end]))
        if not has_version:
            at = end
        elif data[end] <= _ONE_BYTE:
            at = end + 1
        else:
            at = blocks.decode_hadoop_vint(data, end)[1]
    return cells
