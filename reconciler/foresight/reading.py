"""Row groups of base files, of which some columns or some rows are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.curves.drawn import spread
from reconciler.errors import FormatError, StorageError, UnsupportedError
from reconciler.hudi.arrow import integers
from reconciler.hudi.files import Files
from reconciler.index.askable import can_be_asked
from reconciler.index.tails import Tails, damaged
from reconciler.merge.calendar import PROLEPTIC, Calendar, in_calendar
from reconciler.merge.evolve import evolve_batch
from reconciler.merge.ordering import column_at
from reconciler.merge.ranges import open_range, reading_parquet
from reconciler.storage.api import Storage

_TOGETHER: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file of a ``group``, and what the rewrite draws of it by its place there."""

    row: int
    group: int
    fitted: int
    place: int


def evenly(many: int, wanted: int) -> NDArray[np.int64]:
    """So many places among so many, evenly.

    >>> evenly(10, 3).tolist(), evenly(2, 3).tolist()
    ([1, 5, 8], [0, 1])
    """
    if wanted >= many:
        return np.arange(many)
    found: NDArray[np.int64] = ((np.arange(wanted) + 0.5) * many / wanted).astype(np.int64)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """A file's chosen row groups and their rows, at first all of them.

    ``total``: rows of all ``of`` row groups.
    """

    row: int
    path: str
    file: Any
    groups: list[int]
    sizes: NDArray[np.int64]
    total: int
    of: int
    wanted: Wanted

    @property
    def is_whole(self) -> bool:
        return len(self.groups) == self.of

    def places(self, share: float) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        """The rows that are kept, by their places in the chosen row groups one after another.

        And how often the rewrite draws each; none where not all rows are there.
        """
        starts = np.cumsum(self.sizes) - self.sizes
        kept = [
            start + evenly(size, max(1, round(size * share)))
            for start, size in zip(starts.tolist(), self.sizes.tolist(), strict=True)
        ]
        drawn = np.zeros(0, np.int64)
        if self.is_whole:
            few = self.wanted.fitted < self.total
            drawn = np.arange(self.total)
            if few:
                drawn = spread(self.total, self.wanted.fitted, self.wanted.place)
        found = np.unique(np.concatenate([drawn, *kept]))
        times = np.bincount(np.searchsorted(found, drawn), minlength=len(found))
        return found, times.astype(np.int8)


@dataclass(frozen=True, slots=True)
class Reading:
    """``damaged``: filled in while files are read, by their rows."""

    storage: Storage
    files: Files
    columns: tuple[str, ...]
    schema: Any
    damaged: dict[int, str] = field(default_factory=dict)

    @property
    def _top(self) -> Any:
        names = dict.fromkeys(name.partition(".")[0] for name in self.columns)
        return pa.schema([self.schema.field(name) for name in names])

    def open(self, wanted: Wanted) -> Opened | None:
        import pyarrow.parquet as pq  # noqa: PLC0415

        row = wanted.row
        folder = self.files.partitions[int(self.files.partition[row])]
        name = self.files.name[row].as_py()
        path = f"{folder}/{name}" if folder else name
        size = int(self.files.size[row])
        try:
            with reading_parquet(path):
                file = pq.ParquetFile(
                    open_range(self.storage, path, size),
                    metadata=self._footer(path, size),
                    pre_buffer=True,
                    coerce_int96_timestamp_unit="us",
                )
        except FormatError as damage:
            self.damaged[row] = str(damage)
            return None
        except StorageError:
            return None
        found = file.metadata
        of = found.num_row_groups
        sizes = np.array([found.row_group(at).num_rows for at in range(of)], np.int64)
        return Opened(row, path, file, list(range(of)), sizes, found.num_rows, of, wanted)

    def _footer(self, path: str, size: int) -> Any:
        """Pyarrow's FileMetaData, of which every chunk may be asked for."""
        import pyarrow.parquet as pq  # noqa: PLC0415

        tail = Tails(self.storage).read(path, size)
        found = pq.read_metadata(pa.BufferReader(tail))
        if not can_be_asked(tail, pq.ParquetSchema(found)):
            raise damaged(path, "its footer cannot be read")
        return found

    def rows(self, one: Opened, share: float) -> Any | None:
        """The columns of so many of a file's rows; None where they cannot be read."""
        try:
            with reading_parquet(one.path):
                found = list(self._batches(one, share))
        except FormatError as damage:
            self.damaged[one.row] = str(damage)
            return None
        except (StorageError, UnsupportedError):
            return None
        return pa.Table.from_batches(found) if found else self.nothing()

    def _batches(self, one: Opened, share: float) -> Iterator[Any]:
        names = [name for name in one.file.schema_arrow.names if name in self._top.names]
        picked, _ = one.places(share)
        start = 0
        for group in one.groups:
            for batch in one.file.iter_batches(_TOGETHER, row_groups=[group], columns=names):
                first, last = np.searchsorted(picked, [start, start + len(batch)])
                places = picked[first:last] - start
                start += len(batch)
                rows = batch if len(places) == len(batch) else batch.take(integers(places))
                yield self.asked(one, rows)

    def asked(self, one: Opened, rows: Any) -> Any:
        """The columns that are asked for, of rows as the file has them."""
        top = self._top
        rows = rows.select([name for name in rows.schema.names if name in top.names])
        calendar = Calendar.of(one.file.metadata.metadata)
        if calendar.kind == "hybrid":
            rows = in_calendar(rows, calendar, PROLEPTIC, one.path)
        return self._flat(evolve_batch(rows, top, one.path))

    def _flat(self, rows: Any) -> Any:
        """The columns by their names with dots; null where there is none."""
        found = [column_at(rows, name) for name in self.columns]
        return pa.RecordBatch.from_arrays(found, names=list(self.columns))

    def nothing(self) -> Any:
        top = self._top
        arrays = [pa.nulls(0, field.type) for field in top]
        return pa.Table.from_batches([self._flat(pa.RecordBatch.from_arrays(arrays, schema=top))])
