"""Assigning the rows of a write to small files and new ones."""

from __future__ import annotations

import numpy as np
import pytest

from reconciler.layout.sizing.assign import Workload, assign_rows, make_insert_workload
from reconciler.layout.sizing.assignment_rules import (
    CopyOnWrite,
    FileSizeLimits,
    HudiRule,
    MergeOnRead,
    RewriteCap,
    SteadyRule,
)
from reconciler.layout.sizing.record_size import RecordSize
from tests.unit.layout.sizing.file_groups import MIB, file_ids, make_groups

COW = CopyOnWrite()
#: files up to 120 bytes, small below 100, with rows of one byte and 10 fixed bytes
ROWS = RecordSize(fixed=10, per_row=1.0, because="")
SIZES = FileSizeLimits(target=120, small=100)


def steady_rule(cap=None, record=ROWS, sizes=SIZES):
    return SteadyRule(sizes=sizes, record_size=record, rewrite_cap=cap)


def hudi_rule(sizes=SIZES, **how):
    return HudiRule(sizes=sizes, **{"average": 1, **how})


def assigned_buckets(groups, rows, rule, kind=COW, updates=None, growth=None, *, streams=False):
    """Return (file id or new, new rows, updates) of each bucket of partition ``p``."""
    workload = make_insert_workload({"p": rows})
    if updates:
        ids = groups.file_id.to_pylist()
        workload = Workload(
            partitions=("p",),
            inserts=workload.inserts,
            group=np.array([ids.index(i) for i in updates], np.int64),
            updates=np.array(list(updates.values()), np.int64),
            growth=np.array([(growth or {}).get(i, 0) for i in updates], np.int64),
        )
    found = assign_rows(groups, workload, kind, rule, streams=streams)
    ids = [file_ids(groups, np.array([at]))[0] if at >= 0 else "new" for at in found.group.tolist()]
    return list(zip(ids, found.inserts.tolist(), found.updates.tolist(), strict=True))


class TestWorkedExamples:
    """Files of 90, 40 and 110 MiB, target 120 MiB, small below 100 MiB; 600 000 new rows."""

    sizes = FileSizeLimits()
    groups = make_groups({"p": {"a": 90 * MIB, "b": 40 * MIB, "c": 110 * MIB}})

    def test_files_are_filled_by_the_average_record_size(self):
        assert [("a", 157_286, 0), ("b", 419_430, 0), ("new", 23_284, 0)] == (
            assigned_buckets(self.groups, 600_000, hudi_rule(self.sizes, average=200))
        )

    def test_small_commits_create_small_files(self):
        """No past write reaches the threshold, so a record counts as 1024 bytes."""
        expected = [("a", 30_720, 0), ("b", 81_920, 0), *[("new", 122_880, 0)] * 3]
        assert [*expected, ("new", 118_720, 0)] == (
            assigned_buckets(self.groups, 600_000, hudi_rule(self.sizes, average=1024))
        )

    def test_of_a_merge_on_read_table_the_smallest_file_without_logs_takes_rows(self):
        groups = make_groups({"p": {"a": 40 * MIB, "b": 90 * MIB, "c": (20 * MIB, 1)}})

        assert [("a", 419_430, 0), ("new", 180_570, 0)] == (
            assigned_buckets(groups, 600_000, hudi_rule(self.sizes, average=200), MergeOnRead())
        )

    def test_rows_are_appended_where_logs_are_indexed(self):
        groups = make_groups({"p": {"a": (50 * MIB, 100 * MIB)}})
        kind = MergeOnRead(indexes_logs=True)

        assert ("a", 183_500, 0) == (
            assigned_buckets(groups, 600_000, hudi_rule(self.sizes, average=200), kind)[0]
        )

    def test_a_file_takes_what_fits_and_the_next_one_the_rest(self):
        groups = make_groups({"p": {"a": 19_530, "b": 15_778}})
        rule = hudi_rule(FileSizeLimits(target=200_000, small=150_000), average=118)

        assert {1529, 1471} == {rows for _, rows, _ in assigned_buckets(groups, 3_000, rule)}

    def test_a_declared_split_counts_rows(self):
        rule = hudi_rule(FileSizeLimits(target=200_000, small=0), split_rows=700)

        assert [700, 700, 700, 400] == (
            [rows for _, rows, _ in assigned_buckets(make_groups({"p": {"a": 1}}), 2_500, rule)]
        )


