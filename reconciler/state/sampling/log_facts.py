"""Read what forecasts must know of log files: how many records they have, and which values.

The records are counted by the writes that recorded them. By Hudi's column_stats and the table's own
index readers skip slices with log files, so both are read where readers would use them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from reconciler.arrays import Codes, Integers, Mask
from reconciler.errors import ReconcilerError
from reconciler.file_slices.merge.committed_blocks import CommittedInstants, read_committed_blocks
from reconciler.file_slices.merge.log_records import WantedColumns, merge_log_blocks
from reconciler.file_slices.merge.ordering import find_column
from reconciler.file_slices.merge.rules import MergeRules
from reconciler.hudi.files.names import make_file_path
from reconciler.index.file_keys import find_rows
from reconciler.index.footers import find_index_types
from reconciler.index.model import UNKNOWN, ColumnStats, FileIndex
from reconciler.lazy_dataclass import dataclass
from reconciler.state.clustering_facts import ReadWarning
from reconciler.state.current_files import find_committed_instants, find_newest_logs
from reconciler.state.index_state_reader import build_file_keys, read_published_index
from reconciler.state.log_sizes import LogFile, count_bytes_of_writes, read_log_records
from reconciler.state.log_statistics import (
    MAX_STATISTICS,
    has_log_statistics,
    is_trusted,
    read_log_statistics,
)
from reconciler.state.sampling.model import LogFacts, LogRows
from reconciler.storage.parallel import run_parallel

if TYPE_CHECKING:
    from reconciler.hudi.table.properties import TableProperties
    from reconciler.state.model import TableState
    from reconciler.storage.api import Storage

#: most bytes and files of log files whose rows are read
_MAX_LOG_BYTES: Final = 64 * 1024**2
_MAX_LOG_FILES: Final = 1000
#: most bytes of past writes that are read for the number of rows
_MAX_WRITE_BYTES: Final = 16 * 1024**2
#: files that are read at a time
_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogFactsReader:
    """Reads the facts about log files.

    ``bases``: rows of the current base files in the state's files. ``columns``: those that queries
    name, without those of partition paths.
    """

    storage: Storage
    properties: TableProperties
    state: TableState
    bases: Integers
    columns: tuple[str, ...]
    schema: Any

    def read(
        self, *, with_records: bool, with_rows: bool
    ) -> tuple[LogFacts | None, tuple[ReadWarning, ...]]:
        """Return the facts, None for a table without log files, and what could not be read.

        ``with_records``: count the records; ``with_rows``: read the rows of log files. Raises
        nothing: what cannot be read stays unknown.
        """
        found = find_newest_logs(self.state.view)
        is_committed = find_committed_instants(self.state)
        logs = found[is_committed[self.state.files.instant[found]]] if len(found) else found
        if not len(logs):
            return None, ()
        unknown = np.full(len(logs), UNKNOWN, np.int64)
        records, inserts = self._count_records(logs) if with_records else (unknown, unknown)
        statistics, indexed, warnings = self._read_statistics(logs)
        return LogFacts(
            files=logs,
            records=records,
            inserts=inserts,
            statistics=statistics,
            indexed=None if indexed is None else indexed[0],
            is_indexed=None if indexed is None else indexed[1],
            sample=self._read_rows(logs) if with_rows and self.columns else None,
        ), warnings

    # --- records ---------------------------------------------------------------------------------

    def _count_records(self, logs: Integers) -> tuple[Integers, Integers]:
        timeline, keys = self.state.timeline, self._list_keys(logs)
        unknown = np.full(len(logs), UNKNOWN, np.int64)
        if count_bytes_of_writes(timeline, keys) > _MAX_WRITE_BYTES:
            return unknown, unknown
        try:
            counts = read_log_records(
                self.storage, self.properties, timeline, frozenset(keys), at_once=_AT_ONCE
            )
        except ReconcilerError:  # a damaged write, which whoever needs it reports
            return unknown, unknown
        records, inserts = unknown.copy(), unknown.copy()
        for place, key in enumerate(keys):
            if (count := counts.get(key)) is not None:
                records[place], inserts[place] = count.records, count.inserts
        return records, inserts

    def _list_keys(self, logs: Integers) -> list[LogFile]:
        files = self.state.files
        partitions = files.partition[logs].tolist()
        return [
            (files.partitions[code], files.name[row].as_py())
            for code, row in zip(partitions, logs.tolist(), strict=True)
        ]

    # --- statistics by which reads skip ----------------------------------------------------------

    def _read_statistics(
        self, logs: Integers
    ) -> tuple[FileIndex | None, tuple[FileIndex, Mask] | None, tuple[ReadWarning, ...]]:
        """Return Hudi's bounds of log files and our own of base files; None if reads use none."""
        trusted = [name for name in self.columns if is_trusted(name, self.schema)]
        is_used = bool(trusted) and len(logs) * len(trusted) <= MAX_STATISTICS
        refusal = MergeRules.from_properties(self.properties).refusal
        if not is_used or refusal or not has_log_statistics(self.properties):
            return None, None, ()
        try:
            own = self._read_own_index()
            if own is None:
                return None, None, ()
            statistics = read_log_statistics(
                self.storage,
                self.properties,
                self.state.timeline,
                [(folder, [name]) for folder, name in self._list_keys(logs)],
                trusted,
                self.schema,
            )
        except ReconcilerError as problem:
            because = f"column_stats of log files are not used: {problem}"
            return None, None, (ReadWarning(rule="columnStats", because=because),)
        return statistics, own, ()

    def _read_own_index(self) -> tuple[FileIndex, Mask] | None:
        """Return statistics of the base files in the table's own index, and which are in it."""
        known = self.state.index_state
        index = known.index if known is not None else None
        if known is None:
            index = read_published_index(self.storage, self.columns)
        kinds = find_index_types(self.columns, self.schema)
        if index is None or not any(name in index.columns for name in kinds):
            return None
        keys = build_file_keys(self.state, self.bases)
        rows = find_rows(index, keys)
        columns = {
            name: _take_or_unknown(index.columns[name], rows)
            for name, kind in kinds.items()
            if name in index.columns and index.columns[name].type == kind
        }
        counts = np.where(rows >= 0, index.rows[np.maximum(rows, 0)] if len(index) else UNKNOWN, -1)
        aligned = FileIndex(
            partition=keys.partition, name=keys.name, size=keys.size, rows=counts, columns=columns
        )
        return aligned, rows >= 0

    # --- rows ------------------------------------------------------------------------------------

    def _read_rows(self, logs: Integers) -> LogRows:
        """Return the merged rows of log files, of the file groups with fewest bytes first."""
        groups = self.state.files.group[logs]
        chosen = self._choose_groups(groups, self.state.files.size[logs])
        by_group = [logs[groups == group] for group in chosen]
        tables = run_parallel(self._try_merging, by_group, parallelism=_AT_ONCE)
        known = [
            (group, table) for group, table in zip(chosen, tables, strict=True) if table is not None
        ]
        empty = self._select_columns(self._wanted.columns.empty_table())
        codes = np.array([group for group, _ in known], np.int32)
        return LogRows(
            rows=pa.concat_tables([empty, *(table for _, table in known)]),
            group=np.repeat(codes, np.array([len(table) for _, table in known], np.int64)),
            groups=codes,
        )

    def _choose_groups(self, groups: Codes, sizes: Integers) -> list[int]:
        """Return file groups within the limits of bytes and files, smallest ones first."""
        codes, which = np.unique(groups, return_inverse=True)
        totals = np.bincount(which, sizes, minlength=len(codes))
        order = np.argsort(totals, kind="stable")
        is_within = np.cumsum(totals[order]) <= _MAX_LOG_BYTES
        is_within &= np.cumsum(np.bincount(which, minlength=len(codes))[order]) <= _MAX_LOG_FILES
        return sorted(codes[order[is_within]].tolist())

    def _try_merging(self, logs: Integers) -> pa.Table | None:
        """Return the merged rows of a group's log files; None if they cannot be read."""
        files = self.state.files
        order = np.lexsort((files.version[logs], files.instant[logs]))
        try:
            return self._merge_rows(logs[order])
        except (ReconcilerError, pa.ArrowException):
            return None  # whoever reads or compacts the slice reports it

    def _merge_rows(self, rows: Integers) -> pa.Table:
        """Return what the log files of a group hold of the wanted columns, one row per key."""
        paths = [make_file_path(*key) for key in self._list_keys(rows)]
        committed = CommittedInstants.from_timeline(
            self.state.timeline, table_version=self.state.table_version
        )
        blocks = read_committed_blocks(paths, self.storage.read, committed)
        rules = MergeRules.from_properties(self.properties)
        return self._select_columns(merge_log_blocks(blocks, rules, self._wanted).table)

    @property
    def _wanted(self) -> WantedColumns:
        """The top-level columns that hold what the queries name."""
        names = dict.fromkeys(name.partition(".")[0] for name in self.columns)
        columns = pa.schema([self.schema.field(name) for name in names])
        return WantedColumns(table=self.schema, columns=columns, missing={})

    def _select_columns(self, table: pa.Table) -> pa.Table:
        """Return the columns by their names with dots."""
        (batch,) = table.combine_chunks().to_batches() or [
            pa.RecordBatch.from_pylist([], schema=table.schema)
        ]
        return pa.table({name: find_column(batch, name) for name in self.columns})


def _take_or_unknown(stats: ColumnStats, rows: Integers) -> ColumnStats:
    """Return the statistics of some rows, unknown for -1."""
    both = ColumnStats.concat([stats, ColumnStats.unknown(stats.type, 1)])
    return both.take(np.where(rows >= 0, rows, len(stats)))
