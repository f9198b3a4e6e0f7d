"""Read the metadata table's file slices and their log blocks that count for a reader.

Source: HoodieBackedTableMetadata, HoodieTableMetadataUtil.getPartitionLatestMergedFileSlices.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from reconciler.errors import FormatError, NotFoundError, UnsupportedError
from reconciler.hudi.byte_source import ByteSource, ListedEntry
from reconciler.hudi.codecs.hfile_reader import HFile, open_hfile
from reconciler.hudi.codecs.log_blocks import BlockType, HeaderKey, LogBlock, read_blocks
from reconciler.hudi.metadata.index_keys import split_by_file_group
from reconciler.hudi.metadata.own_timeline import (
    ROOT,
    VERSION_8,
    MetadataTimelines,
    find_timeline_folder,
)
from reconciler.hudi.table.properties import KNOWN_VERSIONS, TableProperties
from reconciler.hudi.timeline.active import Timeline
from reconciler.lazy_dataclass import dataclass

#: the metadata partition that lists the files
FILES: Final = "files"

_REBUILD: Final = "let a Hudi writer rebuild the metadata table"
_BASE: Final = re.compile(r"(?P<group>[^_.][^_]*)_(?P<token>\d+-\d+-\d+)_(?P<instant>\d+)\.hfile")
_LOG: Final = re.compile(
    r"\.(?P<group>[^_]+)_(?P<instant>\d+)\.log\.(?P<version>\d+)_(?P<token>\d+-\d+-\d+)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataLogFile:
    """A log file. ``instant``: the base instant in version 6, the deltacommit later."""

    name: str
    instant: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataSlice:
    """The newest slice of a file group in a metadata partition.

    ``base``: name and size of the newest committed base file, None if it has none. ``logs``: log
    files to merge over it, in merge order. ``newest_instant``: the instant of the newest slice,
    also of one that a pending compaction opened; version 6 names log files after it.
    ``next_log_version``: the version after all logs of that slice (version 6).
    """

    partition: str
    file_group: str
    base: tuple[str, int] | None
    logs: tuple[MetadataLogFile, ...]
    newest_instant: str
    next_log_version: int

    def file_path(self, name: str) -> str:
        return f"{ROOT}/{self.partition}/{name}"


@dataclass(frozen=True)
class MetadataTable(MetadataTimelines):
    """An open metadata table; its two timelines decide which files and blocks count.

    ``live_partitions``: the metadata partitions that the data table's properties list, as far as
    the caller needs them.
    """

    live_partitions: frozenset[str] = frozenset({FILES})

    def timeline_path(self, file_name: str) -> str:
        """Return the path of a file of the metadata table's timeline."""
        return f"{self.folder}/{file_name}"

    def list_slices(self, partition: str) -> tuple[MetadataSlice, ...]:
        """Return the newest slice of every file group of a metadata partition, by group name.

        Raises FormatError when the folder is missing, has no file group, or has a folder in place
        of a file.
        """
        slices = self._list_slices(partition)
        if not slices:
            raise FormatError(
                f"{ROOT}/{partition}",
                "the properties list this metadata partition, but it has no file group",
                _REBUILD,
            )
        return slices

    def is_empty(self, partition: str) -> bool:
        """Return whether a metadata partition has no file group, as after some restores."""
        return not self._list_slices(partition)

    def _list_slices(self, partition: str) -> tuple[MetadataSlice, ...]:
        """Return the slices; the folder is listed once, since the timelines are not read again."""
        if partition not in self._slices:
            try:
                entries = self.source.list(f"{ROOT}/{partition}")
            except NotFoundError:
                entries = ()
            self._slices[partition] = _build_slices(self, partition, entries)
        return self._slices[partition]

    @cached_property
    def _slices(self) -> dict[str, tuple[MetadataSlice, ...]]:
        return {}

    def list_log_paths(self) -> list[str]:
        """Return every log file of every metadata partition, live and complete or not."""
        paths = []
        for entry in self.source.list(ROOT):
            if entry.is_folder and entry.name != ".hoodie":
                folder = f"{ROOT}/{entry.name}"
                names = sorted(child.name for child in self.source.list(folder))
                paths += [f"{folder}/{name}" for name in names if _LOG.fullmatch(name)]
        return paths

    def open_base_file(self, file_slice: MetadataSlice) -> HFile | None:
        """Open a slice's base file, None if it has none; raises FormatError, UnsupportedError."""
        if file_slice.base is None:
            return None
        name, size = file_slice.base
        path = file_slice.file_path(name)
        return open_hfile(
            lambda start, length: self.source.read_range(path, start, length), size, path
        )

    def read_visible_blocks(self, file_slice: MetadataSlice) -> list[LogBlock]:
        """Return the log blocks of a slice that count for a reader, in merge order.

        Corrupt blocks are ignored, as in Hudi. A rollback drops earlier blocks of its target.
        Raises FormatError for damage.
        """
        visible: list[LogBlock] = []
        compacted: set[str] = set()
        for log in file_slice.logs:
            path = file_slice.file_path(log.name)
            for block in read_blocks(self.source.read(path), path):
                if block.type is BlockType.CORRUPT:
                    continue
                if block.type is BlockType.COMMAND:
                    target = block.header.get(HeaderKey.TARGET_INSTANT_TIME)
                    visible = [earlier for earlier in visible if earlier.instant != target]
                elif self.is_visible(block.require_instant()):
                    times = block.header.get(HeaderKey.COMPACTED_BLOCK_TIMES, "")
                    compacted.update(filter(None, times.split(",")))
                    visible.append(block)
        return [block for block in visible if block.instant not in compacted]


