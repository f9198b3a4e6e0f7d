"""Rows and queries for comparing layouts: trips through a city, and six pairs of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

#: by column, the least and the greatest value, both included
Query = Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True, kw_only=True)
class Data:
    """A data set. ``mix``: measured queries. ``declared``: similar queries, or the mix itself."""

    name: str
    table: pa.Table
    files: int
    mix: Sequence[Query]
    declared: Sequence[Query]
    more: Sequence[Query] = ()

    @property
    def columns(self) -> list[str]:
        return self.table.column_names


def where(query: Query) -> str:
    """Return a query as the SQL predicate of a spec."""
    return " and ".join(f"{c} between {low} and {high}" for c, (low, high) in query.items())


def trips(rows: int) -> Data:
    """Return where and when trips begin: forty neighbourhoods, half a year, sorted by time."""
    rng = np.random.default_rng(42)
    count = 40
    lon, lat = rng.uniform(-74.05, -73.75, count), rng.uniform(40.58, 40.9, count)
    around, busy = rng.uniform(0.002, 0.03, count), rng.dirichlet(np.ones(count) * 0.5)
    at = rng.choice(count, rows, p=busy)
    span = 180 * 86400 * 10**6
    time = 1735689600 * 10**6 + np.arange(rows) * (span // rows)
    table = pa.table(
        {
            "pu_lon": np.round(lon[at] + rng.normal(0, 1, rows) * around[at], 6),
            "pu_lat": np.round(lat[at] + rng.normal(0, 1, rows) * around[at], 6),
            "pickup_us": time + rng.integers(0, 3600 * 10**6, rows),
        }
    )
    mix = trip_queries(table, 7)
    more = [query for seed in range(100, 110) for query in trip_queries(table, seed)]
    return Data(name="trips", table=table, files=71, mix=mix, declared=mix, more=more)


def trip_queries(table: pa.Table, seed: int) -> list[Query]:
    """Return fifty boxes of three columns, thirty of the first two, twenty ranges of one column."""
    rng = np.random.default_rng(seed)
    picked = np.random.default_rng(1).choice(table.num_rows, 200_000)
    sample = {name: table[name].to_numpy()[picked] for name in table.column_names}
    ordered = {name: np.sort(values) for name, values in sample.items()}

    def box(columns: Sequence[str], width: float) -> Query:
        row, found = rng.integers(len(picked)), {}
        for name in columns:
            middle = np.searchsorted(ordered[name], sample[name][row]) / len(picked)
            low = min(max(middle - width / 2, 0), 1 - width)
            places = [int(share * (len(picked) - 1)) for share in (low, low + width)]
            found[name] = (ordered[name][places[0]].item(), ordered[name][places[1]].item())
        return found

    names = table.column_names
    found = [box(names, rng.uniform(0.08, 0.2)) for _ in range(50)]
    found += [box(names[:2], rng.uniform(0.04, 0.1)) for _ in range(30)]
    return found + [box([names[nth % 3]], 0.02) for nth in range(20)]


#: of a query on two columns: the share of the rows on each, 0 one value, None any
KINDS = ((0.1, 0.1), (0.03, 0.03), (0.01, None), (None, 0.01), (0.0, None), (None, 0.0))


#: names of the distributions of ``pairs``
PAIRS = (
    "int, signed double",
    "two ints of one range",
    "ints to 1e6 and to 1e3",
    "lognormal doubles",
    "correlated doubles",
    "skewed int, int",
)


def pairs(rows: int) -> list[Data]:
    """Return two columns in each of six distributions, for 32 files each."""
    rng = np.random.default_rng(7)
    whole = rng.integers(0, 1_000_000, rows).astype(np.int32)
    z = rng.normal(0, 1, rows)
    found = [
        (whole, rng.random(rows) * 2000 - 1000),
        (whole, rng.integers(0, 1_000_000, rows).astype(np.int32)),
        (whole, rng.integers(0, 1000, rows).astype(np.int32)),
        (np.exp(rng.normal(0, 2, rows)), np.exp(rng.normal(0, 2, rows))),
        (z, 0.9 * z + 0.436 * rng.normal(0, 1, rows)),
        (
            np.minimum(rng.zipf(1.3, rows), 10**6).astype(np.int32),
            rng.integers(0, 1_000_000, rows).astype(np.int32),
        ),
    ]
    named = zip(PAIRS, found, strict=True)
    return [_pair(name, pa.table({"x": x, "y": y})) for name, (x, y) in named]


def _pair(name: str, table: pa.Table) -> Data:
    return Data(
        name=name,
        table=table,
        files=32,
        mix=_pair_queries(table, 42, 200),
        declared=_pair_queries(table, 43, 10),
    )


def _pair_queries(table: pa.Table, seed: int, each: int) -> list[Query]:
    rng = np.random.default_rng(seed)
    ordered = {name: np.sort(table[name].to_numpy()) for name in table.column_names}

    def between(name: str, share: float) -> tuple[Any, Any]:
        rows = max(int(table.num_rows * share), 1)
        first = rng.integers(0, table.num_rows - rows)
        return ordered[name][first].item(), ordered[name][first + rows - 1].item()

    return [
        {
            name: between(name, share)
            for name, share in zip(("x", "y"), shares, strict=True)
            if share is not None
        }
        for shares, _ in product(KINDS, range(each))
    ]
