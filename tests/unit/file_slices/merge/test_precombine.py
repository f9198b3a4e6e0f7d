"""Merge log records with each other as Hudi 0.x does."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from reconciler.file_slices.merge.precombine import pick_precombined


def winner(kind, *times):
    """Return the index of the winning record of one key, in written order."""
    none = np.zeros(len(times), np.bool_)
    codes = np.zeros(len(times), np.int64)
    ordering = [pa.array(times, kind)]
    (found,) = pick_precombined(codes, 1, ordering, is_final=none, is_listed=none).tolist()
    return found


@pytest.mark.parametrize(
    ("times", "won"),
    [
        (("4.5", "3.5"), 0),
        (("4.5", "-1.5"), 1),
        (("-1.5", "4.5"), 0),
        (("-1.5", "-0.5", "-2.5"), 1),
        (("-1.5", "-1.5"), 1),
        ((None, "-1.5", "0.0"), 1),
    ],
)
def test_negative_decimals_sort_last(times, won):
    values = [time and Decimal(time) for time in times]

    assert won == winner(pa.decimal128(20, 4), *values)


def test_other_numbers_sort_by_value():

    assert 1 == winner(pa.float64(), -2.5, 4.5, -1.5)
    assert 1 == winner(pa.int64(), -2, 4, -1)
