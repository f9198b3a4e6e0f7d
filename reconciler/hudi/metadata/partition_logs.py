"""Build the log files that update the metadata table for new files, one per file group.

New files are listed, ranged, filtered and located in the same way, whether their rows were moved or
are new. What else is recorded, and which partitions, depends on the commit. Source:
HoodieTableMetadataUtil.convertMetadataToRecords (0.15 to 1.2).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any, Final

from reconciler.errors import BusyError, StaleError, UnsupportedError
from reconciler.hudi.codecs import hfile_writer
from reconciler.hudi.codecs.bloom import infer_type_code
from reconciler.hudi.codecs.log_blocks import BlockType, HeaderKey, encode_block, encode_deletes
from reconciler.hudi.files.names import make_file_path
from reconciler.hudi.metadata.deltacommit import Deltacommit, MetadataSync, NewLogFile
from reconciler.hudi.metadata.earlier_attempt import find_earlier_attempt
from reconciler.hudi.metadata.indexed_columns import learn_wrappers
from reconciler.hudi.metadata.listing import (
    ALL_PARTITIONS,
    FileSizes,
    MetadataListing,
    encode_listing_block,
    partition_key,
)
from reconciler.hudi.metadata.new_files import KeyReader, NewDataFile, NewFiles
from reconciler.hudi.metadata.own_timeline import ROOT
from reconciler.hudi.metadata.record_encoder import BoundWrapper, Cell, ColumnRange, RecordEncoder
from reconciler.hudi.metadata.record_locations import build_location_blocks
from reconciler.hudi.metadata.sync_decisions import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    RECORD_INDEX,
    Decision,
    NewFilesFacts,
    SyncEffect,
    decide_sync,
)
from reconciler.hudi.metadata.table import FILES, MetadataTable, group_by_slice
from reconciler.hudi.timeline.instant import Action, Instant, State
from reconciler.lazy_dataclass import dataclass

REWRITES: Final = frozenset({Action.REPLACECOMMIT, Action.CLUSTERING})
#: plans that may stay pending for long; whoever executes one reads the table's properties first
_LONG_PENDING: Final = frozenset(
    {Action.COMPACTION, Action.LOGCOMPACTION, Action.CLUSTERING, Action.CLEAN, Action.ROLLBACK}
)


#: builds the log files of one metadata partition; raises UnsupportedError if it cannot
LogBuilder = Callable[[], list[NewLogFile]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncPlan:
    """The planned update. ``dropped_partitions``: metadata partitions to drop first, sorted.

    ``drop_reasons``: the reason for each of them. ``sync`` is None if the table has no live
    metadata table.
    """

    dropped_partitions: tuple[str, ...] = ()
    sync: MetadataSync | None = None
    drop_reasons: Mapping[str, str] = field(default_factory=dict)


def plan_rewrite_sync(
    table: MetadataTable,
    listing: MetadataListing,
    new_files: NewFiles,
    *,
    inflight: Collection[str] = (),
) -> SyncPlan:
    """Plan the update of every live metadata partition for files into which rows were moved.

    It is one deltacommit of the data instant, as for a clean; readers see it only when the data
    table's instant completes. Replaced files stay listed until a clean removes them. Partitions
    that cannot be updated are dropped. ``new_files.read_keys`` returns all keys of a new file.

    ``inflight``: partitions that are being built. An earlier attempt at the same instant is removed
    and written again. Raises FormatError, UnsupportedError; StaleError when the data timeline does
    not show the instant as pending; BusyError when a partition must be dropped while another write
    is pending, which may rely on it.
    """
    action = require_pending_action(table, new_files.instant, REWRITES, "clustering")
    rows = sum(file.rows for _path, file in new_files.files)
    facts = NewFilesFacts(table_version=table.version, rows=rows)
    return plan_sync(PartitionLogBuilder(table, listing, new_files), action, facts, inflight)


def plan_compaction_sync(
    table: MetadataTable,
    listing: MetadataListing,
    new_files: NewFiles,
    *,
    inflight: Collection[str] = (),
) -> SyncPlan:
    """Plan the update of every live metadata partition for the base files of a compaction.

    As ``plan_rewrite_sync``, but no key gets another location. Entries of the compacted log files
    stay until a clean removes these files. An empty file has no column statistics, as in Hudi.
    """
    require_pending_action(table, new_files.instant, {Action.COMPACTION}, "compaction")
    facts = NewFilesFacts(table_version=table.version, rows=0, keeps_groups=True)
    builder = _CompactionLogBuilder(table, listing, new_files)
    return plan_sync(builder, Action.COMPACTION, facts, inflight)


def plan_sync(
    builder: PartitionLogBuilder, action: Action, facts: NewFilesFacts, inflight: Collection[str]
) -> SyncPlan:
    """Plan the update of every partition that can be updated; the others must be dropped.

    Files of an earlier attempt are removed first. ``inflight``: partitions that are being built.
    Raises as ``decide_sync`` does; BusyError when a partition must be dropped while another write
    is pending, which may rely on it; FormatError.
    """
    table, instant = builder.table, builder.new_files.instant

    def decide(obstacles: Mapping[str, str]) -> dict[str, Decision]:
        live = table.live_partitions
        return decide_sync(action, live, inflight, replace(facts, obstacles=obstacles))

    wanted = [name for name, decision in decide({}).items() if decision.effect is SyncEffect.SYNC]
    contents, obstacles = _build_logs(builder.builders(), wanted)
    dropped = {
        name: decision.because
        for name, decision in decide(obstacles).items()
        if decision.effect is SyncEffect.DROP
    }
    if dropped:
        _check_no_pending_write(table, instant, dropped)
    earlier = find_earlier_attempt(table, instant, indexes=True)
    updated = [name for name in sorted(contents) if name not in dropped]
    logs = [log for name in updated for log in contents[name]]
    deltacommit = Deltacommit(
        table=table,
        instant=instant,
        completion_time=builder.new_files.completion_time,
        schema=builder.schema,
        removed_paths=earlier.paths,
    )
    sync = MetadataSync(cleanup=earlier.paths, writes=deltacommit.build_files(logs) if logs else ())
    return SyncPlan(dropped_partitions=tuple(sorted(dropped)), sync=sync, drop_reasons=dropped)


def _build_logs(
    builders: Mapping[str, LogBuilder], wanted: Iterable[str]
) -> tuple[dict[str, list[NewLogFile]], dict[str, str]]:
    """Return the log files of each partition, and why others have none."""
    contents: dict[str, list[NewLogFile]] = {}
    obstacles = {}
    for name in wanted:
        try:
            contents[name] = builders[name]()
        except UnsupportedError as problem:
            if name == FILES:
                raise
            obstacles[name] = str(problem).partition("; drop the index")[0]
    return contents, obstacles


def _check_no_pending_write(table: MetadataTable, instant: str, dropped: Mapping[str, str]) -> None:
    """Raise BusyError while another write is pending."""
    foreign = [
        other
        for other in table.data.instants
        if not other.is_completed and other.requested != instant and _relies_on_indexes(other)
    ]
    if foreign:
        raise BusyError(
            f"the metadata partitions {', '.join(sorted(dropped))} must be dropped, but "
            f"{foreign[0].file_name} is pending and may rely on them; run again when it has "
            "completed or was rolled back"
        )


def _relies_on_indexes(instant: Instant) -> bool:
    return not (instant.state is State.REQUESTED and instant.action in _LONG_PENDING)


@dataclass(frozen=True)
class PartitionLogBuilder:
    """Builds the log files of each metadata partition, for files into which rows were moved."""

    table: MetadataTable
    listing: MetadataListing
    new_files: NewFiles

    @property
    def schema(self) -> str:
        """JSON of the newest schema of the table's records."""
        return self.listing.schema

    @property
    def records(self) -> RecordEncoder:
        return RecordEncoder(schema=self.schema, path=ROOT)

    @cached_property
    def wrappers(self) -> Mapping[str, BoundWrapper]:
        """The storage form of each column's bounds, learned from the index."""
        return learn_wrappers(self.table, self.new_files.columns)

    def builders(self) -> dict[str, LogBuilder]:
        """Return the builder of each partition that any new file updates."""
        return {
            FILES: self.build_listing,
            COLUMN_STATS: self.build_column_stats,
            BLOOM_FILTERS: self.build_bloom_filters,
            RECORD_INDEX: self.build_record_index,
        }

    def build_listing(self) -> list[NewLogFile]:
        """Build entries for the new files and, as Hudi does, for their partitions."""
        added = self.new_files.listed_by_partition
        if not added:
            return []
        changes: dict[str, FileSizes] = {
            ALL_PARTITIONS: dict.fromkeys(map(partition_key, added), 0)
        }
        for path, files in added.items():
            changes[partition_key(path)] = {file.name: file.size for file in files}
        (newest,) = self.table.list_slices(FILES)
        data = encode_listing_block(self.new_files.instant, self.schema, changes)
        return [NewLogFile(file_slice=newest, data=data, write_count=len(changes))]

    def build_column_stats(self) -> list[NewLogFile]:
        """Build the ranges of every new file."""
        columns = self.new_files.columns
        if not columns:
            raise UnsupportedError("the columns of the index are not recorded")
        cells: list[Cell] = []
        for path, files in self.new_files.listed_by_partition.items():
            for file in files:
                wanted = select_ranges(file, columns)
                cells += self.records.encode_column_stats(
                    partition_key(path), file.name, wanted, self.wrappers
                )
        return self.build_log_files(COLUMN_STATS, cells)

    def build_bloom_filters(self) -> list[NewLogFile]:
        """Build the filter of every new file."""
        records, instant = self.records, self.new_files.instant
        cells = []
        for path, file in self.new_files.files:
            if file.bloom is None:
                raise UnsupportedError(f"{file.name}: has no bloom filter")
            code = infer_type_code(file.bloom, file.name)
            cells.append(
                records.encode_bloom_filter(
                    partition_key(path), file.name, instant, code, file.bloom
                )
            )
        return self.build_log_files(BLOOM_FILTERS, cells)

    def build_record_index(self) -> list[NewLogFile]:
        """Build locations of the keys of new files."""
        return self.build_locations(self.new_files.read_keys)

    def build_locations(
        self, read_keys: KeyReader, deleted_keys: Iterable[Any] = ()
    ) -> list[NewLogFile]:
        """Build locations of the keys of new files, and deletions of ``deleted_keys``."""
        records = self.records
        locations = [
            (
                make_file_path(path, file.name),
                file.size,
                records.encode_record_location(path, file.name, self.new_files.instant_ms),
            )
            for path, file in self.new_files.files
        ]
        logs = []
        for group in build_location_blocks(
            self.table, locations, read_keys, self.schema, deleted_keys
        ):
            data = self._encode_data_block(group.content) if group.content is not None else b""
            if group.deleted_keys:
                keys = encode_deletes(group.deleted_keys, RECORD_INDEX)
                data += encode_block(BlockType.DELETE, self._block_header, keys)
            logs.append(
                NewLogFile(
                    file_slice=group.file_slice,
                    data=data,
                    write_count=group.rows,
                    delete_count=len(group.deleted_keys),
                )
            )
        return logs

    def build_log_files(self, partition: str, cells: Sequence[Cell]) -> list[NewLogFile]:
        """Return a log file for each file group that gets some of the cells."""
        values = {key.decode(): (key, value) for key, value in cells}
        logs = []
        for file_slice, keys in group_by_slice(self.table, partition, [*values]):
            content = hfile_writer.encode_hfile(sorted(values[key] for key in keys), self.schema)
            data = self._encode_data_block(content)
            logs.append(NewLogFile(file_slice=file_slice, data=data, write_count=len(keys)))
        return logs

    def _encode_data_block(self, content: bytes) -> bytes:
        return encode_block(BlockType.HFILE_DATA, self._block_header, content)

    @property
    def _block_header(self) -> list[tuple[HeaderKey, str]]:
        return [(HeaderKey.INSTANT_TIME, self.new_files.instant), (HeaderKey.SCHEMA, self.schema)]


