"""Sums over the removed files of a plan."""

from __future__ import annotations

import numpy as np

from reconciler.arrays import to_arrow
from reconciler.plans.columns import build_dictionary
from reconciler.plans.model import RemovedFiles
from reconciler.render.plan_summary import count_partitions, removed_by_partition


def make_files(codes, partitions):
    count = len(codes)
    return RemovedFiles(
        build_dictionary(np.array(codes, np.int32), partitions),
        to_arrow([f"{number}.parquet" for number in range(count)]),
        np.full(count, 7),
        np.zeros(count, np.int8),
        np.zeros(count, np.int8),
        build_dictionary(np.zeros(count, np.int32), ["old"]),
    )


def test_partitions_that_lose_nothing_do_not_count():
    files = make_files([2, 2, 0], ["a", "b", "c"])

    assert 2 == count_partitions(files)
    assert [("c", 2, 14), ("a", 1, 7)] == removed_by_partition(files)


def test_a_partition_that_is_named_twice_counts_once():
    assert 2 == count_partitions(make_files([0, 1, 2], ["b", "a", "b"]))


def test_no_files_go_from_no_partition():
    assert 0 == count_partitions(make_files([], ["a"]))
