"""Hudi's average record size; expected values were observed in what Hudi's writers did."""

from __future__ import annotations

import numpy as np

from reconciler.hudi.timeline.instant import Action
from reconciler.layout.sizing.record_size import PastWrite, compute_average_size


def past_write(action, *files, logs=()):
    """Return a past write; ``files`` and ``logs``: pairs of rows and bytes."""
    every = [*files, *logs]
    return PastWrite(
        instant="20240101000000000",
        action=action,
        rows=np.array([rows for rows, _ in every], np.int64),
        bytes=np.array([size for _, size in every], np.int64),
        is_base=np.array([True] * len(files) + [False] * len(logs), np.bool_),
    )


def commit(*files):
    return past_write(Action.COMMIT, *files)


def past_clustering(*files):
    return past_write(Action.REPLACECOMMIT, *files)


def test_the_newest_instant_decides():
    history = [commit((100, 5_000)), commit((300, 35_315)), commit((400, 28_821))]

    assert 73 == compute_average_size(history, small=150_000, threshold=0.0)


def test_a_replacecommit_counts_in_0_15_and_not_in_1_x():
    history = [commit((300, 24_330)), commit((400, 28_814)), past_clustering((700, 466_994))]

    assert 73 == compute_average_size(history, small=150_000, threshold=0.0)
    assert 668 == compute_average_size(history, small=150_000, threshold=0.0, rule="0.15")


def test_small_instants_are_ignored():
    history = [commit((300, 24_330))]

    assert 1024 == compute_average_size(history, small=104_857_600)
    assert 50 == compute_average_size(history, small=104_857_600, fallback=50)


def test_instant_of_exactly_the_threshold_is_too_small():
    assert 1024 == compute_average_size([commit((10, 1_000))], small=1_000)
    assert 101 == compute_average_size([commit((10, 1_001))], small=1_000)


def test_1_x_ignores_instants_before_the_newest_five():
    history = [commit((2_600, 271_724)), *[commit((20, 11_866))] * 5]

    assert 1024 == compute_average_size(history, small=150_000)
    assert 105 == compute_average_size(history, small=150_000, rule="0.15")
    assert 105 == compute_average_size(history[:-1], small=150_000)


def test_replacecommits_are_not_counted_among_the_five():
    history = [commit((2_600, 271_724)), *[past_clustering((20, 11_866))] * 5]

    assert 105 == compute_average_size(history, small=150_000)


def test_log_files_of_a_deltacommit_are_ignored():
    delta = past_write(Action.DELTACOMMIT, (100, 20_000), logs=[(900, 10_000)])

    assert 200 == compute_average_size([delta], small=0)


def test_instant_without_records_is_ignored():
    assert 50 == compute_average_size([commit((10, 500)), commit((0, 900))], small=0)


def test_limit_of_zero_accepts_every_instant():
    assert 50 == compute_average_size([commit((10, 500))], small=0)


def test_table_without_writes_has_the_declared_size():
    assert 77 == compute_average_size([], small=0, fallback=77)
