"""Sorting the rows of one file, in memory and on disk."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from reconciler.file_slices.merge.calendar import PROLEPTIC, UNSPECIFIED
from reconciler.rewrite import sorting
from reconciler.rewrite.model import Tally
from reconciler.rewrite.runs import Run, append_keys, split_keys
from reconciler.rewrite.sorting import RowSorter, choose_calendar

MOST = {"memory": 1 << 30, "disk": 1}


def run(part, number, values, lanes=None):
    """Return a run; without keys, the values are the keys."""
    rows = pa.RecordBatch.from_pydict(
        {"v": pa.array(values, pa.uint64()), "part": [part] * len(values)}
    )
    data = append_keys(rows, np.array(lanes or [values], np.uint64))
    tally = Tally(rows=len(values), keys=part + 1)
    return Run(part=part, number=number, file=0, size=rows.nbytes, tally=tally, data=data)


def gathered(folder, most, *runs):
    made = RowSorter(None, folder, sort_bytes=MOST[most])
    for one in runs:
        sink = pa.BufferOutputStream()
        one.write(sink, compressed=False)
        made.add(Run.from_bytes(sink.getvalue()))
    return made


def values(ordered, ends):
    return [batch.column(0).to_pylist() for batch in ordered.batches(np.array(ends)) if len(batch)]


@pytest.mark.parametrize("most", MOST)
def test_runs_become_one_order_and_no_batch_goes_beyond_a_place(most, tmp_path):
    runs = [run(0, 0, [5, 1, 9]), run(1, 0, [4, 8]), run(0, 1, [2, 2**63])]
    ordered = gathered(tmp_path, most, *runs).finish()

    assert 7 == ordered.rows
    found = values(ordered, [0, 2, 5, 7])
    assert [1, 2, 4, 5, 8, 9, 2**63] == [value for some in found for value in some]
    ends = np.cumsum([len(one) for one in found]).tolist()
    assert {2, 5, 7} <= set(ends)
    assert found == values(ordered, [0, 2, 5, 7])  # again


@pytest.mark.parametrize("most", MOST)
@pytest.mark.parametrize("turn", [1, 1 << 20])
def test_the_second_lane_decides_where_the_first_does_not(most, turn, tmp_path, monkeypatch):
    monkeypatch.setattr(sorting, "_MERGE_BYTES", turn)  # so much of a stretch is at hand at a time
    rng = np.random.default_rng(7)
    first, second = rng.integers(0, 4, 300), rng.integers(0, 5, 300)
    runs = [
        run(n, 0, (first * 10 + second)[n::5].tolist(), [first[n::5], second[n::5]])
        for n in range(5)
    ]
    ordered = gathered(tmp_path, most, *runs).finish()
    found = [value for some in values(ordered, [0, 300]) for value in some]

    assert sorted((first * 10 + second).tolist()) == found


def test_equal_keys_in_memory_stay_as_they_were_read(tmp_path):
    runs = [run(2, 0, [1, 1]), run(0, 1, [1]), run(0, 0, [1, 0]), run(1, 0, [1])]
    ordered = gathered(tmp_path, "memory", *runs).finish()
    (batch,) = ordered.batches(np.array([0, 6]))

    assert [0, 0, 0, 1, 2, 2] == batch.column("part").to_pylist()


@pytest.mark.parametrize("most", MOST)
def test_tallies_of_runs_without_rows_count_too(most, tmp_path):
    made = gathered(
        tmp_path,
        most,
        Run(part=0, number=0, file=0, tally=Tally(rows=3, keys=2**64 - 1)),
        run(1, 0, [1]),
    )

    assert Tally(rows=4, keys=1) == made.read
    assert 1 == made.finish().rows
    assert 0 == gathered(tmp_path, most).finish().rows


def test_keys_travel_with_their_rows():
    rows = pa.RecordBatch.from_pydict({"a": ["x", None], "b": [[1], []]})
    lanes = np.array([[1, 2], [3, 2**64 - 1]], np.uint64)
    again, found = split_keys(append_keys(rows, lanes))

    assert rows.equals(again)
    assert lanes.tolist() == found.tolist()


@pytest.mark.parametrize(
    ("counted", "expected"),
    [
        ([], PROLEPTIC),
        (["none"], PROLEPTIC),
        (["unsaid", "none"], UNSPECIFIED),
        (["old"], UNSPECIFIED),
        (["old", "unsaid"], UNSPECIFIED),
        (["proleptic", "unsaid"], PROLEPTIC),
        (["proleptic", "old"], None),
    ],
)
def test_a_file_counts_dates_as_all_of_its_rows_do(counted, expected):
    assert expected == choose_calendar(counted, PROLEPTIC)


def test_rows_of_logs_alone_count_as_the_tables_files_do():
    assert UNSPECIFIED == choose_calendar(["none"], UNSPECIFIED)
