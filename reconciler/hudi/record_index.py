"""Where rows are, by their keys, as the metadata table's record index has it.

A key is in the index's file group of its hash, where keys are sorted: of its records the newest
counts, or its deletion. In columns, but for the entries of the blocks that are looked at.
Source: HoodieBackedTableMetadata.readRecordIndex, HoodieTableMetadataUtil
(mapRecordKeyToFileGroupIndex, getLocationFromRecordIndexInfo).
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.hudi.arrow import booleans, flags, integers, numbers
from reconciler.hudi.hfile import HFile
from reconciler.hudi.metadata_index import is_partitioned
from reconciler.hudi.metadata_keys import record_groups
from reconciler.hudi.metadata_partitions import RECORD_INDEX
from reconciler.hudi.metadata_stats import newest_first
from reconciler.hudi.metadata_table import FileSlice, MetadataTable
from reconciler.hudi.metadata_timeline import MetadataTimeline, Source
from reconciler.hudi.schemaless import decode, decoding, parsed_schema
from reconciler.hudi.timeline import Timeline

#: partition path, "" where the table has none, and file id
Place = tuple[str, str]
_GROUP: Final = "record-index-{:04}-0"
#: more file groups than Hudi makes; their names would no longer sort by number
_MOST_GROUPS: Final = 10_000
_MASK: Final = (1 << 64) - 1
#: of a location whose file id is a text, and no UUID with a number
_AS_TEXT: Final = 1
_NO_NUMBER: Final = -1


def global_slices(table: MetadataTable) -> tuple[FileSlice, ...] | None:
    """The file groups of a record index of all keys, by number; None where it is no such index.

    Since 1.1 one may keep every partition's keys by themselves. Raises FormatError where the index
    is not there.
    """
    slices = table.slices(RECORD_INDEX)
    names = [_GROUP.format(number) for number in range(min(len(slices), _MOST_GROUPS))]
    if is_partitioned(table.source) or [over.group for over in slices] != names:
        return None
    return slices


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Places:
    """Where keys are. ``key``: ascending indexes of those that have a place.

    ``place``: of each of them an index into ``known``, which are distinct.
    """

    key: NDArray[np.int64]
    place: NDArray[np.int64]
    known: tuple[Place, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordIndex:
    """A record index as it was at some time, without the storage that it is on; picklable.

    ``version``: of the table; ``own``: the metadata table's timeline; ``slices``: its file groups
    by number, each key of the table in one of them. ``data``: the table's timeline, read after
    these: what the metadata table says of an instant that is not on it counts as done.
    """

    version: int
    own: Timeline
    data: Timeline
    slices: tuple[FileSlice, ...]

    def groups(self, keys: Any) -> NDArray[np.int64]:
        """The file group of each key of a string array without nulls."""
        return record_groups(keys, len(self.slices))

    def places(self, source: Source, group: int, keys: Any) -> Places:
        """Where the distinct keys of a file group are, as far as it knows them.

        Reads its log files, and of its base file what may hold one. Memory: the log files, and as
        much as the keys have. Raises FormatError, UnsupportedError, NotFoundError where a file is
        gone since.
        """
        timelines = MetadataTimeline(source, self.version, self.own, self.data)
        table = MetadataTable(timelines, frozenset({RECORD_INDEX}))
        found = _Found.of(keys)
        for entries, schema, gone in newest_first(table, self.slices[group]):
            if gone:
                found.end(gone)
            if entries is not None:
                found.read(entries, schema)
            if not found.is_open.any():
                break
        return found.places()


def keys_in(
    index: RecordIndex, source: Source, keys: Any, places: Collection[Place]
) -> Iterator[Any]:
    """Those of the keys of a string array that the index has in one of some places.

    Each once, in arrays. Reads and raises as ``RecordIndex.places`` does.
    """
    keys = pc.unique(keys)
    groups = index.groups(keys)
    for group in np.unique(groups).tolist():
        some = keys.filter(booleans(groups == group))
        found = index.places(source, group, some)
        is_one = np.array([place in places for place in found.known], np.bool_)
        if len(found.key):
            yield some.take(integers(found.key[is_one[found.place]]))


class _Sorted(Sequence[bytes]):
    """The values of a sorted binary array, one at a time."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, at: Any) -> Any:
        return self._array[at].as_py()


@dataclass(slots=True, kw_only=True, eq=False)
class _Found:
    """What is known so far of ``keys``, sorted ones; ``order``: their indexes as they were asked.

    ``is_open``: neither a place nor a deletion was met. ``place``: -1 for none.
    """

    keys: Any
    order: NDArray[np.int64]
    is_open: NDArray[np.bool_]
    place: NDArray[np.int64]
    known: dict[Place, int] = field(default_factory=dict)

    @classmethod
    def of(cls, keys: Any) -> Self:
        data = keys.cast(pa.large_string()).cast(pa.large_binary())
        order = pc.array_sort_indices(data)
        return cls(
            keys=data.take(order),
            order=numbers(order).astype(np.int64),
            is_open=np.ones(len(data), np.bool_),
            place=np.full(len(data), -1, np.int64),
        )

    def end(self, gone: Sequence[bytes]) -> None:
        """What was written before of some keys is over."""
        known = pa.array(gone, pa.large_binary())
        self.is_open &= ~flags(pc.is_in(self.keys, value_set=known))

    def read(self, entries: HFile, schema: str) -> None:
        """The entries of keys that are still open."""
        codes: dict[bytes, int] = {}
        for start, end, cells in entries.meeting(_Sorted(self.keys)):
            if not self.is_open[start:end].any():
                continue
            names = pa.array([key for key, _value in cells], pa.large_binary())
            met = pc.index_in(names, value_set=self.keys.slice(start, end - start))
            which = np.flatnonzero(flags(met.is_valid()))
            at = numbers(met.drop_null()).astype(np.int64) + start
            is_new = self.is_open[at]
            for cell, key in zip(which[is_new].tolist(), at[is_new].tolist(), strict=True):
                value = cells[cell][1]
                code = codes.get(value)
                if code is None:
                    place = _place(value, schema, entries.path)
                    code = codes[value] = self.known.setdefault(place, len(self.known))
                self.place[key] = code
            self.is_open[at] = False

    def places(self) -> Places:
        there = np.flatnonzero(self.place >= 0)
        key, place = self.order[there], self.place[there]
        order = np.argsort(key)
        return Places(key=key[order], place=place[order], known=tuple(self.known))


def _place(value: bytes, schema: str, path: str) -> Place:
    record = decode(value, parsed_schema(schema, path), path)
    with decoding(path, "an entry of the record index"):
        return _location(record["recordIndexMetadata"])


def _location(said: Mapping[str, Any]) -> Place:
    """Partition path and file id; raises LookupError, TypeError, ValueError."""
    if said.get("fileIdEncoding") == _AS_TEXT:
        return str(said["partitionName"]), str(said["fileId"])
    halves = (said["fileIdHighBits"] & _MASK) << 64 | said["fileIdLowBits"] & _MASK
    number = int(said["fileIndex"])
    tail = "" if number == _NO_NUMBER else f"-{number}"
    return str(said["partitionName"]), f"{uuid.UUID(int=halves)}{tail}"
