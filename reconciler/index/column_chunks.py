"""Collect the statistics of one column's chunks and reduce them to statistics of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Integers, Mask, sum_by_code, to_arrow, to_nullable, to_numpy
from reconciler.index.file_forms import ABSENT, ColumnPlace
from reconciler.index.model import UNKNOWN, ColumnStats
from reconciler.index.parquet_kinds import ChunkBounds, ParquetKind, convert_bounds, is_true
from reconciler.index.parquet_writers import NAN_FREE, FooterWriter, read_nan_free_columns
from reconciler.lazy_dataclass import dataclass

_SPARK: Final = b"org.apache.spark.version"
_LEGACY: Final = b"org.apache.spark.legacyDateTime"
#: keys of the footer's key-value pairs that matter for its statistics
STATISTICS_KEYS: Final = frozenset({_SPARK, _LEGACY, NAN_FREE.encode()})


@dataclass(frozen=True, slots=True)
class FooterFile:
    """A file as its footer describes it.

    ``rows`` and ``groups``: number of rows and of row groups. ``pairs``: the key-value pairs with
    keys of ``STATISTICS_KEYS``.
    """

    number: int
    name: str
    rows: int
    groups: int
    pairs: Mapping[bytes, bytes]

    @property
    def is_proleptic(self) -> bool:
        """Return whether Spark 3 wrote old dates in the proleptic Gregorian calendar."""
        return self.pairs.get(_SPARK, b"") >= b"3.0.0" and _LEGACY not in self.pairs


@dataclass(slots=True)
class ColumnChunks:
    """The chunks of one column: an element a chunk with its file, kind and statistics."""

    file: list[int] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)
    low: list[Any] = field(default_factory=list)
    high: list[Any] = field(default_factory=list)
    nulls: list[int] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    is_nan_free: list[bool] = field(default_factory=list)

    def add_files(
        self,
        column: str,
        place: ColumnPlace,
        files: Sequence[FooterFile],
        groups: Sequence[Any],
        rows: list[int],
    ) -> None:
        """Add files that share one schema, with pyarrow's row groups of them in order.

        ``rows``: number of rows of each row group.
        """
        if place.kind is None or not place.writer.is_known:
            for file in files:
                nulls = file.rows if place.position == ABSENT else UNKNOWN
                self._add_unknown(file, place, nulls, file.rows)
            return
        for file in files:
            if not file.groups:
                self._add_unknown(file, place, 0, 0)
        file_of_group = [file for file in files for _ in range(file.groups)]
        chunks = [group.column(place.position) for group in groups]
        self._add_known(column, place, file_of_group, chunks, rows)

    def _add_unknown(self, file: FooterFile, place: ColumnPlace, nulls: int, values: int) -> None:
        """Add a file as one chunk without bounds."""
        self.file.append(file.number)
        self.kind.append(place.code)
        self.low.append(None)
        self.high.append(None)
        self.nulls.append(nulls)
        self.values.append(values)
        self.is_nan_free.append(nulls >= 0)

    def _add_known(
        self,
        column: str,
        place: ColumnPlace,
        chunk_files: Sequence[FooterFile],
        chunks: Sequence[Any],
        values: list[int],
    ) -> None:
        """Add the chunks of files with trusted statistics.

        ``of``: the file of each chunk. ``values``: the number of values in each chunk.
        """
        kind, writer = place.kind, place.writer
        assert kind is not None, "only columns that are there have chunks"
        has_bounds = kind.has_order and (writer.orders_bytes or not kind.is_bytes)
        nulls, low, high = _read_statistics(
            chunks, (column, kind.physical), values, has_bounds=has_bounds
        )
        if place.hides_nulls:
            nulls = [
                UNKNOWN if count != total and chunk.has_dictionary_page else count
                for chunk, count, total in zip(chunks, nulls, values, strict=True)
            ]
        if kind.is_float:
            is_nan = [a != a or b != b for a, b in zip(low, high, strict=True)]  # noqa: PLR0124
            low, high = _set_none(low, is_nan), _set_none(high, is_nan)
        if kind.is_bytes and writer.drops_long:
            high = _set_none(high, [value == b"" for value in high])
        if kind.calendar_limits:
            low, high = _drop_other_calendar(kind.calendar_limits, chunk_files, low, high)
        nan_free = [True] * len(chunk_files)
        if kind.is_float:
            nan_free = [
                count == total
                or (
                    least is not None
                    if writer.shows_nan
                    else column in read_nan_free_columns(file.pairs, file.name)
                )
                for file, count, total, least in zip(chunk_files, nulls, values, low, strict=True)
            ]
        self.file += [file.number for file in chunk_files]
        self.kind += [place.code] * len(chunk_files)
        self.low += low
        self.high += high
        self.nulls += nulls
        self.values += values
        self.is_nan_free += nan_free

    def file_statistics(
        self, wanted: Any, kinds: Sequence[tuple[ParquetKind, FooterWriter]], files: int
    ) -> ColumnStats:
        """Return the column's statistics with an element for each of ``files`` files."""
        file = np.array(self.file, np.int64)
        order = np.argsort(file, kind="stable")
        is_free = np.array(self.is_nan_free, np.bool_)
        if not pa.types.is_floating(wanted):
            is_free[:] = True
        return _reduce_to_files(
            self._convert_chunks(wanted, kinds, is_free, order), file[order], files
        )

    def _convert_chunks(
        self,
        wanted: Any,
        kinds: Sequence[tuple[ParquetKind, FooterWriter]],
        is_free: Mask,
        order: Integers,
    ) -> ColumnStats:
        """Return the statistics of the chunks in the column's type, in the given order."""
        codes = sorted({*self.kind})
        rows = [np.flatnonzero(np.array(self.kind, np.int64) == code) for code in codes]
        parts = [ChunkBounds.unknown(wanted, 0)]
        for code, at in zip(codes, rows, strict=True):
            if code < 0:
                parts.append(ChunkBounds.unknown(wanted, len(at)))
                continue
            kind, writer = kinds[code]
            low, high = _select_values(self.low, at), _select_values(self.high, at)
            bounds = convert_bounds(kind, wanted, low, high)
            if kind.is_bytes and kind.logical != "DECIMAL" and writer.cuts_text:
                is_one = is_true(pc.equal(bounds.least, bounds.greatest))
                bounds = replace(bounds, is_exact_least=is_one, is_exact_greatest=is_one)
            parts.append(bounds)
        back = np.argsort(np.concatenate([np.zeros(0, np.int64), *rows]), kind="stable")[order]
        return ColumnStats(
            least=pa.concat_arrays([part.least for part in parts]).take(to_arrow(back)),
            greatest=pa.concat_arrays([part.greatest for part in parts]).take(to_arrow(back)),
            nulls=np.array(self.nulls, np.int64)[order],
            values=np.array(self.values, np.int64)[order],
            is_exact_least=np.concatenate([part.is_exact_least for part in parts])[back],
            is_exact_greatest=np.concatenate([part.is_exact_greatest for part in parts])[back],
            is_nan_free=is_free[order],
        )


