"""The file listing that the metadata table keeps, and how it differs from another listing.

The ``files`` partition has one record a partition path (file name -> size, deleted) and one, of
key ``__all_partitions__``, that names the partitions. Records of one key are merged: log blocks in
order first, their result over the base file's record (HoodieMetadataPayload).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from reconciler.errors import UnsupportedError
from reconciler.hudi import hfile
from reconciler.hudi.hfile import HFile
from reconciler.hudi.logfile import Block, BlockType, avro_records, delete_keys, schema_text
from reconciler.hudi.metadata_table import FILES, MetadataTable
from reconciler.hudi.schemaless import decode, decoding, parsed_schema

ALL_PARTITIONS: Final = "__all_partitions__"
#: what the metadata table calls the only partition of a table without partitions
UNPARTITIONED: Final = "."

#: file name -> size in bytes, None for a deleted file whose record may still be below
Names = dict[str, int | None]


@dataclass(slots=True)
class _Change:
    """What the log blocks say of one key; ``masks``: the base file's record is gone."""

    names: Names
    masks: bool = False


#: partition path, file names, sizes in bytes
Folder = tuple[str, list[str], list[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataListing:
    """The merged ``files`` partition; ``partitions`` are the live partition paths, sorted.

    ``schema``: the JSON of the newest schema that its records were written with.
    """

    partitions: tuple[str, ...]
    schema: str
    _base: HFile | None = field(repr=False)
    _logs: Mapping[str, _Change] = field(repr=False)

    def folders(self, wanted: Collection[str] | None = None) -> Iterator[Folder]:
        """Names and sizes of every live partition, or of the wanted ones among them, by path.

        A partition without files comes with empty lists. Few wanted partitions read few blocks of
        the base file. Raises FormatError.
        """
        asked = None if wanted is None else set(wanted)
        live = tuple(path for path in self.partitions if asked is None or path in asked)
        below = self._below(live, everything=asked is None)
        for path in live:
            names = _merged(self._base, below.pop(_key(path), None), self._logs.get(_key(path)))
            yield path, list(names), list(names.values())

    def also_below(self, partition: str, names: Collection[str]) -> set[str]:
        """Those of the live names that both the log blocks and the base file list.

        One deletion only takes back what the log blocks say of them; the base file's word needs a
        second one, in a later block.
        """
        change = self._logs.get(_key(partition))
        if self._base is None or change is None:
            return set()
        twice = {name for name in names if change.names.get(name) is not None}
        if not twice:
            return set()
        key = _key(partition).encode()
        record = self._base.get([key]).get(key)
        return twice & _merged(self._base, record, None).keys()

    def _below(self, live: Collection[str], *, everything: bool) -> dict[str, bytes]:
        """The undecoded records of the base file, by key."""
        if self._base is None:
            return {}
        keys = [_key(path).encode() for path in live]
        found = self._base.items() if everything else self._base.get(keys).items()
        return {key.decode(): value for key, value in found}


def read_listing(table: MetadataTable) -> MetadataListing:
    """Read the log blocks of the ``files`` partition and open its base file.

    Raises FormatError, UnsupportedError.
    """
    slices = table.slices(FILES)
    if len(slices) != 1:
        raise UnsupportedError(
            f"{FILES}: the metadata table keeps the file listing in {len(slices)} file groups; "
            "only one is known"
        )
    (newest,) = slices
    base = None
    if newest.base:
        name, size = newest.base
        path = newest.path(name)
        base = hfile.open_hfile(
            lambda start, length: table.source.read_range(path, start, length), size, path
        )
    schema = _schema_of(base) if base else ""
    logs: dict[str, _Change] = {}
    for block in table.blocks(newest):
        if block.type is BlockType.DELETE:
            logs.update((key, _Change({}, masks=True)) for key in delete_keys(block))
            continue
        schema = schema_text(block)
        for key, names in block_entries(block):
            merge(logs.setdefault(key, _Change({})).names, names)
    everything = base.get([ALL_PARTITIONS.encode()]) if base else {}
    partitions = _merged(base, everything.get(ALL_PARTITIONS.encode()), logs.get(ALL_PARTITIONS))
    return MetadataListing(
        partitions=tuple(sorted("" if path == UNPARTITIONED else path for path in partitions)),
        schema=schema,
        _base=base,
        _logs=logs,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A file of which two listings say different things; sizes in bytes, None: not listed."""

    partition: str
    name: str
    metadata: int | None
    storage: int | None


def differences(metadata: Iterable[Folder], storage: Iterable[Folder]) -> tuple[Difference, ...]:
    """Every file of which the metadata table and the storage say different things, sorted.

    A partition without files is as good as none. Files of pending and failed writes are rightly in
    storage only: judging them takes the timeline, which is the caller's.
    """
    left = {path: dict(zip(names, sizes, strict=True)) for path, names, sizes in metadata}
    right = {path: dict(zip(names, sizes, strict=True)) for path, names, sizes in storage}
    nothing: dict[str, int] = {}
    return tuple(
        Difference(partition=path, name=name, metadata=ours.get(name), storage=theirs.get(name))
        for path in sorted(left.keys() | right.keys())
        if (ours := left.get(path, nothing)) != (theirs := right.get(path, nothing))
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    )


def merge(older: Names, newer: Names) -> None:
    """Bring ``newer`` into ``older`` as HoodieMetadataPayload.combineFileSystemMetadata does.

    A deletion cancels what it meets and stays only where nothing was; sizes only grow.
    """
    for name, size in newer.items():
        known = older.get(name)
        if size is not None:
            older[name] = size if known is None else max(size, known)
        elif known is None:
            older[name] = None
        else:
            del older[name]


def _merged(base: HFile | None, record: bytes | None, change: _Change | None) -> dict[str, int]:
    """The live names of one key: the base file's record under what the log blocks say."""
    names: Names = {}
    if base and record is not None and not (change and change.masks):
        schema = parsed_schema(_schema_of(base), base.path)
        names = _names(decode(record, schema, base.path), base.path)
    if change:
        merge(names, change.names)
    return {name: size for name, size in names.items() if size is not None}


def block_entries(block: Block) -> Iterator[tuple[str, Names]]:
    """Key and names of each record of a data block; raises FormatError, UnsupportedError."""
    if block.type is BlockType.HFILE_DATA:
        schema = parsed_schema(schema_text(block), block.path)
        for key, value in hfile.parse(block.content, block.path).items():
            yield _text(key, block.path), _names(decode(value, schema, block.path), block.path)
    elif block.type is BlockType.AVRO_DATA:
        for record in avro_records(block):
            yield str(record.get("key")), _names(record, block.path)
    else:
        raise UnsupportedError(
            f"{block.path}: {block.type.name} blocks are unknown in the metadata table"
        )


def _names(record: Any, path: str) -> Names:
    with decoding(path, "a record of the file listing"):
        listed = (record["filesystemMetadata"] or {}).items()
        return {name: None if info["isDeleted"] else int(info["size"]) for name, info in listed}


def _schema_of(base: HFile) -> str:
    return _text(base.info.get(b"schema", b""), base.path)


def _text(data: bytes, path: str) -> str:
    with decoding(path, "a text"):
        return data.decode()


def _key(partition: str) -> str:
    return partition or UNPARTITIONED  # __all_partitions__ stands for itself
