"""Measure how fast keys are computed, in millions of rows per CPU second on one core.

python -m tests.bench.curves_speed                  4 000 000 rows
python -m tests.bench.curves_speed --rows 1000000

Of two and of three columns, and of text: fitting to a sample (seconds); keys from the columns'
values; keys from their ranks alone; files from keys; the rows of a file in order. CPU seconds of
this process, the best of three.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from reconciler.layout.curves.curve_keys import hilbert_keys, interleave_bits
from reconciler.layout.curves.row_layout import (
    DirectMapping,
    FitSample,
    assign_files,
    compute_keys,
    fit_layout,
    sort_by_key,
)
from tests.bench.curve_data import trips

FILES = 71
SAMPLE = 200_000


def cpu_seconds(work: Callable[[], Any], times: int = 3) -> float:
    """Return the fewest CPU seconds of several calls."""
    found = []
    for _ in range(times):
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return min(found)


def print_layout_speed(name: str, table: pa.Table, columns: list[str], **options: Any) -> None:
    """Print the speed of one layout."""
    rows = table.num_rows
    sample = table.take(np.linspace(0, rows - 1, SAMPLE).astype(np.int64))
    layout = fit_layout(FitSample(rows=sample), columns, files=FILES, **options)
    key = compute_keys(layout, table)
    part = np.ascontiguousarray(key[:, assign_files(layout, key) == 0])
    work = {
        "keys": (lambda: compute_keys(layout, table), rows),
        "files": (lambda: assign_files(layout, key), rows),
        "order": (lambda: sort_by_key(part), part.shape[1]),
    }
    fitted = cpu_seconds(
        lambda: fit_layout(FitSample(rows=sample), columns, files=FILES, **options), 1
    )
    speeds = [f"{what} {n / cpu_seconds(do) / 1e6:6.1f}" for what, (do, n) in work.items()]
    print(
        f"{len(columns)} {name:22} fit {fitted:4.1f} s  {'  '.join(speeds)}  M rows/s", flush=True
    )


def print_curve_speed(columns: int, rows: int) -> None:
    """Print the speed of the curves alone."""
    rng = np.random.default_rng(1)
    ranks = [rng.integers(0, 1 << 12, rows, dtype=np.uint16) for _ in range(columns)]
    for name, curve in (("z-order", interleave_bits), ("hilbert", hilbert_keys)):
        taken = cpu_seconds(lambda curve=curve: curve(ranks, 12))
        print(f"{columns} {name} from ranks: {rows / taken / 1e6:.1f} M rows/s", flush=True)


def main() -> None:
    """Print the speed of every layout."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    arguments = parser.parse_args()
    table = trips(arguments.rows).table
    places = {"pu_lon": 10, "pu_lat": 11, "pickup_us": 7}
    queries = [
        "pu_lon between -73.95 and -73.94 and pu_lat between 40.7 and 40.71",
        "pickup_us = 0",
    ]
    for columns in (["pu_lon", "pu_lat"], table.column_names):
        print_curve_speed(len(columns), arguments.rows)
        at = [places[name] for name in columns]
        for curve in ("linear", "z-order", "hilbert", "kd-tree"):
            print_layout_speed(curve, table, columns, curve=curve)
        print_layout_speed("kd-tree, queries", table, columns, curve="kd-tree", queries=queries)
        for curve in ("z-order", "hilbert"):
            print_layout_speed(
                f"{curve}, direct", table, columns, curve=curve, direct=DirectMapping(positions=at)
            )
    numbers = np.random.default_rng(2).integers(0, 10**9, arguments.rows)
    text = pa.array(numbers).cast(pa.string())
    table = pa.table({"customer": text, "pickup_us": table["pickup_us"]})
    for curve in ("linear", "z-order", "hilbert", "kd-tree"):
        print_layout_speed(f"{curve}, text", table, table.column_names, curve=curve)


if __name__ == "__main__":
    main()
