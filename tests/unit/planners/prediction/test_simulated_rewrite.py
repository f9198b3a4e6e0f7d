"""What sampled rows say of all rows: how counts go on from doubling to doubling, and how surely."""

from __future__ import annotations

import numpy as np

from reconciler.planners.prediction.simulated_rewrite import (
    ExpectedReads,
    SimulatedReads,
    extrapolate_reads,
    relative_error,
)

MANY = (100, 1000.0)


def counted(*tries, share=1.0, **more):
    """Of each try and query the counts of quarters, halves and all; bytes are ten times files."""
    files = np.array([np.array(one, np.float64).T for one in tries])
    return SimulatedReads(reads=np.stack([files, 10 * files]), share=share, **more)


def test_where_every_row_was_sampled_the_counts_are_what_they_are():
    (found,) = extrapolate_reads([counted([(4, 6, 7), (1, 1, 1)])], [MANY])

    assert [7, 1] == found.files.tolist()
    assert [70, 10] == found.bytes.tolist()
    assert [[0, 0], [0, 0]] == found.variance.tolist()


def test_what_halves_miss_of_all_goes_on_more_slowly_with_every_doubling():
    # from quarters to halves 4 more, from halves to all 2 more: so 1 and 0.5 more in two doublings
    (found,) = extrapolate_reads([counted([(4, 8, 10)], share=0.25)], [MANY])

    assert [11.5] == found.files.tolist()
    assert [(1.5 / 2) ** 2] == found.variance[0].tolist()


def test_the_pace_is_that_of_all_queries_and_groups_together():
    groups = [counted([(0, 4, 6)], share=0.5), counted([(0, 4, 6)], share=1.0)]
    first, second = extrapolate_reads(groups, [MANY, MANY])

    assert ([7.0], [6.0]) == (first.files.tolist(), second.files.tolist())


def test_no_more_files_are_read_than_there_are():
    (found,) = extrapolate_reads([counted([(4, 8, 10)], share=0.01)], [(11, 105.0)])

    assert ([11.0], [105.0]) == (found.files.tolist(), found.bytes.tolist())


def test_tries_that_differ_widen_the_error():
    tries = [[(4, 4, 4), (9, 9, 9)], [(6, 6, 6), (9, 9, 9)], [(5, 5, 5), (9, 9, 9)]]
    (found,) = extrapolate_reads([counted(*tries)], [MANY])

    assert [5, 9] == found.files.tolist()
    # half of what its own tries say, half of what all do: 1 / 14 of a file for each that is read
    assert np.allclose([(1 + 5 / 14) / 2 * 4 / 3, 9 / 14 / 2 * 4 / 3], found.variance[0])


def test_the_error_is_of_all_that_is_read_and_never_below_that_of_sizes():
    one = ExpectedReads(
        reads=np.array([[4.0, 4.0], [40.0, 40.0]]), variance=np.array([[1.0, 0.0], [0.0, 0.0]])
    )
    kept = np.array([[0.0, 0.0], [0.0, 40.0]])

    assert [0.5, 0.05] == relative_error(one, kept).tolist()


def test_bytes_are_as_unsure_as_the_sizes_of_files():
    none = np.array([[0.0], [0.0]])
    one = ExpectedReads(reads=np.array([[4.0], [40.0]]), variance=none)

    assert [0.3] == relative_error(one, none, 0.3).tolist()


def test_a_group_of_which_no_whole_rows_are_known_grows_as_the_others_do():
    groups = [counted([(4, 4, 4)], growth=1.2), counted([(6, 6, 6)])]
    first, second = extrapolate_reads(groups, [MANY, MANY])

    assert ([40], [72]) == (first.bytes.tolist(), second.bytes.tolist())
    assert [6] == second.files.tolist()


def test_the_error_reaches_as_far_as_files_that_may_be_split_or_not():
    unsure = np.array([[2.0], [5.0]])
    (found,) = extrapolate_reads([counted([(4, 4, 4)], split_error=unsure)], [MANY])
    none = np.array([[0.0], [0.0]])

    assert [0.5] == relative_error(found, none, 0.0).tolist()
