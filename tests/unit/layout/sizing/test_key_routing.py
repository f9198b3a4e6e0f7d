"""Routing rows to buckets by record key alone."""

from __future__ import annotations

import hashlib
from bisect import bisect_left

import numpy as np
import pyarrow as pa
import pytest

from reconciler.layout.sizing.key_routing import (
    count_hashes,
    find_route_boundaries,
    hash_record_keys,
    histogram_bits,
    route_by_md5,
)
from tests.unit.layout.sizing.exact_routing import find_exact_boundaries


def keys(count, start=0):
    return pa.array([f"key {n}" for n in range(start, start + count)])


def row_counts(*values):
    return np.array(values, np.int64)


def route_by_hand(key, inserts):
    """Route like UpsertPartitioner.getPartition, line by line."""
    total = sum(inserts)
    digest = hashlib.md5(key.encode()).digest()
    share = 1.0 * (int.from_bytes(digest[:8], "little", signed=True) % total) / total
    ends, end = [], 0.0
    for rows in inserts:
        end += 1.0 * rows / total
        ends.append(end)
    found = bisect_left(ends, share)
    return found if found < len(inserts) else 0


def test_md5_routing_equals_hudi():
    some, inserts = keys(2_000), row_counts(700, 1, 699, 600)

    assert [route_by_hand(key, inserts.tolist()) for key in some.to_pylist()] == (
        route_by_md5(some, inserts).tolist()
    )


def test_md5_routing_with_one_row_and_one_bucket():

    assert [0] == route_by_md5(keys(1), row_counts(1)).tolist()
    assert [] == route_by_md5(keys(0), row_counts(1)).tolist()


def test_exact_boundaries_give_each_bucket_its_rows():
    hashes = hash_record_keys(keys(1_000))
    inserts = row_counts(3, 700, 297)

    assert [3, 700, 297] == np.bincount(
        find_exact_boundaries(hashes, inserts).route(hashes)
    ).tolist()


def test_histogram_boundaries_are_exact_to_one_bin():
    hashes = hash_record_keys(keys(100_000))
    inserts = row_counts(20_000, 50_000, 30_000)
    bits = histogram_bits(3)

    found = np.bincount(find_route_boundaries(count_hashes(hashes, bits), inserts).route(hashes))

    assert np.abs(found - inserts).max() <= np.bincount(hashes >> np.uint64(64 - bits)).max()


def test_histograms_of_tasks_can_be_added():
    hashes = hash_record_keys(keys(1_000))

    assert count_hashes(hashes, 12).tolist() == (
        (count_hashes(hashes[:300], 12) + count_hashes(hashes[300:], 12)).tolist()
    )


@pytest.mark.parametrize("routing", ["exact", "histogram", "md5"])
def test_bucket_of_a_row_does_not_depend_on_the_order(routing):
    some, inserts = keys(500), row_counts(100, 399, 1)
    order = np.random.default_rng(1).permutation(500)

    def routed(column):
        if routing == "md5":
            return route_by_md5(column, inserts)
        hashes = hash_record_keys(column)
        made = find_exact_boundaries(hashes, inserts) if routing == "exact" else None
        return (made or find_route_boundaries(count_hashes(hashes, 12), inserts)).route(hashes)

    assert routed(some)[order].tolist() == routed(some.take(pa.array(order))).tolist()


def test_rows_with_one_key_stay_together():
    hashes = hash_record_keys(pa.array(["a", "b", "a", "a"]))

    assert 1 == len(
        {find_exact_boundaries(hashes, row_counts(2, 2)).route(hashes)[at] for at in (0, 2, 3)}
    )


def test_equal_keys_give_one_file():
    hashes = hash_record_keys(pa.array(["a"] * 100))
    for made in (
        find_exact_boundaries(hashes, row_counts(40, 60)),
        find_route_boundaries(count_hashes(hashes, 12), row_counts(40, 60)),
    ):
        assert 1 == len(set(made.route(hashes).tolist()))


def test_one_bucket_needs_no_boundary():
    hashes = hash_record_keys(keys(10))
    for made in (
        find_exact_boundaries(hashes, row_counts(10)),
        find_route_boundaries(count_hashes(hashes, 12), row_counts(10)),
    ):
        assert {0} == set(made.route(hashes).tolist())


@pytest.mark.parametrize("length", [1, 6, 7, 8, 9, 15, 16, 17, 40])
def test_hash_depends_on_every_byte_of_a_key(length):
    head = "x" * length
    found = hash_record_keys(pa.array([head, head + "a", head + "b", head + "\0", "a" + head]))

    assert 5 == len(set(found.tolist()))


def test_hash_of_a_key_does_not_depend_on_its_position():
    some = pa.array(["é😀", "", "a long key with more than one word", "k"])
    hashes = hash_record_keys(some).tolist()

    assert hashes[1:3] == hash_record_keys(some[1:3]).tolist()
    assert hashes == hash_record_keys(pa.chunked_array([some[:2], some[2:]])).tolist()
    assert hashes == hash_record_keys(some.cast(pa.large_string())).tolist()
    assert hashes == [hash_record_keys(some[at : at + 1])[0] for at in range(4)]
    assert [] == hash_record_keys(pa.array([], pa.string())).tolist()


def test_hashes_spread_evenly():
    found = np.bincount(hash_record_keys(keys(64_000)) >> np.uint64(58), minlength=64)

    assert 850 < found.min()
    assert found.max() < 1150
