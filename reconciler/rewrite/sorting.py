"""Sort all rows of one new file: what a reduce task begins with.

Rows that fit into memory are sorted there. Otherwise sorted files go to the local disk and are
merged batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from reconciler.arrays import Integers, to_arrow
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.file_slices.merge.calendar import PROLEPTIC, UNSPECIFIED, Calendar
from reconciler.file_slices.merge.repeated_texts import decode_unlike
from reconciler.layout.curves.lanes import Lane
from reconciler.layout.curves.row_layout import RowLayout, row_group_starts, sort_by_key
from reconciler.rewrite.model import Tally
from reconciler.rewrite.runs import DateCalendar, Run, append_keys, make_ipc_options, split_keys

#: bytes of rows that are sorted in Arrow's memory at a time
SORT_BYTES: Final = 256 * 1024 * 1024
#: bytes of each sorted file's rows that are in memory during the merge
_MERGE_BYTES: Final = 4 * 1024 * 1024


class SortedRows(Protocol):
    """The rows of a file in order; they can be iterated several times."""

    @property
    def rows(self) -> int:
        """Number of rows."""

    @property
    def size(self) -> int:
        """Bytes in Arrow's memory."""

    def row_group_starts(self, first: int, last: int, form: BaseFileSettings) -> Integers:
        """Return where row groups begin among rows ``first`` to ``last`` of a file, and the end."""

    def batches(self, ends: Integers) -> Iterator[pa.RecordBatch]:
        """Yield all rows in batches; no batch crosses one of the positions ``ends``."""


