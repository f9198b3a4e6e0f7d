"""New rows of a bucket on their way into its files: stamped, counted, a small step at a time."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any, Final

import pyarrow as pa

from reconciler.basefile.stamp import COMMIT_TIME, FILE_NAME, SEQUENCE, Stamp
from reconciler.basefile.writer import BaseFileWriter

#: a file may be so many times the target, as Hudi's writers allow too,
MOST: Final = 1.15
#: and takes new rows up to so many times: its size is only estimated until it is closed
FULL: Final = 1.08
#: of a file, in Arrow's memory: what is written between two looks at its size
_STEP: Final = 0.02
#: rows that any file takes, as far as they are no more than it may have
_FEWEST: Final = 64
#: of the target: what has to be left for rows beside the filter, which may be more alone
_SPARE: Final = 0.1
#: bytes of Arrow's memory that the columns of the write itself add to a row
_STAMPED: Final = 64


class Incoming:
    """``batches`` of rows with keys and paths; ``columns``: of the files, meta columns included.

    ``target``: bytes of a file.
    """

    def __init__(
        self, batches: Iterable[Any], *, stamp: Stamp, columns: pa.Schema, target: int
    ) -> None:
        self._stamp, self._columns, self._target = stamp, columns, target
        self._batches = iter(batches)
        self._count = 0
        self._waiting: Any = None
        self._fetch()

    @property
    def has_more(self) -> bool:
        """Whether a row is left."""
        return self._waiting is not None

    def into(self, file: BaseFileWriter, full: float) -> int:
        """Rows until the file has about ``full`` bytes, at least one in an empty file; how many.

        It goes on as far as files may where that takes all that is left: a few rows would begin a
        small file otherwise. A row that is too wide for the file is left to the next one.
        """
        most = full * MOST / FULL
        taken, has_all = 0, False
        while self._waiting is not None:
            rows, room = self._waiting, file.room(full)
            step = max(room, _STEP * self._target)
            count = _first(rows, step)
            if not file.rows:
                count = max(count, _first(rows.slice(0, _FEWEST), self._floor(file)))
            elif not room and not has_all and file.estimated_bytes >= full:
                has_all = self._fits(file, most)
                if not has_all:
                    break
            elif not has_all and self._is_too_wide(file, step, most):
                break
            file.write(self._stamped(rows.slice(0, count)))
            taken += count
            self._waiting = rows.slice(count) if count < len(rows) else None
            if self._waiting is None:
                self._fetch()
        return taken

    def stamped_table(self, table: Any) -> Any:
        """Records with the columns that this write gives them."""
        batches = table.combine_chunks().to_batches()
        return pa.Table.from_batches([self._stamped(batch) for batch in batches], self._columns)

    def _is_too_wide(self, file: BaseFileWriter, step: float, most: float) -> bool:
        """Whether the next row alone, one of more than ``step`` bytes, would be too much."""
        row = self._waiting.slice(0, 1)
        return row.nbytes > step and _after(file, _memory(row)) > most

    def _fits(self, file: BaseFileWriter, most: float) -> bool:
        """Whether the file with all that is left has no more bytes; looks at little more."""
        arrow, ahead = _memory(self._waiting), []
        while fits := _after(file, arrow) <= most:
            batch = next(self._batches, None)
            if batch is None:
                break
            ahead.append(batch)
            arrow += _memory(batch)
        self._batches = chain(ahead, self._batches)
        return fits

    def _floor(self, file: BaseFileWriter) -> int:
        """Bytes that an empty file takes, whatever else is known: all that it may have.

        Where its filter leaves it next to nothing it becomes too big, rather than one of thousands.
        """
        left = file.room(MOST * self._target)
        return left if left >= _SPARE * self._target else self._target

    def _stamped(self, batch: Any) -> Any:
        """Rows with all columns of the table, commit time and sequence number this write's."""
        columns = []
        for wanted in self._columns:
            match wanted.name:
                case name if name == COMMIT_TIME:
                    column = pa.repeat(pa.scalar(self._stamp.instant, wanted.type), len(batch))
                case name if name == SEQUENCE:
                    column = self._stamp.sequence(self._count, len(batch))
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
        self._waiting = next((batch for batch in self._batches if len(batch)), None)


def _memory(rows: Any) -> int:
    """Bytes of Arrow's memory that rows have once they are stamped."""
    return int(rows.nbytes) + _STAMPED * len(rows)


def _after(file: BaseFileWriter, arrow: int) -> int:
    """About the bytes of the file with so many of Arrow's memory more."""
    return file.estimated_bytes + file.encoded(arrow)


def _first(rows: Any, most: float) -> int:
    """How many of the first rows have no more than so many bytes, at least one."""
    count = len(rows)
    while count > 1 and (size := rows.slice(0, count).nbytes) > most:
        count = max(min(int(count * most / size), count - 1), 1)
    return count
