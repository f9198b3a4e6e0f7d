"""Write the rows of a history of writes to Parquet: batches of trips, then changes to them.

Trips are those of trip_files, with the region that is their partition and a number that grows with
every change of a row, by which the newest counts.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tests.bench.trip_files import HALF_A_YEAR_US, KEY, City

PARTITION: Final = "region"
ORDERING: Final = "changed"
REGIONS: Final = 10
#: bytes of a row in Snappy, Hudi's columns with it: what both sides are told
ROW_BYTES: Final = 110
#: files of a batch: a reading task each
_FILES: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Batches of ``rows`` new trips, then batches of changes to a ``share`` of all trips."""

    rows: int
    inserts: int = 20
    upserts: int = 10
    share: float = 0.05

    @property
    def total(self) -> int:
        return self.rows * self.inserts

    @property
    def steps(self) -> list[tuple[str, str]]:
        """The operation and the folder of every write."""
        new = [("insert", f"insert-{number:02d}") for number in range(self.inserts)]
        return new + [("upsert", f"upsert-{number:02d}") for number in range(self.upserts)]


def history_files(folder: Path, history: History) -> Path:
    """Write the files of every step and of ``seed`` unless they exist; return the folder."""
    if folder.is_dir():
        return folder
    half = folder.with_name(f"{folder.name}.half")
    shutil.rmtree(half, ignore_errors=True)
    for name, table in _steps(history):
        (half / name).mkdir(parents=True)
        for number in range(_FILES):
            first, last = (len(table) * at // _FILES for at in (number, number + 1))
            file = half / name / f"part-{number}.parquet"
            pq.write_table(table.slice(first, last - first), file, compression="snappy")
    half.rename(folder)
    return folder


def _steps(history: History) -> Iterator[tuple[str, pa.Table]]:
    city, rng = City(), np.random.default_rng(7)
    apart = HALF_A_YEAR_US // history.total
    seeds = np.arange(history.total, history.total + REGIONS)
    yield "seed", _rows(city.trips(history.total, REGIONS, apart), seeds, 0)
    changes = 0
    for operation, name in history.steps:
        if operation == "insert":
            keys = np.arange(history.rows) + int(name[-2:]) * history.rows
            yield name, _rows(city.trips(int(keys[0]), history.rows, apart), keys, 0)
        else:
            changes += 1
            keys = rng.choice(history.total, int(history.total * history.share), replace=False)
            yield name, _rows(city.trips(0, len(keys), apart), keys, changes)


def _rows(trips: pa.Table, keys: NDArray[np.int64], changed: int) -> pa.Table:
    names = np.array([f"region-{number}" for number in range(REGIONS)])
    trips = trips.set_column(trips.schema.get_field_index(KEY), KEY, pa.array(keys))
    trips = trips.append_column(PARTITION, pa.array(names[keys % REGIONS]))
    return trips.append_column(ORDERING, pa.array(np.full(len(keys), changed)))