class RowSorter:
    """Collects the runs of one file in any order; ``folder``: an empty local folder.

    ``read`` and ``parts``: tally of the rows, and number of parts, whose last run has come. Memory:
    twice ``sort_bytes`` and one run; eight bytes a row if more rows come.
    """

    def __init__(
        self, layout: RowLayout | None, folder: Path, *, sort_bytes: int = SORT_BYTES
    ) -> None:
        self.read, self.parts = Tally(), 0
        self.calendars: set[DateCalendar] = set()
        self._layout, self._folder, self._most = layout, folder, sort_bytes
        self._runs: list[Run] = []
        self._size = 0
        self._spill_paths: list[Path] = []
        self._spilled_bytes = 0
        self._rows = 0

    def add(self, run: Run) -> None:
        self.read = self.read.add(run.tally)
        if not run.size:  # the last one of its part
            self.parts += 1
            return
        self.calendars.add(run.calendar)
        self._runs.append(run)
        self._size += run.size
        if self._size > self._most:
            self._spill()

    def finish(self) -> SortedRows:
        """Return the sorted rows, after all runs have come."""
        if not self._spill_paths:
            rows, lanes = self._take_rows()
            return SortedInMemory(rows, lanes, self._layout)
        self._spill()
        return SortedOnDisk(self._spill_paths, self._rows, self._spilled_bytes)

    def _take_rows(self) -> tuple[pa.RecordBatch | None, Lane]:
        """Return and forget the collected rows, in the order in which they were read."""
        runs = sorted(self._runs, key=lambda run: (run.part, run.number))
        self._runs, self._size = [], 0
        batches = [batch for run in runs for batch in run.read_batches()]
        del runs
        return _combine(batches)

    def _spill(self) -> None:
        rows, lanes = self._take_rows()
        if rows is None:
            return
        self._rows += len(rows)
        self._spilled_bytes += rows.nbytes
        path = self._folder / f"stretch-{len(self._spill_paths)}"
        self._spill_paths.append(path)
        step = max(1, len(rows) * _MERGE_BYTES // max(rows.nbytes, 1))
        in_order = sort_by_key(lanes)
        schema = append_keys(rows.slice(0, 0), lanes[:, :0]).schema
        with pa.OSFile(str(path), "wb") as sink, _open_stream(sink, schema) as writer:
            for start in range(0, len(rows), step):
                part = in_order[start : start + step]
                writer.write_batch(append_keys(rows.take(to_arrow(part)), lanes[:, part]))


def _open_stream(sink: Any, schema: Any) -> Any:
    return pa.ipc.new_stream(sink, schema, options=make_ipc_options(compressed=True))


def _combine(batches: list[pa.RecordBatch]) -> tuple[pa.RecordBatch | None, Lane]:
    """Combine batches into one and separate its sort keys; the list is emptied."""
    if not batches:
        return None, np.zeros((1, 0), np.uint64)
    table = pa.Table.from_batches(decode_unlike(batches))
    batches.clear()
    (batch,) = table.combine_chunks().to_batches() or [None]
    if batch is None:
        return None, np.zeros((1, 0), np.uint64)
    return split_keys(batch)


def choose_calendar(calendars: Iterable[DateCalendar], otherwise: Calendar) -> Calendar | None:
    """Return the calendar of a file from the calendars of its rows; None if they conflict.

    ``otherwise``: what the table's files declare, for rows of logs alone.

    >>> choose_calendar({"none", "unsaid"}, PROLEPTIC).kind
    'unspecified'
    >>> choose_calendar({"old", "proleptic"}, UNSPECIFIED) is None
    True
    """
    kinds = set(calendars) - {"none"}
    if "proleptic" in kinds:
        return None if "old" in kinds else PROLEPTIC
    if kinds:
        return UNSPECIFIED
    return UNSPECIFIED if otherwise == UNSPECIFIED else PROLEPTIC


def count_row_groups(rows: int, size: int, form: BaseFileSettings) -> int:
    """Return how many row groups keep each within the limits, even if it is a quarter longer.

    >>> form = BaseFileSettings(group_rows=1000, group_bytes=1000, least_group_rows=100)
    >>> [count_row_groups(rows, 4000, form) for rows in (4000, 1000, 200)]
    [5, 5, 3]
    """
    by_rows = _count_with_reserve(rows, form.group_rows)
    by_bytes = _count_with_reserve(size, form.group_bytes)
    few = max(rows // form.least_group_rows, _count_with_reserve(size, form.most_group_bytes))
    return max(1, by_rows, min(by_bytes, few))


def _count_with_reserve(amount: int, limit: int) -> int:
    return -(-amount * 5 // (limit * 4))


class SortedInMemory:
    """Rows in memory; a row group at a time is put in order."""

    def __init__(self, rows: pa.RecordBatch | None, lanes: Lane, layout: RowLayout | None) -> None:
        self._taken, self._layout = rows, layout
        self._order = sort_by_key(lanes)
        self._lanes = lanes[:, self._order]
        self.rows = lanes.shape[1]
        self.size = 0 if rows is None else int(rows.nbytes)

    def row_group_starts(self, first: int, last: int, form: BaseFileSettings) -> Integers:
        rows = last - first
        count = count_row_groups(rows, self.size * rows // max(self.rows, 1), form)
        if self._layout is None:
            return _split_evenly(rows, count)
        return row_group_starts(self._layout, self._lanes[:, first:last], count)

    def batches(self, ends: Integers) -> Iterator[pa.RecordBatch]:
        start = 0
        for end in ends.tolist():
            if end > start and self._taken is not None:
                yield self._taken.take(to_arrow(self._order[start:end]))
            start = end


class SortedOnDisk:
    """Sorted files on disk, merged whenever the rows are iterated."""

    def __init__(self, stretches: Sequence[Path], rows: int, size: int) -> None:
        self._stretches = stretches
        self.rows, self.size = rows, size

    def row_group_starts(self, first: int, last: int, form: BaseFileSettings) -> Integers:
        rows = last - first
        return _split_evenly(
            rows, count_row_groups(rows, self.size * rows // max(self.rows, 1), form)
        )

    def batches(self, ends: Integers) -> Iterator[pa.RecordBatch]:
        position = 0
        for rows in self._merge():
            start = 0
            while start < len(rows):
                end = int(ends[np.searchsorted(ends, position, "right")])
                count = min(end - position, len(rows) - start)
                yield rows.slice(start, count)
                start += count
                position += count

    def _merge(self) -> Iterator[pa.RecordBatch]:
        """Merge up to the smallest last key of the open batches, repeatedly."""
        files = [_SortedFile(path) for path in self._stretches]
        try:
            while open_files := [file for file in files if file.fill()]:
                end_key = min(file.last for file in open_files)
                batches = [file.take(end_key) for file in open_files]
                rows, lanes = _combine([batch for batch in batches if len(batch)])
                assert rows is not None, "the shortest batch goes whole"
                yield rows.take(to_arrow(sort_by_key(lanes)))
        finally:
            for file in files:
                file.close()


class _SortedFile:
    """One sorted file, with its current batch."""

    def __init__(self, path: Path) -> None:
        self._file = pa.OSFile(str(path), "rb")
        self._reader = pa.ipc.open_stream(self._file)
        self._batch: pa.RecordBatch | None = None
        self._lanes: Lane = np.zeros((1, 0), np.uint64)

    def fill(self) -> bool:
        """Read the next batch if the current one is used up; returns whether there are rows."""
        while self._batch is None or not len(self._batch):
            try:
                self._batch = self._reader.read_next_batch()
            except StopIteration:
                self._batch = None
                return False
            _, self._lanes = split_keys(self._batch)
        return True

    @property
    def last(self) -> tuple[int, ...]:
        """The key of the current batch's last row."""
        return tuple(self._lanes[:, -1].tolist())

    def take(self, end_key: tuple[int, ...]) -> pa.RecordBatch:
        """Return the current rows whose keys are not greater than the given one."""
        assert self._batch is not None
        count = _count_up_to(self._lanes, end_key)
        batches = self._batch.slice(0, count)
        self._batch, self._lanes = self._batch.slice(count), self._lanes[:, count:]
        return batches

    def close(self) -> None:
        self._file.close()


def _count_up_to(lanes: Lane, end_key: tuple[int, ...]) -> int:
    """Return how many of the sorted keys are at most a bound, lane by lane."""
    low, high = 0, int(lanes.shape[1])
    for lane, bound in zip(lanes, end_key, strict=True):
        candidates = lane[low:high]
        left = low + int(np.searchsorted(candidates, np.uint64(bound), "left"))
        right = low + int(np.searchsorted(candidates, np.uint64(bound), "right"))
        if left == right:
            return left
        low, high = left, right
    return high


def _split_evenly(rows: int, count: int) -> Integers:
    return np.arange(count + 1) * rows // count
