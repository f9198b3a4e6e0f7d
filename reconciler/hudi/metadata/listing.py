"""Read the file listing of the metadata table and compare it with another listing.

The ``files`` partition has one record per partition path (file name -> size, deleted), and a record
with key ``__all_partitions__`` that names the partitions. Records of one key are merged: log blocks
in order first, then their result over the base file's record (HoodieMetadataPayload).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from typing import Any, Final

from reconciler.errors import UnsupportedError
from reconciler.hudi.codecs import hfile_reader, hfile_writer
from reconciler.hudi.codecs.avro_binary import decode_record, decoding, encode_record, parse_schema
from reconciler.hudi.codecs.hfile_reader import HFile
from reconciler.hudi.codecs.log_blocks import (
    BlockType,
    HeaderKey,
    LogBlock,
    encode_block,
    get_block_schema,
    read_avro_records,
    read_delete_keys,
)
from reconciler.hudi.metadata.own_timeline import ROOT
from reconciler.hudi.metadata.record_encoder import fill_record
from reconciler.hudi.metadata.table import FILES, MetadataTable
from reconciler.lazy_dataclass import dataclass

ALL_PARTITIONS: Final = "__all_partitions__"
#: record types of the ``files`` partition (MetadataPartitionType)
_ALL_PARTITIONS_TYPE: Final = 1
_FILES_TYPE: Final = 2
#: the metadata table's name for the only partition of a table without partitions
UNPARTITIONED: Final = "."

#: file name -> size in bytes, None for a deleted file that the base file may still list
FileSizes = dict[str, int | None]


@dataclass(slots=True)
class _KeyChange:
    """Changes of the log blocks to one key; ``hides_base``: the base file's record is deleted."""

    names: FileSizes
    hides_base: bool = False


