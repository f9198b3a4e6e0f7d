from __future__ import annotations

import numpy as np
import pyarrow as pa

from reconciler.reader.model import SLICES
from reconciler.reader.slice_rows import group_into_tasks, weigh_slices

MIB = 1 << 20


def test_big_slices_come_first_and_alone_and_small_ones_share_a_task():
    found = group_into_tasks(np.array([1, 500, 2, 130, 1]) * MIB, slots=4)

    assert [[1], [3], [2], [0, 4]] == [task.tolist() for task in found]


def test_few_slices_use_every_slot():
    found = group_into_tasks(np.array([10, 10, 10, 10]) * MIB, slots=4)

    assert 4 == len(found)


def test_many_small_slices_take_as_many_tasks_as_their_bytes_and_openings_need():
    found = group_into_tasks(np.full(100_000, 1000), slots=8)
    sizes = {len(task) for task in found[:-1]}

    assert 3126 == len(found)
    assert {31, 32} >= sizes
    assert list(range(100_000)) == sorted(np.concatenate(found).tolist())


def test_no_slices_take_no_task():

    assert [] == group_into_tasks(np.zeros(0, np.int64), slots=4)


def test_a_byte_of_a_log_file_counts_more_than_one_of_a_base_file():
    slices = pa.table([[0, 0], ["a", None], [7, 0], [[], ["l"]], [0, 5], [False, False]], SLICES)

    assert [7, 20] == weigh_slices(slices).tolist()
    assert [] == weigh_slices(SLICES.empty_table()).tolist()
