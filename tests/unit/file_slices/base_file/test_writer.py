"""Write base files from batches."""

from __future__ import annotations

import gc
import io
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.errors import FormatError, UnsupportedError
from reconciler.file_slices.base_file.meta_columns import SEQUENCE, CommitStamp
from reconciler.file_slices.base_file.schema import FileSchema
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.file_slices.base_file.writer import BaseFileWriter
from reconciler.file_slices.merge.avro_schema import META_COLUMNS
from reconciler.file_slices.merge.calendar import PROLEPTIC
from reconciler.hudi.codecs.bloom import BloomFilter, BloomShape
from tests.base_files import write_base_file

NAME = "f1-0_0-1-2_20240101000000000.parquet"
OLD = "f0-0_0-1-2_20230101000000000.parquet"
SMALL = BloomShape.from_options(entries=100, error=0.01)
FORM = BaseFileSettings(bloom=SMALL)
AVRO = {
    "type": "record",
    "name": "t",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "n", "type": ["null", "long"]},
    ],
}
SCHEMA = FileSchema.from_avro(json.dumps(AVRO), "t")


def rows(ids, numbers=None):
    """Return rows with meta columns, as in a slice of a table."""
    values = list(ids)
    count = len(values)
    meta = [["2023"] * count, [f"2023_0_{n}" for n in range(count)], values, ["p"] * count]
    return pa.RecordBatch.from_pydict(
        {
            **dict(zip(META_COLUMNS, [*meta, [OLD] * count], strict=True)),
            "id": pa.array(values, pa.string()),
            "n": pa.array(list(numbers or range(count)), pa.int64()),
        }
    )


TEN = rows("abcdefghij")


def written(batches, form=FORM, stamp=None):
    sink = io.BytesIO()
    return write_base_file(batches, sink, NAME, SCHEMA, form, stamp=stamp), pq.ParquetFile(sink)


def test_rows_keep_their_commit_and_number_and_get_the_name_of_the_new_file():
    _, file = written([rows("ab")])
    expected = [
        ["2023", "2023_0_0", "a", "p", NAME, "a", 0],
        ["2023", "2023_0_1", "b", "p", NAME, "b", 1],
    ]

    assert expected == [list(row.values()) for row in file.read().to_pylist()]


def test_new_rows_get_a_commit_and_numbers_through_all_batches():
    made, file = written(
        [rows("ab"), rows(""), rows("c")], stamp=CommitStamp(instant="2024", task=7)
    )
    found = file.read(["_hoodie_commit_time", "_hoodie_commit_seqno"]).to_pydict()

    assert 3 == made.rows
    assert ["2024"] * 3 == found["_hoodie_commit_time"]
    assert ["2024_7_0", "2024_7_1", "2024_7_2"] == found["_hoodie_commit_seqno"]


def test_the_footer_has_the_metadata_that_hudi_reads():
    made, file = written([rows(["b", "a"]), rows(["c"])])
    metadata = {key.decode(): value.decode() for key, value in file.metadata.metadata.items()}
    bloom = BloomFilter.parse(metadata.pop("org.apache.hudi.bloomfilter"), "DYNAMIC_V0", NAME)
    expected = {
        "hoodie_bloom_filter_type_code": "DYNAMIC_V0",
        "hoodie_min_record_key": "a",
        "hoodie_max_record_key": "c",
        "parquet.avro.schema": SCHEMA.avro,
        "writer.model.name": "avro",
    }

    assert expected == metadata
    assert ("a", "c") == (made.least_key, made.greatest_key)
    assert [True, True, True] == bloom.contains(pa.array(["a", "b", "c"])).tolist()
    assert 3 == bloom.last_row_count


def test_a_simple_filter_has_no_type_in_the_footer_as_in_hudi():
    _, file = written(
        [rows("a")], replace(FORM, bloom=BloomShape.from_options("SIMPLE", entries=10))
    )

    assert b"hoodie_bloom_filter_type_code" not in file.metadata.metadata
    assert 30 == BaseFileSettings.from_footer(file.metadata, NAME).bloom.hashes