def _read_statistics(
    chunks: Sequence[Any], column: tuple[str, str], values: Sequence[int], *, has_bounds: bool
) -> tuple[list[int], list[Any], list[Any]]:
    """Return the null counts and both bounds of chunks, None for each that is not stored.

    ``column``: path and physical type. ``values``: the number of values of each chunk. A chunk of
    another column, with another number of values or with an impossible null count is damaged;
    nothing is known of it. pyarrow ends the process when a chunk's type differs from its schema's.
    This loop runs a hundred thousand times and more, so every pyarrow call in it counts.
    """
    nulls, low, high = [], [], []
    for chunk, total in zip(chunks, values, strict=True):
        count = least = greatest = None
        try:
            is_it = (chunk.path_in_schema, chunk.physical_type) == column
            stats = chunk.statistics if is_it and chunk.num_values == total else None
            if stats is not None:
                count = stats.null_count
                if count is not None and not 0 <= count < total:
                    if count != total or stats.has_min_max:  # a chunk of nulls has no bounds
                        count = None
                elif has_bounds and stats.has_min_max:
                    least, greatest = stats.min_raw, stats.max_raw
        except (pa.ArrowException, OSError, ValueError):  # statistics of an unexpected length
            count = least = greatest = None
        nulls.append(0 if total == 0 else UNKNOWN if count is None else count)
        low.append(least)
        high.append(greatest)
    return nulls, low, high


