from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa
import pytest

from reconciler.hudi.metadata.stored_ranges import StoredRange
from reconciler.verification.footer_ranges import FoundRange
from reconciler.verification.range_comparison import (
    RangeVerdict,
    compare_ranges,
    describe_found,
    describe_stored,
)

FITS, NARROW, DOUBTFUL = RangeVerdict


def stored(least=0, greatest=9, nulls=0, values=5, **more):
    return StoredRange(least=least, greatest=greatest, nulls=nulls, values=values, **more)


def found(least=0, greatest=9, nulls=0, values=5, *, is_exact=True, **more):
    bounds = {"least": least, "greatest": greatest, "nulls": nulls, "values": values}
    return FoundRange(**bounds, is_exact=is_exact, **more)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (stored(), found(), FITS),
        (stored(-1, 10), found(), FITS),
        (stored(1, 9), found(), NARROW),
        (stored(0, 8), found(), NARROW),
        (stored(0, 8), found(is_exact=False), DOUBTFUL),
        (stored(), found(None, None), DOUBTFUL),
        (stored(None, None), found(), NARROW),
        (stored(None, None), found(nulls=-1), DOUBTFUL),
        (stored(nulls=5), found(), NARROW),
        (stored(None, None, nulls=5), found(None, None, nulls=5), FITS),
        (stored(0, 0, nulls=5), found(None, None, nulls=5), FITS),
        (stored(nulls=0), found(nulls=1), NARROW),
        (stored(nulls=0), found(None, None, nulls=5), NARROW),
        (stored(nulls=3), found(nulls=0), FITS),
        (stored(), found(None, None, nulls=0, values=0), FITS),
        (stored(b"a", b"b"), found(1, 2), FITS),
        (stored(0.0, math.inf), found(0.5, math.inf, has_nan=True), FITS),
        (stored(0.0, 0.0), found(0.5, math.inf, has_nan=True), NARROW),
        (stored(Decimal("1.50"), Decimal(2)), found(Decimal("1.5"), Decimal("2.00")), FITS),
    ],
)
def test_a_range_fits_if_no_reader_loses_rows_by_it(one, other, expected):
    assert expected is compare_ranges(one, other, pa.int64())


def test_times_without_a_type_may_be_in_milliseconds():
    kind, times = pa.timestamp("us", tz="UTC"), found(5_000_000, 9_000_000)

    assert FITS is compare_ranges(stored(5_000, 9_000, is_typed=False), times, kind)
    assert NARROW is compare_ranges(stored(5_000, 9_000), times, kind)
    assert NARROW is compare_ranges(stored(6_000, 9_000, is_typed=False), times, kind)


@pytest.mark.parametrize(
    ("kind", "one", "text"),
    [
        (pa.int32(), stored(1, 1), "1, no null"),
        (pa.int32(), stored(nulls=5), "null in all rows"),
        (pa.bool_(), stored(0, 1, nulls=2), "false to true, nulls"),
        (pa.string(), stored(b"a", b"\xc3\xa9"), "'a' to 'é', no null"),
        (pa.binary(), stored(b"\x00", b"\xff"), "'00' to 'ff', no null"),
        (pa.date32(), stored(0, 20000), "1970-01-01 to 2024-10-04, no null"),
        (
            pa.timestamp("us", tz="UTC"),
            stored(0, 0),
            "1970-01-01T00:00:00+00:00, no null",
        ),
        (pa.decimal128(9, 2), stored(Decimal("1.50"), Decimal(100)), "1.5 to 100, no null"),
    ],
)
def test_ranges_are_described_as_people_write_values(kind, one, text):
    assert text == describe_stored(one, kind)


def test_what_a_file_holds_is_described():
    assert "0 to 9, 2 nulls" == describe_found(found(nulls=2), pa.int32())
    assert "0.5 to NaN, no null" == describe_found(found(0.5, math.inf, has_nan=True), pa.float64())
    nan = found(math.inf, math.inf, has_nan=True)
    assert "NaN, no null" == describe_found(nan, pa.float64())
    assert "null in all 5 rows" == describe_found(found(None, None, nulls=5), pa.int32())
    assert "unknown bounds, unknown nulls" == describe_found(FoundRange(), pa.int32())
