"""A few row groups of the files that a clustering rewrites, read with pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
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

    ``groups``: of each some files are looked into, as many as its bytes are worth and spread over
    these, and of the files some row groups, spread over their rows. ``columns``: names with dots;
    ``schema``: the table's columns. ``most``: row groups; ``rows``: how many of their rows are
    kept, the same share of each, beside those that the rewrite will fit its layout to. A file that
    cannot be read is left out; if it is damaged that is said. Memory: the kept rows, and the chunks
    of the columns in the row groups that are read.
    """
    reading = _Reading(storage, files, tuple(columns), schema)
    chosen = _chosen(reading, groups, most)
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
        shares=_shares([one for one, _ in found], columns),
        damaged=dict(sorted(reading.damaged.items())),
    )


def _shares(files: Sequence[_Opened], columns: Sequence[str]) -> dict[str, float]:
    """What columns take of the bytes of row groups."""
    sums, total = dict.fromkeys(columns, 0), 0
    for one in files:
        for group in map(one.file.metadata.row_group, one.groups):
            for chunk in map(group.column, range(group.num_columns)):
                total += chunk.total_compressed_size
                if chunk.path_in_schema in sums:
                    sums[chunk.path_in_schema] += chunk.total_compressed_size
    return {name: size / max(total, 1) for name, size in sums.items()}


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A file of a ``group``, and what the rewrite draws of it by its place there."""

    row: int
    group: int
    fitted: int
    place: int


def _chosen(reading: _Reading, groups: Sequence[ToSample], most: int) -> list[_Opened]:
    """The files that are looked into, with the row groups that are read of them.

    Groups get row groups by their bytes, one at least; what one has not goes to those after it.
    """
    if len(groups) > most:
        groups = [groups[at] for at in evenly(len(groups), most)]
    sizes = [float(reading.files.size[group.files].sum()) for group in groups]
    wanted = _wanted(reading.files, groups, _shared(sizes, most))
    opened = [one for one in parallel.each(reading.open, wanted, at_once=_AT_ONCE) if one]
    of: list[list[_Opened]] = [[] for _ in groups]
    for one in opened:
        of[one.wanted.group].append(one)
    there = [sum(one.of for one in files) for files in of]
    found = []
    for files, count in zip(of, _shared(sizes, most, there), strict=True):
        found += _by_rows(files, count)
    return sorted(found, key=lambda one: one.row)


def _shared(sizes: Sequence[float], most: int, there: Sequence[int] | None = None) -> list[int]:
    """How many of ``most`` each gets by its size, one at least; no more than are ``there``.

    >>> _shared([1.0, 1.0, 6.0], 8), _shared([1.0, 1.0, 6.0], 8, [9, 9, 2])
    ([1, 1, 6], [3, 3, 2])
    """
    limits = [most] * len(sizes) if there is None else list(there)
    found, left, bytes_left = [0] * len(sizes), most, sum(sizes)
    # those that have least for their size first, so that the others get what these have not
    order = sorted(range(len(sizes)), key=lambda n: (limits[n] / max(sizes[n], 1.0), n))
    for place, number in enumerate(order):
        others = len(order) - place - 1
        share = round(left * sizes[number] / max(bytes_left, 1.0))
        found[number] = min(max(1, min(left - others, share)), limits[number])
        left, bytes_left = left - found[number], bytes_left - sizes[number]
    return found


def _wanted(files: Files, groups: Sequence[ToSample], shares: Sequence[int]) -> list[_Wanted]:
    """So many files of each group, spread evenly over its bytes; all where there are no more."""
    found = []
    for number, (group, share) in enumerate(zip(groups, shares, strict=True)):
        for at in _spread_over(files.size[group.files], share).tolist():
            row, fitted = int(group.files[at]), int(group.fitted[at])
            found.append(_Wanted(row, number, fitted, at))
    return sorted(found, key=lambda one: one.row)


def _spread_over(sizes: NDArray[np.int64], wanted: int) -> NDArray[np.int64]:
    """So many places, ascending: those that are hit by marks evenly over the sizes.

    Where several hit one, the largest of the others make up for it.

    >>> _spread_over(np.array([1, 1, 8, 1, 1]), 3).tolist()
    [0, 2, 3]
    """
    if wanted >= len(sizes):
        return np.arange(len(sizes))
    ends = np.cumsum(np.maximum(sizes, 1))
    marks = (np.arange(wanted) + 0.5) * (ends[-1] / wanted)
    hits = np.bincount(np.searchsorted(ends, marks, side="right"), minlength=len(sizes)) > 0
    rest = np.flatnonzero(~hits)
    more = rest[np.argsort(-sizes[rest], kind="stable")][: wanted - int(hits.sum())]
    found: NDArray[np.int64] = np.sort(np.concatenate([np.flatnonzero(hits), more]))
    return found


def _by_rows(files: Sequence[_Opened], count: int) -> list[_Opened]:
    """So many row groups of the files, spread over their rows; files of none are left out."""
    if not files:
        return []
    sizes = np.concatenate([one.sizes for one in files])
    owner = np.repeat(np.arange(len(files)), [one.of for one in files])
    first = np.cumsum([0, *(one.of for one in files)])[:-1]
    places = _spread_over(sizes, count)
    found = []
    for nth, one in enumerate(files):
        here = places[owner[places] == nth] - first[nth]
        if len(here) or not one.of:
            found.append(replace(one, groups=here.tolist(), sizes=one.sizes[here]))
    return found


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

        row = wanted.row
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
        of = found.num_row_groups
        sizes = np.array([found.row_group(at).num_rows for at in range(of)], np.int64)
        return _Opened(row, path, file, list(range(of)), sizes, found.num_rows, of, wanted)

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
