"""An index file round-trips, other programs can read it, and damage is an error."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.errors import FormatError
from reconciler.index.codec import Provenance, decode_index, encode_index
from reconciler.index.footers import index_footers
from tests.unit.index.footer_samples import index_facts, make_index, write_footer

FROM = Provenance(table="sales.orders", instant="20260101120000000", tool="hudi-reconciler 0.1.0")
ROWS = {
    "i8": pa.array([1, 2], pa.int8()),
    "f": pa.array([1.5, None], pa.float32()),
    "d": pa.array([1.5, float("nan")]),
    "s": pa.array(["a", "\U0001f600"]),
    "b": pa.array([b"\xff", b""]),
    "dec": pa.array([Decimal("1.50"), Decimal("-2.00")], pa.decimal128(10, 2)),
    "day": pa.array([date(2026, 1, 1), None]),
    "at": pa.array([datetime(2026, 1, 1, tzinfo=UTC), None], pa.timestamp("us", tz="UTC")),
    "local": pa.array([7, None], pa.timestamp("us")),
    "is": pa.array([True, False]),
    "nothing": pa.array([None, None], pa.int64()),
}


def index_of_every_type():
    table = pa.table({**ROWS, "st": [{"a": 1}, None]})
    files = [
        ("p=2", "a.parquet", 10, write_footer(table)),
        ("p=1", "b.parquet", 20, None),
        ("p=1", "a.parquet", 30, write_footer(table.slice(0, 1))),
    ]
    return index_footers(files, [*ROWS, "st.a"], table.schema)


def test_index_round_trips():
    index = index_of_every_type()
    found, provenance = decode_index(encode_index(index, FROM), "i")

    assert index_facts(index) == index_facts(found)
    assert ("sales.orders", "20260101120000000", 3) == (
        provenance.table,
        provenance.instant,
        provenance.files,
    )
    assert "decimal128(10, 2)" == provenance.columns["dec"]


def test_empty_index_round_trips():
    index = make_index()
    found, _ = decode_index(encode_index(index, FROM), "i")

    assert index_facts(index) == index_facts(found)


def test_equal_indexes_have_equal_bytes():
    assert encode_index(index_of_every_type(), FROM).equals(
        encode_index(index_of_every_type(), FROM)
    )


def test_only_requested_columns_are_decoded():
    data = encode_index(index_of_every_type(), FROM)

    assert ["s", "st.a"] == list(decode_index(data, "i", ["st.a", "s", "nobody"])[0].columns)
    assert [] == list(decode_index(data, "i", [])[0].columns)


def test_columns_with_a_common_prefix_are_distinguished():
    table = pa.table({"a": [{"b": 7}], "ab": [1]})
    index = index_footers([("", "f", 1, write_footer(table))], ["a.b", "ab"], table.schema)
    found, _ = decode_index(encode_index(index, FROM), "i", ["ab"])

    assert [1] == found.columns["ab"].least.to_pylist()
    assert ["ab"] == list(found.columns)


def test_columns_named_like_the_index_columns_are_distinguished():
    index = make_index(("p", "f", 5, {"name": [1], "size": [2]}), columns=("name", "size"))
    found, _ = decode_index(encode_index(index, FROM), "i")

    assert index_facts(index) == index_facts(found)


def test_pyarrow_reads_the_file_without_this_tool():
    (row, *_) = pq.read_table(
        pa.BufferReader(encode_index(index_of_every_type(), FROM))
    ).to_pylist()

    assert ("p=1", "a.parquet", 30, 1) == tuple(
        row[k] for k in ("partition", "name", "size", "rows")
    )
    assert {
        "least": 1,
        "greatest": 1,
        "nulls": 0,
        "values": 1,
        "is_exact_least": True,
        "is_exact_greatest": True,
        "is_nan_free": True,
    } == row["stats_i8"]


def test_no_changed_byte_changes_the_decoded_index():
    """Changing any byte of the file gives an error or the same index."""
    index = make_index(("p=1", "a", 1, [5, None]), ("p=2", "b", 2, [7]))
    data = bytearray(encode_index(index, FROM))
    expected, wrong = index_facts(index), []
    for at in range(0, len(data), 5):
        data[at] ^= 0x55
        try:
            found = index_facts(decode_index(bytes(data), "i")[0])
        except FormatError:
            found = expected
        if found != expected:
            wrong.append(at)
        data[at] ^= 0x55

    assert [] == wrong


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_truncated_file_is_an_error_with_its_path(share):
    data = encode_index(index_of_every_type(), FROM).to_pybytes()

    with pytest.raises(FormatError, match=r"^\.hoodie/\.zindex/1_0/i: it cannot be read"):
        decode_index(data[: int(len(data) * share)], ".hoodie/.zindex/1_0/i")


def test_table_without_provenance_is_an_error():
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"partition": ["p"]}), sink)

    with pytest.raises(FormatError, match=r"its footer has no reconciler\.index"):
        decode_index(sink.getvalue(), "i")


def test_table_without_index_columns_is_a_readable_error():
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": [1]}), sink)

    with pytest.raises(FormatError, match=r"^i: its columns differ from those of an index; del"):
        decode_index(sink.getvalue(), "i")


def rewrite_file(change=lambda table: table, change_pairs=lambda pairs: pairs):
    """Return an index file that another program rewrote with the same footer pairs."""
    file = pq.ParquetFile(pa.BufferReader(encode_index(index_of_every_type(), FROM)))
    pairs = change_pairs({b"reconciler.index": file.metadata.metadata[b"reconciler.index"]})
    sink = io.BytesIO()
    pq.write_table(
        change(file.read()).replace_schema_metadata(pairs), sink, use_dictionary=["partition"]
    )
    return sink.getvalue()


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (lambda: rewrite_file(lambda t: t.slice(1)), "its number of rows"),
        (lambda: rewrite_file(lambda t: t.take([1, 0, 2])), "its rows are not sorted"),
        (
            lambda: rewrite_file(lambda t: t.drop_columns(["stats_s"])),
            "differ from those that its footer",
        ),
        (
            lambda: rewrite_file(lambda t: t.append_column("x", t["size"])),
            "does not hold statistics",
        ),
        (lambda: rewrite_file(lambda t: t.drop_columns(["size"])), "differ from those of an index"),
        (
            lambda: rewrite_file(
                change_pairs=lambda p: {k: v.replace(b"sales", b"other") for k, v in p.items()}
            ),
            "the digest in its footer is wrong",
        ),
        (
            lambda: rewrite_file(
                change_pairs=lambda p: {
                    k: v.replace(b'"format":1', b'"format":2') for k, v in p.items()
                }
            ),
            "its format is 2, and this version of reconciler knows format 1; up",
        ),
        (
            lambda: rewrite_file(change_pairs=lambda p: dict.fromkeys(p, b"[")),
            "provenance in its footer",
        ),
    ],
)
def test_modified_file_is_an_error(data, problem):
    with pytest.raises(FormatError, match=problem):
        decode_index(data(), "i")


def test_message_of_the_parquet_reader_is_part_of_the_error():
    with pytest.raises(FormatError, match=r"not a parquet file; delete it"):
        decode_index(bytes(100), "i")


def test_error_says_what_to_do():
    with pytest.raises(FormatError, match=r"delete it; the next apply builds it again$"):
        decode_index(b"", "i")
