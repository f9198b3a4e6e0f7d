"""Laws of the index: building in parts, storing and stopping anywhere do not change it."""

from __future__ import annotations

import pickle
from datetime import date
from decimal import Decimal
from itertools import count

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.arrays import to_arrow
from reconciler.index.codec import Provenance, decode_index, encode_index
from reconciler.index.file_keys import join_indexes
from reconciler.index.footers import find_index_types, index_footers
from reconciler.index.merge import find_missing, merge_versions
from reconciler.index.model import FileKeys
from reconciler.index.version_store import (
    TidyResult,
    list_versions,
    publish_version,
    read_newest,
    remove_superseded,
)
from reconciler.storage.open import open_storage
from tests.selection import examples
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageFault
from tests.unit.index.footer_samples import index_facts, write_footer

_number = count()
FROM = Provenance(table="t", instant="20260101000000000", tool="test")
SCHEMA = pa.schema(
    [
        ("n", pa.int32()),
        ("y", pa.float64()),
        ("s", pa.string()),
        ("dec", pa.decimal128(6, 2)),
        ("day", pa.date32()),
        ("st", pa.struct([("b", pa.binary())])),
    ]
)
COLUMNS = ("n", "y", "s", "dec", "day", "st.b")
TYPES = find_index_types(COLUMNS, SCHEMA)
VALUES = {
    "n": st.integers(-(2**31), 2**31 - 1),
    "y": st.floats(width=64) | st.sampled_from([0.0, -0.0]),
    "s": st.text(max_size=3) | st.just("x" * 5000),
    "dec": st.integers(-(10**6) + 1, 10**6 - 1).map(lambda n: Decimal(n).scaleb(-2)),
    "day": st.dates(min_value=date(1400, 1, 1)),
    "st": st.fixed_dictionaries({"b": st.none() | st.binary(max_size=3)}),
}
ROWS = st.lists(st.fixed_dictionaries({c: st.none() | v for c, v in VALUES.items()}), max_size=4)
FILES = st.dictionaries(
    st.tuples(st.sampled_from(["", "p=1", "p=2"]), st.sampled_from("abc"), st.integers(1, 2)),
    st.tuples(ROWS, st.integers(1, 3)),
    max_size=6,
)


def index_entries(files):
    return [
        (*key, write_footer(pa.Table.from_pylist(rows, SCHEMA), row_group_size=group))
        for key, (rows, group) in files.items()
    ]


def keys_of_entries(entries):
    return FileKeys(
        partition=to_arrow([entry[0] for entry in entries]).dictionary_encode(),
        name=to_arrow([entry[1] for entry in entries]),
        size=np.array([entry[2] for entry in entries], np.int64),
    )


@settings(max_examples=examples(10, many=60), deadline=None)
@given(files=FILES, share=st.integers(0, 6), data=st.data())
def test_merged_parts_equal_the_whole_index(files, share, data):
    every = index_entries(files)
    some = data.draw(st.permutations(every))
    last, rest = index_footers(some[:share], COLUMNS, SCHEMA), some[share:]
    asked = find_missing(last, keys_of_entries(every), TYPES)

    assert {entry[:3] for entry in rest} == {every[place][:3] for place in asked.tolist()}

    new = index_footers([every[place] for place in asked.tolist()], COLUMNS, SCHEMA)

    assert index_facts(index_footers(every, COLUMNS, SCHEMA)) == index_facts(
        merge_versions(last, new, keys_of_entries(every), TYPES)
    )


@settings(max_examples=examples(8, many=40), deadline=None)
@given(files=FILES, size=st.integers(1, 7))
def test_joined_parts_equal_the_whole_index(files, size):
    every = index_entries(files)
    parts = [
        index_footers(every[at : at + size], COLUMNS, SCHEMA)
        for at in range(0, max(len(every), 1), size)
    ]
    sent = pickle.loads(pickle.dumps(parts))

    assert index_facts(index_footers(every, COLUMNS, SCHEMA)) == index_facts(join_indexes(sent))


@settings(max_examples=examples(8, many=40), deadline=None)
@given(files=FILES, wanted=st.sets(st.sampled_from(COLUMNS)))
def test_stored_index_round_trips(files, wanted):
    index = index_footers(index_entries(files), COLUMNS, SCHEMA)
    data = encode_index(index, FROM)

    assert index_facts(index) == index_facts(decode_index(data, "i")[0])
    assert {c: v for c, v in index_facts(index)["columns"].items() if c in wanted} == index_facts(
        decode_index(data, "i", list(wanted))[0]
    )["columns"]


def _lies_within(value, low, high):
    if isinstance(value, str):
        value, low, high = (side if side is None else side.encode() for side in (value, low, high))
    return (low is None or low <= value) and (high is None or value <= high)


