"""Clusterings into one file by real Hudi 1.2.0: mapping ``direct`` orders the rows as it did."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from reconciler.curves.layout import fit, keys, order

CASE = Path(__file__).parent / "curves" / "zkey_1.2.0.zip"
CASES = (
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


@pytest.fixture(scope="module")
def seen():
    """1500 rows with nulls, NaN and signed zeros; the ids as Hudi ordered them; column places."""
    with zipfile.ZipFile(CASE) as case:
        rows = pq.read_table(io.BytesIO(case.read("rows.parquet")))
        orders = pq.read_table(io.BytesIO(case.read("orders.parquet")))
        return rows, orders, json.loads(case.read("places.json"))


def test_every_clustering_is_compared(seen):

    assert list(CASES) == sorted(seen[1].column_names, key=CASES.index)


@pytest.mark.parametrize("case", CASES)
def test_rows_are_in_the_order_that_hudi_gave_them(seen, case):
    rows, orders, places = seen
    curve, columns = case.split()
    columns = columns.split(",")
    by_hudi = np.asarray(orders[case])

    layout = fit(
        rows,
        columns,
        files=1,
        curve=curve,
        mapping="direct",
        places=[places[column] for column in columns],
    )
    key = keys(layout, rows)[:, by_hudi]

    assert np.arange(len(by_hudi)).tolist() == order(key).tolist()