def _drop_other_calendar(
    calendar: tuple[int, int],
    chunk_files: Sequence[FooterFile],
    low: Sequence[Any],
    high: Sequence[Any],
) -> tuple[list[Any], list[Any]]:
    """Replace bounds of days and times that may belong to another calendar with None."""
    start, sure = calendar
    is_old = [
        least is not None and least < start and not file.is_proleptic
        for file, least in zip(chunk_files, low, strict=True)
    ]
    is_unsure = [old and most < sure for old, most in zip(is_old, high, strict=True)]
    return _set_none(low, is_old), _set_none(high, is_unsure)


def _set_none(values: Sequence[Any], is_out: Sequence[bool]) -> list[Any]:
    return [None if out else value for value, out in zip(values, is_out, strict=True)]


def _select_values(values: list[Any], at: Integers) -> list[Any]:
    return values if len(at) == len(values) else [values[row] for row in at.tolist()]


def _reduce_to_files(chunks: ColumnStats, file: Integers, files: int) -> ColumnStats:
    """Return the statistics of ``files`` files; ``file``: the file of each chunk, ascending.

    A file without chunks is unknown. A bound is known if each chunk has it or holds only nulls.
    """
    if len(file) == files and (file == np.arange(files)).all():
        return chunks
    count = np.bincount(file, minlength=files)
    low, is_low = _outermost_bounds(chunks, file, files, is_least=True)
    high, is_high = _outermost_bounds(chunks, file, files, is_least=False)
    free = np.bincount(file, chunks.is_nan_free, files) == count
    is_float = pa.types.is_floating(chunks.type)
    return ColumnStats(
        least=low,
        greatest=high,
        nulls=_sum_counts(chunks.nulls, file, count),
        values=_sum_counts(chunks.values, file, count),
        is_exact_least=is_low,
        is_exact_greatest=is_high,
        is_nan_free=free & (count > 0) if is_float else np.ones(files, np.bool_),
    )


def _sum_counts(values: Integers, file: Integers, count: Integers) -> Integers:
    """Sum counts per file; unknown if any chunk's count is unknown or the file has no chunk."""
    sums = sum_by_code(file, values, len(count))
    is_known = np.bincount(file, values >= 0, len(count)) == count
    return np.where(is_known & (count > 0), sums, UNKNOWN)


def _outermost_bounds(
    chunks: ColumnStats, file: Integers, files: int, *, is_least: bool
) -> tuple[Any, Mask]:
    """Return the outermost bound of each file's chunks, and whether it is a value of the file."""
    values = chunks.least if is_least else chunks.greatest
    exact = chunks.is_exact_least if is_least else chunks.is_exact_greatest
    is_known = to_numpy(values.is_valid())
    is_complete = np.bincount(file, is_known | chunks.is_all_null, files) == np.bincount(
        file, minlength=files
    )
    some = np.flatnonzero(is_known & is_complete[file])
    rows = pa.table(
        {
            "file": to_arrow(file[some]),
            "value": values.take(to_arrow(some)),
            "exact": to_arrow((~exact[some]).astype(np.int8)),
        }
    )
    keys = [
        ("file", "ascending"),
        ("value", "ascending" if is_least else "descending"),
        ("exact", "ascending"),
    ]
    some = some[to_numpy(pc.sort_indices(rows, sort_keys=keys)).astype(np.int64)]
    is_first = np.ones(len(some), np.bool_)
    is_first[1:] = file[some[1:]] != file[some[:-1]]
    firsts = some[is_first]
    place = np.full(files, UNKNOWN, np.int64)
    place[file[firsts]] = firsts
    is_there = place >= 0
    at = to_nullable(place, is_there)
    bounds = values.take(at) if len(values) else pa.nulls(files, values.type)
    return bounds, is_there & exact[np.where(is_there, place, 0)] if len(exact) else is_there
