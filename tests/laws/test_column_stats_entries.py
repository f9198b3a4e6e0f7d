"""Every entry that we write to Hudi's column statistics covers all values of its file."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.executor.index.column_ranges import make_file_ranges
from reconciler.hudi.metadata.bound_encoding import find_bound_encoding
from reconciler.index.footers import index_footers
from tests.selection import examples
from tests.unit.index.footer_samples import write_footer

CENTS = st.decimals(-9999, 9999, places=2)
VALUES = {
    pa.int32(): st.integers(-(1 << 31), (1 << 31) - 1),
    pa.float64(): st.floats(),
    pa.float32(): st.floats(width=32),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=4),
    pa.binary(): st.binary(max_size=4),
    pa.decimal128(6, 2): CENTS,
    pa.date32(): st.dates(),
    pa.timestamp("us", tz="UTC"): st.datetimes(timezones=st.just(UTC)),
}
COLUMNS = st.sampled_from([*VALUES]).flatmap(
    lambda kind: st.tuples(
        st.just(kind), st.lists(st.none() | VALUES[kind], max_size=5), st.booleans()
    )
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def comparable(value):
    """Return a value as the index keeps it, text as bytes."""
    if isinstance(value, datetime):
        return (value - EPOCH) // (EPOCH.resolution)
    if isinstance(value, date):
        return (value - EPOCH.date()).days
    return value.encode() if isinstance(value, str) else value


@settings(max_examples=examples(17, many=80), deadline=None)
@given(COLUMNS)
def test_every_value_is_within_bounds_and_nulls_are_counted(column):
    kind, values, has_statistics = column
    footer = write_footer(pa.table({"x": pa.array(values, kind)}), write_statistics=has_statistics)
    index = index_footers([("", "f.parquet", 1, footer)], ["x"], pa.schema([("x", kind)]))
    for version in (6, 8, 9):
        ((found,),) = (
            file.ranges
            for file in make_file_ranges(index, {"x": find_bound_encoding(kind, version)})
        )
        nulls = values.count(None)
        if None in values:
            assert found.nulls > 0
        if nulls < len(values):
            assert found.nulls < found.values
            assert None not in {found.least, found.greatest}
        for value in values:
            if value is None or (isinstance(value, float) and math.isnan(value)):
                continue
            assert comparable(found.least) <= comparable(value) <= comparable(found.greatest)


def test_decimals_compare_by_value():
    assert Decimal("1.10") == comparable(Decimal("1.1"))
