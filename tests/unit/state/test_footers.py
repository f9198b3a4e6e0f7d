"""Footers of files in memory: what they say, and how often they are read."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import count

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.state.footers import read_footers
from reconciler.storage.open import open_storage
from tests.storage_wrappers import RecordingStorage

_number = count()


def stored(*tables, **options):
    """A storage with a file each, and their paths and sizes."""
    storage = open_storage(f"memory://footers/{next(_number)}")
    files = []
    for nth, table in enumerate(tables):
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, **options)
        data = sink.getvalue().to_pybytes()
        storage.create(f"{nth}.parquet", data)
        files.append((f"{nth}.parquet", len(data)))
    return RecordingStorage(storage), files


def written(values):
    """A file's bytes, with nothing in it but a column x."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": values}), sink, store_schema=False)
    return sink.getvalue().to_pybytes()


def bounds_of(array, **options):
    storage, files = stored(pa.table({"x": array}), **options)
    (footer,) = read_footers(storage, files, ["x"])
    return footer.bounds[0]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([3, None, -1]), (-1, 3)),
        (pa.array([3, 1], pa.int8()), (1, 3)),
        (pa.array([True, True]), (1, 1)),
        (pa.array([1.5, -2.5]), (-2.5, 1.5)),
        (pa.array(["é", "a"]), (b"a", "é".encode())),
        (pa.array([b"\xff", b""]), (b"", b"\xff")),
        (pa.array([date(1969, 12, 31)]), (-1, -1)),
        (pa.array([Decimal("1.25"), Decimal("-3.50")]), (Decimal("-3.50"), Decimal("1.25"))),
        (pa.array([datetime(1970, 1, 1, 0, 0, 1, 5, UTC)]), (1_000_005, 1_000_005)),
        (pa.array([7], pa.timestamp("ms")), (7000, 7000)),
        (pa.array([7999], pa.timestamp("ns")), (7, 7)),
        (pa.array([None, None], pa.int32()), None),
        (pa.array([0.0, -0.0]), None),
        (pa.array([float("nan")]), None),
        (pa.array([[1, 2]]), None),
    ],
    ids=str,
)
def test_least_and_greatest_of_every_type(array, expected):
    assert expected == bounds_of(array)


def test_a_time_of_96_bits_has_no_order():
    array = pa.array([7, 9], pa.timestamp("us"))

    assert bounds_of(array, use_deprecated_int96_timestamps=True) is None


def test_row_groups_are_one_file():
    assert (1, 9) == bounds_of(pa.array([1, 4, None, None, 9, 7]), row_group_size=2)


def test_a_row_group_without_statistics_leaves_the_file_unknown():
    long = "x" * 5000  # statistics of that length are left out

    assert bounds_of(pa.array(["a", "b", long, long]), row_group_size=2) is None
    assert bounds_of(pa.array([1, 2]), write_statistics=False) is None


def test_columns_that_a_file_has_not_are_unknown():
    storage, files = stored(pa.table({"a": [1], "s": [{"b": 2}]}))
    (footer,) = read_footers(storage, files, ["nobody", "a", "s.b"])

    assert (None, (1, 1), (2, 2)) == footer.bounds


def test_rows_and_bytes_are_told_apart_from_what_a_file_costs_anyway():
    table = pa.table({"x": list(range(1000))})
    storage, files = stored(table, table.replace_schema_metadata({"bloom": "x" * 400_000}))
    plain, heavy = read_footers(storage, files, [])

    assert (1000, 1000) == (plain.rows, heavy.rows)
    assert plain.row_bytes == heavy.row_bytes < plain.bytes < heavy.bytes - 400_000
    assert [size for _, size in files] == [plain.bytes, heavy.bytes]


def test_footers_of_a_table_are_read_once_each_however_long():
    bloom = {"bloom": "x" * 300_000}
    tables = [pa.table({"x": [n]}).replace_schema_metadata(bloom) for n in range(30)]
    storage, files = stored(*tables)
    found = read_footers(storage, files, ["x"])

    assert [((n, n),) for n in range(30)] == [footer.bounds for footer in found]
    # those that begin together do not know how long the first one is
    assert 30 < storage.counts["read_range"] <= 30 + 16


@pytest.mark.parametrize(
    ("data", "says"), [(b"", "it is empty"), (b"PAR1", "it has only 4 bytes, ")]
)
def test_a_file_that_is_too_short_for_any_footer_says_how_long_it_is(data, says):
    storage, files = stored(pa.table({"x": [1]}))
    storage.create("bad.parquet", data)
    bad, _ = read_footers(storage, [("bad.parquet", len(data)), *files], ["x"])

    assert bad.problem.startswith(f"bad.parquet: {says}")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "it is shorter than its listed size"),
        (b"x" * 100, "it does not end like a Parquet file"),
        (b"x" * 92 + b"\x7f\x00\x00\x00PAR1", "it does not end like a Parquet file"),
        (b"x" * 92 + b"\x50\x00\x00\x00PAR1", "its footer cannot be read"),
    ],
)
def test_a_damaged_file_says_what_is_wrong_and_spoils_no_other(data, problem):
    storage, files = stored(pa.table({"x": [1]}))
    storage.create("bad.parquet", data)
    bad, good = read_footers(storage, [("bad.parquet", 100), *files], ["x"])

    assert bad.problem.startswith(f"bad.parquet: {problem}")
    assert bad.problem.endswith("restore the file from a copy")
    assert good.problem is None
    assert ((1, 1),) == good.bounds


def test_a_chunk_of_another_type_than_its_column_s_is_unknown():
    """Asked for its statistics, pyarrow would end the process."""
    chunk, file = b"&\x00\x1c\x15\x04", written([1, 2])
    assert file.count(chunk) == 1
    storage = open_storage(f"memory://footers/{next(_number)}")
    storage.create("bad.parquet", file.replace(chunk, chunk[:-1] + b"\x0a"))
    (footer,) = read_footers(storage, [("bad.parquet", len(file))], ["x"])

    assert (None,) == footer.bounds
    assert footer.problem is None


def test_a_file_whose_chunks_have_other_levels_than_its_columns_is_damaged():
    """Asked for such a chunk, whichever it is, pyarrow would end the process."""
    levels, file = b"<)\x06\x19&\x00\x04\x00", written([1, 2])
    assert file.count(levels) == 1
    data = file.replace(levels, b"<)\x06\x19\x16\x04\x00")
    data = data[:-8] + (int.from_bytes(data[-8:-4], "little") - 1).to_bytes(4, "little") + b"PAR1"
    storage = open_storage(f"memory://footers/{next(_number)}")
    storage.create("bad.parquet", data)
    (footer,) = read_footers(storage, [("bad.parquet", len(data))], [])

    assert "bad.parquet: its footer cannot be read; restore the file from a copy" == footer.problem


def test_a_file_that_is_gone_is_a_problem_of_its_own():
    storage, files = stored(pa.table({"x": [1]}))
    gone, _ = read_footers(storage, [("gone.parquet", 100), *files], ["x"])

    assert "gone.parquet" in gone.problem