def test_file_with_updates_and_inserts_has_one_bucket():
    groups = make_groups({"p": {"a": 30, "b": 110, "c": 40}})
    updates = {"b": 5, "a": 3}

    assert [("a", 10, 3), ("b", 0, 5)] == assigned_buckets(
        groups, 10, steady_rule(), updates=updates
    )
    assert [("a", 10, 3), ("b", 0, 5)] == assigned_buckets(groups, 10, hudi_rule(), updates=updates)


def test_updates_without_inserts_fill_no_file():
    groups = make_groups({"p": {"a": 30}})

    assert [("a", 0, 7)] == assigned_buckets(groups, 0, steady_rule(), updates={"a": 7})


def test_growth_by_updates_reduces_free_space():
    groups = make_groups({"p": {"a": 30}})

    how = {"updates": {"a": 40}, "growth": {"a": 50}}
    assert [("a", 40, 40), ("new", 5, 0)] == assigned_buckets(groups, 45, steady_rule(), **how)
    assert [("a", 45, 40)] == assigned_buckets(groups, 45, hudi_rule(), **how)


def test_file_filled_by_updates_takes_no_rows():
    groups = make_groups({"p": {"a": 30}})

    assert [("new", 5, 0), ("a", 0, 1)] == (
        assigned_buckets(groups, 5, steady_rule(), updates={"a": 1}, growth={"a": 200})
    )


def test_files_rewritten_anyway_are_filled_before_smaller_ones():
    groups = make_groups({"p": {"a": 30, "b": 60}})

    assert [("a", 5, 0), ("b", 0, 1)] != assigned_buckets(
        groups, 5, steady_rule(), updates={"b": 1}
    )
    assert [("b", 5, 1)] == assigned_buckets(groups, 5, steady_rule(), updates={"b": 1})


def test_smallest_file_is_filled_to_the_target_first():
    groups = make_groups({"p": {"a": 60, "b": 30}})

    assert [("b", 90, 0), ("a", 15, 0)] == sorted(
        assigned_buckets(groups, 105, steady_rule()), key=lambda bucket: -bucket[1]
    )


class TestCap:
    """A file of 60 bytes has 50 bytes of rows; the cap allows four rewritten bytes per new one."""

    groups = make_groups({"p": {"a": 60}})

    def test_too_few_rows_are_not_worth_a_rewrite(self):
        assert [("new", 12, 0)] == assigned_buckets(
            self.groups, 12, steady_rule(RewriteCap(max_ratio=4, free_bytes=0))
        )

    def test_enough_rows_are(self):
        assert [("a", 13, 0)] == assigned_buckets(
            self.groups, 13, steady_rule(RewriteCap(max_ratio=4, free_bytes=0))
        )

    def test_what_is_little_anyway_is_rewritten(self):
        assert [("a", 1, 0)] == assigned_buckets(
            self.groups, 1, steady_rule(RewriteCap(max_ratio=4, free_bytes=50))
        )

    def test_what_is_written_anyway_is_filled(self):
        cap = steady_rule(RewriteCap(max_ratio=4, free_bytes=0))

        assert [("a", 1, 1)] == assigned_buckets(self.groups, 1, cap, updates={"a": 1})

    def test_where_rows_are_appended_nothing_is_rewritten(self):
        cap, kind = (
            steady_rule(RewriteCap(max_ratio=4, free_bytes=0)),
            MergeOnRead(indexes_logs=True),
        )

        assert [("a", 1, 0)] == assigned_buckets(self.groups, 1, cap, kind)

    def test_updates_of_a_merge_on_read_table_go_to_logs_and_rewrite_nothing(self):
        cap = steady_rule(RewriteCap(max_ratio=4, free_bytes=0))

        assert [("new", 1, 0), ("a", 0, 1)] == (
            assigned_buckets(self.groups, 1, cap, MergeOnRead(), updates={"a": 1})
        )

    def test_the_rest_of_the_rows_is_weighed_for_itself(self):
        """90 rows fill the smallest file; the remaining 3 do not justify rewriting 85 bytes."""
        groups = make_groups({"p": {"a": 30, "b": 95}})

        assert [("a", 90, 0), ("new", 3, 0)] == assigned_buckets(
            groups, 93, steady_rule(RewriteCap(max_ratio=4, free_bytes=0))
        )


