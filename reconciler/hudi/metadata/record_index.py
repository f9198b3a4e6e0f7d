"""Read the metadata table's record index: the location of rows by key.

A key is in the file group of its hash, where keys are sorted. Its newest record or deletion counts.
Work is done on columns, except for the entries of the blocks that are read. Source:
HoodieBackedTableMetadata.readRecordIndex, HoodieTableMetadataUtil (mapRecordKeyToFileGroupIndex,
getLocationFromRecordIndexInfo).
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Sequence
from dataclasses import field
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Integers, Mask, to_arrow, to_numpy
from reconciler.hudi.byte_source import ByteSource
from reconciler.hudi.codecs.avro_binary import decode_record, decoding, parse_schema
from reconciler.hudi.codecs.hfile_reader import HFile
from reconciler.hudi.metadata.column_stats import read_newest_first
from reconciler.hudi.metadata.index_definitions import is_record_index_partitioned
from reconciler.hudi.metadata.index_keys import find_record_groups
from reconciler.hudi.metadata.sync_decisions import RECORD_INDEX
from reconciler.hudi.metadata.table import MetadataSlice, MetadataTable
from reconciler.hudi.timeline.active import Timeline
from reconciler.lazy_dataclass import dataclass

#: partition path ("" if the table has none) and file id
FileGroupLocation = tuple[str, str]
_GROUP: Final = "record-index-{:04}-0"
#: with more file groups, names no longer sort by number
_MAX_GROUPS: Final = 10_000
_MASK: Final = (1 << 64) - 1
#: encoding of a file id that is stored as text, not as a UUID with a number
_AS_TEXT: Final = 1
_NO_NUMBER: Final = -1


def list_global_slices(table: MetadataTable) -> tuple[MetadataSlice, ...] | None:
    """Return the file groups of a global record index by number, None for any other index.

    Since 1.1 an index may keep keys per partition. Raises FormatError if the index is missing.
    """
    slices = table.list_slices(RECORD_INDEX)
    names = [_GROUP.format(number) for number in range(min(len(slices), _MAX_GROUPS))]
    if (
        is_record_index_partitioned(table.source)
        or [file_slice.file_group for file_slice in slices] != names
    ):
        return None
    return slices


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeyLocations:
    """The locations of keys. ``key_index``: ascending indexes of keys that have a location.

    ``location_code``: for each of them, an index into ``locations``, which are distinct.
    """

    key_index: Integers
    location_code: Integers
    locations: tuple[FileGroupLocation, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordIndex:
    """A record index at some point in time, without its storage; picklable.

    ``version``: the table version. ``metadata_timeline``: the metadata table's timeline.
    ``slices``: its file groups by number; each key is in one of them. ``data_timeline``: the
    table's timeline, read last; an instant of the metadata table that is not on it counts as
    completed.
    """

    version: int
    metadata_timeline: Timeline
    data_timeline: Timeline
    slices: tuple[MetadataSlice, ...]

    def find_groups(self, keys: Any) -> Integers:
        """Return the file group of each key of a string array without nulls."""
        return find_record_groups(keys, len(self.slices))

    def locate_keys(self, source: ByteSource, group: int, keys: Any) -> KeyLocations:
        """Return the known locations of distinct keys of one file group.

        Reads the group's log files, and the blocks of its base file that may hold a key. Memory:
        the log files and the keys. Raises FormatError, UnsupportedError, and NotFoundError if a
        file was removed.
        """
        timelines = self.metadata_timeline, self.data_timeline
        table = MetadataTable(source, self.version, *timelines, frozenset({RECORD_INDEX}))
        lookup = _KeyLookup.from_keys(keys)
        for entries, schema, deleted in read_newest_first(table, self.slices[group]):
            if deleted:
                lookup.mark_deleted(deleted)
            if entries is not None:
                lookup.read_entries(entries, schema)
            if not lookup.is_open.any():
                break
        return lookup.to_locations()


def select_keys_in(
    index: RecordIndex, source: ByteSource, keys: Any, locations: Collection[FileGroupLocation]
) -> Iterator[Any]:
    """Yield arrays of the distinct keys that the index locates in some file groups.

    Reads and raises as ``RecordIndex.locate_keys`` does.
    """
    keys = pc.unique(keys)
    groups = index.find_groups(keys)
    for group in np.unique(groups).tolist():
        group_keys = keys.filter(to_arrow(groups == group))
        located = index.locate_keys(source, group, group_keys)
        is_one = np.array([location in locations for location in located.locations], np.bool_)
        if len(located.key_index):
            yield group_keys.take(to_arrow(located.key_index[is_one[located.location_code]]))


class _Sorted(Sequence[bytes]):
    """The values of a sorted binary array, converted one at a time."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, at: Any) -> Any:
        return self._array[at].as_py()


