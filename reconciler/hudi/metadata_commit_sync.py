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
from reconciler.hudi import metadata_partitions
from reconciler.hudi.instant import Action
from reconciler.hudi.metadata_bounds import joined, known_bounds
from reconciler.hudi.metadata_columns import wrappings
from reconciler.hudi.metadata_commit import LogContent
from reconciler.hudi.metadata_keeping import keeping
from reconciler.hudi.metadata_partitions import (
    COLUMN_STATS,
    PARTITION_STATS,
    RECORD_INDEX,
    RewriteFacts,
    Verdict,
    sync_or_drop,
)
from reconciler.hudi.metadata_read import MetadataListing
from reconciler.hudi.metadata_records import Cell, ColumnRange, Wrapping
from reconciler.hudi.metadata_table import MetadataTable
from reconciler.hudi.metadata_told import (
    Keys,
    Maker,
    RewriteSync,
    Teller,
    Tidings,
    listed,
    pending_action,
    ranges_of,
    synced,
)

COMMITS: Final = frozenset({Action.COMMIT, Action.REPLACECOMMIT})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Writing(Tidings):
    """One write of rows as the metadata table is told of it.

    ``keys`` gives those keys of a new file that its file group did not have before. ``deleted``
    gives keys that some file group has no more, string arrays: of deleted rows, of rows that went
    to another file group, of file groups that are replaced; what a new file has of them is told by
    ``keys``. ``kinds``: Arrow types of columns, for those of which the index has no bounds yet.
    ``alone``: partitions where the new files hold all rows there are, although others are listed.
    ``begun``: columns that no file had before, or not in this type, indexed or not.
    """

    deleted: Callable[[], Iterable[Any]] = tuple
    kinds: Mapping[str, Any] = field(default_factory=dict)
    alone: Collection[str] = ()
    begun: Collection[str] = ()


def commit_sync(
    table: MetadataTable,
    listing: MetadataListing,
    writing: Writing,
    *,
    inflight: Sequence[str] = (),
) -> RewriteSync:
    """Tell every live partition of the metadata table of a write, or say that it must go.

    ``inflight``: partitions that are being built. What an earlier attempt at the same instant wrote
    is taken back and written again. Raises FormatError, UnsupportedError; StaleError when the
    table's data timeline doesn't show the instant as pending; BusyError when a partition must go
    while another write is pending, which may be counting on it.
    """
    action = pending_action(table, writing.instant, COMMITS, "commit")
    words = _Words(Teller.of(table, listing, writing), listing, writing)

    def judged(obstacles: Mapping[str, str]) -> dict[str, Verdict]:
        facts = RewriteFacts(table_version=table.version, rows=0, obstacles=obstacles, widens=True)
        return sync_or_drop(action, table.live, inflight, facts)

    return synced(words.teller, words.makers(), judged)


@dataclass(frozen=True)
class _Words:
    """What is told of a write beyond what is told of any new file."""

    teller: Teller
    listing: MetadataListing
    writing: Writing

    def makers(self) -> dict[str, Maker]:
        return self.teller.makers() | {
            COLUMN_STATS: self.column_stats,
            PARTITION_STATS: self.partition_stats,
            RECORD_INDEX: self.record_index,
        }

    def column_stats(self) -> list[LogContent]:
        """The ranges of every new file.

        Refused where a column begins: the next writer of Hudi indexes it, of its own files, and
        from then on readers take it for null wherever it has no range.
        """
        if not self._touched:
            return []
        if self.writing.begun:
            raise UnsupportedError(
                f"the column {min(self.writing.begun)} begins with this write, and in files "
                "without its ranges readers would take it for null"
            )
        return self.teller.column_stats(self._wrappings)

    def partition_stats(self) -> list[LogContent]:
        """The bounds of every touched partition, widened by its new files.

        They say that they are tight, so that they take the place of those there are: how bounds are
        joined is not left to whoever reads them. Of a partition with rows elsewhere that the index
        does not know, nothing can be said.
        """
        paths, columns = self._touched, self.writing.columns
        before = known_bounds(self.teller.table, columns, map(listed, paths))
        older = {path for path, names, _sizes in self.listing.folders(paths) if names}
        older -= set(self.writing.alone)
        cells: list[Cell] = []
        for path in paths:
            place = listed(path)
            ranges = []
            for found in self._ranges(path):
                known = before.get((place, found.column))
                if (place, found.column) not in before and path in older:
                    raise UnsupportedError(
                        f"the index does not know the bounds that the partition {path!r} had in "
                        f"the column {found.column}"
                    )
                ranges.append(found if known is None else joined(known, found, place))
            cells += self.teller.records.partition_stats(place, ranges, self._wrappings)
        return self.teller.logs(PARTITION_STATS, cells)

    def record_index(self) -> list[LogContent]:
        """A record for every new key, a deletion of every other one that is gone.

        Both at most so many as a rewrite moves rows.
        """
        counted = _Counted(self.writing.keys, self.writing.deleted)
        return self.teller.record_index(counted.of_file, counted.gone())

    @property
    def _touched(self) -> list[str]:
        """The partitions with new files, sorted."""
        return sorted(path for path, files in self.writing.added.items() if files)

    def _ranges(self, path: str) -> list[ColumnRange]:
        """Of all new files of a partition together, a range for each column."""
        of_files = [ranges_of(file, self.writing.columns) for file in self.writing.added[path]]
        return [reduce(ColumnRange.merged, some) for some in zip(*of_files, strict=True)]

    @cached_property
    def _wrappings(self) -> Mapping[str, Wrapping]:
        """How the bounds of every column are kept: as records show, or else as Hudi would."""
        table, columns = self.teller.table, self.writing.columns
        learned = wrappings(table, columns)
        for column in columns:
            kind = self.writing.kinds.get(column)
            if column not in learned and kind is not None:
                kept = keeping(kind, table.version)
                if kept is not None:
                    learned[column] = kept.wrapping
        return learned


class _Counted:
    """Keys as they come, up to as many as are written into a record index."""

    def __init__(self, keys: Keys, deleted: Callable[[], Iterable[Any]]) -> None:
        self._keys, self._deleted, self._count = keys, deleted, 0

    def of_file(self, path: str, size: int) -> Iterator[Any]:
        return self._some(self._keys(path, size))

    def gone(self) -> Iterator[Any]:
        return self._some(self._deleted())

    def _some(self, arrays: Iterable[Any]) -> Iterator[Any]:
        for keys in arrays:
            self._count += len(keys)
            if self._count > metadata_partitions.MOST_RECORDS:
                raise UnsupportedError(
                    f"more than {metadata_partitions.MOST_RECORDS} keys are new or gone, and no "
                    "more are written there"
                )
            yield keys
