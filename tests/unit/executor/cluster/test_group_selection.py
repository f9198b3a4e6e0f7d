"""Which groups of a reviewed clustering may still run."""

from __future__ import annotations

import numpy as np
import pytest

from reconciler.executor.cluster.group_selection import select_groups, take_groups
from reconciler.plans.groups import rewrites_from_json
from reconciler.state.model import PendingClusteringSlice
from tests.unit.planners.cow import base, commit, stamp, table


def make_group(*ids, partition="a", at=0, logs=()):
    return {
        "partition": partition,
        "outputs": 1,
        "bytes": 10 * len(ids),
        "because": "small",
        "slices": [{"fileId": one, "base": base(one, at), "logs": [*logs]} for one in ids],
    }


REVIEWED = rewrites_from_json(
    [make_group("f", "g"), make_group("h"), make_group("f", partition="b")]
)
FILES = {"a": [base("f", 0), base("g", 0), base("h", 0)], "b": [base("f", 0)]}


def make_state(files=None, **more):
    return table(files or FILES, [commit(0), commit(1)], **more)


def partitions_and_ids(found):
    return found.groups.partition.to_pylist(), found.groups.file_id.to_pylist()


def test_what_is_as_it_was_reviewed_runs():
    found = select_groups(REVIEWED, make_state())

    assert (["a", "a", "b"], ["f", "g", "h", "f"]) == partitions_and_ids(found)
    assert ((), 0) == (found.left, found.gone)


@pytest.mark.parametrize(
    ("files", "says"),
    [
        (
            {**FILES, "a": [*FILES["a"], base("g", 1)]},
            "its file group g has a newer file slice than was reviewed",
        ),
        (
            {**FILES, "a": [base("f", 0), base("h", 0)]},
            "file group g is no longer there",
        ),
    ],
)
def test_one_slice_that_moved_leaves_its_whole_group(files, says):
    found = select_groups(REVIEWED, make_state(files))
    (left,) = found.left

    assert (["a", "b"], ["h", "f"]) == partitions_and_ids(found)
    assert ("a", 2, says) == (left.partition, left.slices, left.because)


def test_log_files_that_came_since_leave_it():
    log = f".h_{stamp(1)}.log.1_0-0-0"
    found = select_groups(
        REVIEWED, make_state({**FILES, "a": [*FILES["a"], log]}, table_type="MERGE_ON_READ")
    )

    assert ["its file group h has other log files than were reviewed"] == [
        left.because for left in found.left
    ]


def test_buckets_are_not_merged_whatever_was_reviewed():
    ids = ("00000001-f", "00000002-g")
    names = {"a": [base(one, 0) for one in (*ids, "h")]}
    reviewed = rewrites_from_json([make_group(*ids), make_group(ids[0], "h"), make_group(ids[0])])
    found = select_groups(reviewed, make_state(names))

    assert ["00000001-f", "h", "00000001-f"] == found.groups.file_id.to_pylist()
    assert (
        "its file group 00000001-f is a bucket, which is not merged with others: plan again"
        == found.left[0].because
    )


def test_what_another_has_in_hand_stays_and_what_is_ours_does_not():
    given = PendingClusteringSlice(
        instant=stamp(9), partition="a", file_id="h", base_file=base("h", 0), log_files=()
    )
    held = make_state(clusterings=(given,))

    assert [f"pending clustering {stamp(9)} is going to rewrite its file group h"] == [
        left.because for left in select_groups(REVIEWED, held).left
    ]
    assert () == select_groups(REVIEWED, held, own=stamp(9)).left


def test_groups_that_were_replaced_are_done_already():
    replaced = {("a", "f"): stamp(1), ("a", "g"): stamp(1)}
    found = select_groups(REVIEWED, make_state(replaced=replaced), done={stamp(1)})

    assert (1, (), ["a", "b"]) == (found.gone, found.left, found.groups.partition.to_pylist())


def test_groups_that_another_write_has_replaced_have_fallen_out():
    replaced = {("a", "f"): stamp(1), ("a", "g"): stamp(1)}
    found = select_groups(REVIEWED, make_state(replaced=replaced), done={stamp(2)})

    assert (0, [f"its file group f was replaced by {stamp(1)} meanwhile"]) == (
        found.gone,
        [left.because for left in found.left],
    )


def test_a_group_that_was_replaced_in_part_is_left():
    found = select_groups(REVIEWED, make_state(replaced={("a", "f"): stamp(1)}))

    assert (0, [f"its file group f was replaced by {stamp(1)} meanwhile"]) == (
        found.gone,
        [left.because for left in found.left],
    )


def test_log_files_that_cannot_be_merged_are_not_read():
    log = f".h_{stamp(1)}.log.1_0-0-0"
    reviewed = rewrites_from_json([make_group("h", logs=[log])])
    files = {**FILES, "a": [*FILES["a"], log]}
    found = select_groups(
        reviewed, make_state(files, table_type="MERGE_ON_READ"), refusal="table t: no"
    )

    assert ["table t: no; its log files cannot be read"] == [left.because for left in found.left]


def test_a_table_without_files_has_nothing_to_rewrite():
    found = select_groups(REVIEWED, make_state({"a": []}))

    assert [f"file group {one} is no longer there" for one in "fh"] == [
        left.because for left in found.left[:2]
    ]
    assert (0, 0) == (found.gone, len(found.groups))


def test_what_an_earlier_apply_replaced_may_be_cleaned_away():
    found = select_groups(REVIEWED, make_state({"a": []}), done={stamp(1)})

    assert (3, ()) == (found.gone, found.left)


def test_some_groups_keep_their_slices():
    found = take_groups(REVIEWED, np.array([2, 0]))

    assert ["f", "f", "g"] == found.file_id.to_pylist()
    assert (["b", "a"], [0, 1, 3]) == (found.partition.to_pylist(), found.starts.tolist())
