"""Split the rows of a part into runs for the new files of its group: what a map task does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from reconciler.arrays import Codes, to_arrow
from reconciler.errors import FormatError, UnsupportedError
from reconciler.file_slices.merge.calendar import PROLEPTIC, UNSPECIFIED, Calendar, convert_calendar
from reconciler.file_slices.merge.slice_reader import SliceSource
from reconciler.layout.curves.lanes import Lane
from reconciler.layout.curves.row_layout import RowLayout, assign_files, compute_keys
from reconciler.layout.curves.sorted_sample import sort_rows
from reconciler.lazy_dataclass import dataclass
from reconciler.rewrite.group_columns import GroupColumns, tally_hashes
from reconciler.rewrite.model import RewriteJob, Tally
from reconciler.rewrite.runs import DateCalendar, Run, append_keys
from reconciler.rewrite.slice_parts import SlicePart

#: bytes in Arrow's memory that are collected before they are split into runs
RUN_BYTES: Final = 24 * 1024 * 1024


def build_runs(
    part: SlicePart,
    job: RewriteJob,
    layout: RowLayout | None,
    source: SliceSource,
    *,
    run_bytes: int = RUN_BYTES,
) -> Iterator[Run]:
    """Yield the rows of a part as runs; the last run has the tally of all rows.

    ``layout``: the group's, None if rows keep their order. Memory: three times ``run_bytes``, and
    what ``read_slice`` needs. Raises as it does.
    """
    columns = GroupColumns.from_job(job, part.group)
    builder = _RunBuilder(part=part, columns=columns, layout=layout)
    batches: Iterable[Any] = columns.read(part, source, builder.read_footer)
    if layout is None and part.files.base is None:
        batches = list(batches)  # merged log records are in memory anyway
        builder.expected_rows = sum(map(len, batches))
    for rows in batches:
        builder.add(rows)
        if builder.size >= run_bytes:
            yield from builder.take_runs()
    yield from builder.take_runs()
    builder.check_row_count()
    yield Run(part=part.number, number=builder.number, file=0, tally=builder.tally)


@dataclass(slots=True, kw_only=True)
class _RunBuilder:
    """Rows of a part that are not yet in a run."""

    part: SlicePart
    columns: GroupColumns
    layout: RowLayout | None
    size: int = 0
    number: int = 0
    tally: Tally = Tally()
    _rows: list[Any] = field(default_factory=list)
    _lanes: list[Lane] = field(default_factory=list)
    _files: list[Codes] = field(default_factory=list)
    _calendar: DateCalendar = "none"
    _span: tuple[float, float] | None = None
    #: rows of this part, as far as known before they are read
    expected_rows: int = 0

    def read_footer(self, footer: Any) -> None:
        """Take calendar, position and row count from the base file's footer."""
        is_undeclared = Calendar.from_footer(footer.metadata).kind == "unspecified"
        self._calendar = "unsaid" if is_undeclared else "proleptic"
        groups = self.part.share.select_groups(footer)
        self._span = self.part.span(footer)
        self.expected_rows = sum(footer.row_group(group).num_rows for group in groups)

    def add(self, rows: Any) -> None:
        if self._calendar == "unsaid" and _has_old_dates(rows):
            self._calendar = "old"
        hashes = self.columns.hash_keys(rows)
        if self.layout is None:
            file, lanes = self._keep_order(len(rows))
        else:
            ordering = self.columns.select_ordering(rows, self.part.group)
            ties = hashes if self.layout.needs_ties else None
            lanes = compute_keys(self.layout, ordering, ties=ties)
            file = assign_files(self.layout, lanes, ties=ties)
        self.tally = self.tally.add(tally_hashes(hashes))
        self._rows.append(rows)
        self._lanes.append(lanes)
        self._files.append(file)
        self.size += rows.nbytes

    def check_row_count(self) -> None:
        """Raise FormatError if a file without logs gave other rows than its footer declares.

        Later checks compare what is written with what was read, so a row that is missed here is
        lost.
        """
        files, rows = self.part.files, self.tally.rows
        if files.base is not None and not files.logs and rows != self.expected_rows:
            raise FormatError(
                files.base, f"its footer declares {self.expected_rows} rows, but {rows} were read"
            )

    def _keep_order(self, count: int) -> tuple[Codes, Lane]:
        """Assign rows to files by their position in the group's bytes; the key is their origin."""
        part, outputs = self.part, self.part.group.outputs
        positions = self.tally.rows + np.arange(count)
        share = (positions + 0.5) / max(self.expected_rows, 1)
        begin, end = self._span or part.span(None)
        position = begin + np.minimum(share, 1.0) * (end - begin)
        file = np.minimum((position * outputs).astype(np.int32), outputs - 1)
        first = np.uint64(part.number) << np.uint64(40)
        return file, (first + positions.astype(np.uint64))[np.newaxis]

    def take_runs(self) -> Iterator[Run]:
        """Yield the collected rows, one run per file."""
        if not self._rows:
            return
        table = pa.Table.from_batches(self._rows).combine_chunks()
        self._rows.clear()
        (rows,) = table.to_batches()
        del table
        file = np.concatenate(self._files)
        lanes = np.concatenate(self._lanes, axis=1)
        self._files.clear()
        self._lanes.clear()
        order = sort_rows([file.astype(np.uint64)])
        ends = np.cumsum(np.bincount(file))
        rows = rows.take(to_arrow(order))
        lanes = lanes[:, order]
        start = 0
        for number, end in enumerate(ends.tolist()):
            if end > start:
                part_rows = rows.slice(start, end - start)
                yield Run(
                    part=self.part.number,
                    number=self.number,
                    file=number,
                    size=max(1, part_rows.nbytes + lanes[:, start:end].nbytes),
                    calendar=self._calendar,
                    data=append_keys(part_rows, lanes[:, start:end]),
                )
            start = end
        self.number += 1
        self.size = 0


def _has_old_dates(rows: Any) -> bool:
    """Return True if the rows have dates for which the calendar matters."""
    try:
        convert_calendar(rows, UNSPECIFIED, PROLEPTIC, "")
    except UnsupportedError:
        return True
    return False
