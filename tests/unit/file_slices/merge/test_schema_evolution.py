"""Convert columns of an older schema to a newer one."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from reconciler.errors import UnsupportedError
from reconciler.file_slices.merge.repeated_texts import CODED_TEXT
from reconciler.file_slices.merge.schema_evolution import evolve_batch, evolve_column


@pytest.mark.parametrize(
    ("have", "wanted", "before", "after"),
    [
        (pa.int32(), pa.int64(), [1, None], [1, None]),
        (pa.int32(), pa.float32(), [1, None], [1.0, None]),
        (pa.int32(), pa.string(), [-1, None], ["-1", None]),
        (pa.int64(), pa.float64(), [2**53 + 1, None], [2.0**53, None]),
        (pa.float32(), pa.float64(), [0.5, None], [0.5, None]),
        (pa.string(), pa.binary(), ["é", None], [b"\xc3\xa9", None]),
        (pa.binary(), pa.string(), [b"\xc3\xa9", None], ["é", None]),
        (pa.binary(2), pa.binary(), [b"ab", None], [b"ab", None]),
        (pa.int8(), pa.int32(), [1, None], [1, None]),
        (
            pa.decimal128(5, 1),
            pa.decimal128(9, 2),
            [Decimal("1.5"), None],
            [Decimal("1.50"), None],
        ),
        (pa.null(), pa.int32(), [None], [None]),
        (pa.dictionary(pa.int8(), pa.string()), pa.string(), ["a", None], ["a", None]),
        (pa.dictionary(pa.int32(), pa.large_string()), CODED_TEXT, ["a", None], ["a", None]),
    ],
)
def test_values_are_promoted(have, wanted, before, after):
    found = evolve_column(pa.array(before, have), wanted, "f")

    assert wanted == found.type
    assert after == found.to_pylist()


@pytest.mark.parametrize(
    ("have", "wanted"),
    [
        (pa.int64(), pa.int32()),
        (pa.string(), pa.int32()),
        (pa.float64(), pa.float32()),
        (pa.timestamp("us", "UTC"), pa.timestamp("us")),
        (pa.list_(pa.int32()), pa.int32()),
        (pa.decimal128(9, 2), pa.decimal128(9, 1)),
    ],
)
def test_what_hudi_does_not_permit_is_refused(have, wanted):
    with pytest.raises(UnsupportedError, match=r"f: .* in the file cannot be read as the table's"):
        evolve_column(pa.array([None], have), wanted, "f")


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(UnsupportedError, match=r"f: .*UTF8"):
        evolve_column(pa.array([b"\xff"]), pa.string(), "f")


def test_nested_types_evolve_inside_also_in_a_slice_of_a_batch():
    old = pa.struct([("b", pa.int32()), ("a", pa.list_(pa.int32()))])
    new = pa.struct([("a", pa.list_(pa.int64())), ("new", pa.string()), ("b", pa.int64())])
    old_map, new_map = pa.map_(pa.string(), old), pa.map_(pa.string(), new)
    value = {"b": 1, "a": [1, None]}
    before = pa.array([[("x", value)], None, [], [("y", None), ("z", value)]], old_map)
    after = {"a": [1, None], "new": None, "b": 1}

    assert [[("x", after)], None, [], [("y", None), ("z", after)]] == evolve_column(
        before, new_map, "f"
    ).to_pylist()
    assert [None, [], [("y", None), ("z", after)]] == evolve_column(
        before[1:], new_map, "f"
    ).to_pylist()
    lists = pa.array([[1], None, [2, 3], []], pa.list_(pa.int32()))
    assert [None, [2, 3], []] == evolve_column(lists[1:], pa.list_(pa.int64()), "f").to_pylist()
    structs = pa.array([value, None, value], old)
    assert [None, after] == evolve_column(structs[1:], new, "f").to_pylist()


def test_a_nested_column_that_does_not_fit_is_named():
    old, new = pa.struct([("a", pa.string())]), pa.struct([("a", pa.int64())])

    with pytest.raises(UnsupportedError, match=r"^f, column s.a: string in the file"):
        evolve_batch(pa.record_batch([pa.array([None], old)], ["s"]), pa.schema([("s", new)]), "f")
