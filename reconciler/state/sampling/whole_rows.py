"""Read rows of a few row groups in all columns, to measure their size in another order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from reconciler.errors import FormatError, StorageError, UnsupportedError
from reconciler.file_slices.base_file.meta_columns import FILE_NAME
from reconciler.file_slices.base_file.parquet import count_row_bytes
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.file_slices.merge.range_file import open_parquet, reading_parquet
from reconciler.state.sampling.model import WholeRows
from reconciler.state.sampling.row_groups import OpenedFile, SampleReader, spread_evenly
from reconciler.storage import parallel

#: greatest number of row groups, of rows in all, and of uncompressed bytes in all
MAX_GROUPS: Final = 16
MAX_ROWS: Final = 256 * 1024
MAX_BYTES: Final = 64 * 1024 * 1024
#: files at a time, and bytes of a column that are read at a time
_AT_ONCE: Final = 4
_TOGETHER: Final = 1024 * 1024


def read_whole_rows(
    reading: SampleReader, files: Sequence[OpenedFile], *, max_rows: int = MAX_ROWS
) -> WholeRows | None:
    """Return the first rows of some row groups of a sample; None if there are none.

    All rows are read if the row groups have at most ``max_rows``. Files with other columns than the
    newest one, and files that cannot be read, are skipped.
    """
    groups = [(one, group) for one in files for group in one.groups]
    rows, size = _measure_groups(groups)
    if rows > max_rows or size > MAX_BYTES:
        groups = [groups[at] for at in spread_evenly(len(groups), MAX_GROUPS)]
        rows, size = _measure_groups(groups)
    share = min(1.0, max_rows / max(rows, 1), MAX_BYTES / max(size, 1))
    read = parallel.run_parallel(
        lambda pair: _read_group(reading, *pair, share), groups, parallelism=_AT_ONCE
    )
    found = [one for one in read if one is not None]
    if not found:
        return None
    newest = max((one for one, *_ in found), key=lambda one: int(reading.files.instant[one.row]))
    alike = [one for one in found if one[0].file.schema_arrow.equals(newest.file.schema_arrow)]
    counts = [len(rows) for _, rows, _, _ in alike]
    opened = {one.row: one for one, *_ in alike}.values()
    return WholeRows(
        rows=pa.Table.from_batches([rows for _, rows, _, _ in alike]),
        query_columns=pa.Table.from_batches([query_columns for _, _, query_columns, _ in alike]),
        file=np.repeat([one.row for one, *_ in alike], counts),
        stored_bytes=np.repeat([each for *_, each in alike], counts),
        form=BaseFileSettings.from_footer(newest.file.metadata, newest.path),
        footer=float(
            np.mean([_footer_bytes(one, int(reading.files.size[one.row])) for one in opened])
        ),
    )


def _measure_groups(groups: Sequence[tuple[OpenedFile, int]]) -> tuple[int, int]:
    """Return the rows of the row groups and their uncompressed bytes."""
    found = [one.file.metadata.row_group(group) for one, group in groups]
    return sum(one.num_rows for one in found), sum(one.total_byte_size for one in found)


def _footer_bytes(one: OpenedFile, size: int) -> int:
    """Return the bytes of a file without its rows and without key-value metadata."""
    found = one.file.metadata
    metadata_bytes = sum(len(key) + len(value) for key, value in (found.metadata or {}).items())
    return size - count_row_bytes(found) - metadata_bytes


def _read_group(
    reading: SampleReader, one: OpenedFile, group: int, share: float
) -> tuple[OpenedFile, Any, Any, float] | None:
    """Return rows of a row group in all columns, in those of the sample, and bytes per row."""
    found = one.file.metadata.row_group(group)
    rows = min(found.num_rows, max(1, round(found.num_rows * share)))
    names = [name for name in one.file.schema_arrow.names if name != FILE_NAME]
    chunks = map(found.column, range(found.num_columns))
    took = sum(c.total_compressed_size for c in chunks if c.path_in_schema != FILE_NAME)
    size = int(reading.files.size[one.row])
    try:
        with reading_parquet(one.path):
            options = {"metadata": one.file.metadata, "buffer_size": _TOGETHER}
            file = open_parquet(reading.storage, one.path, size, **options)
            batch = next(file.iter_batches(rows, row_groups=[group], columns=names), None)
            if batch is None:
                return None
            return one, batch, reading.select_columns(one, batch), took / found.num_rows
    except (FormatError, StorageError, UnsupportedError):
        return None
