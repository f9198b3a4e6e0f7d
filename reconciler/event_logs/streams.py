"""Read the lines of Spark's event logs, compressed or not, with memory for a few blocks.

Framings: net.jpountz.lz4.LZ4BlockOutputStream (``lz4``), org.xerial.snappy.SnappyOutputStream
(``snappy``) and frames of zstd, as Spark's CompressionCodec writes them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from reconciler.errors import FormatError, UnsupportedError

if TYPE_CHECKING:
    from reconciler.event_logs.files import LogFile

#: bytes that are read, or asked of a codec, at once
CHUNK: Final = 4 << 20
#: longer lines are no events that Spark writes, and are skipped
MAX_LINE: Final = 64 << 20
#: blocks of Spark's writers are at most this large; a larger one is damage
_MAX_BLOCK: Final = 64 << 20
_LZ4_MAGIC: Final = b"LZ4Block"
_LZ4_HEADER: Final = struct.Struct("<8sBiiI")
_LZ4_RAW, _LZ4_COMPRESSED = 0x10, 0x20
_LZ4_SEED: Final = 0x9747B28C
_LZ4_CHECKSUM_BITS: Final = 0x0FFFFFFF
_SNAPPY_MAGIC: Final = b"\x82SNAPPY\x00"
_SNAPPY_HEADER: Final = 16
_LENGTH: Final = 4
#: a zstd stream that is cut gives less than this of what it still has
_ZSTD_READ: Final = 1 << 14

ReadRange = Callable[[str, int, int], bytes]


class CutError(Exception):
    """The file ends inside a block."""


class LogLines:
    """The whole lines of a file of an event log.

    After the last one, ``problem`` says why the file could not be read to its end: a cut or a
    damaged block. A last line without an end is left out if the application may still write.
    ``read_range`` is that of a storage; its errors are raised.
    """

    def __init__(self, file: LogFile, read_range: ReadRange) -> None:
        self._file, self._source = file, _FileSource(file, read_range)
        self.problem: str | None = None
        self.bytes_read = 0

    def __iter__(self) -> Iterator[bytes]:
        rest: list[bytes] = []
        size = 0
        for chunk in self._read_chunks():
            self.bytes_read += len(chunk)
            first, *others = chunk.split(b"\n")
            size += len(first)
            if size <= MAX_LINE:
                rest.append(first)
            if others:
                if size <= MAX_LINE:
                    yield b"".join(rest)
                yield from others[:-1]
                rest, size = [others[-1]], len(others[-1])
        if size and self.problem is None and not self._file.is_open:
            yield b"".join(rest)

    def _read_chunks(self) -> Iterator[bytes]:
        decode = _DECODERS.get(self._file.codec)
        if decode is None:
            raise UnsupportedError(
                f"{self._file.path}: logs compressed with {self._file.codec} are not read; set "
                "spark.eventLog.compression.codec to zstd or lz4"
            )
        try:
            yield from decode(self._source)
        except CutError:
            self.problem = "ends inside a compressed block"
        except FormatError as error:
            self.problem = error.problem


class _FileSource:
    """Sequential reads of a file, a chunk at a time. ``read`` and ``closed`` are for pyarrow."""

    closed = False

    def __init__(self, file: LogFile, read_range: ReadRange) -> None:
        self._read_range, self.path, self._size = read_range, file.path, file.size
        self._at, self._buffer = 0, b""

    def read(self, size: int = -1) -> bytes:
        """Return at most ``size`` bytes; fewer at the end of the file."""
        if size < 0:
            size = self._size
        while len(self._buffer) < size and self._at < self._size:
            more = self._read_range(self.path, self._at, min(CHUNK, self._size - self._at))
            if not more:
                self._size = self._at
            self._at += len(more)
            self._buffer += more
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken

    def read_exactly(self, size: int) -> bytes:
        """Return exactly ``size`` bytes; raises CutError if the file ends before."""
        if not 0 <= size <= _MAX_BLOCK:
            raise FormatError(self.path, f"has a block of {size} bytes")
        data = self.read(size)
        if len(data) < size:
            raise CutError
        return data

    def close(self) -> None:
        """Nothing is open."""


def _read_plain(source: _FileSource) -> Iterator[bytes]:
    while chunk := source.read(CHUNK):
        yield chunk


def _read_lz4(source: _FileSource) -> Iterator[bytes]:
    """Yield the blocks of LZ4BlockOutputStream; empty ones end a stream, and one may follow."""
    while header := source.read(_LZ4_HEADER.size):
        if len(header) < _LZ4_HEADER.size:
            raise CutError
        magic, token, compressed, size, checksum = _LZ4_HEADER.unpack(header)
        if magic != _LZ4_MAGIC or not 0 <= size <= _MAX_BLOCK:
            raise FormatError(source.path, "has a damaged lz4 block")
        data = source.read_exactly(compressed)
        method = token & 0xF0
        if method == _LZ4_COMPRESSED:
            data = _decompress("lz4_raw", data, size, source.path)
        elif method != _LZ4_RAW:
            raise FormatError(source.path, "has a damaged lz4 block")
        if size and _checksum_lz4(data) != checksum:
            raise FormatError(source.path, "has an lz4 block whose checksum is wrong")
        if data:
            yield data


def _checksum_lz4(data: bytes) -> int:
    import xxhash  # noqa: PLC0415 (only for such logs)

    return xxhash.xxh32_intdigest(data, seed=_LZ4_SEED) & _LZ4_CHECKSUM_BITS


def _read_snappy(source: _FileSource) -> Iterator[bytes]:
    """Yield the blocks of SnappyOutputStream, which begin with their length, after a header."""
    header = source.read(_SNAPPY_HEADER)
    if len(header) < _SNAPPY_HEADER:
        raise CutError
    if not header.startswith(_SNAPPY_MAGIC):
        raise FormatError(source.path, "does not begin as a snappy stream")
    while length := source.read(_LENGTH):
        if len(length) < _LENGTH:
            raise CutError
        if length == _SNAPPY_MAGIC[:_LENGTH]:  # another stream follows
            source.read_exactly(_SNAPPY_HEADER - _LENGTH)
            continue
        data = source.read_exactly(int.from_bytes(length, "big"))
        yield _decompress("snappy", data, _read_snappy_size(data, source.path), source.path)


def _read_snappy_size(data: bytes, path: str) -> int:
    """Return the size of a decompressed block, the varint at its begin."""
    size = 0
    for nth, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << (7 * nth)
        if byte < 0x80:  # noqa: PLR2004 - the last byte of a varint
            if size <= _MAX_BLOCK:
                return size
            break
    raise FormatError(path, "has a damaged snappy block")


def _decompress(codec: str, data: bytes, size: int, path: str) -> bytes:
    import pyarrow as pa  # noqa: PLC0415 (slow to import)

    try:
        return bytes(pa.Codec(codec).decompress(data, decompressed_size=size, asbytes=True))
    except (pa.ArrowException, OSError, ValueError):
        raise FormatError(path, f"has a damaged {codec.partition('_')[0]} block") from None


def _read_zstd(source: _FileSource) -> Iterator[bytes]:
    import pyarrow as pa  # noqa: PLC0415 (slow to import)

    stream = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), "zstd")
    while True:
        try:
            chunk = stream.read(_ZSTD_READ)
        except (pa.ArrowException, OSError) as error:
            if "runcated" in str(error):
                raise CutError from None
            raise FormatError(source.path, "has a damaged zstd frame") from None
        if not chunk:
            return
        yield chunk


_DECODERS: Final[dict[str | None, Any]] = {
    None: _read_plain,
    "lz4": _read_lz4,
    "snappy": _read_snappy,
    "zstd": _read_zstd,
}
