"""What is read together, and in what turns."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.merge.slice import FileSliceRef, Share
from reconciler.rewrite.model import Group
from reconciler.rewrite.parts import parts_of, waves


def group(*slices, size, number=0, outputs=1):
    return Group(number=number, partition="", slices=slices, outputs=outputs, bytes=size)


def footer(rows, group_rows):
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": range(rows)}), sink, row_group_size=group_rows)
    return pq.ParquetFile(sink).metadata


BIG = FileSliceRef(base="big", base_size=100)
LOGGED = FileSliceRef(base="logged", base_size=50, logs=("a", "b"))
LOGS = FileSliceRef(logs=("c",))


def test_a_big_base_file_is_read_by_several_and_logs_by_one():
    found = parts_of(group(BIG, LOGGED, LOGS, size=180), piece=40)

    expected = [("big", 0, 3), ("big", 1, 3), ("big", 2, 3), ("logged", 0, 1), (None, 0, 1)]
    assert expected == [(part.files.base, part.share.nth, part.share.of) for part in found]
    assert [0, 1, 2, 3, 4] == [part.number for part in found]
    assert [33, 34, 33, 70, 10] == [part.progress for part in found]
    assert [0, 0, 0, 100, 150] == [part.begin for part in found]
    assert {153.5} == {part.total for part in found}
    assert {()} == {part.group.slices for part in found}


@pytest.mark.parametrize("of", [1, 2, 3, 7])
def test_every_row_group_is_of_one_share(of):
    said = footer(100, 10)
    shares = [Share(nth=nth, of=of) for nth in range(of)]
    groups = [share.groups(said) for share in shares]
    spans = [share.span(said) for share in shares]

    assert list(range(10)) == [group for one in groups for group in one]
    assert all(len(one) - 10 / of < 1 for one in groups)
    assert (0.0, 1.0) == (spans[0][0], spans[-1][1])
    assert [last for _, last in spans[:-1]] == [first for first, _ in spans[1:]]


def test_a_share_without_row_groups_lies_nowhere():
    said = footer(10, 10)

    assert [[0]] == [g for nth in range(3) if (g := Share(nth=nth, of=3).groups(said))]
    assert (0.0, 0.0) == Share(nth=0, of=3).span(said)


def test_a_part_lies_where_its_row_groups_do():
    first, second, *_ = parts_of(group(BIG, BIG, size=200), piece=50)
    said = footer(90, 30)

    assert (0, 1 / 6) == pytest.approx(first.span(said), abs=0.01)
    assert (1 / 6, 1 / 2) == pytest.approx(second.span(said), abs=0.01)
    (alone,) = parts_of(group(LOGS, size=10))
    assert (0.0, 1.0) == alone.span(None)


@pytest.mark.parametrize("size", [0, 1, 7, 180, 2**40 + 1])
def test_progress_comes_to_the_bytes_of_the_group(size):
    for slices in ((), (BIG,), (LOGS,), (BIG, LOGGED, LOGS)):
        found = parts_of(group(*slices, size=size), piece=13)

        assert (size if slices else 0) == sum(part.progress for part in found)
        assert all(part.progress >= 0 for part in found)


def test_a_turn_has_bounds_but_for_a_group_alone():
    sizes = [(5, 1), (5, 1), (1, 1), (20, 1), (1, 2), (1, 9), (1, 1), (1, 1), (1, 1)]
    groups = [
        group(BIG, size=size, number=number, outputs=outputs)
        for number, (size, outputs) in enumerate(sizes)
    ]
    found = waves(groups, most_bytes=10, most_groups=3, most_outputs=4)

    assert [[0, 1], [2], [3], [4], [5], [6, 7, 8]] == [[g.number for g in wave] for wave in found]
    assert [] == waves([], 1, 1, 1)
