"""Merging index versions: what is kept, read again, widened and dropped."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from reconciler.arrays import to_arrow
from reconciler.index.footers import index_footers
from reconciler.index.merge import find_missing, merge_versions
from reconciler.index.model import FileKeys
from tests.unit.index.footer_samples import index_facts, make_index, read_facts, write_footer

LONG = {"x": pa.int64()}


def keys(*files):
    partitions, names, sizes = zip(*files, strict=True) if files else ((), (), ())
    return FileKeys(
        partition=to_arrow(partitions).dictionary_encode(),
        name=to_arrow(names),
        size=np.array(sizes, np.int64),
    )


A, B, C = ("p=1", "a", 1), ("p=1", "b", 2), ("p=2", "c", 3)
LIVE = keys(A, B, C)


def test_files_missing_from_the_last_version_are_read():
    last = make_index((*A, [1]), (*C, [3]))

    assert [1] == find_missing(last, LIVE, LONG).tolist()
    assert [0, 1, 2] == find_missing(None, LIVE, LONG).tolist()
    assert [0, 1, 2] == find_missing(make_index(), LIVE, LONG).tolist()
    assert [] == find_missing(last, keys(), LONG).tolist()


@pytest.mark.parametrize("other", [("p=2", "a", 1), ("p=1", "a", 9), ("p=1", "aa", 1)])
def test_file_with_another_partition_name_or_size_is_another_file(other):
    last = make_index((*other, [9]))
    found = merge_versions(last, make_index((*B, [2])), keys(A, B), LONG)

    assert [0] == find_missing(last, keys(A), LONG).tolist()
    assert ["b"] == found.name.to_pylist()


def test_files_of_one_name_in_several_partitions_are_distinguished():
    last = make_index(*((f"p={n}", "same", 1, [n]) for n in range(5)))
    found = merge_versions(last, make_index(), keys(("p=3", "same", 1), ("p=1", "same", 1)), LONG)

    assert [(1, 1, 0, 1), (3, 3, 0, 1)] == [read_facts(found.columns["x"], row) for row in (0, 1)]


def test_known_files_are_kept_and_new_statistics_take_precedence():
    last = make_index((*A, [1]), (*B, [2]))
    found = merge_versions(last, make_index((*B, [20]), (*C, [30])), LIVE, LONG)

    assert index_facts(make_index((*A, [1]), (*B, [20]), (*C, [30]))) == index_facts(found)


def test_files_that_are_no_longer_live_are_dropped():
    last = make_index((*A, [1]), (*B, [2]))

    assert ["b"] == merge_versions(last, make_index(), keys(B, C), LONG).name.to_pylist()
    assert [] == merge_versions(last, make_index(), keys(), LONG).name.to_pylist()


def test_new_column_is_unknown_for_files_that_were_not_read():
    both = {"x": pa.int64(), "y": pa.int64()}
    last = make_index((*A, [1]), (*B, [2]))
    new = make_index((*B, {"x": [2], "y": [None]}), columns=("x", "y"))
    after = merge_versions(last, new, LIVE, both)
    found = after.columns["y"]

    assert [0, 1, 2] == find_missing(last, LIVE, both).tolist()
    assert [0, 2] == find_missing(after, LIVE, both).tolist()
    assert [(None, None, -1, -1), (None, None, 1, 1)] == [read_facts(found, row) for row in (0, 1)]
    assert [False, True] == found.is_all_null.tolist()


def test_column_that_is_no_longer_wanted_is_dropped():
    last = make_index((*A, {"x": [1], "y": [2]}), columns=("x", "y"))

    assert [] == find_missing(last, keys(A), LONG).tolist()
    assert ["x"] == list(merge_versions(last, make_index(), LIVE, LONG).columns)


@pytest.mark.parametrize(
    ("have", "wanted", "least"),
    [
        (pa.int8(), pa.int32(), 7),
        (pa.int32(), pa.float64(), 7.0),
        (pa.decimal128(5, 1), pa.decimal128(9, 2), 7),
        (pa.string(), pa.binary(), b"7"),
    ],
)
def test_statistics_widen_with_the_column_type(have, wanted, least):
    value = "7" if have == pa.string() else 7
    last = make_index((*A, [value, None]), kind=have)
    found = merge_versions(last, make_index(kind=wanted), keys(A), {"x": wanted})

    assert [] == find_missing(last, keys(A), {"x": wanted}).tolist()
    assert (least, least, 1, 2) == read_facts(found.columns["x"])
    assert wanted == found.columns["x"].type


def test_float_that_becomes_a_double_has_bounds_for_both_conversions():
    last = make_index((*A, [0.1]), kind=pa.float32())
    least, greatest, *_ = read_facts(
        merge_versions(last, make_index(kind=pa.float64()), keys(A), {"x": pa.float64()}).columns[
            "x"
        ]
    )

    assert least < 0.1 < greatest
    assert least < 0.10000000149011612 < greatest


@pytest.mark.parametrize(
    ("have", "wanted"),
    [
        (pa.int64(), pa.int32()),
        (pa.int32(), pa.string()),
        (pa.float64(), pa.float32()),
        (pa.decimal128(9, 2), pa.decimal128(9, 3)),
        (pa.binary(), pa.string()),
    ],
)
def test_type_with_another_order_is_unknown_and_read_again(have, wanted):
    last = make_index((*A, [None]), kind=have)
    found = merge_versions(last, make_index(kind=wanted), keys(A), {"x": wanted})

    assert [0] == find_missing(last, keys(A), {"x": wanted}).tolist()
    assert (None, None, -1, -1) == read_facts(found.columns["x"])


def test_missing_statistics_are_not_read_again_but_damaged_files_are():
    unsaid = write_footer(pa.table({"x": [1]}), write_statistics=False)
    schema = pa.schema([("x", pa.int64())])
    last = index_footers([(*A, unsaid), (*B, None)], ["x"], schema)

    assert [1] == find_missing(last, keys(A, B), LONG).tolist()


def test_unreadable_footer_keeps_the_known_statistics():
    last = make_index((*A, [1]))
    new = index_footers([(*A, None)], ["x"], pa.schema([("x", pa.int64())]))
    found = merge_versions(last, new, keys(A), LONG)

    assert ([1], (1, 1, 0, 1)) == (found.rows.tolist(), read_facts(found.columns["x"]))
