"""Assigning the rows of a stream."""

from __future__ import annotations

from itertools import count

import pyarrow as pa
import pytest

from reconciler.layout.sizing.assign import assign_rows, make_insert_workload
from reconciler.layout.sizing.assignment_rules import (
    CopyOnWrite,
    FileSizeLimits,
    HudiRule,
    MergeOnRead,
    SteadyRule,
)
from reconciler.layout.sizing.record_size import RecordSize
from tests.stream_assignment import (
    FreeSpace,
    StreamAssigner,
    StreamTask,
    list_free_space,
    murmur_hashes,
    rows_per_new_file,
)
from tests.unit.layout.sizing.file_groups import make_groups

SIZES = FileSizeLimits(target=120, small=100)
HUDI = HudiRule(sizes=SIZES, average=7)
STEADY = SteadyRule(sizes=SIZES, record_size=RecordSize(fixed=10, per_row=1.0, because=""))


class Stream:
    """An assigner with the small files of a table; new files have the ids n1, n2, …"""

    def __init__(self, per_file=10, **small):
        self.assigner = StreamAssigner(rows_per_file=per_file)
        self.small = small
        self.looked = []
        self.numbers = count(1)

    def insert(self, rows, partition="p"):
        """Assign rows; return (file id, rows, is_new) of each share."""

        def look():
            self.looked.append(partition)
            return [FreeSpace(*room) for room in self.small.get(partition, ())]

        self.assigner, shares = self.assigner.assign_inserts(
            partition, rows, find_free_space=look, new_file_id=lambda: f"n{next(self.numbers)}"
        )
        return [(s.file_id, s.rows, s.is_new) for s in shares]

    def began(self):
        self.assigner = self.assigner.start_checkpoint()

    def completed(self, **how):
        self.assigner = self.assigner.complete_checkpoint(**how)


def test_small_files_are_filled_before_new_ones():
    stream = Stream(p=[("a", 3), ("b", 0), ("c", 2)])

    assert [("a", 3, False), ("c", 2, False), ("n1", 10, True), ("n2", 1, True)] == (
        stream.insert(16)
    )


def test_single_rows_are_assigned_like_batches():
    at_once, one_by_one = (Stream(p=[("a", 3), ("c", 2)]) for _ in range(2))
    expected = [share[0] for share in at_once.insert(18) for _ in range(share[1])]

    assert expected == [one_by_one.insert(1)[0][0] for _ in range(18)]
    assert at_once.assigner == one_by_one.assigner


def test_free_space_is_remembered_and_looked_up_once():
    stream = Stream(p=[("a", 5)])
    stream.insert(3)

    assert [("a", 2, False), ("n1", 1, True)] == stream.insert(3)
    assert ["p"] == stream.looked


def test_partitions_are_independent():
    stream = Stream(p=[("a", 1)], q=[("b", 1)])

    assert [("a", 1, False), ("n1", 1, True)] == stream.insert(2, "p")
    assert [("b", 1, False), ("n2", 1, True)] == stream.insert(2, "q")


def test_file_is_new_until_its_checkpoint():
    stream = Stream()

    assert [("n1", 2, True)] == stream.insert(2)
    assert [("n1", 2, True)] == stream.insert(2)
    stream.began()
    assert [("n1", 2, False)] == stream.insert(2)


def test_rows_between_checkpoint_and_commit_go_to_the_same_new_file():
    stream = Stream()
    stream.insert(2)
    stream.began()
    stream.completed()

    assert [("n1", 3, False)] == stream.insert(3)
    stream.completed()
    assert [("n2", 3, True)] == stream.insert(3)


def test_new_files_are_forgotten_at_every_second_notification():
    stream, found = Stream(per_file=100), []
    for _ in range(6):
        found += stream.insert(1)
        stream.began()
        stream.completed()

    assert ["n1", "n1", "n2", "n2", "n3", "n3"] == [file_id for file_id, *_ in found]


def test_small_files_are_looked_up_again_after_a_checkpoint():
    stream = Stream(p=[("a", 5)])
    stream.insert(5)
    stream.small["p"] = [("b", 2)]
    stream.completed(rows_per_file=7)

    assert [("b", 2, False), ("n1", 7, True), ("n2", 1, True)] == stream.insert(10)
    assert ["p", "p"] == stream.looked


