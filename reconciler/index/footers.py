"""The statistics of parquet footers as an index: what they prove of each column, and no more.

Through pyarrow, which parses a footer in native code: a footer of Hudi's is mostly its bloom
filter, and copying that costs more than all statistics do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.errors import UnsupportedError
from reconciler.hudi.arrow import flags, integers, strings
from reconciler.index.keys import index_in_order
from reconciler.index.kinds import Kind, converted
from reconciler.index.model import UNKNOWN, ColumnStats, FileIndex, fields_within, kept_type
from reconciler.index.nans import nan_free_columns
from reconciler.index.reduce import of_files
from reconciler.index.writers import Writer

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SPARK: Final = b"org.apache.spark.version"
_LEGACY: Final = b"org.apache.spark.legacyDateTime"
#: places of a column in a file that has none
_ABSENT: Final = -1
_UNTOLD: Final = -2
#: fields of a struct that a message names
_SHOWN: Final = 5


def index_of(
    files: Iterable[tuple[str, str, int, Any]],
    columns: Sequence[str],
    schema: Any,
    *,
    supplied: Collection[str] = (),
) -> FileIndex:
    """The index of files, given as (partition, name, size, footer), in any order, each once.

    ``footer``: pyarrow's FileMetaData, or the end of the file's bytes from the footer's first byte
    or before it; of None, and of a damaged one, nothing is known, its rows are -1. ``columns``:
    names, or with dots into structs; ``schema``: the table's columns as an Arrow schema.
    ``supplied``: columns that readers fill with something else than null where a file lacks them
    (from the partition's path, from another name). Raises UnsupportedError for a column that the
    schema has not, or of a type that has no bounds.
    """
    wanted = wanted_types(columns, schema)
    reading = _Reading(wanted=wanted, supplied=frozenset(supplied))
    partitions: list[str] = []
    names: list[str] = []
    sizes: list[int] = []
    for partition, name, size, footer in files:
        partitions.append(partition)
        names.append(name)
        sizes.append(size)
        reading.add(name, footer)
    return index_in_order(
        partition=strings(partitions).dictionary_encode(),
        name=strings(names),
        size=np.array(sizes, np.int64),
        rows=np.array(reading.rows, np.int64),
        columns=reading.statistics(),
    )


def index_of_groups(
    name: str, footer: Any, columns: Sequence[str], schema: Any, *, supplied: Collection[str] = ()
) -> FileIndex:
    """As ``index_of`` of one file, but of its row groups: an element each, in the file's order.

    ``name``: of the file; those of the elements are numbers. Of a footer that cannot be read there
    are none.
    """
    wanted = wanted_types(columns, schema)
    reading = _Reading(wanted=wanted, supplied=frozenset(supplied))
    found = _parsed(footer)
    groups = range(0 if found is None else found.num_row_groups)
    for group in groups:
        reading.add(name, found, group)
    return FileIndex(
        partition=strings([""] * len(groups)).dictionary_encode(),
        name=strings([str(group) for group in groups]),
        size=np.zeros(len(groups), np.int64),
        rows=np.array(reading.rows, np.int64),
        columns=reading.statistics(),
    )


def wanted_types(columns: Sequence[str], schema: Any) -> dict[str, Any]:
    """By column the type in which its bounds are kept.

    Raises UnsupportedError for a column that is not there, or of a type that has no bounds.
    """
    found = {}
    for column in columns:
        kind = _type_at(column, schema)
        kept = None if kind is None else kept_type(kind)
        if kept is None:
            why = "the table has no such column" if kind is None else _boundless(column, kind)
            raise UnsupportedError(f"column {column} cannot be indexed: {why}")
        found[column] = kept
    return found


def _boundless(column: str, kind: Any) -> str:
    """Why a column has no bounds, and what of it has some."""
    fields = fields_within(column, kind)
    if not fields:
        return f"it is of type {kind}"
    more = f" (and {len(fields) - _SHOWN} more)" if len(fields) > _SHOWN else ""
    return f"it is a struct; name its fields: {', '.join(fields[:_SHOWN])}{more}"


def _type_at(column: str, schema: Any) -> Any:
    """The type at a path of names with dots; None where there is none."""
    first, *rest = column.split(".")
    fields = {part.name: part.type for part in schema}
    kind = fields.get(first)
    for name in rest:
        if kind is None or not pa.types.is_struct(kind):
            return None
        kind = {part.name: part.type for part in kind}.get(name)
    return kind


@dataclass(slots=True)
class _Chunks:
    """Column chunks of one column: the file of each, its kind, and what its footer says."""

    file: list[int] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)
    low: list[Any] = field(default_factory=list)
    high: list[Any] = field(default_factory=list)
    nulls: list[int] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    is_free: list[bool] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where files of one schema have a column. ``code``: of its kind and writer."""

    at: int
    kind: Kind | None = None
    writer: Writer = field(default_factory=Writer)
    code: int = -1


@dataclass(frozen=True, slots=True)
class _Form:
    """Files of one schema and writer: where they have each column."""

    schema: Any
    created_by: str | None
    places: tuple[_Place, ...]


@dataclass(slots=True, kw_only=True)
class _Reading:
    """Reads one footer after another; ``rows``: of each file, -1 of an unreadable one."""

    wanted: Mapping[str, Any]
    supplied: frozenset[str]
    rows: list[int] = field(default_factory=list)
    _forms: list[_Form] = field(default_factory=list)
    _kinds: dict[tuple[Kind, Writer], int] = field(default_factory=dict)
    _chunks: dict[str, _Chunks] = field(default_factory=dict)

    def add(self, name: str, footer: Any, only: int | None = None) -> None:
        """The next file, or one row group of it."""
        nth = len(self.rows)
        found = _parsed(footer)
        form = None
        if found is not None:
            with suppress(pa.ArrowException, OSError, ValueError):  # names that are no text
                form = self._form(found)
        if form is None:
            self.rows.append(UNKNOWN)
            return
        ats = range(found.num_row_groups) if only is None else (only,)
        groups = [found.row_group(at) for at in ats]
        rows = found.num_rows if only is None else groups[0].num_rows
        self.rows.append(rows)
        file = _File(nth=nth, name=name, found=found)
        for column, place in zip(self.wanted, form.places, strict=True):
            chunks = self._chunks.setdefault(column, _Chunks())
            if place.kind is None or not place.writer.is_known:
                nulls = rows if place.at == _ABSENT else UNKNOWN
                _append(chunks, nth, place.code, None, None, nulls, rows, is_free=not nulls < 0)
                continue
            for group in groups:
                file.read(chunks, group.column(place.at), place, column)
            if not groups:
                _append(chunks, nth, place.code, None, None, 0, 0, is_free=True)

    def _form(self, found: Any) -> _Form:
        """Where a file has its columns; files of a table are alike, so the last one tells."""
        schema, created_by = _schema_of(found), found.created_by
        for form in reversed(self._forms):
            if form.created_by == created_by and form.schema.equals(schema):
                return form
        return self._new_form(schema, created_by)

    def _new_form(self, schema: Any, created_by: str | None) -> _Form:
        writer = Writer.of(created_by)
        paths = [schema.column(at).path for at in range(len(schema))]
        places = tuple(self._place(column, paths, schema, writer) for column in self.wanted)
        form = _Form(schema, created_by, places)
        self._forms.append(form)
        return form

    def _place(self, column: str, paths: Sequence[str], schema: Any, writer: Writer) -> _Place:
        ats = [at for at, path in enumerate(paths) if path == column]
        if not ats:
            other = any(p.startswith(f"{column}.") or column.startswith(f"{p}.") for p in paths)
            return _Place(_UNTOLD if other or column in self.supplied else _ABSENT)
        found = schema.column(ats[0])
        if len(ats) > 1 or found.max_repetition_level:
            return _Place(_UNTOLD)
        kind = Kind.of(found)
        return _Place(
            ats[0], kind, writer, self._kinds.setdefault((kind, writer), len(self._kinds))
        )

    def statistics(self) -> dict[str, ColumnStats]:
        """Of every column, an element a file."""
        kinds = tuple(self._kinds)
        return {
            column: _statistics(self._chunks.get(column, _Chunks()), kind, kinds, len(self.rows))
            for column, kind in self.wanted.items()
        }


def _schema_of(found: Any) -> Any:
    """The schema of a footer, as ``found.schema`` gives it.

    That one would be kept by the footer, and keeps it: a cycle that holds the footer's megabyte of
    bloom filter until the garbage collector comes by.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415

    return pq.ParquetSchema(found)


def _parsed(footer: Any) -> Any:
    """Pyarrow's FileMetaData; None of a footer that cannot be read."""
    import pyarrow.parquet as pq  # noqa: PLC0415 (only who builds an index needs it)

    if footer is None or isinstance(footer, pq.FileMetaData):
        return footer
    try:
        return pq.read_metadata(pa.BufferReader(pa.py_buffer(footer)))
    except (pa.ArrowException, OSError, ValueError, OverflowError):
        return None


@dataclass(slots=True, kw_only=True)
class _File:
    """A file while its column chunks are read; its key-value pairs are read when they matter."""

    nth: int
    name: str
    found: Any
    _said: Mapping[bytes, bytes] | None = None

    def read(self, chunks: _Chunks, chunk: Any, place: _Place, column: str) -> None:
        """One column chunk of it."""
        kind, writer, values = place.kind, place.writer, chunk.num_values
        assert kind is not None, "only columns that are there have chunks"
        low = high = nulls = None
        with suppress(pa.ArrowException, OSError, ValueError):  # statistics of other lengths
            if chunk.path_in_schema == column:
                nulls, low, high = self._told(chunk.statistics, kind, writer, values)
        if values == 0:
            nulls = 0
        is_free = (
            not kind.is_float
            or nulls == values
            or (writer.shows_nan and low is not None)
            or (not writer.shows_nan and column in nan_free_columns(self._pairs(), self.name))
        )
        count = UNKNOWN if nulls is None else nulls
        _append(chunks, self.nth, place.code, low, high, count, values, is_free=is_free)

    def _told(
        self, stats: Any, kind: Kind, writer: Writer, values: int
    ) -> tuple[int | None, Any, Any]:
        """The count of nulls and the bounds, None where they are not said."""
        if stats is None:
            return None, None, None
        nulls = stats.null_count
        if nulls == values or not kind.has_order or not stats.has_min_max:
            return nulls, None, None
        return nulls, *self._bounds(stats, kind, writer)

    def _bounds(self, stats: Any, kind: Kind, writer: Writer) -> tuple[Any, Any]:
        if kind.is_bytes and not writer.orders_bytes:
            return None, None
        low, high = stats.min_raw, stats.max_raw
        if kind.is_float and (low != low or high != high):  # noqa: PLR0124
            return None, None
        if writer.drops_long and high == b"":
            return low, None
        start = kind.calendar_from
        if start and low < start[0] and not self._is_proleptic:
            return None, high if high >= start[1] else None
        return low, high

    @property
    def _is_proleptic(self) -> bool:
        """Whether Spark 3 says that it counts old days as it does; else they may be others."""
        said = self._pairs()
        return said.get(_SPARK, b"") >= b"3.0.0" and _LEGACY not in said

    def _pairs(self) -> Mapping[bytes, bytes]:
        if self._said is None:
            self._said = self.found.metadata or {}
        return self._said


def _append(  # noqa: PLR0913, PLR0917
    chunks: _Chunks,
    file: int,
    kind: int,
    low: Any,
    high: Any,
    nulls: int,
    values: int,
    *,
    is_free: bool,
) -> None:
    chunks.file.append(file)
    chunks.kind.append(kind)
    chunks.low.append(low)
    chunks.high.append(high)
    chunks.nulls.append(nulls)
    chunks.values.append(values)
    chunks.is_free.append(is_free)


def _statistics(
    chunks: _Chunks, wanted: Any, kinds: Sequence[tuple[Kind, Writer]], files: int
) -> ColumnStats:
    """Of chunks the statistics of their files; chunks come in the order of files."""
    file = np.array(chunks.file, np.int64)
    nulls = np.array(chunks.nulls, np.int64)
    values = np.array(chunks.values, np.int64)
    is_free = np.array(chunks.is_free, np.bool_)
    if not pa.types.is_floating(wanted):
        is_free[:] = True
    of_chunks = _converted(chunks, wanted, kinds, nulls, values, is_free)
    return of_files(of_chunks, file, files)


def _converted(
    chunks: _Chunks,
    wanted: Any,
    kinds: Sequence[tuple[Kind, Writer]],
    nulls: NDArray[np.int64],
    values: NDArray[np.int64],
    is_free: NDArray[np.bool_],
) -> ColumnStats:
    """The chunks' statistics in the column's type, kind by kind."""
    code = np.array(chunks.kind, np.int64)
    low: list[Any] = [pa.nulls(0, wanted)]
    high: list[Any] = [pa.nulls(0, wanted)]
    exact: list[tuple[NDArray[np.bool_], NDArray[np.bool_]]] = []
    order: list[NDArray[np.int64]] = []
    for found in sorted({*chunks.kind}):
        at = np.flatnonzero(code == found)
        order.append(at)
        if found < 0:
            low.append(pa.nulls(len(at), wanted))
            high.append(pa.nulls(len(at), wanted))
            exact.append((np.zeros(len(at), np.bool_), np.zeros(len(at), np.bool_)))
            continue
        kind, writer = kinds[found]
        rows = at.tolist()
        bounds = converted(
            kind, wanted, [chunks.low[row] for row in rows], [chunks.high[row] for row in rows]
        )
        low.append(bounds.least)
        high.append(bounds.greatest)
        exact.append((bounds.is_exact_least, bounds.is_exact_greatest))
        if kind.is_bytes and kind.logical != "DECIMAL" and writer.cuts_text:
            is_one = flags(pc.equal(bounds.least, bounds.greatest).fill_null(False))
            exact[-1] = (is_one, is_one)
    none = np.zeros(0, np.bool_)
    back = np.argsort(np.concatenate([np.zeros(0, np.int64), *order]), kind="stable")
    return ColumnStats(
        least=pa.concat_arrays(low).take(integers(back)),
        greatest=pa.concat_arrays(high).take(integers(back)),
        nulls=nulls,
        values=values,
        is_exact_least=np.concatenate([none, *(one for one, _ in exact)])[back],
        is_exact_greatest=np.concatenate([none, *(one for _, one in exact)])[back],
        is_nan_free=is_free,
    )
