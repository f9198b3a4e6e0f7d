"""Which statistics are trusted for each writer of Parquet files."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.index.column_chunks import ColumnChunks, FooterFile
from reconciler.index.file_forms import ColumnPlace
from reconciler.index.footers import index_footers
from reconciler.index.parquet_kinds import ParquetKind
from reconciler.index.parquet_writers import FooterWriter
from tests.unit.index.footer_samples import read_column_stats, read_facts, write_footer

FILES = Path(__file__).parent / "files"
FLOATS, TEXT = pa.array([1.0, 2.0]), pa.array(["a", "b"])
NAN = float("nan")


@pytest.mark.parametrize(
    ("by", "is_nan_free"),
    [
        ("parquet-mr version 1.8.1", False),
        ("parquet-mr version 1.9.0", False),
        ("parquet-mr version 1.10.1", True),
        ("parquet-mr version 1.12.3", True),
        ("parquet-mr version 1.13.1", True),
        ("parquet-mr version 1.16.0", True),
        ("parquet-mr version 1.17.0", False),  # may count NaN aside
        ("parquet-mr version 2.0.0", False),
        ("parquet-cpp-arrow version 16.1.0", False),
        ("parquet-mr compatible Photon", False),
        ("DuckDB version 1.1", False),
    ],
)
def test_bounds_prove_absence_of_nan_only_for_writers_that_include_it(by, is_nan_free):
    assert [is_nan_free] == read_column_stats(FLOATS, by=by).is_nan_free.tolist()


@pytest.mark.parametrize("version", ["10.0.1", "16.1.0", "21.0.0"])
def test_statistics_of_pyarrow_are_right_except_for_nan(version):
    footer = pq.read_metadata(FILES / f"arrow_{version}.parquet")
    names = ["y", "all_nan", "zero", "empty", "long", "n", "st.b"]
    schema = pa.schema(
        [
            *((name, pa.float64()) for name in names[:3]),
            *((name, pa.string()) for name in names[3:5]),
            ("n", pa.int32()),
            ("st", pa.struct([("b", pa.int64())])),
        ]
    )
    found = index_footers([("", "f", 1, footer)], names, schema).columns

    assert {
        "y": (1.0, 2.0, 0, 3),
        "all_nan": (None, None, 0, 3),
        "zero": (-0.0, 0.0, 0, 3),
        "empty": (None, None, 0, 3),
        "long": (None, None, 0, 3),
        "n": (-1, 3, 1, 3),
        "st.b": (1, 1, -1, 3),  # it has a dictionary
    } == {name: read_facts(found[name]) for name in names}
    assert [False] * 3 == [bool(found[name].is_nan_free[0]) for name in names[:3]]


def read(chunk, kind=None, by="parquet-mr version 1.13.1"):
    """Read a chunk as a file with one row group; by default doubles written by parquet-mr."""
    kind = kind or ParquetKind(physical="DOUBLE", logical="NONE")
    file = FooterFile(number=0, name="f", rows=2, groups=1, pairs={})
    chunks = ColumnChunks()
    group = SimpleNamespace(column=[chunk].__getitem__)
    chunks.add_files(
        "x", ColumnPlace(0, kind, FooterWriter.from_created_by(by), 0), [file], [group], [2]
    )
    return chunks


def make_chunk(low, high):
    """Return a stand-in for pyarrow's metadata of a chunk with two values."""
    stats = SimpleNamespace(null_count=0, has_min_max=True, min_raw=low, max_raw=high)
    physical = "DOUBLE" if isinstance(low, float) else "BYTE_ARRAY"
    return SimpleNamespace(
        num_values=2, path_in_schema="x", physical_type=physical, statistics=stats
    )


