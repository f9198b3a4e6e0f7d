"""Write trips through a city to Parquet files: sixteen columns, sorted by time.

Where and when trips begin are distributed as in curve_data; 71 bytes a row in Snappy.
"""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.bench.curve_data import Query, trip_queries

COLUMNS = ["pu_lon", "pu_lat", "pickup_us"]
KEY = "trip_id"
ROWS_A_FILE = 250_000
HALF_A_YEAR_US = 180 * 86400 * 10**6
FIRST_US = 1735689600 * 10**6
PAYMENTS = np.array(["credit", "cash", "no charge", "dispute", "unknown", "voided"])


class City:
    """Forty neighbourhoods, few of them busy."""

    def __init__(self) -> None:
        self.rng = rng = np.random.default_rng(42)
        self.lon, self.lat = rng.uniform(-74.05, -73.75, 40), rng.uniform(40.58, 40.9, 40)
        self.around, self.busy = rng.uniform(0.002, 0.03, 40), rng.dirichlet(np.ones(40) * 0.5)

    def places(self, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Draw neighbourhoods, longitudes and latitudes."""
        at = self.rng.choice(40, rows, p=self.busy)
        lon = self.lon[at] + self.rng.normal(0, 1, rows) * self.around[at]
        lat = self.lat[at] + self.rng.normal(0, 1, rows) * self.around[at]
        return at, lon.round(6), lat.round(6)

    def trips(self, first: int, rows: int, apart_us: int) -> pa.Table:
        """Return trips numbered from ``first``, with the given mean distance in time."""
        rng = self.rng
        at, lon, lat = self.places(rows)
        _, to_lon, to_lat = self.places(rows)
        number = np.arange(first, first + rows)
        begin = FIRST_US + number * apart_us + rng.integers(0, 3600 * 10**6, rows)
        way = (np.hypot(lon - to_lon, lat - to_lat) * 60 * rng.uniform(1, 1.6, rows)).round(2)
        fare = (2.5 + way * rng.uniform(2, 3.5, rows)).round(2)
        tip = np.where(rng.random(rows) < 0.55, fare * rng.uniform(0.1, 0.3, rows), 0.0).round(2)
        zones = np.array([f"Zone {zone:03d} {'abcdefghij'[zone % 10] * 4}" for zone in range(260)])
        return pa.table(
            {
                KEY: number,
                "vendor_id": rng.integers(1, 3, rows).astype(np.int32),
                "pickup_us": begin,
                "dropoff_us": begin + (way * 180e6).astype(np.int64),
                "passengers": rng.integers(1, 7, rows).astype(np.int32),
                "pu_lon": lon,
                "pu_lat": lat,
                "do_lon": to_lon,
                "do_lat": to_lat,
                "distance": way,
                "fare": fare,
                "tip": tip,
                "total": (fare + tip + 0.5).round(2),
                "payment": PAYMENTS[rng.integers(0, 6, rows)],
                "zone": zones[at * 6 + (np.abs(lon) * 1e5).astype(np.int64) % 6],
                "note": pa.array(rng.integers(0, 2**63, rows)).cast(pa.string()),
            }
        )


def trip_files(folder: Path, rows: int) -> Path:
    """Write trips to files of 250 000, at least eight, unless they exist; return the folder."""
    if folder.is_dir():
        return folder
    half = folder.with_name(f"{folder.name}.half")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    city, count = City(), max(8, -(-rows // ROWS_A_FILE))
    starts = [rows * number // count for number in range(count + 1)]
    for number, (first, last) in enumerate(pairwise(starts)):
        table = city.trips(first, last - first, HALF_A_YEAR_US // rows)
        pq.write_table(table, half / f"part-{number:05d}.parquet", compression="snappy")
    half.rename(folder)
    return folder


def query_mix(folder: Path) -> list[Query]:
    """Return the hundred queries on these trips."""
    return trip_queries(pq.read_table(folder, columns=COLUMNS), 7)