@dataclass(slots=True, kw_only=True, eq=False)
class _KeyLookup:
    """The results so far of a lookup of sorted ``keys``; ``order``: their indexes in the input.

    ``is_open``: neither a location nor a deletion was found yet. ``location_code``: -1 for none.
    """

    keys: Any
    order: Integers
    is_open: Mask
    location_code: Integers
    locations: dict[FileGroupLocation, int] = field(default_factory=dict)

    @classmethod
    def from_keys(cls, keys: Any) -> Self:
        data = keys.cast(pa.large_string()).cast(pa.large_binary())
        order = pc.array_sort_indices(data)
        return cls(
            keys=data.take(order),
            order=to_numpy(order).astype(np.int64),
            is_open=np.ones(len(data), np.bool_),
            location_code=np.full(len(data), -1, np.int64),
        )

    def mark_deleted(self, deleted: Sequence[bytes]) -> None:
        """Close keys that a newer deletion removed."""
        deleted_keys = pa.array(deleted, pa.large_binary())
        self.is_open &= ~to_numpy(pc.is_in(self.keys, value_set=deleted_keys))

    def read_entries(self, entries: HFile, schema: str) -> None:
        """Read the entries of keys that are still open."""
        codes: dict[bytes, int] = {}
        for start, end, cells in entries.scan_blocks_with_keys(_Sorted(self.keys)):
            if not self.is_open[start:end].any():
                continue
            names = pa.array([key for key, _value in cells], pa.large_binary())
            key_positions = pc.index_in(names, value_set=self.keys.slice(start, end - start))
            cell_numbers = np.flatnonzero(to_numpy(key_positions.is_valid()))
            at = to_numpy(key_positions.drop_null()).astype(np.int64) + start
            is_new = self.is_open[at]
            for cell, key in zip(cell_numbers[is_new].tolist(), at[is_new].tolist(), strict=True):
                value = cells[cell][1]
                code = codes.get(value)
                if code is None:
                    location = _decode_location(value, schema, entries.path)
                    code = codes[value] = self.locations.setdefault(location, len(self.locations))
                self.location_code[key] = code
            self.is_open[at] = False

    def to_locations(self) -> KeyLocations:
        located = np.flatnonzero(self.location_code >= 0)
        key, location_code = self.order[located], self.location_code[located]
        order = np.argsort(key)
        return KeyLocations(
            key_index=key[order],
            location_code=location_code[order],
            locations=tuple(self.locations),
        )


def _decode_location(value: bytes, schema: str, path: str) -> FileGroupLocation:
    record = decode_record(value, parse_schema(schema, path), path)
    with decoding(path, "an entry of the record index"):
        location = record["recordIndexMetadata"]
        partition = str(location["partitionName"])
        if location.get("fileIdEncoding") == _AS_TEXT:
            return partition, str(location["fileId"])
        number = int(location["fileIndex"])
        halves = (location["fileIdHighBits"] & _MASK) << 64 | location["fileIdLowBits"] & _MASK
        tail = "" if number == _NO_NUMBER else f"-{number}"
        return partition, f"{uuid.UUID(int=halves)}{tail}"
