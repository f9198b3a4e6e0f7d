"""Splitting groups into parts and waves."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.file_slices.merge.slice_reader import RowGroupShare, SliceFiles
from reconciler.rewrite.model import RewriteGroup
from reconciler.rewrite.slice_parts import split_into_parts, split_into_waves


def group(*slices, size, number=0, outputs=1):
    return RewriteGroup(number=number, partition="", slices=slices, outputs=outputs, bytes=size)


def footer(rows, group_rows):
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": range(rows)}), sink, row_group_size=group_rows)
    return pq.ParquetFile(sink).metadata


BIG = SliceFiles(base="big", base_size=100)
LOGGED = SliceFiles(base="logged", base_size=50, logs=("a", "b"))
LOGS = SliceFiles(logs=("c",))


def test_a_big_base_file_is_read_by_several_and_logs_by_one():
    found = split_into_parts(group(BIG, LOGGED, LOGS, size=180), part_bytes=40)

    expected = [("big", 0, 3), ("big", 1, 3), ("big", 2, 3), ("logged", 0, 1), (None, 0, 1)]
    assert expected == [(part.files.base, part.share.index, part.share.count) for part in found]
    assert [0, 1, 2, 3, 4] == [part.number for part in found]
    assert [33, 34, 33, 70, 10] == [part.progress for part in found]
    assert [0, 0, 0, 100, 150] == [part.begin for part in found]
    assert {153.5} == {part.total for part in found}
    assert {()} == {part.group.slices for part in found}


@pytest.mark.parametrize("of", [1, 2, 3, 7])
def test_every_row_group_is_of_one_share(of):
    said = footer(100, 10)
    shares = [RowGroupShare(index=nth, count=of) for nth in range(of)]
    groups = [share.select_groups(said) for share in shares]
    spans = [share.byte_span(said) for share in shares]

    assert list(range(10)) == [group for one in groups for group in one]
    assert all(len(one) - 10 / of < 1 for one in groups)
    assert (0.0, 1.0) == (spans[0][0], spans[-1][1])
    assert [last for _, last in spans[:-1]] == [first for first, _ in spans[1:]]


def test_a_share_without_row_groups_lies_nowhere():
    said = footer(10, 10)

    assert [[0]] == [
        g for nth in range(3) if (g := RowGroupShare(index=nth, count=3).select_groups(said))
    ]
    assert (0.0, 0.0) == RowGroupShare(index=0, count=3).byte_span(said)


def test_a_part_lies_where_its_row_groups_do():
    first, second, *_ = split_into_parts(group(BIG, BIG, size=200), part_bytes=50)
    said = footer(90, 30)

    assert (0, 1 / 6) == pytest.approx(first.span(said), abs=0.01)
    assert (1 / 6, 1 / 2) == pytest.approx(second.span(said), abs=0.01)
    (alone,) = split_into_parts(group(LOGS, size=10))
    assert (0.0, 1.0) == alone.span(None)


@pytest.mark.parametrize("size", [0, 1, 7, 180, 2**40 + 1])
def test_progress_comes_to_the_bytes_of_the_group(size):
    for slices in ((), (BIG,), (LOGS,), (BIG, LOGGED, LOGS)):
        found = split_into_parts(group(*slices, size=size), part_bytes=13)

        assert (size if slices else 0) == sum(part.progress for part in found)
        assert all(part.progress >= 0 for part in found)


def test_a_turn_has_bounds_but_for_a_group_alone():
    sizes = [(5, 1), (5, 1), (1, 1), (20, 1), (1, 2), (1, 9), (1, 1), (1, 1), (1, 1)]
    groups = [
        group(BIG, size=size, number=number, outputs=outputs)
        for number, (size, outputs) in enumerate(sizes)
    ]
    found = split_into_waves(groups, most_bytes=10, most_groups=3, most_outputs=4)

    assert [[0, 1], [2], [3], [4], [5], [6, 7, 8]] == [[g.number for g in wave] for wave in found]
    assert [] == split_into_waves([], 1, 1, 1)
