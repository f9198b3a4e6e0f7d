"""Rows of a few row groups in all their columns: to see what they take in another order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from reconciler import parallel
from reconciler.basefile.form import FileForm
from reconciler.basefile.parquet import rows_bytes
from reconciler.basefile.stamp import FILE_NAME
from reconciler.errors import FormatError, StorageError, UnsupportedError
from reconciler.foresight.reading import Opened, Reading, evenly
from reconciler.merge.ranges import open_range, reading_parquet
from reconciler.state.foresight import WholeRows

#: row groups of which rows are read, and what is read of all of them: rows, bytes before they are
#: compressed
MOST_GROUPS: Final = 16
MOST_ROWS: Final = 256 * 1024
MOST_BYTES: Final = 64 * 1024 * 1024
#: files at once, and bytes of a column that are read at a time
_AT_ONCE: Final = 4
_TOGETHER: Final = 1024 * 1024


def read_whole_rows(
    reading: Reading, files: Sequence[Opened], *, most: int = MOST_ROWS
) -> WholeRows | None:
    """The first rows of some of the row groups that a sample has; None where there are none.

    All rows where the row groups together have no more than ``most``. Of files of other columns
    than the newest one has nothing is read, nor of those that cannot be read: that they are damaged
    was seen when they were sampled.
    """
    groups = [(one, group) for one in files for group in one.groups]
    rows, size = _extent(groups)
    if rows > most or size > MOST_BYTES:
        groups = [groups[at] for at in evenly(len(groups), MOST_GROUPS)]
        rows, size = _extent(groups)
    share = min(1.0, most / max(rows, 1), MOST_BYTES / max(size, 1))
    read = parallel.each(lambda pair: _read(reading, *pair, share), groups, at_once=_AT_ONCE)
    found = [one for one in read if one is not None]
    if not found:
        return None
    newest = max((one for one, *_ in found), key=lambda one: int(reading.files.instant[one.row]))
    alike = [one for one in found if one[0].file.schema_arrow.equals(newest.file.schema_arrow)]
    counts = [len(rows) for _, rows, _, _ in alike]
    opened = {one.row: one for one, *_ in alike}.values()
    return WholeRows(
        rows=pa.Table.from_batches([rows for _, rows, _, _ in alike]),
        asked=pa.Table.from_batches([asked for _, _, asked, _ in alike]),
        file=np.repeat([one.row for one, *_ in alike], counts),
        took=np.repeat([each for *_, each in alike], counts),
        form=FileForm.of_file(newest.file.metadata, newest.path),
        footer=float(np.mean([_footer(one, int(reading.files.size[one.row])) for one in opened])),
    )


def _extent(groups: Sequence[tuple[Opened, int]]) -> tuple[int, int]:
    """Rows of the row groups, and their bytes before they are compressed."""
    found = [one.file.metadata.row_group(group) for one, group in groups]
    return sum(one.num_rows for one in found), sum(one.total_byte_size for one in found)


def _footer(one: Opened, size: int) -> int:
    """Bytes of a file beside those of its rows, and of what is said of keys and schema."""
    found = one.file.metadata
    said = sum(len(key) + len(value) for key, value in (found.metadata or {}).items())
    return size - rows_bytes(found) - said


def _read(
    reading: Reading, one: Opened, group: int, share: float
) -> tuple[Opened, Any, Any, float] | None:
    """So many of the rows in all columns, the sample's own of these, and what a row takes."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    found = one.file.metadata.row_group(group)
    rows = min(found.num_rows, max(1, round(found.num_rows * share)))
    names = [name for name in one.file.schema_arrow.names if name != FILE_NAME]
    chunks = map(found.column, range(found.num_columns))
    took = sum(c.total_compressed_size for c in chunks if c.path_in_schema != FILE_NAME)
    size = int(reading.files.size[one.row])
    try:
        with reading_parquet(one.path):
            file = pq.ParquetFile(
                open_range(reading.storage, one.path, size),
                metadata=one.file.metadata,
                buffer_size=_TOGETHER,
                coerce_int96_timestamp_unit="us",
            )
            batch = next(file.iter_batches(rows, row_groups=[group], columns=names), None)
            if batch is None:
                return None
            return one, batch, reading.asked(one, batch), took / found.num_rows
    except (FormatError, StorageError, UnsupportedError):
        return None
