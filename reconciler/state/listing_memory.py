"""Remember the files of a table between runs, and list only folders that have changed (ADR 0019).

A folder is remembered only if nothing could change in it unseen: its state shows every entry that
comes or goes, and the bytes of its files are final, because their instants were completed before
the folder was listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from reconciler.arrays import Mask, get_value_offsets
from reconciler.hudi.files.partition_scan import KnownFolder, PartitionScan
from reconciler.hudi.files.table_files import FileKind, TableFiles, build_files
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.active import Timeline
from reconciler.lazy_dataclass import dataclass
from reconciler.storage.api import FolderListing, Storage
from reconciler.storage.cache_folder import CachedDocument, CacheFolder
from reconciler.storage.folder_states import (
    ClockReading,
    FolderState,
    is_reliable,
    walk_changed,
)
from reconciler.storage.local import LocalStorage

_FORMAT: Final = 1
#: below so many files, a listing takes less time than what this would save
_LEAST_FILES: Final = 10_000
#: the first table version whose log files carry the instant of their own write
_OWN_LOG_INSTANTS: Final = 8
_COLUMNS: Final = {
    "partition": np.int32,
    "size": np.int64,
    "kind": np.int8,
    "group": np.int32,
    "instant": np.int32,
    "version": np.int32,
    "group_partition": np.int32,
}
_TEXTS: Final = ("name", "group_id")


class _Record(NamedTuple):
    """What is remembered of a folder, in the order of the document after the folder's path.

    A tuple, because there may be ten thousand, and a tuple is quick to make. ``partition``: the
    folder's code among the partitions, -1 for none.
    """

    state: FolderState
    below: Sequence[str]
    is_marked: bool
    partition: int
    has_strays: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Remembered:
    """An earlier listing: records by path, and the files of all partitions."""

    records: Mapping[str, _Record]
    files: TableFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingCache:
    """Where listings are kept; ``clock``: read before anything of the table was read."""

    cache: CacheFolder
    clock: ClockReading

    def open(
        self, storage: Storage, properties: TableProperties, timeline: Timeline
    ) -> ListingMemory | None:
        """Return the memory of a table; None if its file system is not known to show changes."""
        location = storage.location
        if "://" in location or not is_reliable(location, self.clock.mounts):
            return None
        return ListingMemory(
            storage=LocalStorage(location),
            cache=self.cache,
            clock=self.clock,
            timeline=timeline,
            table_version=properties.table_version,
            base_extension=properties.base_extension,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ListingMemory:
    """The memory of one table.

    ``timeline`` and ``table_version`` were read before the listing; they tell which files are
    final. ``base_extension``: as of ``build_files``.
    """

    storage: LocalStorage
    cache: CacheFolder
    clock: ClockReading
    timeline: Timeline
    table_version: int
    base_extension: str
    _visits: dict[str, tuple[FolderState, Sequence[str]]] = field(default_factory=dict)
    _listed: set[str] = field(default_factory=set)

    def list_files(self, scan: PartitionScan) -> TableFiles:
        """Return the files of all partitions, and remember them if folders have changed."""
        before = self._load()
        found = scan.list_partitions(self._walk(before, scan))
        files = self._build(before, found)
        if len(files) >= _LEAST_FILES:
            self._save(scan, files)
        return files

    def _walk(
        self, before: _Remembered | None, scan: PartitionScan
    ) -> Iterator[FolderListing | KnownFolder]:
        records = before.records if before else {}
        known = {
            path: (record.state, record.below)
            for path, record in records.items()
            # files of a folder that was no partition are not remembered; it may be one now
            if record.partition >= 0 or not (record.is_marked or path in scan.known)
        }
        find_rows = _locate_partitions(before.files) if before else None
        for visited in walk_changed(self.storage, known, scan.should_descend):
            self._visits[visited.path] = (visited.state, visited.below)
            if visited.listing is not None:
                self._listed.add(visited.path)
                yield visited.listing
                continue
            assert find_rows is not None
            record = records[visited.path]
            yield KnownFolder(
                path=visited.path,
                rows=find_rows(record.partition),
                is_marked=record.is_marked,
                has_strays=record.has_strays,
            )

    def _build(
        self, before: _Remembered | None, found: Iterator[tuple[str, Any, Any]]
    ) -> TableFiles:
        folders: list[tuple[str, Any, Any]] = []
        for folder in found:
            folders.append(folder)
            if before is None or (isinstance(folder[1], list) and folder[1]):
                return build_files(_take_known(before, chain(folders, found)), self.base_extension)
        if before is not None and _has_all(before.files, folders):
            return before.files
        return build_files(_take_known(before, folders), self.base_extension)

    # --- what is kept ----------------------------------------------------------------------------

    @property
    def _key(self) -> str:
        return f"listing {self.storage.location}"

    def _load(self) -> _Remembered | None:
        document = self.cache.read(self._key)
        if document is None:
            return None
        data = document.data
        is_usable = (
            data["format"] == _FORMAT
            and data["location"] == self.storage.location
            and data["extension"] == self.base_extension
            and self.clock.has_run_on(data["boot"], data["offset"])
        )
        if not is_usable:
            return None
        records = {path: _Record(tuple(state), *others) for path, state, *others in data["folders"]}
        return _Remembered(records=records, files=_decode_files(data, document.buffers))

    def _save(self, scan: PartitionScan, files: TableFiles) -> None:
        """Keep the listing if a folder was listed that can be remembered."""
        if not self._listed:
            return
        folders = list(self._list_records(scan, files))
        if not self._listed.intersection(path for path, *_ in folders):
            return
        data = {
            "format": _FORMAT,
            "location": self.storage.location,
            "extension": self.base_extension,
            "boot": self.clock.boot,
            "offset": self.clock.offset_ns,
            "folders": folders,
            "partitions": files.partitions,
            "instants": files.instants,
        }
        buffers = [np.ascontiguousarray(getattr(files, name)) for name in _COLUMNS]
        for name in _TEXTS:
            buffers += _split_text(getattr(files, name))
        self.cache.write(self._key, CachedDocument(data=data, buffers=buffers))

    def _list_records(self, scan: PartitionScan, files: TableFiles) -> Iterator[tuple[Any, ...]]:
        """Yield the records of folders in which nothing can change unseen."""
        final = _find_final(files, self.timeline, self.table_version)
        total = np.bincount(files.partition, minlength=len(files.partitions))
        are_final = np.bincount(files.partition[final], minlength=len(files.partitions)) == total
        codes = {path: code for code, path in enumerate(files.partitions)}
        counts, finals = total.tolist(), are_final.tolist()
        root = self._visits[""][0]
        for path, (state, below) in self._visits.items():
            code = codes.get(path, -1) if path in scan.file_counts else -1
            is_near = state[:1] == root[:1]  # no link to another file system, nor a mount of one
            if is_near and self.clock.is_settled(state) and (code < 0 or finals[code]):
                has_strays = code >= 0 and scan.file_counts[path] > counts[code]
                is_marked = path in scan.marked
                yield path, state, below, is_marked, code, has_strays


def _find_final(files: TableFiles, timeline: Timeline, table_version: int) -> Mask:
    """Return per file whether its bytes are final.

    A write closes its files before it completes, and older instants than all of the timeline count
    as committed. Log files of older versions carry the instant of their base file instead.
    """
    completed = {instant.requested for instant in timeline.writes if instant.is_completed}
    start = timeline.start
    finished = [
        instant in completed or (start is not None and instant < start)
        for instant in files.instants
    ]
    is_final = np.array(finished, np.bool_)[files.instant]
    if table_version < _OWN_LOG_INSTANTS:
        is_final &= files.kind == FileKind.BASE
    final: Mask = is_final
    return final


def _has_all(files: TableFiles, folders: Sequence[tuple[str, Any, Any]]) -> bool:
    """Return whether folders, which are parts of the files, are all of them."""
    count = sum(len(names) for _path, names, _sizes in folders)
    return count == len(files) and {path for path, *_ in folders} == set(files.partitions)


def _locate_partitions(files: TableFiles) -> Callable[[int], range]:
    """Return a function that returns the rows of a partition by its code; none for a code of -1."""
    bounds = np.searchsorted(files.partition, np.arange(len(files.partitions) + 1)).tolist()

    def locate(code: int) -> range:
        return range(bounds[code], bounds[code + 1]) if code >= 0 else range(0)

    return locate


def _take_known(
    before: _Remembered | None, folders: Iterable[tuple[str, Any, Any]]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield folders with names and sizes in place of the rows of known ones."""
    for path, names, sizes in folders:
        if before is not None and isinstance(names, range):
            files, rows = before.files, slice(names.start, names.stop)
            yield path, files.name[rows], files.size[rows]
        else:
            yield path, names, sizes


def _split_text(column: Any) -> list[Any]:
    """Return offsets and bytes of a string array."""
    offsets = get_value_offsets(column)
    start, end = int(offsets[0]), int(offsets[-1])
    values = memoryview(column.buffers()[2] or b"")[start:end]
    return [offsets - offsets[0], values]


def _join_text(offsets: Any, values: Any) -> Any:
    ends = pa.py_buffer(offsets)
    return pa.StringArray.from_buffers(ends.size // 4 - 1, ends, pa.py_buffer(values))


def _decode_files(data: Mapping[str, Any], buffers: Sequence[Any]) -> TableFiles:
    numbers = {
        name: np.frombuffer(buffer, kind)
        for (name, kind), buffer in zip(_COLUMNS.items(), buffers, strict=False)
    }
    texts = buffers[len(_COLUMNS) :]
    name, group_id = _join_text(*texts[:2]), _join_text(*texts[2:])
    return TableFiles(
        partitions=tuple(data["partitions"]),
        instants=tuple(data["instants"]),
        name=name,
        group_id=group_id,
        **numbers,
    )
