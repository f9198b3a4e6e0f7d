"""Clusterings into one file by real Hudi 1.2.0: mapping ``direct`` orders the rows as it did."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from reconciler.layout.curves.row_layout import (
    DirectMapping,
    FitSample,
    compute_keys,
    fit_layout,
    sort_by_key,
)

FOLDER = Path(__file__).parent / "curves"
#: 1500 rows of every type with nulls, NaN and signed zeros, in UTC
TYPES = (
    "hilbert b,i2",
    "hilbert d,l2",
    "hilbert i2,dp,l2",
    "hilbert i2,l2",
    "hilbert i,l",
    "hilbert s,bin",
    "hilbert t,dt",
    "z-order b,dp",
    "z-order d,l2",
    "z-order dt,l2",
    "z-order f,d",
    "z-order i2,l2",
    "z-order i2,s,d",
    "z-order i,l",
    "z-order l2,i2",
    "z-order s,bin",
    "z-order t,dec",
)
#: 800 dates and timestamps from 1570 to 1586, by a session and a JVM in New York
OLD_DATES = ("hilbert dt,l", "hilbert dt,t", "hilbert t,l", "z-order dt,l", "z-order t,l")
CASES = [
    *(("zkey_1.2.0.zip", case, "UTC") for case in TYPES),
    *(("old_dates_1.2.0.zip", case, "America/New_York") for case in OLD_DATES),
]


def read(name):
    """The rows by id; the ids in Hudi's order, by case; the places of columns in Hudi's file."""
    with zipfile.ZipFile(FOLDER / name) as case:
        rows = pq.read_table(io.BytesIO(case.read("rows.parquet")))
        orders = pq.read_table(io.BytesIO(case.read("orders.parquet")))
        return rows, orders, json.loads(case.read("places.json"))


def test_every_clustering_is_compared():
    recorded = {
        (name, case)
        for name in ("zkey_1.2.0.zip", "old_dates_1.2.0.zip")
        for case in read(name)[1].column_names
    }

    assert recorded == {(name, case) for name, case, _ in CASES}


@pytest.mark.parametrize(("name", "case", "zone"), CASES)
def test_rows_are_in_the_order_that_hudi_gave_them(name, case, zone):
    rows, orders, places = read(name)
    curve, columns = case.split()
    columns = columns.split(",")
    by_hudi = np.asarray(orders[case])

    layout = fit_layout(
        FitSample(rows=rows),
        columns,
        files=1,
        curve=curve,
        direct=DirectMapping(positions=[places[column] for column in columns], zone=zone),
    )
    key = compute_keys(layout, rows)[:, by_hudi]

    assert np.arange(len(by_hudi)).tolist() == sort_by_key(key).tolist()
