"""Make the rows that systems cluster: trips, rows of 400 columns, and nested orders.

A shape's files hold rows in order of time, in at least eight files, and are written once.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.bench import trip_files
from tests.bench.curve_data import Query

WIDE_KEY, WIDE_COLUMNS = "id", ["double_000", "long_000", "int_000"]
NESTED_KEY, NESTED_COLUMNS = "order_id", ["lon", "lat", "ordered_us"]
#: columns of the wide rows by type, besides the key; a third of each has few values
WIDE_TYPES = {"double": 120, "long": 100, "int": 60, "text": 79, "flag": 20, "day": 20}
CITIES = [f"City of {name}" for name in ("Alba", "Berg", "Cove", "Dale", "Elm", "Ford", "Glen")]


@dataclass(frozen=True, kw_only=True)
class RowShape:
    """A kind of rows. ``make`` writes so many rows below a folder, and returns theirs.

    ``columns``: what they are clustered by. ``target``: MiB of a new file. ``mix``: returns the
    queries whose reads are counted, None if there are none.
    """

    name: str
    rows: int
    key: str
    columns: list[str]
    target: float
    make: Callable[[Path, int], Path]
    mix: Callable[[Path], list[Query]] | None = None


def wide_rows(first: int, rows: int) -> pa.Table:
    """Return rows of 400 columns, numbered from ``first``; every fifth column has nulls."""
    rng = np.random.default_rng(first + 1)
    columns: dict[str, pa.Array] = {WIDE_KEY: pa.array(np.arange(first, first + rows))}
    for kind, count in WIDE_TYPES.items():
        for nth in range(count):
            mask = rng.random(rows) < 0.1 if nth % 5 == 4 else None
            values = _wide_column(rng, kind, rows, has_few=nth % 3 == 2)
            columns[f"{kind}_{nth:03d}"] = pa.array(values, mask=mask)
    return pa.table(columns)


def _wide_column(rng: np.random.Generator, kind: str, rows: int, *, has_few: bool) -> np.ndarray:
    match kind:
        case "double":
            return rng.integers(0, 50, rows) / 4 if has_few else rng.normal(100, 25, rows).round(3)
        case "long":
            return rng.integers(0, 100 if has_few else 2**40, rows)
        case "int":
            return rng.integers(0, 12 if has_few else 100_000, rows).astype(np.int32)
        case "flag":
            return rng.random(rows) < 0.3
        case "day":
            return (rng.integers(0, 365 if has_few else 9000, rows) + 10_000).astype("M8[D]")
        case _:
            names = np.array([f"value {nth:04d}" for nth in range(20 if has_few else 5000)])
            return names[rng.integers(0, len(names), rows)]


def nested_rows(first: int, rows: int) -> pa.Table:
    """Return orders with a struct, an array of structs, an array and a map."""
    rng = np.random.default_rng(first + 1)
    number = np.arange(first, first + rows)
    cities = pa.array(CITIES).take(pa.array(rng.integers(0, len(CITIES), rows)))
    streets = pa.array(rng.integers(0, 5000, rows)).cast(pa.string())
    address = pa.StructArray.from_arrays(
        [cities, streets, pa.array(rng.integers(10_000, 99_999, rows).astype(np.int32))],
        ["city", "street", "zip"],
    )
    items = _lists(rng, rows, 5)
    count = int(items[-1].as_py())
    cents = rng.integers(99, 50_000, count)
    item = pa.StructArray.from_arrays(
        [
            pa.array(rng.integers(0, 20_000, count)).cast(pa.string()),
            pa.array(rng.integers(1, 6, count).astype(np.int32)),
            pa.array(cents / 100),
        ],
        ["sku", "quantity", "price"],
    )
    scores, marks = _lists(rng, rows, 4), _lists(rng, rows, 3)
    names = pa.array([f"attribute {nth}" for nth in range(12)])
    total = int(marks[-1].as_py())
    keys = names.take(pa.array((np.arange(total) % 12).astype(np.int32)))  # no key twice in a map
    return pa.table(
        {
            NESTED_KEY: number,
            "ordered_us": trip_files.FIRST_US + number * 10**6 + rng.integers(0, 10**9, rows),
            "lon": rng.normal(8, 3, rows).round(5),
            "lat": rng.normal(50, 2, rows).round(5),
            "address": address,
            "items": pa.ListArray.from_arrays(items, item),
            "scores": pa.ListArray.from_arrays(
                scores, pa.array(rng.integers(0, 10**6, int(scores[-1].as_py())))
            ),
            "attributes": pa.MapArray.from_arrays(
                marks, keys, pa.array(rng.integers(0, 1000, total)).cast(pa.string())
            ),
        }
    )


def _lists(rng: np.random.Generator, rows: int, most: int) -> pa.Array:
    """Return the offsets of lists of no to ``most`` values."""
    return pa.array(np.concatenate([[0], np.cumsum(rng.integers(0, most + 1, rows))]), pa.int32())


def write_rows(make: Callable[[int, int], pa.Table], folder: Path, rows: int) -> Path:
    """Write rows to eight files unless they exist; return the folder."""
    if folder.is_dir():
        return folder
    half = folder.with_name(f"{folder.name}.half")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    starts = [rows * number // 8 for number in range(9)]
    for number, (first, last) in enumerate(pairwise(starts)):
        pq.write_table(make(first, last - first), half / f"part-{number:05d}.parquet")
    half.rename(folder)
    return folder


def _write_wide(folder: Path, rows: int) -> Path:
    return write_rows(wide_rows, folder, rows)


def _write_nested(folder: Path, rows: int) -> Path:
    return write_rows(nested_rows, folder, rows)


SHAPES = {
    shape.name: shape
    for shape in (
        RowShape(
            name="trips",
            rows=16_000_000,
            key=trip_files.KEY,
            columns=trip_files.COLUMNS,
            target=16,
            make=trip_files.trip_files,
            mix=trip_files.query_mix,
        ),
        RowShape(
            name="wide",
            rows=200_000,
            key=WIDE_KEY,
            columns=WIDE_COLUMNS,
            target=32,
            make=_write_wide,
        ),
        RowShape(
            name="nested",
            rows=1_000_000,
            key=NESTED_KEY,
            columns=NESTED_COLUMNS,
            target=16,
            make=_write_nested,
        ),
    )
}
