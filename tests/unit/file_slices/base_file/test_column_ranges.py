"""Collect the ranges of columns while rows are written."""

from __future__ import annotations

import io
import math
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.errors import FormatError
from reconciler.file_slices.base_file.column_ranges import RangeCollector
from reconciler.hudi.metadata.record_encoder import ColumnRange

NAN = math.nan


def found(column, together=1, name="c", wanted="c"):
    rows = pa.RecordBatch.from_arrays([column], [name])
    ranges = RangeCollector([wanted], "f.parquet")
    for start in range(0, len(rows), together):
        ranges.add(rows.slice(start, together))
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_batches([rows]), sink)
    (one,) = ranges.build_ranges(pq.ParquetFile(sink).metadata)
    return one


@pytest.mark.parametrize(
    ("kind", "values", "least", "greatest"),
    [
        (pa.bool_(), [True, None, False], False, True),
        (pa.int32(), [3, None, -1], -1, 3),
        (pa.float64(), [0.5, None, -0.5], -0.5, 0.5),
        (pa.float32(), [None, -math.inf], -math.inf, -math.inf),
        (pa.string(), ["é", "a", None, "😀", "ｱ"], "a", "😀"),
        (pa.binary(), [b"\xff", b"\x00", None], b"\x00", b"\xff"),
        (pa.decimal128(5, 2), [Decimal("1.50"), None], Decimal("1.50"), Decimal("1.50")),
        (pa.date32(), [date(1970, 1, 3), None], 2, 2),
        (pa.timestamp("us", "UTC"), [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)], 10**6, 10**6),
        (pa.timestamp("ms", "UTC"), [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)], 1000, 1000),
        (pa.time32("ms"), [time(0, 0, 1)], 1000, 1000),
        (pa.dictionary(pa.int32(), pa.string()), ["b", "a"], "a", "b"),
        (pa.dictionary(pa.int32(), pa.string()), ["b", None], "b", "b"),
        (pa.dictionary(pa.int32(), pa.string()), [None, None], None, None),
        (pa.int64(), [None, None], None, None),
        (pa.int64(), [], None, None),
    ],
)
@pytest.mark.parametrize("together", [1, 10])
def test_bounds_are_those_of_all_rows(kind, values, least, greatest, together):
    one = found(pa.array(values, kind), together)

    assert (least, greatest) == (one.least, one.greatest)
    assert type(least) is type(one.least)
    assert (len(values), values.count(None)) == (one.values, one.nulls)


def test_unused_dictionary_values_do_not_count():
    column = pa.DictionaryArray.from_arrays(pa.array([1, 1]), pa.array(["a", "b", "c"]))

    assert ("b", "b") == (found(column).least, found(column).greatest)


@pytest.mark.parametrize(
    ("values", "expected"),
    [([1.0, NAN, None], "1.0 nan"), ([NAN, NAN], "nan nan"), ([NAN, 2.0, 1.0], "1.0 nan")],
)
@pytest.mark.parametrize("together", [1, 10])
def test_nan_is_the_greatest_number_as_in_spark(values, expected, together):
    one = found(pa.array(values), together)

    assert expected == f"{one.least} {one.greatest}"


def test_a_field_of_a_struct_is_found_by_dots():
    column = pa.array([{"x": {"y": 1}}, None, {"x": None}])
    one = found(column, wanted="c.x.y")

    assert ("c.x.y", 1, 1, 3, 2) == (one.column, one.least, one.greatest, one.values, one.nulls)
    assert one.size > 0


def test_sizes_are_those_of_all_row_groups():
    rows = pa.table({"a": [1, 2, 3], "b": ["x" * 50, "y", "z"]})
    sink = io.BytesIO()
    pq.write_table(rows, sink, row_group_size=1)
    footer = pq.ParquetFile(sink).metadata
    chunks = [footer.row_group(group).column(1) for group in range(3)]
    (one,) = RangeCollector(["b"], "f").build_ranges(footer)

    assert sum(chunk.total_compressed_size for chunk in chunks) == one.size
    assert sum(chunk.total_uncompressed_size for chunk in chunks) == one.plain_size


def test_a_missing_column_is_named():
    with pytest.raises(FormatError, match=r"^f.parquet: .*no column z"):
        found(pa.array([1]), wanted="z")


def test_ranges_of_files_make_that_of_a_partition():
    some = {"column": "c", "values": 2, "size": 10, "plain_size": 20}
    files = [
        ColumnRange(**some, least="b", greatest="ｱ", nulls=0),
        ColumnRange(**some, least=None, greatest=None, nulls=2),
        ColumnRange(**some, least="c", greatest="😀", nulls=1),
    ]
    expected = ColumnRange(
        column="c", least="b", greatest="😀", values=6, nulls=3, size=30, plain_size=60
    )

    assert expected == files[0].merge(files[1]).merge(files[2])