def test_files_of_a_table_without_meta_columns_name_only_themselves():
    made, file = written([rows("ab").select(["id", "n"])], replace(FORM, has_keys=False))
    meta = file.read([*META_COLUMNS]).slice(0, 1).to_pylist()

    assert [{**dict.fromkeys(META_COLUMNS), "_hoodie_file_name": NAME}] == meta
    assert {b"parquet.avro.schema", b"writer.model.name"} == {*file.metadata.metadata}
    assert (None, None) == (made.least_key, made.greatest_key)


def test_a_file_without_rows_is_a_file():
    made, file = written([])

    assert (0, None) == (made.rows, made.least_key)
    assert 0 == file.metadata.num_row_groups
    assert b"hoodie_min_record_key" not in file.metadata.metadata
    assert b"org.apache.hudi.bloomfilter" in file.metadata.metadata


@pytest.mark.parametrize("codec", ["snappy", "gzip", "zstd", "none", "lz4"])
def test_the_settings_of_a_file_are_those_it_was_written_with(codec):
    form = replace(FORM, codec=codec, calendar=PROLEPTIC)
    _, file = written([rows("ab")], form)

    assert form == BaseFileSettings.from_footer(file.metadata, NAME)


@pytest.mark.parametrize("together", [1, 5, 10])
def test_row_groups_end_at_the_row_limit(together):
    assert [4, 4, 2] == group_rows(replace(FORM, group_rows=4), together)