@dataclass(frozen=True)
class _CompactionLogBuilder(PartitionLogBuilder):
    """Builds the log files of a compaction, whose files may be empty."""

    def build_column_stats(self) -> list[NewLogFile]:
        """Build the ranges of every new file with rows."""
        with_rows = {
            path: [file for file in files if file.rows]
            for path, files in self.new_files.files_by_partition.items()
        }
        whole = replace(self.new_files, files_by_partition=with_rows)
        return PartitionLogBuilder(self.table, self.listing, whole).build_column_stats()


def select_ranges(file: NewDataFile, columns: Sequence[str]) -> list[ColumnRange]:
    """Return the file's ranges of these columns, in order; UnsupportedError if one is missing."""
    ranges = {column_range.column: column_range for column_range in file.ranges}
    unknown = [column for column in columns if column not in ranges]
    if unknown:
        raise UnsupportedError(f"{file.name}: the range of {unknown[0]} is unknown")
    return [ranges[column] for column in columns]


def require_pending_action(
    table: MetadataTable, instant: str, actions: Collection[Action], what: str
) -> Action:
    """Return the action of a pending instant; StaleError if it is not pending."""
    pending = {entry.requested: entry.action for entry in table.data.pending(actions)}
    if instant not in pending:
        raise StaleError(
            f"{instant} is not a pending {what} on the timeline, so the metadata table cannot be "
            "updated for it; read the timeline again"
        )
    return pending[instant]
