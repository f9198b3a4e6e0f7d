from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from reconciler.hudi.metadata.bound_encoding import find_bound_encoding, is_indexed_by_hudi

NEVER = [
    pa.timestamp("ms", tz="UTC"),
    pa.timestamp("us"),
    pa.time64("us"),
    pa.binary(16),
    pa.list_(pa.int8()),
    pa.struct({"x": pa.int8()}),
]


@pytest.mark.parametrize("kind", NEVER, ids=str)
def test_types_without_known_entries_have_no_encoding(kind):
    assert [None] * 3 == [find_bound_encoding(kind, version) for version in (6, 8, 9)]


def test_version_9_records_the_type_of_bounds():
    found = find_bound_encoding(pa.decimal128(7, 2), 9)

    assert ("org.apache.hudi.avro.model.BytesWrapper", Decimal("99999.99")) == (
        found.wrapper.wrapper,
        found.greatest,
    )
    assert {"typeOrdinal": 10, "additionalInfo": "7,2"} == found.wrapper.value_type[1]


def test_older_versions_keep_15_digits_on_each_side_of_the_point():
    kinds = [pa.decimal128(30, 15), pa.decimal128(16, 0), pa.decimal128(16, 16)]

    assert [True, False, False] == [find_bound_encoding(kind, 8) is not None for kind in kinds]


def test_the_greatest_decimal_is_not_rounded():
    found = find_bound_encoding(pa.decimal128(38, 10), 9)

    assert Decimal("9999999999999999999999999999.9999999999") == found.greatest
    assert Decimal("-9999999999999999999999999999.9999999999") == found.least


def test_types_that_writers_index():
    kinds = [pa.int8(), pa.decimal128(38, 10), pa.list_(pa.int8())]

    assert [True, True, True] == [is_indexed_by_hudi(kind, 6) for kind in kinds]
    assert [True, False, False] == [is_indexed_by_hudi(kind, 8) for kind in kinds]
    assert [True, True, False] == [is_indexed_by_hudi(kind, 9) for kind in kinds]
