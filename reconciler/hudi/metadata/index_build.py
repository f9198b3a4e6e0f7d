"""Build the indexes column_stats and partition_stats in one deltacommit that no reader sees yet.

Like Hudi's own initialisation, it writes a base file in each of a fixed number of file groups,
chosen by the key's hash. The indexes count once the data table's properties list them, so the
instant is on no other timeline. Source: HoodieBackedTableMetadataWriter.initializeFromFilesystem,
bulkCommit; HoodieTableMetadataUtil.createAsyncIndexerTimestamp (0.15).
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from reconciler.errors import BusyError, FormatError
from reconciler.hudi.codecs.avro_binary import decoding
from reconciler.hudi.metadata.deltacommit import Deltacommit, FileToCreate
from reconciler.hudi.metadata.first_groups import build_groups, choose_group_count
from reconciler.hudi.metadata.listing import partition_key
from reconciler.hudi.metadata.own_timeline import ROOT, VERSION_8
from reconciler.hudi.metadata.record_encoder import BoundWrapper, Cell, ColumnRange, RecordEncoder
from reconciler.hudi.metadata.sync_decisions import COLUMN_STATS, PARTITION_STATS
from reconciler.hudi.metadata.table import MetadataTable
from reconciler.hudi.timeline.active import TimelineFile
from reconciler.hudi.timeline.commit import CommitMetadata
from reconciler.hudi.timeline.instant import Action, State
from reconciler.lazy_dataclass import dataclass

#: extra metadata of reconciler's deltacommits: metadata partitions built, indexed columns
MARK: Final = "reconciler.index"
COLUMNS: Final = "reconciler.index.columns"
#: suffix of an indexer's deltacommit time in version 6 (OperationSuffix)
_INDEXER: Final = "004"
_PLANS: Final = frozenset({Action.COMPACTION, Action.LOGCOMPACTION})


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFileRanges:
    """A data file with a range for every indexed column, in their order."""

    partition: str
    name: str
    ranges: Sequence[ColumnRange]


def name_build_instant(time: str, version: int) -> str:
    """Return the instant of the deltacommit that builds an index at an unused time."""
    return time if version >= VERSION_8 else time + _INDEXER


def list_built_partitions(version: int, *, is_partitioned: bool) -> tuple[str, ...]:
    """Return the metadata partitions that are built together.

    From version 8 on, a write computes a partition's bounds from those of its files. A table
    without partitions has none.
    """
    if version >= VERSION_8 and is_partitioned:
        return COLUMN_STATS, PARTITION_STATS
    return (COLUMN_STATS,)


def build_first_writes(
    deltacommit: Deltacommit,
    files: Iterable[DataFileRanges],
    wrappers: Mapping[str, BoundWrapper],
    partitions: Sequence[str],
) -> tuple[FileToCreate, ...]:
    """Return the files to create, in order; the folders of ``partitions`` must not exist.

    Raises UnsupportedError for bounds that the index cannot hold.
    """
    records = RecordEncoder(schema=deltacommit.schema, path=ROOT)
    cells = {name: CellBuffer() for name in partitions}
    partition_ranges: dict[str, list[ColumnRange]] = {}
    for file in files:
        path = partition_key(file.partition)
        cells[COLUMN_STATS].add(records.encode_column_stats(path, file.name, file.ranges, wrappers))
        earlier = partition_ranges.get(path)
        partition_ranges[path] = (
            [*file.ranges]
            if earlier is None
            else [old.merge(new) for old, new in zip(earlier, file.ranges, strict=True)]
        )
    if PARTITION_STATS in cells:
        for path, ranges in partition_ranges.items():
            cells[PARTITION_STATS].add(records.encode_partition_stats(path, ranges, wrappers))
    groups = [
        group
        for name in partitions
        for group in build_groups(
            name, choose_group_count(name, 0), *cells[name].to_arrays(), deltacommit.schema
        )
    ]
    extra = {MARK: ",".join(partitions), COLUMNS: json.dumps([*wrappers], ensure_ascii=False)}
    return deltacommit.build_first_files(groups, extra)


class CellBuffer:
    """Collects cells in the order they come, with their bytes concatenated.

    All keys of a metadata partition have the same length.
    """

    def __init__(self) -> None:
        self._keys = bytearray()
        self._values = bytearray()
        self._ends = array("q", [0])

    def add(self, cells: Iterable[Cell]) -> None:
        for key, value in cells:
            self._keys += key
            self._values += value
            self._ends.append(len(self._values))

    def to_arrays(self) -> tuple[Any, Any]:
        """Return keys and values."""
        import pyarrow as pa  # noqa: PLC0415

        count = len(self._ends) - 1
        width = len(self._keys) // max(count, 1)
        ends = pa.py_buffer(np.arange(count + 1, dtype=np.int64) * width)
        keys = pa.Array.from_buffers(
            pa.large_string(), count, [None, ends, pa.py_buffer(self._keys)]
        )
        buffers = [None, pa.py_buffer(self._ends), pa.py_buffer(self._values)]
        return keys, pa.Array.from_buffers(pa.large_binary(), count, buffers)


def find_earlier_builds(table: MetadataTable, partitions: Collection[str]) -> tuple[str, ...]:
    """Return the deltacommits of reconciler's earlier builds, in the order to delete them.

    These are unfinished ones, and those of nothing but ``partitions``. The folders of their files
    must be deleted first. Raises BusyError if another writer's plan
    or deltacommit is pending on the metadata table's timeline; FormatError.
    """
    own: dict[str, list[TimelineFile]] = {}
    for file in _list_own_deltacommits(table):
        own.setdefault(file.instant.requested, []).append(file)
    paths: list[str] = []
    for files in own.values():
        files.sort(key=lambda file: -file.instant.state.rank)
        built = _find_built(table, files)
        if built is not None and (not files[0].instant.is_completed or built <= set(partitions)):
            paths += [table.timeline_path(file.name) for file in files]
        elif not files[0].instant.is_completed:
            raise _busy_error(files[0])
    for file in table.timeline.files:
        if file.instant.action in _PLANS and not _is_completed(table, file):
            raise _busy_error(file)
    return tuple(paths)


def read_built_columns(table: MetadataTable) -> tuple[str, ...]:
    """Return the columns of reconciler's newest build on the metadata table's timeline.

    Empty when the timeline shows none; the build may be archived. Raises FormatError.
    """
    for file in reversed(_list_own_deltacommits(table)):
        if not file.instant.is_completed:
            continue
        path = table.timeline_path(file.name)
        columns = CommitMetadata.parse(table.source.read(path), path).extra.get(COLUMNS)
        if columns is not None:
            with decoding(path, "the columns of an index"):
                return tuple(map(str, json.loads(columns)))
    return ()


def _list_own_deltacommits(table: MetadataTable) -> list[TimelineFile]:
    """Return the files of deltacommits whose instant is not on the data table's timeline."""
    on_data = {instant.requested for instant in table.data.instants}
    deltacommits = (f for f in table.timeline.files if f.instant.action is Action.DELTACOMMIT)
    return [file for file in deltacommits if file.instant.requested not in on_data]


def _is_completed(table: MetadataTable, file: TimelineFile) -> bool:
    time = file.instant.requested
    return any(
        instant.requested == time and instant.is_completed for instant in table.timeline.instants
    )


def _busy_error(file: TimelineFile) -> BusyError:
    return BusyError(
        f"{file.name} is pending on the metadata table's own timeline; run again when its writer "
        "has finished"
    )


def _find_built(table: MetadataTable, files: Sequence[TimelineFile]) -> set[str] | None:
    """Return the partitions that a deltacommit of reconciler builds, None if it builds none.

    A deltacommit that was only requested, or whose inflight file is truncated, has done nothing.
    Its writer is dead, because the caller holds the lock and has seen no active writer.
    """
    newest = files[0].instant
    if newest.state is State.REQUESTED:
        return set()
    inflight = next((file for file in files if file.instant.state is State.INFLIGHT), None)
    path = table.timeline_path(inflight.name) if inflight else ""
    data = table.source.read(path) if inflight else b""
    try:
        mark = CommitMetadata.parse(data, path).extra.get(MARK) if data else None
    except FormatError:
        return None if newest.is_completed else set()
    return None if mark is None else set(mark.split(","))
