"""Which small files of a partition become one file with a small batch."""

from __future__ import annotations

import numpy as np
import pytest

from reconciler.layout.sizing.assignment_rules import (
    FileSizeLimits,
    SmallFiles,
    SteadyRule,
    choose_rule,
    restrict_moves,
)
from reconciler.layout.sizing.record_size import RecordSize
from reconciler.layout.sizing.tiers import FileTiers, TierChoice, TierFile, choose_tier

FREE = FileTiers(free_bytes=0)
NEW = TierChoice(into=None)


def choose(*data, batch=1.0, tiers=FREE, target=120, fixed=0.0, fast=()):
    files = [
        TierFile(data=each, fixed=fixed, is_movable=number not in fast)
        for number, each in enumerate(data)
    ]
    return choose_tier(tiers, files, batch, target=target, per_row=1.0)


def into(number, *sources):
    return TierChoice(into=number, sources=sources)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ((), NEW),
        ((1,), NEW),
        ((1, 4), NEW),
        ((1, 1, 1), into(2, 0, 1)),  # all become 4
        ((0.1, 3, 4), into(0)),
        ((1, 3, 4), into(0)),
        ((2, 3, 4), into(2, 0, 1)),  # all become 10
        ((1, 1, 10), into(1, 0)),  # 1, 1 and the batch are the 3 of the next line
        ((2, 3, 10), into(1, 0)),
        ((3, 6, 10), into(2, 0, 1)),  # all become 20
    ],
)
def test_files_grow_as_pyramids_of_the_batch(data, expected):
    assert expected == choose(*data)


def test_a_tiny_batch_after_larger_ones_does_not_rewrite_the_largest_file():
    """What moves up together decides, not the batch that comes last."""
    assert into(1, 0) == choose(1, 6, 90, batch=0.001)
    assert into(2, 0, 1) == choose(1, 11, 90, batch=0.001)


def test_a_file_that_costs_nothing_to_rewrite_takes_the_batch():
    cheap = FileTiers(free_bytes=10)

    assert into(0) == choose(9, tiers=cheap)
    assert NEW == choose(9.1, tiers=cheap)
    assert into(0) == choose(9, 20, 30, tiers=cheap)
    assert into(0) == choose(4, batch=8)
    assert NEW == choose(4.1, batch=8)


def test_files_that_do_not_fit_into_one_become_the_largest_that_does():
    assert into(2, 1) == choose(30, 50, 75, batch=5)
    assert into(2, 0) == choose(30, 60, 90, batch=5)
    assert into(1, 0) == choose(50, 55, 98, batch=20)
    assert into(0) == choose(70, 80, 90, batch=5)


def test_rows_of_files_with_changes_do_not_move():
    assert into(1, 0) == choose(1, 1, 1, fast=(2,))
    assert into(0) == choose(1, 1, 1, fast=(1, 2))
    assert into(1, 0) == choose(3, 6, 10, fast=(2,))
    assert into(2, 1) == choose(3, 6, 10, fast=(0,))


def test_only_as_many_rows_move_as_may():
    few = FileTiers(free_bytes=0, max_moved=8)

    assert into(2, 1) == choose(3, 6, 10, tiers=few)
    assert into(2, 0) == choose(4, 9, 10, tiers=few)
    assert into(0) == choose(9, 9, 10, tiers=few)


def test_of_more_files_the_smallest_three_take_part():
    assert into(2, 0, 1) == choose(1, 1, 1, 90, 95)


def small_files(*size):
    none = np.zeros(len(size), np.bool_)
    at = np.array(size, np.int64)
    return SmallFiles(
        size=at, growth=np.zeros_like(at), rewritten=at, is_updated=none, is_free=none
    )


RULE = SteadyRule(
    sizes=FileSizeLimits(target=1_200, small=1_000),
    record_size=RecordSize(fixed=0, per_row=1.0, because=""),
    tiers=FREE,
)


def test_a_sixteenth_of_the_batch_stays_in_files_whose_rows_move():
    found = RULE.fill(small_files(32, 32, 32), 32)

    assert ([2, 2, 28], [2, 2, -1]) == (found.takes.tolist(), found.moves_to.tolist())


@pytest.mark.parametrize(
    ("rows", "takes", "moves"), [(2, [1, 1, 0], [2, 2, -1]), (1, [0, 1, 0], [-1, 2, -1])]
)
def test_no_file_is_left_without_rows(rows, takes, moves):
    """With fewer rows than files, fewer files' rows move."""
    found = RULE.fill(small_files(rows, rows, rows), rows)

    assert (takes, moves) == (found.takes.tolist(), found.moves_to.tolist())


def test_a_batch_that_is_no_small_file_fills_files_as_before():
    found = RULE.fill(small_files(300, 400, 500), 1_000)

    assert ([900, 100, 0], [-1, -1, -1]) == (found.takes.tolist(), found.moves_to.tolist())


def test_tables_of_others_limit_what_moves():
    rule = choose_rule("steady", RULE.sizes, [])
    assert rule.tiers == FileTiers()
    plain = {"has_flink_writers": False, "has_record_index": False}
    assert rule == restrict_moves(rule, **plain)
    assert restrict_moves(rule, **plain | {"has_flink_writers": True}).tiers is None
    indexed = restrict_moves(rule, **plain | {"has_record_index": True})
    assert 1_000_000 == indexed.tiers.max_moved
    hudi = choose_rule("hudi", RULE.sizes, [])
    assert hudi == restrict_moves(hudi, has_flink_writers=True, has_record_index=True)
