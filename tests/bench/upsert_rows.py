"""Write the rows of upserts to Parquet: trips in files of 250 000, and one file of changes.

Trips are those of trip_files with a number that grows with every change of a row, by which the
newest counts. They are sorted by key, as any time-ordered ingestion leaves them.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tests.bench.trip_files import HALF_A_YEAR_US, KEY, City

ORDERING: Final = "changed"
ROWS_A_FILE: Final = 250_000
#: of all keys, so that their texts are in the order of their numbers, as texts of fixed length are
FIRST_KEY: Final = 1_000_000_000
#: so that several tasks can read the one file of changes
_ROWS_A_GROUP: Final = 128 * 1024
#: the columns whose sums are compared, and by what they become whole numbers
SUMMED: Final = {KEY: 1, ORDERING: 1, "pu_lon": 1_000_000, "total": 100, "passengers": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Changes of ``rows`` trips, at random among the first ``among`` ones."""

    name: str
    rows: int
    among: int

    @classmethod
    def of_share(cls, table_rows: int, share: float = 0.05) -> Self:
        """Return the batch that changes a share of all trips."""
        return cls(name="random", rows=int(table_rows * share), among=table_rows)

    @classmethod
    def of_files(cls, rows: int, files: int) -> Self:
        """Return the batch that changes trips of so many files alone."""
        return cls(name=f"{rows}-in-{files}-files", rows=rows, among=files * ROWS_A_FILE)


def table_files(folder: Path, rows: int) -> Path:
    """Write the table's files unless they exist; return the folder."""
    if folder.is_dir():
        return folder
    half = folder.with_name(f"{folder.name}.half")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    city = City()
    for number, first in enumerate(range(0, rows, ROWS_A_FILE)):
        count = min(ROWS_A_FILE, rows - first)
        trips = city.trips(first, count, HALF_A_YEAR_US // rows)
        trips = _set_keys(trips, np.arange(first, first + count))
        trips = trips.append_column(ORDERING, pa.array(np.zeros(count, np.int64)))
        pq.write_table(trips, half / f"part-{number:05d}.parquet", compression="snappy")
    half.rename(folder)
    return folder


def batch_file(file: Path, batch: Batch, table_rows: int) -> Path:
    """Write the file of changes unless it exists; return it."""
    if not file.is_file():
        keys = np.random.default_rng(7).choice(batch.among, batch.rows, replace=False)
        trips = City().trips(table_rows, batch.rows, HALF_A_YEAR_US // table_rows)
        trips = _set_keys(trips, keys)
        trips = trips.append_column(ORDERING, pa.array(np.ones(batch.rows, np.int64)))
        pq.write_table(trips, file, compression="snappy", row_group_size=_ROWS_A_GROUP)
    return file


def expected_sums(folder: Path, file: Path) -> list[int]:
    """Return the number of rows and the sums of columns after the upsert."""
    changed = pq.read_table(file, columns=[*SUMMED])
    keys = np.sort(changed[KEY].to_numpy())
    total = _sums(changed)
    for path in sorted(folder.glob("*.parquet")):
        rows = pq.read_table(path, columns=[*SUMMED])
        stays = pc.invert(pc.is_in(rows[KEY], value_set=pa.array(keys)))
        total = total + _sums(rows.filter(stays))
    return [int(value) for value in total]


def _set_keys(trips: pa.Table, keys: NDArray[np.int64]) -> pa.Table:
    at = trips.schema.get_field_index(KEY)
    return trips.set_column(at, KEY, pa.array(keys + FIRST_KEY))


def _sums(rows: pa.Table) -> NDArray[np.int64]:
    sums = [
        np.rint(rows[name].to_numpy() * times).astype(np.int64).sum()
        for name, times in SUMMED.items()
    ]
    return np.array([len(rows), *sums], np.int64)
