"""Compare partition_stats with the footers of base files and with the entries of log files.

Readers skip a whole partition by its range, and one without a range if other partitions have one.
Source: PartitionStatsIndexSupport.prunePartitions (1.0 on).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np

from reconciler.arrays import sort_unique
from reconciler.hudi.metadata.index_definitions import read_defined_columns
from reconciler.hudi.metadata.stored_ranges import (
    StoredRange,
    read_stored_partition_ranges,
    read_stored_ranges,
)
from reconciler.hudi.metadata.sync_decisions import COLUMN_STATS, PARTITION_STATS
from reconciler.lazy_dataclass import dataclass
from reconciler.state.current_files import group_by_partition
from reconciler.state.metadata_differences import CheckBuilder
from reconciler.verification.checked_table import CheckedTable
from reconciler.verification.footer_ranges import ColumnValues, FooterRanges, FoundRange
from reconciler.verification.range_comparison import (
    RangeVerdict,
    compare_ranges,
    describe_found,
    describe_stored,
)

_NARROW: Final = "readers that skip partitions by this column lose its rows"


def check_partition_stats(
    table: CheckedTable, footers: FooterRanges, values: ColumnValues
) -> CheckBuilder:
    """Compare the range of every column of every partition with current files.

    Raises FormatError, UnsupportedError, StorageError.
    """
    check = CheckBuilder(metadata_partition=PARTITION_STATS, unit="range")
    defined = read_defined_columns(table.storage)
    columns = [column for column in defined if column in footers.types]
    comparison = _Comparison(
        table=table, footers=footers, values=values, columns=columns, check=check
    )
    comparison.run()
    return check


@dataclass(kw_only=True, eq=False)
class _Comparison:
    """``reported``: partitions and columns that have a difference already."""

    table: CheckedTable
    footers: FooterRanges
    values: ColumnValues
    columns: Sequence[str]
    check: CheckBuilder
    reported: set[tuple[str, str]] = field(default_factory=set)

    def run(self) -> None:
        files, bases = self.table.state.files, self.table.bases
        codes = files.partition[bases]
        paths = [files.partitions[code] for code in sort_unique(codes).tolist()]
        stored = read_stored_partition_ranges(self.table.metadata, self.columns, paths)
        for code, path in zip(sort_unique(codes).tolist(), paths, strict=True):
            positions = np.flatnonzero(codes == code).tolist()
            for column in self.columns:
                self._compare_column(path, column, stored.get((path, column)), positions)
        if COLUMN_STATS in self.table.metadata.live_partitions and len(self.table.logs):
            self._compare_logs(stored)

    def _compare_column(
        self, path: str, column: str, stored: StoredRange | None, positions: list[int]
    ) -> None:
        positions = [file for file in positions if self.footers.index.rows[file] > 0]
        if not positions:
            return
        kind = self.footers.types[column]
        self.check.compared += 1
        if stored is None:
            self._add("missing", path, column, None, "rows")
            return
        found = dict(zip(positions, self.footers.list_ranges(column, positions), strict=True))
        doubtful = [
            file
            for file, one in found.items()
            if compare_ranges(stored, one, kind) is RangeVerdict.DOUBTFUL
        ]
        self.values.read({file: [column] for file in doubtful})
        found |= {file: self.values.get(file, column) for file in doubtful}
        wrong = [
            file
            for file, one in found.items()
            if compare_ranges(stored, one, kind) is RangeVerdict.NARROW
        ]
        if wrong:
            _partition, name = self.table.name_file(int(self.table.bases[wrong[0]]))
            actual = f"{describe_found(found[wrong[0]], kind)} in {name}"
            more = f", and {len(wrong) - 1} more files outside" if len(wrong) > 1 else ""
            self._add("wrong", path, column, stored, actual + more)

    def _compare_logs(self, stored: dict[tuple[str, str], StoredRange | None]) -> None:
        """Compare with column_stats' entries of current log files, whose values have no footer."""
        files, logs = self.table.state.files, self.table.logs
        logs = logs[self.table.is_chosen(logs)]
        folders = group_by_partition(files, logs)
        for entries in read_stored_ranges(self.table.metadata, self.columns, folders):
            column = self.columns[entries.column]
            for file, entry in zip(entries.file, entries.ranges, strict=True):
                path, name = self.table.name_file(int(logs[file]))
                whole = stored.get((path, column))
                if whole is None or entry.says_all_null:
                    continue
                found = FoundRange(
                    least=entry.least, greatest=entry.greatest, nulls=-1, is_exact=True
                )
                kind = self.footers.types[column]
                if compare_ranges(whole, found, kind) is RangeVerdict.NARROW:
                    self._add(
                        "wrong", path, column, whole, f"{describe_found(found, kind)} in {name}"
                    )

    def _add(
        self, kind: Any, path: str, column: str, stored: StoredRange | None, actual: str
    ) -> None:
        if (path, column) in self.reported:
            return
        self.reported.add((path, column))
        self.check.add(
            kind,
            path,
            "",
            column=column,
            recorded="no entry"
            if stored is None
            else describe_stored(stored, self.footers.types[column]),
            actual=actual,
            effect=_NARROW,
        )
