"""Check the claims of an index about files against their values, read with pyarrow."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reconciler.index.model import ColumnStats, FileIndex


def find_false_claims(index: FileIndex, folder: Path, supplied: Collection[str] = ()) -> list[str]:
    """Return every false claim of an index as a sentence; missing files are skipped.

    ``supplied``: columns that readers fill in where a file lacks them.
    """
    return [
        sentence
        for row in range(len(index))
        for sentence in _check_file(index, row, folder, supplied)
    ]


def read_values(path: Path, column: str, kind: Any) -> Any | None:
    """Return the values of a column or struct field; None if the file lacks it."""
    first, *rest = column.split(".")
    with pq.ParquetFile(path) as file:
        if first not in file.schema_arrow.names:
            return None
        found = file.read(columns=[first]).column(first).combine_chunks()
    for name in rest:
        if found.type.get_field_index(name) < 0:
            return None
        found = pc.struct_field(found, name)  # null if the struct is null
    return found.cast(kind, safe=False)


def _check_file(
    index: FileIndex, row: int, folder: Path, supplied: Collection[str]
) -> Iterator[str]:
    partition, name = index.partition[row].as_py(), index.name[row].as_py()
    path = folder / partition / name
    if not path.exists() or path.stat().st_size != index.size[row] or index.rows[row] < 0:
        return
    if index.rows[row] != pq.read_metadata(path).num_rows:
        yield f"{name}: wrong number of rows"
    for column, stats in index.columns.items():
        values = read_values(path, column, stats.type)
        if values is None:
            if column in supplied and stats.nulls[row] != -1:
                yield f"{name}: {column}: readers fill it in, but it is called null"
            values = pa.nulls(int(index.rows[row]), stats.type)
        for what in _check_column(stats, row, values):
            yield f"{name}: {column}: {what}"


def _check_column(stats: ColumnStats, row: int, values: Any) -> Iterator[str]:
    if stats.nulls[row] not in (-1, values.null_count):
        yield f"{stats.nulls[row]} nulls, not {values.null_count}"
    if stats.values[row] not in (-1, len(values)):
        yield f"{stats.values[row]} values, not {len(values)}"
    values = values.drop_null()
    if pa.types.is_floating(values.type):
        is_nan = pc.is_nan(values)
        if stats.is_nan_free[row] and pc.any(is_nan).as_py():
            yield "a NaN"
        values = values.filter(pc.invert(is_nan))
    yield from _check_bounds(stats, row, values)


def _check_bounds(stats: ColumnStats, row: int, values: Any) -> Iterator[str]:
    least, greatest = stats.least[row], stats.greatest[row]
    if least.is_valid and pc.any(pc.less(values, least)).as_py():
        yield f"a value below {least}"
    if greatest.is_valid and pc.any(pc.greater(values, greatest)).as_py():
        yield f"a value above {greatest}"
    for is_exact, bound in (
        (stats.is_exact_least[row], least),
        (stats.is_exact_greatest[row], greatest),
    ):
        if is_exact and not pc.any(pc.equal(values, bound)).as_py():
            yield f"{bound} is not a value"


def count_known_bounds(index: FileIndex) -> Mapping[str, int]:
    """Return, by column, the number of files with both bounds known."""
    return {
        column: sum(
            low.is_valid and high.is_valid
            for low, high in zip(stats.least, stats.greatest, strict=True)
        )
        for column, stats in index.columns.items()
    }
