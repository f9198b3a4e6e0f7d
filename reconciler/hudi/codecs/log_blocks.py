"""Read and write the blocks of Hudi's log files: each has a typed header and a content.

Layout of a block, big endian: ``#HUDI#``; int64 size of the rest of the block; int32 log version 1;
int32 type; header map; int64 content length; content; footer map; int64 size of everything before
it. A map is an int32 count, then per entry int32 key, int32 length, UTF-8 bytes.

Source: HoodieLogFileReader, HoodieLogFormatWriter, HoodieLogBlock.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final

from reconciler.errors import FormatError
from reconciler.hudi.codecs.avro_binary import (
    decode_record,
    decoding,
    encode_long,
    load_schema_text,
    parse_schema,
    require,
)
from reconciler.lazy_dataclass import dataclass

MAGIC: Final = b"#HUDI#"
#: version of the block framing, and of the content of AVRO_DATA, CDC_DATA and DELETE blocks
FRAME_VERSION: Final = 1
CONTENT_VERSION: Final = 3

_PREFIX: Final = len(MAGIC) + 8
_TYPED: Final = _PREFIX + 8  # with the version and the type
_MIN_SIZE: Final = 8  # the size field counts at least its repetition at the end
#: order value IntWrapper(0), branch 2 of the union: always delete
_ANY_ORDER: Final = b"\x04\0"
_REMEDY: Final = "the log file is damaged; restore it or roll back the write that made it"


class BlockType(IntEnum):
    """The kind of content; the value is the ordinal on disk."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


class HeaderKey(IntEnum):
    """A key of a block's header; the value is the ordinal on disk."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBlock:
    """One block. ``start``: its offset in the file at ``path``. A CORRUPT block has no header."""

    type: BlockType
    header: Mapping[HeaderKey, str]
    content: bytes
    path: str = ""
    start: int = 0

    @property
    def instant(self) -> str | None:
        """The requested time of the write that made the block."""
        return self.header.get(HeaderKey.INSTANT_TIME)

    def require_instant(self) -> str:
        """Return the instant; raises FormatError when the header has none."""
        if not self.instant:
            problem = f"the log block at byte {self.start} has no instant"
            raise FormatError(self.path, problem, _REMEDY)
        return self.instant


def read_blocks(data: bytes, path: str) -> Iterator[LogBlock]:
    """Yield the blocks of a log file in file order; half-written ones are CORRUPT.

    A block is CORRUPT when it passes the end of the file, when the sizes at its start and end
    differ, or when neither the end of the file nor a magic follows it
    (HoodieLogFileReader.isBlockCorrupted). A CORRUPT block extends to the next magic. Nothing is
    copied before its length is known to lie inside ``data``.

    Raises FormatError naming ``path`` when a block does not start with the magic, or when the
    inside of a well-framed block contradicts itself.
    """
    at = 0
    while at < len(data):
        if len(data) - at >= len(MAGIC) and not data.startswith(MAGIC, at):
            raise FormatError(path, f"no log block starts at byte {at}", _REMEDY)
        end = _find_block_end(data, at)
        if end is None:
            next_magic = data.find(MAGIC, at + len(MAGIC))
            end = len(data) if next_magic < 0 else next_magic
            yield LogBlock(
                type=BlockType.CORRUPT, header={}, content=data[at:end], path=path, start=at
            )
        else:
            yield _parse_block(data[at:end], path, at)
        at = end


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSpan:
    """Where a block is in its file, and its type."""

    type: BlockType
    start: int
    length: int


def find_blocks(
    read_range: Callable[[str, int, int], bytes], path: str, size: int
) -> Iterator[BlockSpan]:
    """Yield where the blocks of a log file of ``size`` bytes are; reads only their first bytes.

    ``read_range``: path, start and length -> bytes. Ends at the first block that is damaged.
    """
    at = 0
    while at + _TYPED <= size:
        head = read_range(path, at, _TYPED)
        if len(head) < _TYPED or not head.startswith(MAGIC):
            return
        rest, _version, ordinal = struct.unpack_from(">qii", head, len(MAGIC))
        if not 0 <= ordinal < len(BlockType) or rest < _MIN_SIZE:
            return
        yield BlockSpan(type=BlockType(ordinal), start=at, length=_PREFIX + rest)
        at += _PREFIX + rest


def _find_block_end(data: bytes, at: int) -> int | None:
    """Return where the block at ``at`` ends, None when it is corrupt."""
    if at + _PREFIX > len(data):
        return None
    (size,) = struct.unpack_from(">q", data, at + len(MAGIC))
    end = int(at + _PREFIX + size)
    if size < _MIN_SIZE or end > len(data):
        return None
    (end_size,) = struct.unpack_from(">q", data, end - 8)
    # Hudi too treats fewer bytes than a magic as the end of the file
    followed = len(data) - end < len(MAGIC) or data.startswith(MAGIC, end)
    return end if end_size == size + len(MAGIC) and followed else None


def _parse_block(frame: bytes, path: str, start: int) -> LogBlock:
    """Parse the bytes of a whole, well-framed block; raises FormatError."""
    try:
        version, ordinal = struct.unpack_from(">ii", frame, _PREFIX)
        is_known = version == FRAME_VERSION
        require(is_known, f"log format version is {version}, expected {FRAME_VERSION}")
        kind = BlockType(ordinal)
        header, at = _read_map(frame, _PREFIX + 8)
        (length,) = struct.unpack_from(">q", frame, at)
        content = _slice(frame, at + 8, length)
        _footer, at = _read_map(frame, at + 8 + length)
        require(at + 8 == len(frame), f"{len(frame) - at - 8} extra bytes follow its footer")
    except (ValueError, struct.error) as problem:
        raise FormatError(path, f"bad log block at byte {start}: {problem}", _REMEDY) from None
    return LogBlock(type=kind, header=header, content=content, path=path, start=start)


def _read_map(frame: bytes, at: int) -> tuple[dict[HeaderKey, str], int]:
    """Return a header or footer map and where it ends; raises ValueError, struct.error."""
    (count,) = struct.unpack_from(">i", frame, at)
    at += 4
    require(0 <= count <= len(frame) // 8, f"the header claims {count} entries")
    entries: dict[HeaderKey, str] = {}
    for _ in range(count):
        key, length = struct.unpack_from(">ii", frame, at)
        entries[HeaderKey(key)] = _slice(frame, at + 8, length).decode()
        at += 8 + length
    return entries, at


def _slice(frame: bytes, at: int, length: int) -> bytes:
    """Return exactly ``length`` bytes; raises ValueError when fewer are there."""
    require(0 <= length <= len(frame) - at, f"a field of {length} bytes extends past the end")
    return frame[at : at + length]


def encode_block(kind: BlockType, header: Sequence[tuple[HeaderKey, str]], content: bytes) -> bytes:
    """Encode one block; the inverse of ``read_blocks``.

    >>> frame = encode_block(BlockType.COMMAND, [(HeaderKey.INSTANT_TIME, "7")], b"")
    >>> (block,) = read_blocks(frame, "a.log")
    >>> block.type.name, block.instant
    ('COMMAND', '7')
    """
    parts = [struct.pack(">iii", FRAME_VERSION, kind, len(header))]
    for key, value in header:
        text = value.encode()
        parts.append(struct.pack(">ii", key, len(text)) + text)
    parts += [struct.pack(">q", len(content)), content, struct.pack(">i", 0)]
    body = b"".join(parts)
    size = len(body) + 8
    return MAGIC + struct.pack(">q", size) + body + struct.pack(">q", size + len(MAGIC))


def get_block_schema(block: LogBlock) -> str:
    """Return the JSON of the writer's schema; raises FormatError when the header has none."""
    text = block.header.get(HeaderKey.SCHEMA)
    if text is None:
        raise FormatError(block.path, f"the log block at byte {block.start} has no schema", _REMEDY)
    return text


