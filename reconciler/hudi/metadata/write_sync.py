"""Plan the metadata table's update for a write of rows: a commit or a replacecommit.

A write does more than a rewrite: new keys get a location, deleted keys lose theirs, and ranges of
partitions may grow. Replaced file groups stay listed until a clean removes them, as in Hudi. Keys
that stay in their file group keep their location. Source:
HoodieTableMetadataUtil.convertMetadataToRecords, BaseFileRecordParsingUtils;
HoodieBackedTableMetadataWriter.getRecordIndexReplacedRecords (0.15 to 1.2).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property, reduce
from typing import Any, Final

from reconciler.errors import UnsupportedError
from reconciler.hudi.metadata import sync_decisions
from reconciler.hudi.metadata.bound_encoding import find_bound_encoding
from reconciler.hudi.metadata.deltacommit import NewLogFile
from reconciler.hudi.metadata.indexed_columns import learn_wrappers
from reconciler.hudi.metadata.listing import MetadataListing, partition_key
from reconciler.hudi.metadata.new_files import NewFiles
from reconciler.hudi.metadata.partition_logs import (
    LogBuilder,
    PartitionLogBuilder,
    SyncPlan,
    plan_sync,
    require_pending_action,
    select_ranges,
)
from reconciler.hudi.metadata.partition_stats import merge_ranges, read_partition_ranges
from reconciler.hudi.metadata.record_encoder import BoundWrapper, Cell, ColumnRange
from reconciler.hudi.metadata.sync_decisions import (
    PARTITION_STATS,
    NewFilesFacts,
)
from reconciler.hudi.metadata.table import MetadataTable
from reconciler.hudi.timeline.instant import Action
from reconciler.lazy_dataclass import dataclass

COMMITS: Final = frozenset({Action.COMMIT, Action.DELTACOMMIT, Action.REPLACECOMMIT})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NewFilesOfWrite(NewFiles):
    """The new files of a write of rows.

    ``read_keys`` returns the keys of a new file that its file group did not have before.
    ``read_deleted_keys`` returns string arrays of keys that left a file group: of deleted rows, of
    rows that moved to another group, of replaced groups. A key that ``read_keys`` returns for a new
    file counts as written. ``arrow_types``: Arrow types of columns, for columns whose bounds the
    index does not have yet. ``complete_partitions``: partitions whose new files hold all rows,
    although other files are still listed. ``unknown_keys``: why new keys of log files are not
    known, None if log files have none. ``new_columns``: columns that no file had before in this
    type, indexed or not.
    """

    read_deleted_keys: Callable[[], Iterable[Any]] = tuple
    arrow_types: Mapping[str, Any] = field(default_factory=dict)
    complete_partitions: Collection[str] = ()
    unknown_keys: str | None = None
    new_columns: Collection[str] = ()


def plan_write_sync(
    table: MetadataTable,
    listing: MetadataListing,
    new_files: NewFilesOfWrite,
    *,
    inflight: Sequence[str] = (),
) -> SyncPlan:
    """Plan the update of every live metadata partition for a write; drop what cannot be updated.

    ``inflight``: partitions that are being built. An earlier attempt at the same instant is removed
    and written again. Raises FormatError, UnsupportedError; StaleError when the data timeline does
    not show the instant as pending; BusyError when a partition must be dropped while another write
    is pending, which may rely on it.
    """
    action = require_pending_action(table, new_files.instant, COMMITS, "commit")
    facts = NewFilesFacts(table_version=table.version, rows=0, adds_values=True)
    return plan_sync(_WriteLogBuilder(table, listing, new_files), action, facts, inflight)


@dataclass(frozen=True)
class _WriteLogBuilder(PartitionLogBuilder):
    """Builds the log files of a write, which adds values and keys and deletes keys."""

    new_files: NewFilesOfWrite

    def builders(self) -> dict[str, LogBuilder]:
        return super().builders() | {PARTITION_STATS: self.build_partition_stats}

    def build_column_stats(self) -> list[NewLogFile]:
        """Build the ranges of every new file.

        Refused if the write adds a column. The next Hudi writer would index that column for its
        own files only, and readers would take it for null wherever it has no range.
        """
        if not self._partitions:
            return []
        if self.new_files.new_columns:
            raise UnsupportedError(
                f"this write adds the column {min(self.new_files.new_columns)}, and readers would "
                "take it for null in files without its range"
            )
        return super().build_column_stats()

    def build_partition_stats(self) -> list[NewLogFile]:
        """Build the bounds of every touched partition, widened by its new files.

        They are marked as tight and so replace the existing bounds; readers need not merge them.
        Raises UnsupportedError for a partition with older rows that the index does not know.
        """
        paths, columns = self._partitions, self.new_files.columns
        before = read_partition_ranges(self.table, columns, map(partition_key, paths))
        older = {path for path, names, _sizes in self.listing.read_folders(paths) if names}
        older -= set(self.new_files.complete_partitions)
        cells: list[Cell] = []
        for path in paths:
            name = partition_key(path)
            ranges = []
            for new in self._merge_partition_ranges(path):
                old = before.get((name, new.column))
                if (name, new.column) not in before and path in older:
                    raise UnsupportedError(
                        f"the index has no bounds of the column {new.column} for the partition "
                        f"{path!r}"
                    )
                ranges.append(new if old is None else merge_ranges(old, new, name))
            cells += self.records.encode_partition_stats(name, ranges, self.wrappers)
        return self.build_log_files(PARTITION_STATS, cells)

    def build_record_index(self) -> list[NewLogFile]:
        """Build a record for every new key and a deletion for every other removed key.

        Both are limited to the number of rows that a rewrite may move. Refused if new keys are not
        known.
        """
        if self.new_files.unknown_keys is not None:
            raise UnsupportedError(self.new_files.unknown_keys)
        count = 0

        def limit(arrays: Iterable[Any]) -> Iterator[Any]:
            nonlocal count
            for keys in arrays:
                count += len(keys)
                if count > sync_decisions.MAX_RECORDS:
                    raise UnsupportedError(
                        f"more than {sync_decisions.MAX_RECORDS} keys are new or deleted, the most "
                        "that are written"
                    )
                yield keys

        new = self.new_files
        return self.build_locations(
            lambda path, size: limit(new.read_keys(path, size)), limit(new.read_deleted_keys())
        )

    @property
    def _partitions(self) -> list[str]:
        """The partitions with new files, sorted."""
        return [*self.new_files.listed_by_partition]

    def _merge_partition_ranges(self, path: str) -> list[ColumnRange]:
        """Return the range of each column over all new files of a partition."""
        file_ranges = [
            select_ranges(file, self.new_files.columns)
            for file in self.new_files.listed_by_partition[path]
        ]
        return [
            reduce(ColumnRange.merge, column_ranges)
            for column_ranges in zip(*file_ranges, strict=True)
        ]

    @cached_property
    def wrappers(self) -> Mapping[str, BoundWrapper]:
        """The storage form of every column's bounds: as entries show, or else as Hudi would."""
        table, columns = self.table, self.new_files.columns
        learned = learn_wrappers(table, columns)
        for column in columns:
            kind = self.new_files.arrow_types.get(column)
            if column not in learned and kind is not None:
                encoding = find_bound_encoding(kind, table.version)
                if encoding is not None:
                    learned[column] = encoding.wrapper
        return learned
