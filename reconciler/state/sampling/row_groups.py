"""Read some rows and columns of row groups of base files, for ``row_sample``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.arrays import Integers, to_arrow
from reconciler.errors import FormatError, StorageError, UnsupportedError
from reconciler.file_slices.merge.calendar import PROLEPTIC, Calendar, convert_calendar
from reconciler.file_slices.merge.ordering import find_column
from reconciler.file_slices.merge.range_file import open_parquet, reading_parquet
from reconciler.file_slices.merge.schema_evolution import evolve_batch
from reconciler.hudi.files.table_files import TableFiles
from reconciler.index.footer_tails import FooterTails
from reconciler.layout.curves.pseudo_random import pick_spread_rows
from reconciler.lazy_dataclass import dataclass
from reconciler.state.footers import parse_footer
from reconciler.storage.api import Storage

_TOGETHER: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class ChosenFile:
    """A file of a ``group`` to sample, and how many rows the rewrite draws at its position."""

    row: int
    group: int
    fit_rows: int
    place: int


def spread_evenly(many: int, wanted: int) -> Integers:
    """Return ``wanted`` positions spread evenly over ``many``.

    >>> spread_evenly(10, 3).tolist(), spread_evenly(2, 3).tolist()
    ([1, 5, 8], [0, 1])
    """
    if wanted >= many:
        return np.arange(many)
    return ((np.arange(wanted) + 0.5) * many / wanted).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class OpenedFile:
    """An open file with its chosen row groups, at first all of them.

    ``total``: rows of all ``total_groups`` row groups.
    """

    row: int
    path: str
    file: Any
    groups: list[int]
    sizes: Integers
    total: int
    total_groups: int
    chosen: ChosenFile

    @property
    def is_whole(self) -> bool:
        return len(self.groups) == self.total_groups

    def choose_rows(self, share: float) -> tuple[Integers, NDArray[np.int8]]:
        """Return the rows to read, by position in the chosen row groups, and their fit counts.

        The fit count is how often the rewrite draws a row; 0 if not all row groups are chosen.
        """
        starts = np.cumsum(self.sizes) - self.sizes
        kept = [
            start + spread_evenly(size, max(1, round(size * share)))
            for start, size in zip(starts.tolist(), self.sizes.tolist(), strict=True)
        ]
        drawn = np.zeros(0, np.int64)
        if self.is_whole:
            drawn = np.arange(self.total)
            if self.chosen.fit_rows < self.total:
                drawn = pick_spread_rows(self.total, self.chosen.fit_rows, self.chosen.place)
        rows = np.unique(np.concatenate([drawn, *kept]))
        times = np.bincount(np.searchsorted(rows, drawn), minlength=len(rows))
        return rows, times.astype(np.int8)


@dataclass(frozen=True, slots=True)
class SampleReader:
    """Reads samples of files. ``damaged``: problems by row of the file, added while reading."""

    storage: Storage
    files: TableFiles
    columns: tuple[str, ...]
    schema: Any
    damaged: dict[int, str] = field(default_factory=dict)

    @property
    def _top_level_schema(self) -> Any:
        names = dict.fromkeys(name.partition(".")[0] for name in self.columns)
        return pa.schema([self.schema.field(name) for name in names])

    def open_file(self, wanted: ChosenFile) -> OpenedFile | None:
        row = wanted.row
        path, size = self.files.locate_file(row)
        try:
            with reading_parquet(path):
                footer = parse_footer(FooterTails(self.storage).read(path, size), path)
                file = open_parquet(self.storage, path, size, metadata=footer, pre_buffer=True)
        except FormatError as damage:
            self.damaged[row] = str(damage)
            return None
        except StorageError:
            return None
        footer = file.metadata
        groups = range(footer.num_row_groups)
        sizes = np.array([footer.row_group(at).num_rows for at in groups], np.int64)
        return OpenedFile(
            row, path, file, list(groups), sizes, footer.num_rows, len(groups), wanted
        )

    def read_rows(self, opened: OpenedFile, share: float) -> Any | None:
        """Return the columns of a share of a file's rows; None if they cannot be read."""
        try:
            with reading_parquet(opened.path):
                batches = list(self._read_batches(opened, share))
        except FormatError as damage:
            self.damaged[opened.row] = str(damage)
            return None
        except (StorageError, UnsupportedError):
            return None
        return pa.Table.from_batches(batches) if batches else self.empty_table()

    def _read_batches(self, opened: OpenedFile, share: float) -> Iterator[Any]:
        names = [
            name for name in opened.file.schema_arrow.names if name in self._top_level_schema.names
        ]
        picked, _ = opened.choose_rows(share)
        start = 0
        for group in opened.groups:
            for batch in opened.file.iter_batches(_TOGETHER, row_groups=[group], columns=names):
                first, last = np.searchsorted(picked, [start, start + len(batch)])
                places = picked[first:last] - start
                start += len(batch)
                rows = batch if len(places) == len(batch) else batch.take(to_arrow(places))
                yield self.select_columns(opened, rows)

    def select_columns(self, opened: OpenedFile, rows: Any) -> Any:
        """Return the requested columns of rows of the file."""
        top = self._top_level_schema
        rows = rows.select([name for name in rows.schema.names if name in top.names])
        calendar = Calendar.from_footer(opened.file.metadata.metadata)
        if calendar.kind == "hybrid":
            rows = convert_calendar(rows, calendar, PROLEPTIC, opened.path)
        return self._flatten(evolve_batch(rows, top, opened.path))

    def _flatten(self, rows: Any) -> Any:
        """Return columns by their names with dots; null if a row has none."""
        columns = [find_column(rows, name) for name in self.columns]
        return pa.RecordBatch.from_arrays(columns, names=list(self.columns))

    def empty_table(self) -> Any:
        top = self._top_level_schema
        arrays = [pa.nulls(0, field.type) for field in top]
        return pa.Table.from_batches(
            [self._flatten(pa.RecordBatch.from_arrays(arrays, schema=top))]
        )
