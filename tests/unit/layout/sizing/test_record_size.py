"""Estimating record size as fixed bytes and bytes per row."""

from __future__ import annotations

import numpy as np
import pytest

from reconciler.hudi.timeline.instant import Action
from reconciler.layout.sizing.record_size import (
    FooterSizes,
    PastWrite,
    RecordSize,
    estimate_record_size,
)


def past_write(*files, action=Action.COMMIT, is_base=True):
    return PastWrite(
        instant="20240101000000000",
        action=action,
        rows=np.array([rows for rows, _ in files], np.int64),
        bytes=np.array([size for _, size in files], np.int64),
        is_base=np.full(len(files), is_base),
    )


def footers(*files):
    """Return footer sizes from triples of rows, bytes and bytes of row groups."""
    rows, sizes, data = (np.array(column, np.int64) for column in zip(*files, strict=True))
    return FooterSizes(rows=rows, bytes=sizes, data=data)


def exact(rows):
    return (rows, 440_000 + 100 * rows)


def data(*values):
    return np.array(values, np.int64)


def test_fixed_bytes_are_separated_from_rows():
    history = [past_write(exact(1_000), exact(50_000)), past_write(exact(400_000))]

    found = estimate_record_size(history)

    assert (440_000, 100.0) == (found.fixed, pytest.approx(found.per_row))
    assert found.because == "fitted over 3 base files of past writes"


def test_small_commits_do_not_inflate_the_row_size():
    """By Hudi's rule a record has 540 bytes; a million rows take 100 MB, not 540."""
    history = [past_write(exact(1_000), exact(2_000), exact(4_000))]

    size = estimate_record_size(history)
    assert size.fixed + 1_000_000 * size.per_row == pytest.approx(100_440_000, rel=0.001)


def test_files_with_similar_row_counts_use_footers():
    history = [past_write(exact(1_000), exact(1_001), exact(1_002))]
    found = estimate_record_size(
        history, footers((1_000, 540_000, 100_000), (3_000, 740_000, 300_000))
    )

    assert (440_000, 100.0) == (found.fixed, found.per_row)
    assert found.because == "by the footers of 2 of its files"


def test_without_footers_similar_files_give_the_mean():
    found = estimate_record_size([past_write((100, 1_000), (100, 1_200))])

    assert RecordSize(fixed=0, per_row=11.0, because="the mean of 200 rows", rows=200) == found


def test_without_writes_the_declared_size_is_used():
    found = estimate_record_size([], fallback=77)

    assert RecordSize(fixed=0, per_row=77.0, because="declared: no past writes to measure") == found


def test_fixed_bytes_are_never_negative():
    found = estimate_record_size([past_write((100, 100), (1_000, 2_000), (10_000, 30_000))])

    assert 0 == found.fixed
    assert found.per_row == pytest.approx(32_100 / 11_100)


def test_sizes_that_decrease_with_rows_are_not_fitted():
    found = estimate_record_size([past_write((100, 9_000), (1_000, 2_000), (10_000, 1_000))])

    assert found.because == "the mean of 11100 rows"


def test_log_files_and_empty_files_are_ignored():
    logs = past_write((5_000, 10), action=Action.DELTACOMMIT, is_base=False)
    found = estimate_record_size([past_write((0, 440_000), (100, 1_000)), logs])

    assert RecordSize(fixed=0, per_row=10.0, because="the mean of 100 rows", rows=100) == found


def test_only_the_requested_actions_count():
    history = [past_write((100, 1_000)), past_write((100, 9_000), action=Action.REPLACECOMMIT)]

    assert 10.0 == estimate_record_size(history).per_row
    assert 90.0 == estimate_record_size(history, actions={Action.REPLACECOMMIT}).per_row


def test_other_actions_count_if_there_are_no_requested_ones():
    history = [past_write((100, 9_000), action=Action.REPLACECOMMIT)]

    assert 90.0 == estimate_record_size(history).per_row


def test_only_the_newest_twenty_instants_count():
    history = [past_write((100, 9_000)), *[past_write((100, 1_000))] * 20]

    assert 10.0 == estimate_record_size(history).per_row


def test_every_output_has_the_fixed_bytes():
    size = RecordSize(fixed=400, per_row=1.0, because="")

    assert [1, 1, 2, 3] == size.count_files(data(0, 600, 601, 1_800), 1_000).tolist()


def test_outputs_exceed_a_target_filled_by_fixed_bytes_by_15_percent():
    size = RecordSize(fixed=999, per_row=1.0, because="")

    assert [2] == size.count_files(data(300), 1_000).tolist()


def test_inputs_count_without_their_fixed_bytes():
    size = RecordSize(fixed=400, per_row=1.0, because="")
    found = size.data_bytes(np.array([1_000, 100, 0]), np.array([0, 0, 1_000]))

    assert [600, 0, 350] == found.tolist()