class TestNewFiles:
    """A full file has 110 rows and 120 bytes; from 90 rows on it is not small; 128 exceed 15 %."""

    @pytest.mark.parametrize(
        ("rows", "expected"),
        [
            (1, [1]),
            (110, [110]),
            (128, [128]),
            (129, [110, 19]),
            (179, [110, 69]),
            (180, [90, 90]),
            (220, [110, 110]),
            (221, [111, 110]),
            (256, [128, 128]),
            (257, [110, 110, 37]),
            (270, [90, 90, 90]),
            (1_001, [101, *[100] * 9]),
        ],
    )
    def test_new_files_are_equal_and_at_most_one_is_small(self, rows, expected):
        found = [n for _, n, _ in assigned_buckets(make_groups({}), rows, steady_rule())]

        assert expected == found

    def test_a_fixed_cost_beyond_the_target_leaves_rows_15_percent(self):
        rule = steady_rule(record=RecordSize(fixed=500, per_row=1.0, because=""))

        assert [18, 18] == [n for _, n, _ in assigned_buckets(make_groups({}), 36, rule)]

    def test_a_row_beyond_the_target_has_its_own_file(self):
        rule = steady_rule(record=RecordSize(fixed=10, per_row=900.0, because=""))

        assert [1, 1, 1] == [n for _, n, _ in assigned_buckets(make_groups({}), 3, rule)]

    def test_a_limit_above_the_target_counts_as_the_target(self):
        rule = steady_rule(sizes=FileSizeLimits(target=120, small=500))

        assert [110, 50] == [n for _, n, _ in assigned_buckets(make_groups({}), 160, rule)]

    def test_without_small_files_shares_are_equal(self):
        rule = steady_rule(sizes=FileSizeLimits(target=120, small=0))

        assert [65, 64] == [
            n for _, n, _ in assigned_buckets(make_groups({"p": {"a": 1}}), 129, rule)
        ]


def test_buckets_have_the_expected_file_sizes():
    groups = make_groups({"p": {"a": 30, "b": 110}})
    workload = Workload(
        partitions=("p", "q"),
        inserts=np.array([100, 5]),
        group=np.array([1]),
        updates=np.array([2]),
        growth=np.array([7]),
    )

    found = assign_rows(groups, workload, COW, steady_rule())

    assert [0, 0, 0, 1] == found.partition.tolist()
    assert [False, True, False, True] == found.is_new.tolist()
    assert [30, 0, 110, 0] == found.size.tolist()
    assert [120, 20, 117, 15] == found.expected_size.tolist()
    assert (slice(0, 2), slice(3, 4)) == (found.insert_buckets(0), found.insert_buckets(1))


def test_empty_write_has_no_buckets():
    found = assign_rows(make_groups({"p": {"a": 30}}), make_insert_workload({}), COW, steady_rule())

    assert 0 == len(found)
    assert 0 == len(assign_rows(make_groups({}), make_insert_workload({"p": 0}), COW, hudi_rule()))


def test_before_the_first_commit_all_files_are_new():
    found = assign_rows(
        make_groups({"p": {"a": 30}}),
        make_insert_workload({"p": 5}),
        COW,
        steady_rule(),
        has_commits=False,
    )

    assert [-1] == found.group.tolist()


class TestAStreamsBatch:
    """Small files are filled one after the other, then full new ones, as in Flink's writers."""

    def test_new_files_are_full_but_for_the_last_by_hudis_rule(self):
        groups = make_groups({"p": {"a": 90, "b": 40, "c": 110}})

        assert assigned_buckets(groups, 400, hudi_rule(), streams=True) == [
            ("a", 30, 0),
            ("b", 80, 0),
            ("new", 120, 0),
            ("new", 120, 0),
            ("new", 50, 0),
        ]

    def test_what_fills_no_small_files_goes_to_new_ones(self):
        """As in a bulk insert, and in a write that replaces all files."""
        groups = make_groups({"p": {"a": 90, "b": 40, "c": 110}})
        rows = make_insert_workload({"p": 250})

        found = assign_rows(groups, rows, COW, hudi_rule(), has_commits=False, streams=True)

        assert [(-1, 120), (-1, 120), (-1, 10)] == [
            *zip(found.group.tolist(), found.inserts.tolist(), strict=True)
        ]

    def test_files_that_only_change_have_buckets_beside_them(self):
        groups = make_groups({"p": {"a": 90, "b": 40, "c": 110}})

        found = assigned_buckets(groups, 35, hudi_rule(), updates={"c": 3, "b": 2}, streams=True)

        assert found == [("a", 30, 0), ("b", 5, 2), ("c", 0, 3)]

    def test_a_steady_assignment_knows_all_of_its_rows(self):
        groups = make_groups({"p": {"a": 90, "b": 40, "c": 110}})

        assert assigned_buckets(groups, 400, steady_rule(), streams=True) == assigned_buckets(
            groups, 400, steady_rule()
        )