def test_failed_batch_does_not_change_the_state():
    stream = Stream(p=[("a", 5)])
    before = stream.assigner
    stream.insert(7)
    stream.assigner = before

    assert StreamAssigner(rows_per_file=10) == before
    assert ("a", 5, False) == stream.insert(7)[0]


def test_no_rows_give_no_shares():

    assert [] == Stream().insert(0)


def test_free_space_is_the_rest_of_the_target():
    groups = make_groups({"p": {"a": 50, "b": 110, "c": 99}})

    assert {FreeSpace("a", 10), FreeSpace("c", 3)} == set(
        list_free_space(groups, "p", CopyOnWrite(), HUDI)
    )
    assert (FreeSpace("a", 70), FreeSpace("c", 21)) == list_free_space(
        groups, "p", CopyOnWrite(), STEADY
    )


def test_free_space_of_a_merge_on_read_slice_counts_its_logs():
    groups = make_groups({"p": {"a": (50, 100), "b": (10, 1)}}, compacting=["b"])

    assert (FreeSpace("a", 5),) == list_free_space(
        groups, "p", MergeOnRead(indexes_logs=True), HUDI
    )


def test_empty_file_has_no_free_space():

    assert () == list_free_space(make_groups({"p": {"a": 0}}), "p", CopyOnWrite(), HUDI)


@pytest.mark.parametrize("tasks", [1, 2, 3, 7])
def test_every_small_file_belongs_to_one_task(tasks):
    groups = make_groups({"p": {f"file-{n}": 50 for n in range(40)}})
    shared = [
        list_free_space(groups, "p", CopyOnWrite(), STEADY, StreamTask(number=n, tasks=tasks))
        for n in range(tasks)
    ]

    assert sorted(room.file_id for some in shared for room in some) == sorted(
        groups.file_id.to_pylist()
    )
    assert all(shared)


def test_first_owned_id_is_chosen():
    task = StreamTask(number=1, tasks=3)
    drawn = task.first_owned(f"id-{n}" for n in count())

    assert task.owns(pa.array([drawn])).all()
    tried = pa.array([f"id-{n}" for n in range(int(drawn.removeprefix("id-")))])
    assert not task.owns(tried).any()


def test_murmur_hash_matches_published_values():
    """Values for the bytes 00000000, 21436587 and ffffffff with seed 0; Flink drops the sign."""
    codes = pa.array([0, -0x789ABCDF, -1], pa.int32()).to_numpy()
    published = [0x2362F9DE, 0xF55B516B, 0x76293B50]

    assert [n if n < 1 << 31 else (1 << 32) - n for n in published] == murmur_hashes(codes).tolist()


@pytest.mark.parametrize("rule", [HUDI, HudiRule(sizes=SIZES, average=7, split_rows=5)])
@pytest.mark.parametrize("rows", [0, 1, 9, 40, 500])
def test_batch_of_a_stream_is_assigned_like_the_model(rows, rule):
    groups = make_groups({"p": {"a": 50, "b": 110, "c": 99, "d": 0, "e": 70}})
    numbers = count(1)
    _, shares = StreamAssigner(rows_per_file=rows_per_new_file(rule)).assign_inserts(
        "p",
        rows,
        find_free_space=lambda: list_free_space(groups, "p", CopyOnWrite(), rule),
        new_file_id=lambda: f"n{next(numbers)}",
    )

    work = make_insert_workload({"p": rows})
    found = assign_rows(groups, work, CopyOnWrite(), rule, streams=True)

    ids = groups.file_id.to_pylist()
    assert [(None if share.is_new else share.file_id, share.rows) for share in shares] == [
        (ids[group] if group >= 0 else None, taken)
        for group, taken in zip(found.group.tolist(), found.inserts.tolist(), strict=True)
    ]


def test_rows_per_new_file_are_rounded_down_by_hudi_rule():

    assert 17 == rows_per_new_file(HUDI)
    assert 110 == rows_per_new_file(STEADY)
    assert 1 == rows_per_new_file(HudiRule(sizes=SIZES, average=500))
