"""Measure the size of new rows in a file by writing a sample into memory.

Hudi assumes 1024 bytes per record until its timeline shows the size, and few rows mostly show the
size of empty columns. A first large write would then make many files that are too small.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from reconciler.arrays import Integers, to_arrow
from reconciler.file_slices.base_file.meta_columns import CommitStamp
from reconciler.file_slices.base_file.parquet import count_row_bytes
from reconciler.file_slices.base_file.writer import BaseFileWriter
from reconciler.layout.sizing.record_size import RecordSize
from reconciler.writer.bucket import BucketSettings
from reconciler.writer.new_rows import NewRows

#: rows that all tasks weigh together, and the minimum and maximum of one task
_ROWS: Final = 256 * 1024
_MIN_ROWS: Final = 4 * 1024
_MAX_ROWS: Final = 64 * 1024
#: maximum number of bytes in Arrow's memory that a task weighs, apart from one row
_BYTES: Final = 32 * 1024 * 1024
#: more bytes than any file has
_NO_LIMIT: Final = 1 << 60


def choose_sample_size(tasks: int) -> int:
    """Return how many new rows each of so many tasks weighs.

    >>> choose_sample_size(1), choose_sample_size(16), choose_sample_size(10_000)
    (65536, 16384, 4096)
    """
    return max(_MIN_ROWS, min(_ROWS // tasks, _MAX_ROWS))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWeight:
    """``rows`` in ``files`` files: ``data`` bytes of row groups, ``fixed`` bytes beside them."""

    rows: int = 0
    files: int = 0
    data: int = 0
    fixed: int = 0

    def add(self, other: RowWeight) -> RowWeight:
        """Return the sum of both."""
        return RowWeight(
            rows=self.rows + other.rows,
            files=self.files + other.files,
            data=self.data + other.data,
            fixed=self.fixed + other.fixed,
        )

    @property
    def record_size(self) -> RecordSize:
        """The size of a record; there must be rows."""
        return RecordSize(
            fixed=round(self.fixed / self.files),
            per_row=self.data / self.rows,
            because=f"{self.rows} new rows were weighed",
            rows=self.rows,
        )


@dataclass(slots=True)
class WeightSample:
    """The first new rows of a task, up to ``max_rows``."""

    max_rows: int
    rows: int = 0
    _bytes: int = 0
    _kept: list[Any] = field(default_factory=list)

    def add(self, batch: Any, new: Integers) -> None:
        """Add the given rows of a batch, as far as there is room."""
        if self.rows >= self.max_rows or self._bytes >= _BYTES or not len(new):
            return
        row_bytes = max(batch.nbytes / len(batch), 1.0)
        count = min(self.max_rows - self.rows, int((_BYTES - self._bytes) / row_bytes) + 1)
        kept = batch.take(to_arrow(new[:count]))
        self._kept.append(kept)
        self.rows += len(kept)
        self._bytes += int(kept.nbytes)

    def weigh(self, settings: BucketSettings, instant: str) -> RowWeight:
        """Write the rows, at least one, into a file in memory; errors as of the file's writer."""
        sink = pa.BufferOutputStream()
        file = BaseFileWriter(sink, "the new rows", settings.schema, settings.form)
        rows = NewRows(
            self._kept,
            stamp=CommitStamp(instant=instant, task=0),
            columns=settings.reading.wanted.columns,
            target=_NO_LIMIT,
        )
        try:
            rows.write_into(file, _NO_LIMIT)
            written = file.close()
        except BaseException:
            file.abandon()
            raise
        data = count_row_bytes(written.footer)
        return RowWeight(rows=written.rows, files=1, data=data, fixed=max(written.size - data, 0))