#: partition path, file names, sizes in bytes
FolderFiles = tuple[str, list[str], list[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataListing:
    """The merged ``files`` partition; ``partitions`` are the live partition paths, sorted.

    ``schema``: JSON of the newest schema of its records.
    """

    partitions: tuple[str, ...]
    schema: str
    _base: HFile | None = field(repr=False)
    _logs: Mapping[str, _KeyChange] = field(repr=False)

    def read_folders(self, partitions: Collection[str] | None = None) -> Iterator[FolderFiles]:
        """Yield names and sizes of every live partition, or of some of them, by path.

        A partition without files has empty lists. Few partitions need few blocks of the base file.
        Raises FormatError.
        """
        wanted = None if partitions is None else set(partitions)
        live = tuple(path for path in self.partitions if wanted is None or path in wanted)
        below = self._read_base_records(live, everything=wanted is None)
        for path in live:
            names = _merge_record(
                self._base,
                below.pop(partition_key(path), None),
                self._logs.get(partition_key(path)),
            )
            yield path, list(names), list(names.values())

    def find_in_base(self, removed: Mapping[str, Collection[str]]) -> dict[str, set[str]]:
        """Return those of the live names that both the log blocks and the base file list, by key.

        ``removed``: key -> names. One deletion only cancels the log blocks' entry. The base file's
        entry needs a second deletion in a later block.
        """
        if self._base is None:
            return {}
        listed: dict[str, set[str]] = {}
        for key, names in removed.items():
            change = self._logs.get(key)
            if change and (own := {name for name in names if change.names.get(name) is not None}):
                listed[key] = own
        records = self._base.get([key.encode() for key in listed]) if listed else {}
        found = {
            key: own & _merge_record(self._base, records.get(key.encode()), None).keys()
            for key, own in listed.items()
        }
        return {key: names for key, names in found.items() if names}

    def _read_base_records(self, live: Collection[str], *, everything: bool) -> dict[str, bytes]:
        """Return undecoded records of the base file by key."""
        if self._base is None:
            return {}
        keys = [partition_key(path).encode() for path in live]
        records = self._base.scan_all() if everything else self._base.get(keys).items()
        return {key.decode(): value for key, value in records}


def read_metadata_listing(table: MetadataTable) -> MetadataListing:
    """Read the log blocks of the ``files`` partition and open its base file.

    Raises FormatError, UnsupportedError.
    """
    slices = table.list_slices(FILES)
    if len(slices) != 1:
        raise UnsupportedError(
            f"{FILES}: the metadata table's file listing has {len(slices)} file groups; only one "
            "is supported"
        )
    (newest,) = slices
    base = table.open_base_file(newest)
    schema = base.read_schema() if base else ""
    logs: dict[str, _KeyChange] = {}
    for block in table.read_visible_blocks(newest):
        if block.type is BlockType.DELETE:
            logs.update((key, _KeyChange({}, hides_base=True)) for key in read_delete_keys(block))
            continue
        schema = get_block_schema(block)
        for key, names in read_block_entries(block):
            merge_file_sizes(logs.setdefault(key, _KeyChange({})).names, names)
    everything = base.get([ALL_PARTITIONS.encode()]) if base else {}
    partitions = _merge_record(
        base, everything.get(ALL_PARTITIONS.encode()), logs.get(ALL_PARTITIONS)
    )
    return MetadataListing(
        partitions=tuple(sorted("" if path == UNPARTITIONED else path for path in partitions)),
        schema=schema,
        _base=base,
        _logs=logs,
    )


def merge_file_sizes(older: FileSizes, newer: FileSizes) -> None:
    """Merge ``newer`` into ``older`` as HoodieMetadataPayload.combineFileSystemMetadata does.

    A deletion cancels an existing entry and stays only if there was none. Sizes only grow.
    """
    for name, size in newer.items():
        old_size = older.get(name)
        if size is not None:
            older[name] = size if old_size is None else max(size, old_size)
        elif old_size is None:
            older[name] = None
        else:
            del older[name]


def _merge_record(
    base: HFile | None, record: bytes | None, change: _KeyChange | None
) -> dict[str, int]:
    """Return the live names of one key: the base file's record with the log blocks' changes."""
    names: FileSizes = {}
    if base and record is not None and not (change and change.hides_base):
        schema = parse_schema(base.read_schema(), base.path)
        names = _parse_file_sizes(decode_record(record, schema, base.path), base.path)
    if change:
        merge_file_sizes(names, change.names)
    return {name: size for name, size in names.items() if size is not None}


def read_block_entries(block: LogBlock) -> Iterator[tuple[str, FileSizes]]:
    """Yield key and names of each record of a data block; FormatError, UnsupportedError."""
    if block.type is BlockType.HFILE_DATA:
        schema = parse_schema(get_block_schema(block), block.path)
        for key, value in hfile_reader.parse_hfile(block.content, block.path).scan_all():
            with decoding(block.path, "a key of the file listing"):
                text = key.decode()
            yield text, _parse_file_sizes(decode_record(value, schema, block.path), block.path)
    elif block.type is BlockType.AVRO_DATA:
        for record in read_avro_records(block):
            yield str(record.get("key")), _parse_file_sizes(record, block.path)
    else:
        raise UnsupportedError(
            f"{block.path}: {block.type.name} blocks are not supported in the metadata table"
        )


def _parse_file_sizes(record: Any, path: str) -> FileSizes:
    with decoding(path, "a record of the file listing"):
        listed = (record["filesystemMetadata"] or {}).items()
        return {name: None if info["isDeleted"] else int(info["size"]) for name, info in listed}


def partition_key(path: str) -> str:
    """Return the key of a partition in the metadata table."""
    return path or UNPARTITIONED


def encode_listing_block(instant: str, schema: str, changes: Mapping[str, FileSizes]) -> bytes:
    """Encode an HFile log block with one record per key; names without size are deleted."""
    header = [(HeaderKey.INSTANT_TIME, instant), (HeaderKey.SCHEMA, schema)]
    content = hfile_writer.encode_hfile(encode_listing(schema, changes), schema)
    return encode_block(BlockType.HFILE_DATA, header, content)


def encode_listing(schema: str, changes: Mapping[str, FileSizes]) -> list[tuple[bytes, bytes]]:
    """Encode records of the ``files`` partition in key order; names without size are deleted.

    Raises UnsupportedError for a schema of an unknown Hudi.
    """
    parsed = parse_schema(schema, ROOT)
    cells = []
    for key, names in changes.items():
        kind = _ALL_PARTITIONS_TYPE if key == ALL_PARTITIONS else _FILES_TYPE
        entries = {
            name: {"size": size or 0, "isDeleted": size is None}
            for name, size in sorted(names.items())
        }
        record = {"key": "", "type": kind, "filesystemMetadata": entries}
        cells.append((key.encode(), encode_record(fill_record(parsed, record, ROOT), parsed)))
    return sorted(cells)
