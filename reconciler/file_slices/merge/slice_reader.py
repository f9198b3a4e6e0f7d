"""Read one file slice as rows: the base file streams past the merged log records.

Readers and clustering build on ``read_slice``. Memory: the log records, the keys of one row group
of the base file, and one batch. Rows come in the base file's order, then records that log files
added or replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.arrays import Floats, Integers, Mask, to_arrow
from reconciler.errors import UnsupportedError
from reconciler.file_slices.merge.calendar import PROLEPTIC, Calendar, convert_calendar
from reconciler.file_slices.merge.committed_blocks import CommittedInstants, read_committed_blocks
from reconciler.file_slices.merge.log_records import (
    LogRecords,
    WantedColumns,
    find_ordering_fields,
    find_winners,
    merge_log_blocks,
)
from reconciler.file_slices.merge.merge_counts import MergeCounts
from reconciler.file_slices.merge.range_file import open_parquet, reading_parquet
from reconciler.file_slices.merge.record_keys import find_keys
from reconciler.file_slices.merge.repeated_texts import code_texts, find_repeated_texts
from reconciler.file_slices.merge.rules import MergeRules
from reconciler.file_slices.merge.schema_evolution import evolve_batch
from reconciler.hudi.files.names import BaseName
from reconciler.lazy_dataclass import dataclass

#: rows of a batch
_BATCH_ROWS: Final = 64 * 1024
_SKELETON_INSTANT: Final = "00000000000001"


class SliceSource(Protocol):
    """A source of files; paths are relative to the table's root. A Storage is one."""

    def read(self, path: str) -> bytes:
        """Return the whole file."""

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Return at most ``length`` bytes from ``start``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceFiles:
    """The files of a slice: paths below the table's root, logs in merge order without CDC files.

    ``base`` is None for a log-only slice; ``base_size``: its bytes.
    """

    base: str | None = None
    base_size: int = 0
    logs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SliceReadOptions:
    """The options of reading any slice of a table; picklable.

    ``schema``: every column of the table, with meta columns (``avro_schema.to_arrow_schema`` of the
    newest commit). ``columns``: the names to return, in order, None for all. ``committed``: which
    log blocks count. ``missing``: values of columns that files lack, such as partition columns that
    writers dropped; other missing columns are null. ``compacts``: a compaction reads, which merges
    every row of a base file, while readers of Hudi 0.x merge the first of those with equal keys.
    ``codes_texts``: text columns may come as dictionaries (``repeated_texts``) from slices without
    log files, one slice unlike the other.
    """

    rules: MergeRules
    schema: pa.Schema
    committed: CommittedInstants = field(default_factory=CommittedInstants)
    columns: tuple[str, ...] | None = None
    missing: Mapping[str, Any] = field(default_factory=dict)
    compacts: bool = False
    codes_texts: bool = False

    @property
    def merges_every_row(self) -> bool:
        """Return whether of base rows with equal keys each is merged.

        Hudi 1.x finds base rows by their numbers (PositionBasedFileGroupRecordBuffer), and the
        compactions of 0.x and 1.0 look each row's key up (HoodieMergeHandle).
        """
        return self.compacts or not self.rules.precombines

    @property
    def wanted(self) -> WantedColumns:
        names = self.schema.names if self.columns is None else self.columns
        columns = pa.schema([self.schema.field(name) for name in names])
        return WantedColumns(table=self.schema, columns=columns, missing=self.missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroupShare:
    """One of ``count`` parts of a base file: the row groups whose middle is in part ``index``."""

    index: int = 0
    count: int = 1

    def select_groups(self, footer: Any) -> list[int]:
        """Return the numbers of its row groups, by the file's footer.

        All shares together have each row group once.
        """
        ends = _row_group_ends(footer)
        middles = (ends[:-1] + ends[1:]) / 2
        part = np.minimum(middles * self.count, self.count - 1).astype(np.int64)
        return np.flatnonzero(part == self.index).tolist()

    def byte_span(self, footer: Any) -> tuple[float, float]:
        """Return the span of its row groups among all bytes, between 0 and 1."""
        groups, ends = self.select_groups(footer), _row_group_ends(footer)
        return (float(ends[groups[0]]), float(ends[groups[-1] + 1])) if groups else (0.0, 0.0)


def _row_group_ends(footer: Any) -> Floats:
    """Return where row groups end, as shares of all bytes, with 0 in front."""
    sizes = [footer.row_group(group).total_byte_size for group in range(footer.num_row_groups)]
    ends: Floats = np.cumsum([0, *sizes]) / max(sum(sizes), 1)
    return ends


_ALL: Final = RowGroupShare()


def read_slice(  # noqa: PLR0913 (parts of a file, and what hears of it)
    files: SliceFiles,
    options: SliceReadOptions,
    source: SliceSource,
    *,
    share: RowGroupShare = _ALL,
    on_footer: Callable[[Any], None] | None = None,
    select_row_groups: Callable[[Any], Mask] | None = None,
    counts: MergeCounts | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a slice as a snapshot query sees them, in batches of the wanted columns.

    ``share``: lets several workers read one large base file that has no log files. ``on_footer``
    receives the base file's FileMetaData before its rows. ``select_row_groups`` returns which row
    groups to read; it is not called for slices with log files. ``counts`` is complete after the
    last row.

    Dates in the hybrid calendar are converted to the proleptic one. For a read-optimised query,
    pass a slice without logs. Raises FormatError for damage and UnsupportedError for what cannot be
    merged. Errors of log files and of the base file's schema come before the first row.
    """
    wanted = options.wanted
    if files.base is not None:
        _check_not_skeleton(files.base)
    blocks = read_committed_blocks(files.logs, source.read, options.committed, counts)
    if blocks and options.rules.refusal:
        raise UnsupportedError(f"{options.rules.refusal}; its log files cannot be read")
    logs = merge_log_blocks(blocks, options.rules, wanted, counts)
    merge = _BaseFileMerge(options, wanted, logs, *_start_outcome(len(logs)))
    if files.base is not None:
        hears = _FooterHandling(
            share,
            on_footer,
            None if files.logs else select_row_groups,
            codes_texts=options.codes_texts and not files.logs,
        )
        yield from merge.read_base_rows(files.base, files.base_size, source, hears)
    yield from merge.read_remaining_log_rows()
    if counts is not None:
        counts.add_outcome(logs.row, merge.outcome, merge.wins)


def _start_outcome(keys: int) -> tuple[NDArray[np.int8], Integers]:
    return np.full(keys, -1, np.int8), np.zeros(keys, np.int64)


def _check_not_skeleton(path: str) -> None:
    name = BaseName.parse(path.rpartition("/")[2])
    if name is not None and name.instant == _SKELETON_INSTANT:
        raise UnsupportedError(
            f"{path}: is a bootstrap skeleton, whose data is outside the table; rewrite its "
            "partition with Hudi to read it, for example by clustering"
        )


@dataclass(frozen=True, slots=True)
class _FooterHandling:
    """The handling of a base file's footer; see ``read_slice``."""

    share: RowGroupShare
    on_footer: Callable[[Any], None] | None
    select_row_groups: Callable[[Any], Mask] | None
    codes_texts: bool

    def select_groups(self, metadata: Any) -> list[int]:
        """Return the row groups to read."""
        if self.on_footer is not None:
            self.on_footer(metadata)
        groups = self.share.select_groups(metadata)
        if self.select_row_groups is None:
            return groups
        is_selected = self.select_row_groups(metadata)
        return [group for group in groups if is_selected[group]]


@dataclass(frozen=True, slots=True)
class _BaseFileMerge:
    """Merges the base file with the log records.

    ``outcome``: per key of the logs, -1 until the base file shows the key, then 1 if the log record
    won over a row, 0 if it won over none. ``wins``: over how many rows it won.
    """

    options: SliceReadOptions
    wanted: WantedColumns
    logs: LogRecords
    outcome: NDArray[np.int8]
    wins: Integers

    @property
    def rules(self) -> MergeRules:
        return self.options.rules

    def read_base_rows(
        self,
        path: str,
        size: int,
        source: SliceSource,
        footer: _FooterHandling,
    ) -> Iterator[Any]:
        """Yield the rows of the base file that remain."""
        with reading_parquet(path):
            file = open_parquet(source, path, size, pre_buffer=True)
            groups, columns = footer.select_groups(file.metadata), self.wanted.columns
            if footer.codes_texts and (
                coded := find_repeated_texts(file.metadata, groups, columns)
            ):
                known = {"metadata": file.metadata, "read_dictionary": coded}
                file = open_parquet(source, path, size, pre_buffer=True, **known)
                columns = code_texts(columns, coded)
            for group in groups:
                yield from self._read_group(file, group, path, columns)

    def _read_group(
        self, file: Any, group: int, path: str, columns: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a row group; ``columns``: the wanted ones, as they are read."""
        is_dropped = self._find_dropped_rows(file, group, path)
        known = frozenset(columns.names)
        names = [name for name in file.schema_arrow.names if name in known]
        batches = file.iter_batches(_BATCH_ROWS, row_groups=[group], columns=names)
        calendar = Calendar.from_footer(file.metadata.metadata)
        start = 0
        for batch in batches:
            end = start + len(batch)
            rows = batch
            if is_dropped is not None:
                dropped_here = is_dropped[start:end]
                rows = batch if not dropped_here.any() else batch.filter(to_arrow(~dropped_here))
            start = end
            if len(rows):
                if calendar.kind == "hybrid":  # Spark's reader does so with any settings
                    rows = convert_calendar(rows, calendar, PROLEPTIC, path)
                yield evolve_batch(rows, columns, path, self.wanted.missing)

    def _find_dropped_rows(self, file: Any, group: int, path: str) -> Mask | None:
        """Return per row of a row group whether the logs replace it; None if all stay."""
        if not len(self.logs):
            return None
        names = [name for name in file.schema_arrow.names if name in self.rules.columns]
        rule_columns = file.read_row_group(group, columns=names).combine_chunks()
        if not len(rule_columns):
            return None
        (batch,) = rule_columns.to_batches()
        rows, keys = find_keys(batch, self.logs.keys, self.rules, path)
        if not self.options.merges_every_row:
            keys, first = np.unique(keys, return_index=True)
            rows, is_first = rows[first], self.outcome[keys] < 0
            keys, rows = keys[is_first], rows[is_first]
        fields = find_ordering_fields(self.rules, self.wanted.table)
        deciding = {} if self.rules.overwrites else fields
        is_won = find_winners(self.logs, (rows, keys), batch, deciding, path)
        np.maximum.at(self.outcome, keys, is_won)
        np.add.at(self.wins, keys, is_won)
        is_dropped = np.zeros(len(batch), np.bool_)
        is_dropped[rows[is_won]] = True
        return is_dropped

    def read_remaining_log_rows(self) -> Iterator[Any]:
        """Yield the log records that the base file does not have, and those that won over rows.

        One that won over several rows with its key takes the place of each of them.
        """
        times, table = np.where(self.outcome < 0, 1, self.wins), self.logs.table
        is_record = self.logs.row >= 0
        copies = np.zeros(len(table), np.int64)
        copies[self.logs.row[is_record]] = times[is_record]
        if (copies > 1).any():
            table = table.take(to_arrow(np.repeat(np.arange(len(table)), copies)))
        elif (copies == 0).any():
            table = table.filter(to_arrow(copies > 0))
        yield from (batch for batch in _split_batches(table) if len(batch))


def _split_batches(table: Any) -> Iterable[Any]:
    batches: list[Any] = table.to_batches(max_chunksize=_BATCH_ROWS)
    return batches