def read_avro_records(block: LogBlock, reader: Any = None) -> list[Any]:
    """Decode the records of an AVRO_DATA or CDC_DATA block with the schema of its header.

    ``reader``: the parsed schema of the fields to keep; None: all. Content: int32 version 3, int32
    count, then per record int32 length and Avro binary (HoodieAvroDataBlock). Raises FormatError
    naming the block's file.
    """
    schema = parse_schema(get_block_schema(block), block.path)
    content, records, at = block.content, [], 8
    with decoding(block.path, f"the Avro block at byte {block.start}"):
        version, count = struct.unpack_from(">ii", content)
        is_supported = version == CONTENT_VERSION and count >= 0
        require(is_supported, f"content version {version} with {count} records is not supported")
        for _ in range(count):
            (length,) = struct.unpack_from(">i", content, at)
            record = _slice(content, at + 4, length)
            records.append(decode_record(record, schema, block.path, reader))
            at += 4 + length
        require(at == len(content), f"{len(content) - at} extra bytes follow its {count} records")
    return records


def encode_avro_records(records: Sequence[bytes]) -> bytes:
    """Encode the content of an AVRO_DATA block; the inverse of ``read_avro_records``."""
    head = struct.pack(">ii", CONTENT_VERSION, len(records))
    return head + b"".join(struct.pack(">i", len(record)) + record for record in records)


def read_delete_keys(block: LogBlock) -> list[str]:
    """Return the record keys that a DELETE block names; raises FormatError naming its file.

    Content: int32 version 3, int32 length, Avro binary of a HoodieDeleteRecordList. The newest
    schema also reads older blocks, because its union has one more branch at the end.
    """
    with decoding(block.path, f"the delete block at byte {block.start}"):
        version, length = struct.unpack_from(">ii", block.content)
        is_known = version == CONTENT_VERSION
        require(is_known, f"content version is {version}, expected {CONTENT_VERSION}")
        require(length == len(block.content) - 8, f"the length field says {length} bytes")
        schema = parse_schema(load_schema_text("HoodieDeleteRecordList.avsc"), "")
        listed = decode_record(block.content[8:], schema, block.path)
        return [str(record["recordKey"]) for record in listed["deleteRecordList"]]


def encode_deletes(keys: Iterable[str], partition: str) -> bytes:
    """Encode the content of a DELETE block that deletes keys whatever their order value.

    Each record is the Avro binary of (key, partition, IntWrapper 0). It is encoded by hand for
    speed, because there can be millions. The inverse of ``read_delete_keys``.
    """
    path = partition.encode()
    tail = b"\x02" + encode_long(len(path)) + path + _ANY_ORDER
    records = [b"\x02" + encode_long(len(key)) + key + tail for key in map(str.encode, keys)]
    listed = encode_long(len(records)) + b"".join(records) if records else b""
    listed += b"\0"
    return struct.pack(">ii", CONTENT_VERSION, len(listed)) + listed
