"""Read what is in the columns of base files: from footers, and from values where they are silent.

A range that a footer proves decides at once. Hudi writes ranges also where a footer proves nothing
(NaN, text beyond 4 KiB), and is wrong there, so then the column itself is read.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.errors import UnsupportedError
from reconciler.file_slices.merge.range_file import RangeSource, open_parquet, reading_parquet
from reconciler.hudi.metadata.column_stats import Bound
from reconciler.index.build import IndexRequest, files_to_batch, read_share
from reconciler.index.file_keys import find_rows, take_files
from reconciler.index.footers import find_index_types
from reconciler.index.model import ColumnStats, FileIndex
from reconciler.lazy_dataclass import dataclass
from reconciler.state.index_state_reader import build_file_keys
from reconciler.storage.parallel import run_parallel
from reconciler.verification.checked_table import Advance, CheckedTable

_BATCH_ROWS: Final = 64 * 1024
_SIDES: Final = ("min", "max")
_BEFORE_MICROS: Final = {"s": 1_000_000, "ms": 1000, "us": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRange:
    """What a file holds in a column; bounds compare with those of ``StoredRange``.

    ``least``, ``greatest``: None if unknown or without values. ``nulls``, ``values``: -1 if
    unknown. ``is_exact``: both bounds are values of the file, so nothing narrower is right.
    ``has_nan``: a value is NaN, as far as known.
    """

    least: Bound | None = None
    greatest: Bound | None = None
    nulls: int = -1
    values: int = -1
    is_exact: bool = False
    has_nan: bool = False

    @property
    def is_all_null(self) -> bool:
        return 0 <= self.values == self.nulls


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FooterRanges:
    """The footers of the chosen base files, an element per file in their order.

    ``types``: the Arrow types of the columns that can be compared. ``problems``: why footers could
    not be read, for the first few; ``unread``: mask of these files.
    """

    index: FileIndex
    types: dict[str, Any]
    problems: tuple[str, ...]
    unread: Any

    def list_ranges(self, column: str, files: Sequence[int]) -> Iterator[FoundRange]:
        """Yield what some files hold in a column."""
        stats = self.index.columns[column].take(np.array(files, np.int64))
        return list_found_ranges(stats)


def read_footer_ranges(
    table: CheckedTable, columns: Collection[str], advance: Advance
) -> FooterRanges:
    """Read the footers of the chosen base files for those columns that can be compared.

    A damaged footer is a problem and no error. Raises StorageError.
    """
    types: dict[str, Any] = {}
    for column in columns:
        try:
            types |= find_index_types((column,), table.columns.schema)
        except UnsupportedError:
            continue  # lists, maps and times have no bounds, and dropped columns no readers
    request = IndexRequest(
        columns=tuple(types),
        schema=table.columns.schema,
        supplied=table.columns.find_supplied(types, table.properties),
    )
    keys = build_file_keys(table.state, table.bases)
    built = read_share(table.storage, request, files_to_batch(keys), progress=advance)
    # the index is sorted by path; the files of the table are sorted by partition and name as well
    index = take_files(built.index, find_rows(built.index, keys))
    return FooterRanges(
        index=index, types=types, problems=built.problems, unread=np.asarray(index.rows < 0)
    )


def list_found_ranges(stats: ColumnStats) -> Iterator[FoundRange]:
    """Yield the statistics of one file after the other."""
    facts = zip(
        _to_bounds(stats.least),
        _to_bounds(stats.greatest),
        stats.nulls.tolist(),
        stats.values.tolist(),
        (stats.is_exact_least & stats.is_exact_greatest).tolist(),
        strict=True,
    )
    for least, greatest, nulls, values, is_exact in facts:
        yield FoundRange(
            least=least, greatest=greatest, nulls=nulls, values=values, is_exact=is_exact
        )


def _to_bounds(column: Any) -> list[Any]:
    """Return an array's values in comparable form."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        factor = _BEFORE_MICROS.get(kind.unit)
        numbers = column.view(pa.int64()).to_pylist()
        if factor is None:
            return [None if value is None else value // 1000 for value in numbers]
        return [None if value is None else value * factor for value in numbers]
    plain = column.view(pa.int32()) if pa.types.is_date32(kind) else column
    values: list[Any] = plain.to_pylist()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return [None if value is None else value.encode() for value in values]
    if pa.types.is_boolean(kind):
        return [None if value is None else int(value) for value in values]
    return values


def read_column_values(
    source: RangeSource, file: tuple[str, int], columns: Sequence[str]
) -> dict[str, FoundRange]:
    """Return what a base file holds in some columns, from its values; columns it lacks are missing.

    ``file``: path and bytes. Raises FormatError.
    """
    path, size = file
    found: dict[str, FoundRange] = {}
    with reading_parquet(path):
        opened = open_parquet(source, path, size)
        for column in columns:
            first, *inner = column.split(".")
            if first not in opened.schema_arrow.names:
                continue
            parts = [
                _read_batch(batch.column(0), inner)
                for batch in opened.iter_batches(_BATCH_ROWS, columns=[column])
            ]
            if all(part is not None for part in parts):
                found[column] = _merge_found([part for part in parts if part is not None])
    return found


def _read_batch(values: Any, inner: Sequence[str]) -> FoundRange | None:
    """Return what an array holds; None for a type whose values do not compare."""
    for name in inner:
        if not pa.types.is_struct(values.type) or values.type.get_field_index(name) < 0:
            return None
        values = pc.struct_field(values, name)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if pa.types.is_nested(kind) or pa.types.is_time(kind):
        return None
    if pa.types.is_fixed_size_binary(kind):
        values = values.cast(pa.binary())
    nulls, has_nan = values.null_count, False
    if pa.types.is_floating(kind):
        is_nan = pc.is_nan(values)
        has_nan = bool(pc.any(is_nan).as_py())
        values = values.filter(pc.invert(is_nan)) if has_nan else values
    ends = pc.min_max(values)
    bounds = pa.concat_arrays([pa.array([ends[side].as_py()], values.type) for side in _SIDES])
    least, greatest = _to_bounds(bounds)
    return FoundRange(
        least=least,
        greatest=greatest,
        nulls=nulls,
        values=len(values) if not has_nan else len(is_nan),
        is_exact=True,
        has_nan=has_nan,
    )


def _merge_found(parts: Sequence[FoundRange]) -> FoundRange:
    """Return what batches of a file hold together; NaN is greater than every number."""
    known = [part for part in parts if part.least is not None]
    least: list[Any] = [part.least for part in known]
    greatest: list[Any] = [part.greatest for part in known]
    has_nan = any(part.has_nan for part in parts)
    top = max(greatest, default=None)
    return FoundRange(
        least=min(least, default=math.inf if has_nan else None),
        greatest=math.inf if has_nan else top,
        nulls=sum(part.nulls for part in parts),
        values=sum(part.values for part in parts),
        is_exact=True,
        has_nan=has_nan,
    )


@dataclass(kw_only=True, eq=False)
class ColumnValues:
    """Reads columns of base files whose footers prove nothing, each of them once."""

    table: CheckedTable
    known: dict[tuple[int, str], FoundRange] = field(default_factory=dict)

    def read(self, wanted: Mapping[int, Collection[str]]) -> None:
        """Read columns by the position of their base file; what does not compare stays unknown."""
        missing = {
            file: [column for column in sorted(columns) if (file, column) not in self.known]
            for file, columns in sorted(wanted.items())
        }
        files = [file for file, columns in missing.items() if columns]

        def read_file(file: int) -> dict[str, FoundRange]:
            where = self.table.state.files.locate_file(int(self.table.bases[file]))
            return read_column_values(self.table.storage, where, missing[file])

        results = run_parallel(read_file, files, parallelism=self.table.parallelism)
        for file, found in zip(files, results, strict=True):
            self.known |= {(file, column): one for column, one in found.items()}

    def get(self, file: int, column: str) -> FoundRange:
        """Return what was read; an unknown range fits every stored one."""
        return self.known.get((file, column), FoundRange())
