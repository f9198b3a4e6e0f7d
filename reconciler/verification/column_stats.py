"""Compare column_stats with the footers of base files, and with their values where needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Final

import numpy as np

from reconciler.arrays import Mask
from reconciler.hudi.metadata.indexed_columns import read_indexed_columns
from reconciler.hudi.metadata.stored_ranges import StoredRange, read_stored_ranges
from reconciler.hudi.metadata.sync_decisions import COLUMN_STATS, PARTITION_STATS
from reconciler.lazy_dataclass import dataclass
from reconciler.state.current_files import group_by_partition
from reconciler.state.metadata_differences import CheckBuilder
from reconciler.verification.checked_table import CheckedTable
from reconciler.verification.footer_ranges import ColumnValues, FooterRanges, FoundRange
from reconciler.verification.range_comparison import (
    RangeVerdict,
    compare_ranges,
    describe_both,
)

_NARROW: Final = "readers that skip files by this column lose rows of the file"
_GAP: Final = "readers whose filter has this and another column may lose rows of the file"
_OPENED: Final = "readers open the file, whatever they look for"
_NARROWED: Final = "the next write narrows the bounds of the partition, and readers lose its rows"


def check_column_stats(
    table: CheckedTable, footers: FooterRanges, values: ColumnValues
) -> CheckBuilder:
    """Compare the range of every column of every chosen base file.

    Raises FormatError, UnsupportedError, StorageError.
    """
    check = CheckBuilder(metadata_partition=COLUMN_STATS, unit="range")
    indexed = read_indexed_columns(table.metadata)
    columns = [column for column in indexed if column in footers.types]
    _Comparison(table=table, footers=footers, values=values, columns=columns, check=check).run()
    others = [column for column in indexed if column not in footers.types]
    if others:
        check.not_compared.append(f"columns without bounds in footers: {', '.join(others)}")
    if len(table.logs):
        check.not_compared.append("ranges of log files")
    return check


@dataclass(kw_only=True, eq=False)
class _Comparison:
    """``doubts``: stored ranges that footers do not decide, by file and column."""

    table: CheckedTable
    footers: FooterRanges
    values: ColumnValues
    columns: Sequence[str]
    check: CheckBuilder
    doubts: dict[int, dict[str, StoredRange]] = field(default_factory=dict)

    def run(self) -> None:
        has = self._compare_entries()
        self._settle_doubts()
        self._add_gaps(has)

    def _compare_entries(self) -> Mask:
        """Compare the entries with footers; return a mask (column, file) of those that exist."""
        table = self.table
        has = np.zeros((len(self.columns), len(table.bases)), np.bool_)
        folders = group_by_partition(table.state.files, table.bases)
        for stored in read_stored_ranges(table.metadata, self.columns, folders):
            column = self.columns[stored.column]
            has[stored.column, stored.file] = True
            self.check.compared += len(stored.file)
            found_ranges = self.footers.list_ranges(column, stored.file)
            for file, one, found in zip(stored.file, stored.ranges, found_ranges, strict=True):
                match compare_ranges(one, found, self.footers.types[column]):
                    case RangeVerdict.NARROW:
                        self._add(file, column, one, found)
                    case RangeVerdict.DOUBTFUL if not self.footers.unread[file]:
                        self.doubts.setdefault(file, {})[column] = one
                    case _:
                        pass
        return has

    def _settle_doubts(self) -> None:
        """Read the columns whose footers prove nothing."""
        self.values.read(self.doubts)
        for file, stored_ranges in self.doubts.items():
            for column, stored in stored_ranges.items():
                found = self.values.get(file, column)
                verdict = compare_ranges(stored, found, self.footers.types[column])
                if verdict is RangeVerdict.NARROW:
                    self._add(file, column, stored, found)

    def _add(self, file: int, column: str, stored: StoredRange, found: FoundRange) -> None:
        place = self.table.name_file(int(self.table.bases[file]))
        described = describe_both(stored, found, self.footers.types[column])
        self.check.add("wrong", *place, column=column, **described, effect=_NARROW)

    def _add_gaps(self, has: Mask) -> None:
        """Add files that lack entries of some columns, or of all."""
        if not len(self.columns):
            return
        is_whole = has.all(axis=0)
        for file in np.flatnonzero(~is_whole & (self.footers.index.rows > 0)).tolist():
            if has[:, file].any():
                for number in np.flatnonzero(~has[:, file]).tolist():
                    self._add_gap(file, self.columns[number], _GAP)
            else:
                is_open = PARTITION_STATS not in self.table.metadata.live_partitions
                self._add_gap(file, None, _OPENED if is_open else _NARROWED)

    def _add_gap(self, file: int, column: str | None, effect: str) -> None:
        partition, name = self.table.name_file(int(self.table.bases[file]))
        self.check.add(
            "missing",
            partition,
            name,
            column=column,
            recorded="no entry",
            actual=f"{self.footers.index.rows[file]} rows",
            effect=effect,
        )
