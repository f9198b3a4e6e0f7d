"""Write new rows of a bucket into its files: stamp them, count them, in small steps."""

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

#: files take new rows up to this multiple of the target, as sizes are estimates until the end
FILL_FACTOR: Final = 1.08
#: share of the target, in Arrow's memory, that is written between two size checks
_STEP_SHARE: Final = 0.02
#: rows that any file takes, unless they exceed its limit
_MIN_ROWS: Final = 64
#: share of the target that must remain for rows beside the bloom filter
_MIN_SHARE: Final = 0.1
#: bytes that the write's own columns add to a row in Arrow's memory
_STAMP_BYTES: Final = 64


class NewRows:
    """Batches of rows with keys and paths, on their way into files.

    ``columns``: the files' columns, meta columns included. ``target``: bytes of a file.
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
        """True if rows are left."""
        return self._current is not None

    def write_into(self, file: BaseFileWriter, full: float) -> int:
        """Write rows until the file has about ``full`` bytes, at least one; returns how many.

        The limit is higher if all remaining rows then fit, because a few rows would start a
        small file otherwise. A row that is too wide for the file is left to the next one.
        """
        max_bytes = full * MAX_FACTOR / FILL_FACTOR
        taken, takes_rest = 0, False
        while self._current is not None:
            rows, free = self._current, file.free_bytes(full)
            step = max(free, _STEP_SHARE * self._target)
            count = _count_fitting(rows, step)
            if not file.rows:
                count = max(count, _count_fitting(rows.slice(0, _MIN_ROWS), self._min_bytes(file)))
            elif not free and not takes_rest and file.estimated_bytes >= full:
                takes_rest = self._fits_rest(file, max_bytes)
                if not takes_rest:
                    break
            elif not takes_rest and self._is_too_wide(file, step, max_bytes):
                break
            file.write(self._stamp_batch(rows.slice(0, count)))
            taken += count
            self._current = rows.slice(count) if count < len(rows) else None
            if self._current is None:
                self._fetch()
        return taken

    def stamp_table(self, table: Any) -> Any:
        """Return records with the meta columns of this write."""
        batches = table.combine_chunks().to_batches()
        return pa.Table.from_batches([self._stamp_batch(batch) for batch in batches], self._columns)

    def _is_too_wide(self, file: BaseFileWriter, step: float, max_bytes: float) -> bool:
        """True if the next row alone has more than ``step`` bytes and would exceed the limit."""
        row = self._current.slice(0, 1)
        return row.nbytes > step and _estimate_size(file, _estimate_memory(row)) > max_bytes

    def _fits_rest(self, file: BaseFileWriter, max_bytes: float) -> bool:
        """True if the file can take all remaining rows; reads little more than it needs."""
        memory, lookahead = _estimate_memory(self._current), []
        while fits := _estimate_size(file, memory) <= max_bytes:
            batch = next(self._batches, None)
            if batch is None:
                break
            lookahead.append(batch)
            memory += _estimate_memory(batch)
        self._batches = chain(lookahead, self._batches)
        return fits

    def _min_bytes(self, file: BaseFileWriter) -> int:
        """Return the bytes that an empty file takes in any case.

        Where the bloom filter leaves almost nothing, the file becomes too large, instead of
        thousands of files.
        """
        free_share = file.free_bytes(MAX_FACTOR * self._target)
        return free_share if free_share >= _MIN_SHARE * self._target else self._target

    def _stamp_batch(self, batch: Any) -> Any:
        stamped = stamp_rows(batch, self._stamp, self._columns, self._count)
        self._count += len(batch)
        return stamped

    def _fetch(self) -> None:
        self._current = next((batch for batch in self._batches if len(batch)), None)


def stamp_rows(batch: Any, stamp: CommitStamp, columns: pa.Schema, first: int) -> Any:
    """Return rows with all columns of the table, and a write's commit time and numbers.

    ``first``: the number of the first row among all rows of its task.
    """
    stamped = {
        COMMIT_TIME: pa.repeat(pa.scalar(stamp.instant, pa.string()), len(batch)),
        SEQUENCE: stamp.build_sequence_numbers(first, len(batch)),
        FILE_NAME: pa.nulls(len(batch), pa.string()),  # the file's writer fills it in
    }
    arrays = []
    for field in columns:
        column = stamped[field.name] if field.name in stamped else batch.column(field.name)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        arrays.append(column.cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def _estimate_memory(rows: Any) -> int:
    """Return the bytes of rows in Arrow's memory once they are stamped."""
    return int(rows.nbytes) + _STAMP_BYTES * len(rows)


def _estimate_size(file: BaseFileWriter, memory: int) -> int:
    """Estimate the file's bytes after so many more bytes of Arrow's memory."""
    return file.estimated_bytes + file.estimate_encoded(memory)


def _count_fitting(rows: Any, max_bytes: float) -> int:
    """Return how many of the first rows fit into so many bytes, at least one."""
    count = len(rows)
    while count > 1 and (size := rows.slice(0, count).nbytes) > max_bytes:
        count = max(min(int(count * max_bytes / size), count - 1), 1)
    return count
