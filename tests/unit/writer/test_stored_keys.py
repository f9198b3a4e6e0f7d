"""Finding the keys of a write in files: by footers where possible, else by the keys."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.errors import FormatError
from reconciler.file_slices.base_file.meta_columns import CommitStamp
from reconciler.file_slices.base_file.schema import FileSchema
from reconciler.file_slices.base_file.settings import MAX_KEY, MIN_KEY, BaseFileSettings
from reconciler.hudi.codecs.bloom import BloomFilter, BloomShape
from reconciler.writer.lookup_costs import FileAnswer
from reconciler.writer.stored_keys import find_stored_keys
from tests.base_files import write_base_file

SCHEMA = FileSchema.from_avro(
    json.dumps(
        {"type": "record", "name": "t", "fields": [{"name": "x", "type": ["null", "long"]}]}
    ),
    "x",
)
FORM = BaseFileSettings(bloom=BloomShape.from_options(), codec="none")
NAME = "a-0_0-0-0_20260101000000000.parquet"


class Source:
    """One file; counts the bytes that are read."""

    def __init__(self, data):
        self.data, self.read = data, 0

    def read_range(self, path, start, length):  # noqa: ARG002
        self.read += length
        return self.data[start : start + length]


def file_of(keys, form=FORM):
    sink = pa.BufferOutputStream()
    rows = pa.RecordBatch.from_pydict(
        {
            "_hoodie_record_key": pa.array(keys, pa.string()),
            "_hoodie_partition_path": pa.array([""] * len(keys), pa.string()),
            "x": pa.array([1] * len(keys), pa.int64()),
        }
    )
    stamp = CommitStamp(instant="20260101000000000", task=0)
    write_base_file([rows], sink, NAME, SCHEMA, form, stamp=stamp)
    return sink.getvalue().to_pybytes()


def held(data, *keys, expects_all=False):
    source, wanted = Source(data), pa.array(keys, pa.string())
    found = find_stored_keys(source, "p/" + NAME, len(data), wanted, expects_all=expects_all)
    return [keys[at] for at in found.index], source.read


def test_only_the_keys_of_the_file_are_found():
    found, _ = held(file_of(["b", "d", "f"]), "a", "b", "c", "f", "g")

    assert found == ["b", "f"]


def test_keys_outside_the_range_cost_the_footer_alone():
    data = file_of([f"k{n:06}" for n in range(50_000)], replace(FORM, bloom=None))

    found, read = held(data, "a", "z")

    assert found == []
    assert read < len(data) / 4


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (["z"], FileAnswer.RANGE),
        (["k000003"], FileAnswer.FILTER),
        (["k000002"], FileAnswer.KEYS),
        (
            [f"k{n:06}" for n in range(1, 40_000, 2)],
            FileAnswer.KEYS,
        ),  # no filter is asked for those
    ],
)
def test_it_says_what_of_the_file_has_told_it(keys, answer):
    data = file_of([f"k{n:06}" for n in range(0, 100_000, 2)])
    wanted = pa.array(keys)

    found = find_stored_keys(Source(data), NAME, len(data), wanted)

    assert answer == found.answer


def test_a_filter_that_knows_some_of_many_keys_is_asked_no_further(monkeypatch):
    data, asked = file_of([f"k{n:06}" for n in range(0, 100_000, 2)]), []
    contains = BloomFilter.contains
    monkeypatch.setattr(
        BloomFilter,
        "contains",
        lambda self, keys: (asked.append(len(keys)), contains(self, keys))[1],
    )

    found, _ = held(data, *(f"k{n:06}" for n in range(3_000)))

    assert len(found) == 1_500
    assert asked == [250]


def test_the_filter_is_not_asked_where_the_keys_should_be(monkeypatch):
    data = file_of(["a", "b"])
    monkeypatch.setattr(BloomFilter, "parse", None)

    assert held(data, "a", expects_all=True)[0] == ["a"]


def test_keys_that_the_bloom_filter_does_not_know_cost_the_footer_alone():
    data = file_of([f"k{n:06}" for n in range(0, 100_000, 2)])
    column = held(data, "k000002")[1]

    found, read = held(data, "k000003", "k000005")

    assert found == []
    assert read < column


def test_a_footer_that_says_nothing_rules_nothing_out():
    bare = replace(FORM, bloom=None, has_keys=True)
    data = file_of(["a", "😀", "ｱ"], bare).replace(MIN_KEY.encode(), b"x" * len(MIN_KEY))

    assert held(data, "😀", "b", "ｱ")[0] == ["😀", "ｱ"]


def test_keys_beyond_the_basic_plane_are_found_whichever_way_the_writer_ordered_them():
    data = file_of(["a", "😀", "z"])
    greatest = MAX_KEY.encode()
    assert greatest in data

    assert held(data, "😀", "ｱ")[0] == ["😀"]


def test_a_range_by_bytes_does_not_hide_a_key_that_java_orders_elsewhere():
    plain = file_of(["a", "z"], replace(FORM, bloom=None))

    assert held(plain, "😀", "z")[0] == ["z"]


def test_damage_is_an_error_that_names_the_file():
    data = file_of(["a"])

    with pytest.raises(FormatError, match="p/" + NAME):
        held(data[:40] + b"PAR1", "a")


@settings(deadline=None)
@given(
    st.lists(st.text(max_size=6), min_size=1, unique=True),
    st.lists(st.text(max_size=6), unique=True),
    st.booleans(),
)
def test_whatever_the_keys_those_of_the_file_are_found(keys, asked, has_bloom):
    keys = [key for key in keys if key.isprintable() or not key]
    asked = [key for key in asked if key.isprintable()]
    if not keys:
        return
    data = file_of(keys, FORM if has_bloom else replace(FORM, bloom=None))

    found, _ = held(data, *asked)

    assert set(found) == set(keys) & set(asked)


def test_nothing_asked_reads_nothing():
    assert held(b"", *[]) == ([], 0)
    found = find_stored_keys(Source(b""), "x", 0, pa.array([], pa.string()))
    assert found.index.dtype == found.position.dtype == np.int64
