"""What to write so that the metadata table knows of a write of rows: a commit or a replacecommit.

As of a rewrite, and more: keys that are new have a place, keys that are gone have none, and
partitions may range further than they did. File groups that are replaced stay listed until a clean
removes them, as Hudi has it. Keys that stay in their file group are where they were.
Source: HoodieTableMetadataUtil.convertMetadataToRecords, BaseFileRecordParsingUtils;
HoodieBackedTableMetadataWriter.getRecordIndexReplacedRecords (0.15 to 1.2).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any, Final

from reconciler.errors import UnsupportedError
from reconciler.hudi.metadata import sync_decisions
from reconciler.hudi.metadata.bound_encoding import find_bound_encoding
from reconciler.hudi.metadata.deltacommit import NewLogFile
from reconciler.hudi.metadata.indexed_columns import learn_wrappers
from reconciler.hudi.metadata.listing import MetadataListing
from reconciler.hudi.metadata.partition_logs import (
    KeyReader,
    LogBuilder,
    NewFiles,
    PartitionLogBuilder,
    SyncPlan,
    metadata_partition_name,
    plan_sync,
    require_pending_action,
    select_ranges,
)
from reconciler.hudi.metadata.partition_stats import merge_ranges, read_partition_ranges
from reconciler.hudi.metadata.record_encoder import BoundWrapper, Cell, ColumnRange
from reconciler.hudi.metadata.sync_decisions import (
    COLUMN_STATS,
    PARTITION_STATS,
    RECORD_INDEX,
    NewFilesFacts,
    PartitionDecision,
    decide_sync,
)
from reconciler.hudi.metadata.table import MetadataTable
from reconciler.hudi.timeline.instant import Action

COMMITS: Final = frozenset({Action.COMMIT, Action.REPLACECOMMIT})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NewFilesOfWrite(NewFiles):
    """One write of rows as the metadata table is told of it.

    ``keys`` gives those keys of a new file that its file group did not have before. ``read_deleted_keys``
    gives keys that some file group has no more, string arrays: of deleted rows, of rows that went
    to another file group, of file groups that are replaced; what a new file has of them is told by
    ``keys``. ``arrow_types``: Arrow types of columns, for those of which the index has no bounds yet.
    ``complete_partitions``: partitions where the new files hold all rows there are, although others are listed.
    ``new_columns``: columns that no file had before, or not in this type, indexed or not.
    """

    read_deleted_keys: Callable[[], Iterable[Any]] = tuple
    arrow_types: Mapping[str, Any] = field(default_factory=dict)
    complete_partitions: Collection[str] = ()
    new_columns: Collection[str] = ()


def plan_write_sync(
    table: MetadataTable,
    listing: MetadataListing,
    new_files: NewFilesOfWrite,
    *,
    inflight: Sequence[str] = (),
) -> SyncPlan:
    """Tell every live partition of the metadata table of a write, or say that it must go.

    ``inflight``: partitions that are being built. What an earlier attempt at the same instant wrote
    is taken back and written again. Raises FormatError, UnsupportedError; StaleError when the
    table's data timeline doesn't show the instant as pending; BusyError when a partition must go
    while another write is pending, which may be counting on it.
    """
    action = require_pending_action(table, new_files.instant, COMMITS, "commit")
    words = _WriteSync(
        PartitionLogBuilder.from_listing(table, listing, new_files), listing, new_files
    )

    def judged(obstacles: Mapping[str, str]) -> dict[str, PartitionDecision]:
        facts = NewFilesFacts(
            table_version=table.version, rows=0, obstacles=obstacles, adds_values=True
        )
        return decide_sync(action, table.live_partitions, inflight, facts)

    return plan_sync(words.builder, words.builders(), judged)


@dataclass(frozen=True)
class _WriteSync:
    """What is told of a write beyond what is told of any new file."""

    builder: PartitionLogBuilder
    listing: MetadataListing
    new_files: NewFilesOfWrite

    def builders(self) -> dict[str, LogBuilder]:
        return self.builder.builders() | {
            COLUMN_STATS: self.build_column_stats,
            PARTITION_STATS: self.build_partition_stats,
            RECORD_INDEX: self.build_record_index,
        }

    def build_column_stats(self) -> list[NewLogFile]:
        """The ranges of every new file.

        Refused where a column begins: the next writer of Hudi indexes it, of its own files, and
        from then on readers take it for null wherever it has no range.
        """
        if not self._partitions:
            return []
        if self.new_files.new_columns:
            raise UnsupportedError(
                f"the column {min(self.new_files.new_columns)} begins with this write, and in files "
                "without its ranges readers would take it for null"
            )
        return self.builder.build_column_stats(self._wrappers)

    def build_partition_stats(self) -> list[NewLogFile]:
        """The bounds of every touched partition, widened by its new files.

        They say that they are tight, so that they take the place of those there are: how bounds are
        joined is not left to whoever reads them. Of a partition with rows elsewhere that the index
        does not know, nothing can be said.
        """
        paths, columns = self._partitions, self.new_files.columns
        before = read_partition_ranges(
            self.builder.table, columns, map(metadata_partition_name, paths)
        )
        older = {path for path, names, _sizes in self.listing.read_folders(paths) if names}
        older -= set(self.new_files.complete_partitions)
        cells: list[Cell] = []
        for path in paths:
            place = metadata_partition_name(path)
            ranges = []
            for found in self._merge_partition_ranges(path):
                known = before.get((place, found.column))
                if (place, found.column) not in before and path in older:
                    raise UnsupportedError(
                        f"the index does not know the bounds that the partition {path!r} had in "
                        f"the column {found.column}"
                    )
                ranges.append(found if known is None else merge_ranges(known, found, place))
            cells += self.builder.records.encode_partition_stats(place, ranges, self._wrappers)
        return self.builder.build_log_files(PARTITION_STATS, cells)

    def build_record_index(self) -> list[NewLogFile]:
        """A record for every new key, a deletion of every other one that is gone.

        Both at most so many as a rewrite moves rows.
        """
        counted = _LimitedKeys(self.new_files.read_keys, self.new_files.read_deleted_keys)
        return self.builder.build_record_index(counted.read_file_keys, counted.read_deleted())

    @property
    def _partitions(self) -> list[str]:
        """The partitions with new files, sorted."""
        return sorted(path for path, files in self.new_files.files_by_partition.items() if files)

    def _merge_partition_ranges(self, path: str) -> list[ColumnRange]:
        """Of all new files of a partition together, a range for each column."""
        of_files = [
            select_ranges(file, self.new_files.columns)
            for file in self.new_files.files_by_partition[path]
        ]
        return [reduce(ColumnRange.merge, some) for some in zip(*of_files, strict=True)]

    @cached_property
    def _wrappers(self) -> Mapping[str, BoundWrapper]:
        """How the bounds of every column are kept: as records show, or else as Hudi would."""
        table, columns = self.builder.table, self.new_files.columns
        learned = learn_wrappers(table, columns)
        for column in columns:
            kind = self.new_files.arrow_types.get(column)
            if column not in learned and kind is not None:
                kept = find_bound_encoding(kind, table.version)
                if kept is not None:
                    learned[column] = kept.wrapper
        return learned


class _LimitedKeys:
    """Keys as they come, up to as many as are written into a record index."""

    def __init__(self, keys: KeyReader, deleted: Callable[[], Iterable[Any]]) -> None:
        self._keys, self._deleted, self._count = keys, deleted, 0

    def read_file_keys(self, path: str, size: int) -> Iterator[Any]:
        return self._count_keys(self._keys(path, size))

    def read_deleted(self) -> Iterator[Any]:
        return self._count_keys(self._deleted())

    def _count_keys(self, arrays: Iterable[Any]) -> Iterator[Any]:
        for keys in arrays:
            self._count += len(keys)
            if self._count > sync_decisions.MAX_RECORDS:
                raise UnsupportedError(
                    f"more than {sync_decisions.MAX_RECORDS} keys are new or gone, and no "
                    "more are written there"
                )
            yield keys
