"""The file groups that may take new rows, in order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from reconciler.layout.sizing.assignment_rules import (
    CopyOnWrite,
    FileSizeLimits,
    HudiRule,
    MergeOnRead,
    SteadyRule,
)
from reconciler.layout.sizing.candidates import find_small_files, sort_as_hash_set
from reconciler.layout.sizing.record_size import RecordSize
from tests.unit.layout.sizing.file_groups import MIB, file_ids, make_groups

SIZES = FileSizeLimits(target=120, small=100)
HUDI = HudiRule(sizes=SIZES, average=1)
STEADY = SteadyRule(sizes=SIZES, record_size=RecordSize(fixed=0, per_row=1.0, because=""))
COW = CopyOnWrite()
#: ids with base files | ids with only log files | their order in a HashSet of Java 17
RECORDED = (Path(__file__).parent / "hash_set_orders.txt").read_text().splitlines()
every_rule = pytest.mark.parametrize("rule", [HUDI, STEADY], ids=["hudi", "steady"])


def small(groups, kind=COW, rule=STEADY, **how):
    return file_ids(groups, find_small_files(groups, "p", kind, rule, **how))


@every_rule
def test_file_of_exactly_the_limit_is_not_small(rule):
    groups = make_groups({"p": {"a": 99, "b": 100, "c": 110}})

    assert ["a"] == small(groups, rule=rule)


@every_rule
def test_files_of_other_partitions_take_no_rows(rule):
    groups = make_groups({"o": {"x": 1}, "p": {"a": 1}, "q": {"y": 1}})

    assert ["a"] == small(groups, rule=rule)
    assert [] == small(make_groups({"o": {"x": 1}}), rule=rule)


@every_rule
def test_replaced_and_pending_groups_take_no_rows(rule):
    groups = make_groups(
        {"p": {"a": 1, "b": 2, "c": 3, "d": 4}},
        compacting=["a"],
        clustering=["b"],
        replaced=["c"],
    )

    assert ["d"] == small(groups, rule=rule)
    assert ["d"] == small(groups, MergeOnRead(indexes_logs=True), rule)
    assert ["d"] == small(groups, MergeOnRead(max_candidates=4), rule)


@every_rule
def test_before_the_first_commit_and_with_a_limit_of_zero_no_file_is_small(rule):
    groups = make_groups({"p": {"a": 1}})
    off = type(rule)(
        **{"average": 1} if rule is HUDI else {"record_size": STEADY.record_size},
        sizes=FileSizeLimits(small=0),
    )

    assert [] == small(groups, rule=rule, has_commits=False)
    assert [] == small(groups, rule=off)
    assert [] == small(groups, MergeOnRead(indexes_logs=True), off)


def test_steady_order_is_by_size_then_file_id():
    groups = make_groups({"p": {"c": 7, "b": 7, "d": 3, "a": 9}})

    assert ["d", "b", "c", "a"] == small(groups)


def test_order_by_hudi_is_that_of_its_view():
    """Hashes of ids decide: ``a`` and ``q`` share a slot, ``b`` is in the next one."""
    groups = make_groups({"p": {"b": 1, "a": 2, "q": 3}})

    assert ["q", "a", "b"] == small(groups, rule=HUDI)


def test_empty_base_file_is_filled_only_by_hudi():
    """An empty base file is damaged, and no reader can read it."""
    groups = make_groups({"p": {"a": 0, "b": 5}})

    assert ["b"] == small(groups)
    assert {"a", "b"} == set(small(groups, rule=HUDI))


def test_hudi_fills_only_the_smallest_file_without_logs():
    groups = make_groups({"p": {"a": 90, "b": 40, "c": (20, 5)}})

    assert ["b"] == small(groups, MergeOnRead(), HUDI)
    assert ["b", "a"] == small(groups, MergeOnRead(max_candidates=3), HUDI)


def test_steady_rule_fills_every_small_file_without_logs():
    groups = make_groups({"p": {"a": 90, "b": 40, "c": (20, 5)}})

    assert ["b", "a"] == small(groups, MergeOnRead())


def test_pending_clustering_removes_some_of_the_smallest_files():
    groups = make_groups({"p": {"a": 90, "b": 40}}, clustering=["b"])

    assert [] == small(groups, MergeOnRead(), HUDI)
    assert ["a"] == small(groups, MergeOnRead())


@every_rule
def test_with_indexed_logs_slices_below_the_target_take_rows(rule):
    """Log files count with 0.35 of their bytes; the small limit is ignored."""
    groups = make_groups(
        {"p": {"a": 110, "b": (50, 100), "c": (100, 58), "d": (None, 300), "e": 120}}
    )

    assert {"a", "b", "d"} == set(small(groups, MergeOnRead(indexes_logs=True), rule))


def test_slice_of_50_mib_with_100_mib_of_logs_counts_85_mib():
    groups = make_groups({"p": {"a": (50 * MIB, 100 * MIB)}})

    assert [85 * MIB] == groups.size.tolist()


def split_ids(text):
    return text.split(",") if text else []


@pytest.mark.parametrize("line", RECORDED, ids=lambda line: f"{line.count('-0')} ids")
def test_file_ids_are_in_the_order_of_a_java_hash_set(line):
    bases, logs, expected = map(split_ids, line.split("|"))
    listed = [*bases, *logs]

    found = sort_as_hash_set(pa.array(listed), np.array([i in logs for i in listed]))

    assert expected == [listed[at] for at in found]


def test_log_files_may_be_listed_before_base_files():
    bases, logs, expected = map(split_ids, RECORDED[-1].split("|"))
    listed = [*logs, *bases]
    is_log_only = np.array([i in logs for i in listed])

    assert expected == [listed[at] for at in sort_as_hash_set(pa.array(listed), is_log_only)]


def test_last_listed_id_of_a_slot_comes_first():
    """``Aa`` and ``BB`` have the same hash in Java."""
    for listed in (["Aa", "BB"], ["BB", "Aa"]):
        found = sort_as_hash_set(pa.array(listed), np.zeros(2, np.bool_))

        assert listed[::-1] == [listed[at] for at in found]


def test_no_files_give_an_empty_order():

    assert [] == sort_as_hash_set(pa.array([], pa.string()), np.zeros(0, np.bool_)).tolist()
