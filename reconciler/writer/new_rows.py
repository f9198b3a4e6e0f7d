"""New rows of a bucket on their way into its files: stamped, counted, a small step at a time."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any, Final

import pyarrow as pa

from reconciler.file_slices.base_file.local_file import MAX_FACTOR
from reconciler.file_slices.base_file.meta_columns import (
    COMMIT_TIME,
    FILE_NAME,
    SEQUENCE,
    CommitStamp,
)
from reconciler.file_slices.base_file.writer import BaseFileWriter

#: a file takes new rows up to this multiple of its target; its size is an estimate until it is closed
FILL_FACTOR: Final = 1.08
#: of a file, in Arrow's memory: what is written between two looks at its size
_STEP_SHARE: Final = 0.02
#: rows that any file takes, as far as they are no more than it may have
_MIN_ROWS: Final = 64
#: of the target: what has to be left for rows beside the filter, which may be more alone
_MIN_SHARE: Final = 0.1
#: bytes of Arrow's memory that the columns of the write itself add to a row
_STAMP_BYTES: Final = 64


class NewRows:
    """``batches`` of rows with keys and paths; ``columns``: of the files, meta columns included.

    ``target``: bytes of a file.
    """

    def __init__(
        self, batches: Iterable[Any], *, stamp: CommitStamp, columns: pa.Schema, target: int
    ) -> None:
        self._stamp, self._columns, self._target = stamp, columns, target
        self._batches = iter(batches)
        self._count = 0
        self._current: Any = None
        self._fetch()

    @property
    def has_more(self) -> bool:
        """Whether a row is left."""
        return self._current is not None

    def write_into(self, file: BaseFileWriter, full: float) -> int:
        """Rows until the file has about ``full`` bytes, at least one in an empty file; how many.

        It goes on as far as files may where that takes all that is left: a few rows would begin a
        small file otherwise. A row that is too wide for the file is left to the next one.
        """
        most = full * MAX_FACTOR / FILL_FACTOR
        taken, has_all = 0, False
        while self._current is not None:
            rows, room = self._current, file.free_bytes(full)
            step = max(room, _STEP_SHARE * self._target)
            count = _count_fitting(rows, step)
            if not file.rows:
                count = max(count, _count_fitting(rows.slice(0, _MIN_ROWS), self._min_bytes(file)))
            elif not room and not has_all and file.estimated_bytes >= full:
                has_all = self._fits_rest(file, most)
                if not has_all:
                    break
            elif not has_all and self._is_too_wide(file, step, most):
                break
            file.write(self._stamp_batch(rows.slice(0, count)))
            taken += count
            self._current = rows.slice(count) if count < len(rows) else None
            if self._current is None:
                self._fetch()
        return taken

    def stamp_table(self, table: Any) -> Any:
        """Records with the columns that this write gives them."""
        batches = table.combine_chunks().to_batches()
        return pa.Table.from_batches([self._stamp_batch(batch) for batch in batches], self._columns)

    def _is_too_wide(self, file: BaseFileWriter, step: float, most: float) -> bool:
        """Whether the next row alone, one of more than ``step`` bytes, would be too much."""
        row = self._current.slice(0, 1)
        return row.nbytes > step and _estimate_size(file, _estimate_memory(row)) > most

    def _fits_rest(self, file: BaseFileWriter, most: float) -> bool:
        """Whether the file with all that is left has no more bytes; looks at little more."""
        arrow, ahead = _estimate_memory(self._current), []
        while fits := _estimate_size(file, arrow) <= most:
            batch = next(self._batches, None)
            if batch is None:
                break
            ahead.append(batch)
            arrow += _estimate_memory(batch)
        self._batches = chain(ahead, self._batches)
        return fits

    def _min_bytes(self, file: BaseFileWriter) -> int:
        """Bytes that an empty file takes, whatever else is known: all that it may have.

        Where its filter leaves it next to nothing it becomes too big, rather than one of thousands.
        """
        left = file.free_bytes(MAX_FACTOR * self._target)
        return left if left >= _MIN_SHARE * self._target else self._target

    def _stamp_batch(self, batch: Any) -> Any:
        """Rows with all columns of the table, commit time and sequence number this write's."""
        columns = []
        for wanted in self._columns:
            match wanted.name:
                case name if name == COMMIT_TIME:
                    column = pa.repeat(pa.scalar(self._stamp.instant, wanted.type), len(batch))
                case name if name == SEQUENCE:
                    column = self._stamp.build_sequence_numbers(self._count, len(batch))
                case name if name == FILE_NAME:
                    column = pa.nulls(len(batch), wanted.type)  # the file's writer fills it in
                case name:
                    column = batch.column(name)
                    if pa.types.is_dictionary(column.type):
                        column = column.dictionary_decode()
            columns.append(column.cast(wanted.type))
        self._count += len(batch)
        return pa.RecordBatch.from_arrays(columns, schema=self._columns)

    def _fetch(self) -> None:
        self._current = next((batch for batch in self._batches if len(batch)), None)


def _estimate_memory(rows: Any) -> int:
    """Bytes of Arrow's memory that rows have once they are stamped."""
    return int(rows.nbytes) + _STAMP_BYTES * len(rows)


def _estimate_size(file: BaseFileWriter, arrow: int) -> int:
    """About the bytes of the file with so many of Arrow's memory more."""
    return file.estimated_bytes + file.estimate_encoded(arrow)


def _count_fitting(rows: Any, most: float) -> int:
    """How many of the first rows have no more than so many bytes, at least one."""
    count = len(rows)
    while count > 1 and (size := rows.slice(0, count).nbytes) > most:
        count = max(min(int(count * most / size), count - 1), 1)
    return count
