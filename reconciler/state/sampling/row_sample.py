"""Sample rows of base files, for the forecast of a clustering and for ``reconciler advise``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from reconciler.arrays import Integers
from reconciler.errors import FormatError, StorageError, UnsupportedError
from reconciler.file_slices.base_file.meta_columns import FILE_NAME
from reconciler.file_slices.base_file.parquet import count_row_bytes
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.file_slices.merge.range_file import open_parquet, reading_parquet
from reconciler.hudi.files.table_files import TableFiles
from reconciler.lazy_dataclass import dataclass
from reconciler.state.sampling.model import RowSample, SampleRequest, WholeRows
from reconciler.state.sampling.row_groups import ChosenFile, OpenedFile, SampleReader, spread_evenly
from reconciler.storage.api import Storage
from reconciler.storage.parallel import run_parallel

#: files at a time: reading waits for the store
_AT_ONCE: Final = 4
#: of rows in all columns: the most row groups, rows in all, and uncompressed bytes in all
_MAX_GROUPS: Final = 16
MAX_WHOLE_ROWS: Final = 256 * 1024
_MAX_BYTES: Final = 64 * 1024 * 1024
#: bytes of a column that are read at a time
_TOGETHER: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleLimits:
    """The most row groups that a sample reads, and the most rows that it keeps.

    ``whole_rows``: the most rows that are read in all columns.
    """

    groups: int = 64
    rows: int = 1_000_000
    whole_rows: int = 0


def read_sample(
    storage: Storage,
    files: TableFiles,
    groups: Sequence[SampleRequest],
    columns: Sequence[str],
    schema: Any,
    limits: SampleLimits,
) -> RowSample:
    """Sample rows of base files that are rewritten together; the same files give the same rows.

    ``groups``: files are chosen from each in proportion to its bytes, and row groups are spread
    over the rows of the files. ``columns``: names with dots; ``schema``: the table's schema. The
    rows that the rewrite uses to fit its layout are kept in addition. Files that cannot be read are
    skipped, and damaged ones recorded. Memory: kept rows, and their columns in the row groups read.
    """
    reading = SampleReader(storage, files, tuple(columns), schema)
    chosen = _choose_files(reading, groups, limits.groups)
    available = sum(int(file.sizes.sum()) for file in chosen)
    share = min(1.0, limits.rows / max(available, 1))
    read = run_parallel(lambda file: reading.read_rows(file, share), chosen, parallelism=_AT_ONCE)
    pairs = sorted(
        ((file, table) for file, table in zip(chosen, read, strict=True) if table is not None),
        key=lambda pair: pair[0].row,
    )
    opened, tables = [file for file, _ in pairs], [table for _, table in pairs]
    rows_of = np.array([file.row for file in opened], np.int64)
    times = [file.choose_rows(share)[1] for file in opened]
    most = limits.whole_rows
    return RowSample(
        rows=pa.concat_tables(tables) if tables else reading.empty_table(),
        file=np.repeat(rows_of, list(map(len, tables))),
        fit_counts=np.concatenate([np.zeros(0, np.int8), *times]),
        files=rows_of,
        total=np.array([file.total for file in opened], np.int64),
        is_whole=np.array([file.is_whole for file in opened], np.bool_),
        groups=sum(len(file.groups) for file in opened),
        total_groups=sum(file.total_groups for file in opened),
        column_shares=_column_shares(opened, columns),
        whole=_read_whole_rows(reading, opened, most) if most else None,
        damaged=dict(sorted(reading.damaged.items())),
    )


def _column_shares(files: Sequence[OpenedFile], columns: Sequence[str]) -> dict[str, float]:
    """Return the share of each column in the bytes of row groups."""
    sums, total = dict.fromkeys(columns, 0), 0
    for opened in files:
        for group in map(opened.file.metadata.row_group, opened.groups):
            for chunk in map(group.column, range(group.num_columns)):
                total += chunk.total_compressed_size
                if chunk.path_in_schema in sums:
                    sums[chunk.path_in_schema] += chunk.total_compressed_size
    return {name: size / max(total, 1) for name, size in sums.items()}


def _choose_files(
    reading: SampleReader, groups: Sequence[SampleRequest], most: int
) -> list[OpenedFile]:
    """Return the files to sample with their chosen row groups.

    Groups get row groups in proportion to their bytes, at least one. What a group cannot use goes
    to the others.
    """
    if len(groups) > most:
        groups = [groups[at] for at in spread_evenly(len(groups), most)]
    sizes = [float(reading.files.size[group.files].sum()) for group in groups]
    wanted = _spread_files(reading.files, groups, _distribute(sizes, most))
    opened = [one for one in run_parallel(reading.open_file, wanted, parallelism=_AT_ONCE) if one]
    files_by_group: list[list[OpenedFile]] = [[] for _ in groups]
    for file in opened:
        files_by_group[file.chosen.group].append(file)
    available = [sum(file.total_groups for file in files) for files in files_by_group]
    picked = []
    for files, count in zip(files_by_group, _distribute(sizes, most, available), strict=True):
        picked += _choose_row_groups(files, count)
    return sorted(picked, key=lambda file: file.row)


def _distribute(sizes: Sequence[float], most: int, caps: Sequence[int] | None = None) -> list[int]:
    """Distribute ``most`` in proportion to sizes: at least one each and at most ``caps``.

    >>> _distribute([1.0, 1.0, 6.0], 8), _distribute([1.0, 1.0, 6.0], 8, [9, 9, 2])
    ([1, 1, 6], [3, 3, 2])
    """
    limits = [most] * len(sizes) if caps is None else list(caps)
    parts, left, bytes_left = [0] * len(sizes), most, sum(sizes)
    # those with the least for their size come first, so that the others get what these cannot use
    order = sorted(range(len(sizes)), key=lambda n: (limits[n] / max(sizes[n], 1.0), n))
    for place, number in enumerate(order):
        others = len(order) - place - 1
        share = round(left * sizes[number] / max(bytes_left, 1.0))
        parts[number] = min(max(1, min(left - others, share)), limits[number])
        left, bytes_left = left - parts[number], bytes_left - sizes[number]
    return parts


def _spread_files(
    files: TableFiles, groups: Sequence[SampleRequest], shares: Sequence[int]
) -> list[ChosenFile]:
    """Choose files of each group, spread evenly over its bytes; all if there are few."""
    picked = []
    for number, (group, share) in enumerate(zip(groups, shares, strict=True)):
        for at in _spread_by_size(files.size[group.files], share).tolist():
            row, fitted = int(group.files[at]), int(group.fit_rows[at])
            picked.append(ChosenFile(row, number, fitted, at))
    return sorted(picked, key=lambda file: file.row)


def _spread_by_size(sizes: Integers, wanted: int) -> Integers:
    """Return ``wanted`` positions, ascending, spread evenly over the sum of sizes.

    If several marks fall into one position, the largest other positions are added.

    >>> _spread_by_size(np.array([1, 1, 8, 1, 1]), 3).tolist()
    [0, 2, 3]
    """
    if wanted >= len(sizes):
        return np.arange(len(sizes))
    ends = np.cumsum(np.maximum(sizes, 1))
    marks = (np.arange(wanted) + 0.5) * (ends[-1] / wanted)
    hits = np.bincount(np.searchsorted(ends, marks, side="right"), minlength=len(sizes)) > 0
    rest = np.flatnonzero(~hits)
    more = rest[np.argsort(-sizes[rest], kind="stable")][: wanted - int(hits.sum())]
    return np.sort(np.concatenate([np.flatnonzero(hits), more]))


def _choose_row_groups(files: Sequence[OpenedFile], count: int) -> list[OpenedFile]:
    """Choose ``count`` row groups of the files, spread over their rows."""
    if not files:
        return []
    sizes = np.concatenate([file.sizes for file in files])
    owner = np.repeat(np.arange(len(files)), [file.total_groups for file in files])
    first = np.cumsum([0, *(file.total_groups for file in files)])[:-1]
    places = _spread_by_size(sizes, count)
    picked = []
    for nth, file in enumerate(files):
        chosen = places[owner[places] == nth] - first[nth]
        if len(chosen) or not file.total_groups:
            picked.append(replace(file, groups=chosen.tolist(), sizes=file.sizes[chosen]))
    return picked


# --- whole rows ----------------------------------------------------------------------------------


def _read_whole_rows(
    reading: SampleReader, files: Sequence[OpenedFile], max_rows: int
) -> WholeRows | None:
    """Return the first rows of some row groups of a sample; None if there are none.

    All rows are read if the row groups have at most ``max_rows``. Files with other columns than the
    newest one, and files that cannot be read, are skipped.
    """
    groups = [(file, group) for file in files for group in file.groups]
    rows, size = _measure_groups(groups)
    if rows > max_rows or size > _MAX_BYTES:
        groups = [groups[at] for at in spread_evenly(len(groups), _MAX_GROUPS)]
        rows, size = _measure_groups(groups)
    share = min(1.0, max_rows / max(rows, 1), _MAX_BYTES / max(size, 1))
    read = run_parallel(
        lambda pair: _read_group(reading, *pair, share), groups, parallelism=_AT_ONCE
    )
    parts = [part for part in read if part is not None]
    if not parts:
        return None
    newest = max((one for one, *_ in parts), key=lambda one: int(reading.files.instant[one.row]))
    alike = [part for part in parts if part[0].file.schema_arrow.equals(newest.file.schema_arrow)]
    counts = [len(rows) for _, rows, _, _ in alike]
    opened = {file.row: file for file, *_ in alike}.values()
    return WholeRows(
        rows=pa.Table.from_batches([rows for _, rows, _, _ in alike]),
        query_columns=pa.Table.from_batches([query_columns for _, _, query_columns, _ in alike]),
        file=np.repeat([file.row for file, *_ in alike], counts),
        stored_bytes=np.repeat([mean for *_, mean in alike], counts),
        form=BaseFileSettings.from_footer(newest.file.metadata, newest.path),
        footer=float(
            np.mean([_footer_bytes(file, int(reading.files.size[file.row])) for file in opened])
        ),
    )


def _measure_groups(groups: Sequence[tuple[OpenedFile, int]]) -> tuple[int, int]:
    """Return the rows of the row groups and their uncompressed bytes."""
    chosen = [opened.file.metadata.row_group(group) for opened, group in groups]
    return sum(group.num_rows for group in chosen), sum(group.total_byte_size for group in chosen)


def _footer_bytes(opened: OpenedFile, size: int) -> int:
    """Return the bytes of a file without its rows and without key-value metadata."""
    metadata = opened.file.metadata
    metadata_bytes = sum(len(key) + len(value) for key, value in (metadata.metadata or {}).items())
    return size - count_row_bytes(metadata) - metadata_bytes


def _read_group(
    reading: SampleReader, opened: OpenedFile, group: int, share: float
) -> tuple[OpenedFile, Any, Any, float] | None:
    """Return rows of a row group in all columns, in those of the sample, and bytes per row."""
    stored = opened.file.metadata.row_group(group)
    rows = min(stored.num_rows, max(1, round(stored.num_rows * share)))
    names = [name for name in opened.file.schema_arrow.names if name != FILE_NAME]
    chunks = map(stored.column, range(stored.num_columns))
    total = sum(c.total_compressed_size for c in chunks if c.path_in_schema != FILE_NAME)
    size = int(reading.files.size[opened.row])
    try:
        with reading_parquet(opened.path):
            options = {"metadata": opened.file.metadata, "buffer_size": _TOGETHER}
            file = open_parquet(reading.storage, opened.path, size, **options)
            batch = next(file.iter_batches(rows, row_groups=[group], columns=names), None)
            if batch is None:
                return None
            return opened, batch, reading.select_columns(opened, batch), total / stored.num_rows
    except (FormatError, StorageError, UnsupportedError):
        return None