@settings(max_examples=examples(12, many=80), deadline=None)
@given(rows=ROWS, group=st.integers(1, 3))
def test_no_value_is_outside_its_bounds(rows, group):
    table = pa.Table.from_pylist(rows, SCHEMA)
    columns = {**{c: table[c].to_pylist() for c in COLUMNS[:-1]}}
    columns["st.b"] = [None if row is None else row["b"] for row in table["st"].to_pylist()]
    found = index_footers(
        [("", "f", 1, write_footer(table, row_group_size=group))], COLUMNS, SCHEMA
    )
    for column, values in columns.items():
        stats = found.columns[column]
        low, high = stats.least[0].as_py(), stats.greatest[0].as_py()
        some = [value for value in values if value is not None]
        nans = [value for value in some if value != value]  # noqa: PLR0124
        plain = [value for value in some if value == value]  # noqa: PLR0124

        assert all(_lies_within(value, low, high) for value in plain)
        assert (int(stats.nulls[0]), int(stats.values[0])) in {
            (len(values) - len(some), len(values)),
            (-1, len(values)),
        }
        assert not (nans and stats.is_nan_free[0])
        assert low in plain or not stats.is_exact_least[0]
        assert high in plain or not stats.is_exact_greatest[0]


def _version(number):
    table = pa.table({"n": pa.array([number], pa.int32())})
    index = index_footers([("", str(number), 1, write_footer(table))], ["n"], SCHEMA)
    return encode_index(index, FROM).to_pybytes()


def _publish_once(storage, number):
    """Publish a version and remove the superseded ones, as an apply does."""
    made = publish_version(
        storage, list_versions(storage), f"2026010{number}000000000", _version(number)
    )
    remove_superseded(storage, list_versions(storage), made)


def _last_version(storage):
    found = read_newest(storage, list_versions(storage))
    return None if found is None else found[1].name.to_pylist()


def _store():
    return open_storage(f"memory://index-versions/{next(_number)}")


@pytest.mark.parametrize("how", ["before", "after", "torn"])
@pytest.mark.parametrize("already", [0, 1, 2])
def test_stop_at_any_call_leaves_a_valid_version_and_the_next_run_cleans_up(how, already):
    seen = RecordingStorage(_store())
    for number in range(1, already + 1):
        publish_version(seen, list_versions(seen), f"2026010{number}000000000", _version(number))
    before = len(seen.calls)
    _publish_once(seen, 3)
    calls = len(seen.calls) - before
    stops = set()
    for at in range(1, calls + 1):
        inner = _store()
        for number in range(1, already + 1):
            publish_version(
                inner, list_versions(inner), f"2026010{number}000000000", _version(number)
            )
        with pytest.raises(KeyboardInterrupt):
            _publish_once(
                FaultyStorage(
                    inner, StorageFault(at=at, mode=how, among="calls"), KeyboardInterrupt()
                ),
                3,
            )
        stops.add(str(_last_version(inner)))

        assert _last_version(inner) in [[str(already)] if already else None, ["3"]]

        _publish_once(inner, 4)

        assert ["4"] == _last_version(inner)
        assert ["20260104000000000_0"] == [
            str(name) for name, _ in list_versions(inner).version_files
        ]
        assert 1 == sum(len(files) for _, files in list_versions(inner).version_files)
    assert {str([str(already)] if already else None), "['3']"} == stops


def test_damaged_version_is_skipped_and_removed_with_the_next_one():
    storage = _store()
    publish_version(storage, list_versions(storage), "20260101000000000", _version(1))
    bad = publish_version(storage, list_versions(storage), "20260102000000000", _version(2))
    data = bytearray(storage.read(bad.path))
    data[len(data) // 3] ^= 1
    storage.replace(bad.path, bytes(data))

    assert ["1"] == _last_version(storage)

    _publish_once(storage, 3)

    assert ["3"] == _last_version(storage)
    assert 1 == len(list_versions(storage).version_files)


def test_table_without_an_index_has_no_versions_and_nothing_to_remove():
    storage = RecordingStorage(_store())

    assert None is _last_version(storage)
    assert TidyResult() == remove_superseded(storage, list_versions(storage), None)
    assert [] == storage.mutations


def test_nothing_is_removed_if_the_published_version_is_missing():
    storage = _store()
    made = publish_version(storage, list_versions(storage), "20260101000000000", _version(1))
    publish_version(storage, list_versions(storage), "20260102000000000", _version(2))
    storage.delete(made.path)

    found = remove_superseded(storage, list_versions(storage), made)

    assert (
        0,
        (f"{made.path}: the published index is missing; older versions are kept",),
    ) == (found.removed_folders, found.problems)
    assert ["2"] == _last_version(storage)