def test_bound_omitted_by_older_arrow_is_not_empty_text():
    """Arrow before 21 reads a missing bound as empty if the other bound exists."""
    text = ParquetKind(physical="BYTE_ARRAY", logical="STRING")

    def bounds(by, low, high):
        chunks = read(make_chunk(low, high), text, by)
        return chunks.low[0], chunks.high[0]

    assert (b"", None) == bounds("parquet-cpp-arrow version 16.1.0", b"", b"")
    assert (b"a", None) == bounds("parquet-cpp-arrow version 16.1.0", b"a", b"")
    assert (b"", b"") == bounds("parquet-mr version 1.13.1", b"", b"")


@pytest.mark.parametrize("physical", ["BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"])
def test_bounds_of_bytes_compared_as_signed_are_ignored(physical):
    kind = ParquetKind(physical=physical, logical="STRING")

    def bounds(by):
        chunk = make_chunk(b"a", b"b")
        chunk.physical_type = physical
        chunks = read(chunk, kind, by)
        return chunks.low[0], chunks.high[0]

    assert (None, None) == bounds("parquet-mr version 1.9.0")
    assert (b"a", b"b") == bounds("parquet-mr version 1.10.0")


@pytest.mark.parametrize("low", [NAN, 1.0])
def test_bounds_with_nan_are_ignored(low):
    chunks = read(make_chunk(low, NAN))

    assert ([None], [None], [False]) == (chunks.low, chunks.high, chunks.is_nan_free)


def test_undecodable_statistics_are_unknown():
    class Broken:
        num_values = 2
        path_in_schema = "x"
        physical_type = "DOUBLE"

        @property
        def statistics(self):
            raise OSError("Unexpected end of stream")

    chunks = read(Broken())

    assert ([None], [None], [-1], [2]) == (chunks.low, chunks.high, chunks.nulls, chunks.values)


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("parquet-mr version 1.8.1", (None, None, -1, 2)),  # compared bytes as signed
        ("parquet-mr version 1.10.1", ("a", "b", 0, 2)),
        ("parquet-mr version 1.13.1", ("a", "b", 0, 2)),
        ("impala version 4.0", (None, None, -1, 2)),
    ],
)
def test_text_bounds_are_in_unsigned_order_or_unknown(by, expected):
    assert expected == read_facts(read_column_stats(TEXT, by=by))


@pytest.mark.parametrize(
    ("by", "is_exact"),
    [
        ("parquet-mr version 1.10.1", True),
        ("parquet-mr version 1.13.1", False),  # parquet.statistics.truncate.length
        ("parquet-cpp-arrow version 16.1.0", True),
    ],
)
def test_text_bounds_are_exact_if_the_writer_does_not_truncate(by, is_exact):
    assert [is_exact] == read_column_stats(TEXT, by=by).is_exact_least.tolist()
    assert [True] == read_column_stats(pa.array(["a", "a"]), by=by).is_exact_greatest.tolist()
    assert [True] == read_column_stats(pa.array([1, 2]), by=by).is_exact_least.tolist()
    assert [True] == read_column_stats(pa.array([1, 2]), by=by).is_nan_free.tolist()


def test_files_of_several_writers_are_distinguished():
    schema = pa.schema([("x", pa.float64())])
    footers = [
        write_footer(pa.table({"x": FLOATS}), by=by)
        for by in ("parquet-mr version 1.13.1", None, "parquet-mr version 1.13.1", "polars")
    ]
    files = [("", f"{n}", 1, footer) for n, footer in enumerate(footers)]
    stats = index_footers(files, ["x"], schema).columns["x"]

    assert [True, False, True, False] == stats.is_nan_free.tolist()
    assert [1.0, 1.0, 1.0, None] == stats.least.to_pylist()


def test_integers_of_old_writers_are_trusted_but_not_those_of_unknown_ones():
    numbers = pa.array([1, None, 2])

    assert (1, 2, 1, 3) == read_facts(read_column_stats(numbers, by="parquet-mr version 1.8.1"))
    assert (None, None, -1, 3) == read_facts(
        read_column_stats(numbers, by="parquet-mr version 1.6.0")
    )
    assert (None, None, -1, 3) == read_facts(read_column_stats(numbers, by="polars"))
