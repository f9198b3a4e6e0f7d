"""Hudi's mapping of single values that no fixture covers, taken from Hudi's code."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from reconciler.errors import UnsupportedError
from reconciler.layout.curves.direct_mapping import _hilbert_word, _z_order_word, column_order

TOP = 1 << 63
LONG_MAX = TOP - 1


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (pa.int8(), -1, 0xFF),
        (pa.int8(), None, 0x7F),
        (pa.int16(), -1, 0x7FFF_FFFF),
        (pa.int16(), None, 0x8000_7FFF),
        (pa.int64(), None, 2 * TOP - 1),
        (pa.float32(), None, 0xC7EF_FFFF_E000_0000),
        (pa.float64(), 0.0, 0),
        (pa.float64(), -0.0, TOP),
        (pa.float64(), float("nan"), 0x7FF8_0000_0000_0000),
        (pa.string(), "b", 0x62),
        (pa.string(), "abcdefghij", 0x6162636465666768),
        (pa.string(), None, 0),
        (pa.decimal128(12, 3), Decimal("-1.999"), TOP - 1),
        (pa.decimal128(38, 0), Decimal(2**64 + 5), TOP + 5),
        (pa.date32(), date(1970, 1, 2), TOP + 86_400_000),
        (pa.timestamp("us", "UTC"), datetime(1970, 1, 1, 0, 0, 0, 1999, UTC), TOP + 1),
    ],
)
def test_z_order_word_of_a_value(kind, value, expected):

    assert [expected] == _z_order_word(pa.array([value], kind), "c", "UTC").tolist()


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (pa.int8(), -1, 0xFF),
        (pa.int32(), -1, 2 * TOP - 1),
        (pa.float64(), -0.0, TOP),
        (pa.string(), None, LONG_MAX),
        (pa.bool_(), True, LONG_MAX),
        (pa.bool_(), None, 0),
        (pa.date32(), None, LONG_MAX),
    ],
)
def test_hilbert_word_of_a_value(kind, value, expected):

    assert [expected] == _hilbert_word(pa.array([value], kind), "c", "UTC").tolist()


def test_date_is_midnight_in_the_session_zone():
    days = pa.array([date(2026, 1, 1), date(2026, 7, 1)])

    found = (
        _z_order_word(days, "c", "America/New_York") - _z_order_word(days, "c", "UTC")
    ).tolist()

    assert [5 * 3_600_000, 4 * 3_600_000] == found


def test_date_before_the_gregorian_calendar_is_julian():
    days = [date(1582, 10, 4), date(1582, 10, 10), date(1582, 10, 15), date(1, 1, 1)]

    found = (_hilbert_word(pa.array(days), "c", "UTC").view("i8") // 86_400_000).tolist()

    assert [-141_428, -141_427, -141_427, -719_164] == found


def test_columns_are_ordered_like_in_a_java_hash_map():

    assert (0, 2, 1) == column_order([17, 11, 10])
    assert (1, 0) == column_order([7, 16])
    assert tuple(range(13)) == column_order(range(5, 18))


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.time64("us"), pa.list_(pa.int8())])
def test_types_that_hudi_does_not_map_are_refused(kind):

    with pytest.raises(UnsupportedError, match="cannot be clustered by column c"):
        _z_order_word(pa.array([None], kind), "c", "UTC")
