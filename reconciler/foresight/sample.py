"""A few row groups of the files that a clustering rewrites, read with pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler import parallel
from reconciler.curves.drawn import spread
from reconciler.errors import FormatError, StorageError, UnsupportedError
from reconciler.hudi.arrow import integers
from reconciler.hudi.files import Files
from reconciler.merge.calendar import PROLEPTIC, Calendar, in_calendar
from reconciler.merge.evolve import evolve_batch
from reconciler.merge.ordering import column_at
from reconciler.merge.ranges import open_range, reading_parquet
from reconciler.state.foresight import Sample, ToSample
from reconciler.storage.api import Storage

#: row groups that are read at most, and rows of them that are kept
MOST_GROUPS: Final = 64
MOST_ROWS: Final = 1_000_000
#: files at once: reading waits for the store
_AT_ONCE: Final = 4
_TOGETHER: Final = 64 * 1024


def read_sample(  # noqa: PLR0913
    storage: Storage,
    files: Files,
    groups: Sequence[ToSample],
    columns: Sequence[str],
    schema: Any,
    *,
    most: int = MOST_GROUPS,
    rows: int = MOST_ROWS,
) -> Sample:
    """Rows of base files that are rewritten together, always the same ones of the same files.

    ``groups``: of each some files are looked into, spread over all of them, as many as its bytes
    are worth. ``columns``: names with dots; ``schema``: the table's columns. ``most``: row groups;
    ``rows``: how many of their rows are kept, the same share of each, beside those that the rewrite
    will fit its layout to. A file that cannot be read is left out; if it is damaged that is said.
    Memory: the kept rows, and the chunks of the columns in the row groups that are read.
    """
    wanted = _wanted(files, groups, most)
    reading = _Reading(storage, files, tuple(columns), schema)
    opened = parallel.each(reading.open, wanted, at_once=_AT_ONCE)
    chosen = [one for one in opened if one is not None]
    there = sum(int(one.sizes.sum()) for one in chosen)
    share = min(1.0, rows / max(there, 1))
    read = parallel.each(lambda one: reading.rows(one, share), chosen, at_once=_AT_ONCE)
    found = sorted(
        ((one, table) for one, table in zip(chosen, read, strict=True) if table is not None),
        key=lambda pair: pair[0].row,
    )
    rows_of = np.array([one.row for one, _ in found], np.int64)
    times = [one.places(share)[1] for one, _ in found]
    return Sample(
        rows=pa.concat_tables([table for _, table in found]) if found else reading.nothing(),
        file=np.repeat(rows_of, [len(table) for _, table in found]),
        fitted=np.concatenate([np.zeros(0, np.int8), *times]),
        files=rows_of,
        total=np.array([one.total for one, _ in found], np.int64),
        is_whole=np.array([one.is_whole for one, _ in found], np.bool_),
        groups=sum(len(one.groups) for one, _ in found),
        of=sum(one.of for one, _ in found),
        damaged=dict(sorted(reading.damaged.items())),
    )


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A file, how many of its row groups are read at most, and what the rewrite draws of it."""

    row: int
    groups: int
    fitted: int
    place: int


def _wanted(files: Files, groups: Sequence[ToSample], most: int) -> list[_Wanted]:
    if len(groups) > most:
        groups = [groups[at] for at in evenly(len(groups), most)]
    sizes = [float(files.size[group.files].sum()) for group in groups]
    left, bytes_left = most, sum(sizes)
    found = []
    for number, (group, size) in enumerate(zip(groups, sizes, strict=True)):
        others = len(groups) - number - 1
        quota = max(1, min(left - others, round(left * size / max(bytes_left, 1.0))))
        left, bytes_left = left - quota, bytes_left - size
        some = evenly(len(group.files), quota)
        each, more = divmod(quota, max(len(some), 1))
        for nth, at in enumerate(some.tolist()):
            row, fitted = int(group.files[at]), int(group.fitted[at])
            found.append(_Wanted(row, each + (nth < more), fitted, at))
    return sorted(found, key=lambda one: one.row)


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
class _Opened:
    """A file's chosen row groups and their rows. ``total``: rows of all ``of`` row groups."""

    row: int
    path: str
    file: Any
    groups: list[int]
    sizes: NDArray[np.int64]
    total: int
    of: int
    wanted: _Wanted

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
class _Reading:
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

    def open(self, wanted: _Wanted) -> _Opened | None:
        import pyarrow.parquet as pq  # noqa: PLC0415

        row, most = wanted.row, wanted.groups
        folder = self.files.partitions[int(self.files.partition[row])]
        name = self.files.name[row].as_py()
        path = f"{folder}/{name}" if folder else name
        try:
            with reading_parquet(path):
                file = pq.ParquetFile(
                    open_range(self.storage, path, int(self.files.size[row])),
                    pre_buffer=True,
                    coerce_int96_timestamp_unit="us",
                )
        except FormatError as damage:
            self.damaged[row] = str(damage)
            return None
        except StorageError:
            return None
        found = file.metadata
        sizes = np.array([found.row_group(at).num_rows for at in range(found.num_row_groups)])
        groups = evenly(len(sizes), most).tolist()
        chosen = sizes[groups].astype(np.int64) if groups else np.zeros(0, np.int64)
        of = found.num_row_groups
        return _Opened(row, path, file, groups, chosen, found.num_rows, of, wanted)

    def rows(self, one: _Opened, share: float) -> Any | None:
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

    def _batches(self, one: _Opened, share: float) -> Iterator[Any]:
        top = self._top
        names = [name for name in one.file.schema_arrow.names if name in top.names]
        calendar = Calendar.of(one.file.metadata.metadata)
        picked, _ = one.places(share)
        start = 0
        for group in one.groups:
            for batch in one.file.iter_batches(_TOGETHER, row_groups=[group], columns=names):
                first, last = np.searchsorted(picked, [start, start + len(batch)])
                places = picked[first:last] - start
                start += len(batch)
                rows = batch if len(places) == len(batch) else batch.take(integers(places))
                if calendar.kind == "hybrid":
                    rows = in_calendar(rows, calendar, PROLEPTIC, one.path)
                yield self._flat(evolve_batch(rows, top, one.path))

    def _flat(self, rows: Any) -> Any:
        """The columns by their names with dots; null where there is none."""
        found = [column_at(rows, name) for name in self.columns]
        return pa.RecordBatch.from_arrays(found, names=list(self.columns))

    def nothing(self) -> Any:
        top = self._top
        arrays = [pa.nulls(0, field.type) for field in top]
        return pa.Table.from_batches([self._flat(pa.RecordBatch.from_arrays(arrays, schema=top))])