def open_metadata_table(
    source: ByteSource, *, version: int, data: Timeline, live_partitions: Collection[str] = (FILES,)
) -> MetadataTable:
    """Open the metadata table of a data table whose active timeline is ``data``.

    ``live_partitions``: ``hoodie.table.metadata.partitions``; not needed to read the file listing.
    Raises UnsupportedError for a table version that was not tested; FormatError when the metadata
    table that the properties promise is missing.
    """
    if version not in KNOWN_VERSIONS:
        raise UnsupportedError(
            f"{ROOT}: the metadata table of table version {version} is not supported; supported "
            f"are {', '.join(map(str, KNOWN_VERSIONS))}"
        )
    folder = find_timeline_folder(f"{ROOT}/.hoodie", version)
    try:
        entries = source.list(folder)
    except NotFoundError:
        raise FormatError(
            folder,
            f"is missing, but a metadata table of version {version} has its timeline here",
            _REBUILD,
        ) from None
    timeline = Timeline.from_listing(entries)
    return MetadataTable(source, version, timeline, data, frozenset(live_partitions))


def open_live_metadata(
    source: ByteSource, properties: TableProperties, timeline: Timeline
) -> MetadataTable:
    """Open the metadata table of a table by its properties and its active timeline.

    Raises as ``open_metadata_table`` does.
    """
    return open_metadata_table(
        source,
        version=properties.table_version,
        data=timeline,
        live_partitions=properties.metadata_partitions,
    )


def group_by_slice(
    table: MetadataTable, partition: str, keys: Sequence[str]
) -> Iterator[tuple[MetadataSlice, list[str]]]:
    """Yield each slice that has some of the keys, with them. Raises as ``list_slices`` does."""
    slices = table.list_slices(partition)
    for file_slice, group in zip(slices, split_by_file_group(keys, len(slices)), strict=True):
        if group:
            yield file_slice, group


def _build_slices(
    table: MetadataTable, partition: str, entries: Iterable[ListedEntry]
) -> tuple[MetadataSlice, ...]:
    bases: dict[str, dict[str, tuple[str, int]]] = {}
    logs: dict[str, list[tuple[tuple[str, int, tuple[int, ...]], MetadataLogFile]]] = {}
    for entry in entries:
        if match := _BASE.fullmatch(entry.name):
            _require_file(partition, entry)
            bases.setdefault(match["group"], {})[match["instant"]] = (entry.name, entry.size)
        elif match := _LOG.fullmatch(entry.name):
            _require_file(partition, entry)
            version = int(match["version"])
            token = tuple(map(int, match["token"].split("-")))
            log = MetadataLogFile(name=entry.name, instant=match["instant"], version=version)
            logs.setdefault(match["group"], []).append(((log.instant, version, token), log))
    return tuple(
        _build_newest_slice(
            table,
            (partition, group),
            bases.get(group, {}),
            [log for _order, log in sorted(logs.get(group, []), key=lambda pair: pair[0])],
        )
        for group in sorted(bases.keys() | logs.keys())
    )


def _require_file(partition: str, entry: ListedEntry) -> None:
    """Raise FormatError for a folder in place of a file; without its entries, results are wrong."""
    if entry.is_folder:
        path = f"{ROOT}/{partition}/{entry.name}"
        raise FormatError(path, "is a folder, expected a file", _REBUILD)


def _build_newest_slice(
    table: MetadataTable,
    where: tuple[str, str],
    bases: Mapping[str, tuple[str, int]],
    logs: Sequence[MetadataLogFile],
) -> MetadataSlice:
    """Return the slice a reader merges: the newest committed base file and every log since.

    It includes logs of a slice that a pending compaction opened
    (getLatestMergedFileSliceBeforeOrOn).
    """
    start = max((instant for instant in bases if table.is_written(instant)), default="")
    times = [start, table.find_pending_compaction(*where)]
    if table.version < VERSION_8:
        times += [log.instant for log in logs]
    newest = max(times)
    same = [log.version for log in logs if log.instant == newest]
    return MetadataSlice(
        partition=where[0],
        file_group=where[1],
        base=bases[start] if start else None,
        logs=tuple(log for log in logs if _is_since(table, log, start)),
        newest_instant=newest,
        next_log_version=max(same, default=0) + 1,
    )


def _is_since(table: MetadataTable, log: MetadataLogFile, start: str) -> bool:
    """Return whether a log belongs to the slice of base instant ``start`` or to a later one.

    Version 6 names logs after their slice. Later versions go by completion time, and a log of an
    instant that is not completed belongs to no slice.
    """
    if table.version < VERSION_8:
        return log.instant >= start
    completed = table.completion_times.get(log.instant)
    if completed is None and table.is_written(log.instant):
        completed = log.instant  # archived: only its requested time is known
    return completed is not None and completed >= start