@pytest.mark.parametrize("together", [1, 300, 1000])
def test_row_groups_end_at_the_memory_limit(together):
    batch = rows(f"{n:05}" for n in range(1000))
    form = replace(FORM, group_bytes=batch.nbytes // 4, least_group_rows=1)
    found = group_rows(form, together, batch)

    assert 3 <= len(found) <= 8
    assert all(150 <= count <= 500 for count in found[:-1])
    assert 1000 == sum(found)


@pytest.mark.parametrize("together", [1, 300, 1000])
def test_few_rows_may_take_twice_the_memory(together):
    """Else a table of many columns would have many dictionaries that its rows do not earn back."""
    batch = rows(f"{n:05}" for n in range(1000))
    form = replace(FORM, group_bytes=batch.nbytes // 4)

    def first_group(least):
        return group_rows(replace(form, least_group_rows=least), together, batch)[0]

    usual = first_group(1)
    assert usual * 3 // 2 == first_group(usual * 3 // 2)
    assert first_group(1000) == pytest.approx(usual * 2, rel=0.02)


def test_a_row_larger_than_the_limit_is_a_row_group():
    assert [1] * 10 == group_rows(replace(FORM, group_bytes=10), 10)


def group_rows(form, together, batch=TEN):
    starts = range(0, len(batch), together)
    _, file = written([batch.slice(at, together) for at in starts], form)
    return [file.metadata.row_group(at).num_rows for at in range(file.metadata.num_row_groups)]


@pytest.mark.parametrize("kind", ["random", "repeated"])
def test_the_size_is_known_before_the_file_ends(kind):
    numbers = np.random.default_rng(7).integers(0, 2**62 if kind == "random" else 9, 40_000)
    ids = [f"key-{n:09}" for n in range(40_000)]
    batch = rows(ids, numbers.tolist())
    form = replace(FORM, codec="snappy", group_bytes=1 << 20)
    for end in (500, 6_000, 40_000):
        writer = BaseFileWriter(io.BytesIO(), NAME, SCHEMA, form)
        for start in range(0, end, 1_000):
            writer.write(batch.slice(start, min(1_000, end - start)))
        expected = writer.estimated_bytes

        assert writer.close().size == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("codec", ["none", "snappy"])
@pytest.mark.parametrize("kind", ["random", "repeated"])
def test_rows_within_the_free_bytes_do_not_exceed_the_size(kind, codec):
    numbers = np.random.default_rng(7).integers(0, 2**62 if kind == "random" else 9, 40_000)
    batch = rows([f"key-{n:09}" for n in range(40_000)], numbers.tolist())
    full, width, at = 1_000_000, batch.nbytes / len(batch), 0
    writer = BaseFileWriter(io.BytesIO(), NAME, SCHEMA, replace(FORM, codec=codec))
    while (count := int(writer.free_bytes(full) / width)) and at < len(batch):
        writer.write(batch.slice(at, min(count, 2_000)))
        at += min(count, 2_000)

    assert 0 < at < len(batch)
    assert 0 == writer.free_bytes(full / 2)
    assert writer.close().size <= full


def test_nothing_is_encoded_where_the_encoded_size_is_known(monkeypatch):
    batch = rows(f"key-{n:09}" for n in range(4_000))
    known = write_base_file([batch], io.BytesIO(), NAME, SCHEMA, FORM)
    group = known.footer.row_group(0)
    data = sum(group.column(at).total_compressed_size for at in range(group.num_columns))
    writer = BaseFileWriter(io.BytesIO(), NAME, SCHEMA, FORM)
    writer.write(batch)
    writer.expect_encoded(data)
    monkeypatch.setattr(writer, "_measure_sample", lambda: pytest.fail("it encodes"))

    assert writer.estimated_bytes == pytest.approx(known.size, rel=0.05)


def test_a_pyarrow_stream_is_as_good_a_sink():
    sink = pa.BufferOutputStream()
    made = write_base_file([rows("a")], sink, NAME, SCHEMA, FORM)

    assert made.size == len(sink.getvalue())


@pytest.mark.parametrize(
    ("batch", "problem"),
    [
        (
            rows("a").select(["id", "n"]),
            "need a value in _hoodie_commit_time: the column is missing",
        ),
        (rows([None]), "need a value in _hoodie_record_key: 1 are null"),
        (rows("a").drop_columns(["n"]), "have no column n"),
        (
            rows("a").set_column(5, "id", pa.array([None], pa.string())),
            "cannot be written: Column 'id' is declared non-nullable",
        ),
    ],
)
def test_rows_without_a_required_column_are_refused(batch, problem):
    with pytest.raises(FormatError, match=rf"^{NAME}: .*{problem}"):
        written([batch])


def test_a_column_of_another_type_is_refused():
    batch = rows("a").set_column(6, "n", pa.array([b"1"]))

    with pytest.raises(UnsupportedError, match=f"{NAME}, column n"):
        written([batch])


def test_an_abandoned_file_releases_its_sink():
    sink = io.BytesIO()

    with pytest.raises(FormatError):
        write_base_file([rows("a"), rows([None])], sink, NAME, SCHEMA, replace(FORM, group_rows=1))

    assert not pq.ParquetFile(sink).metadata.metadata
    sink.close()
    gc.collect()


def coded(batch, *names):
    """Return a batch with some of its texts as dictionaries."""
    columns = [
        column.dictionary_encode() if name in names else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def test_coded_texts_give_the_bytes_that_plain_texts_give():
    batches = [rows(f"k{n % 70:02}" for n in range(count)) for count in (0, 5000, 2000)]
    names = [name for name in batches[0].schema.names if name not in ("n", SEQUENCE)]
    files = []
    for several in (batches, [coded(batch, *names) for batch in batches]):
        files.append(io.BytesIO())
        write_base_file(several, files[-1], NAME, SCHEMA, replace(FORM, group_rows=5000))

    assert files[0].getvalue() == files[1].getvalue()


def test_a_file_holds_only_the_texts_that_its_rows_use():
    some = rows("ed" * 40 + "abcdefghij")
    at = some.schema.get_field_index("id")
    plain, chunk = (
        written([batch.slice(0, 80)])[1].metadata.row_group(0).column(at)
        for batch in (some, coded(some, "id"))
    )

    assert ("d", "e") == (chunk.statistics.min, chunk.statistics.max)
    assert plain.total_uncompressed_size == chunk.total_uncompressed_size


@pytest.mark.parametrize("first_is_coded", [True, False])
def test_a_file_takes_coded_and_plain_texts(first_is_coded):
    batches = [rows("ab" * 50), rows("bc")]
    batches[not first_is_coded] = coded(batches[not first_is_coded], "id", "_hoodie_commit_time")
    _, file = written(batches)

    assert [*"ab" * 50, "b", "c"] == file.read().column("id").to_pylist()


def test_a_coded_text_that_is_null_is_refused_where_the_column_is_required():
    texts = pa.array(["a", None] * 20)

    with pytest.raises(FormatError, match="null"):
        written([coded(rows("ab" * 20).set_column(5, "id", texts), "id")])
