"""Read text columns with few texts as dictionaries, and bring batches of rows together."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.file_slices.merge.repeated_texts import (
    decode_unlike,
    find_repeated_texts,
    sort_texts_by_use,
)

ROWS = 5000
COLUMNS = {
    "few": pa.array([f"text {n % 3}" for n in range(ROWS)]),
    "many": pa.array([f"a text with the number {n % 2500}" for n in range(ROWS)]),
    "plain": pa.array([f"text {n}" for n in range(ROWS)]),
    "number": pa.array([n % 3 for n in range(ROWS)]),
    "bytes": pa.array([b"%d" % (n % 3) for n in range(ROWS)]),
    "nested": pa.array([{"few": f"text {n % 3}"} for n in range(ROWS)]),
}
TABLE = pa.table(COLUMNS)


def footer_of(table, **options):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, version="1.0", store_schema=False, **options)
    return pq.read_metadata(pa.BufferReader(sink.getvalue()))


def found(table=TABLE, schema=TABLE.schema, groups=(0,), **options):
    names = [name for name in table.schema.names if name != "plain"]
    return find_repeated_texts(footer_of(table, use_dictionary=names, **options), groups, schema)


def coded(texts, **more):
    return pa.record_batch({"t": pa.array(texts).dictionary_encode(), **more})


def test_columns_of_few_texts_are_found():
    assert ["few"] == found()


def test_a_column_without_a_dictionary_in_one_row_group_is_not_found():
    texts = TABLE.column("few").slice(0, 2500)
    other = pa.array([f"{n} {'x' * 500}" for n in range(2500)])
    table = pa.table({"few": pa.chunked_array([texts, other])})

    assert [] == found(table, row_group_size=2500, groups=(0, 1), dictionary_pagesize_limit=9000)


def test_few_rows_are_read_as_text():
    assert [] == found(TABLE.slice(0, 4000))


def test_a_column_that_the_table_has_in_another_type_is_read_as_stored():
    assert [] == found(schema=pa.schema([("few", pa.binary())]))


def test_other_writers_names_of_encodings_are_left_alone():
    sink = pa.BufferOutputStream()
    pq.write_table(TABLE, sink, version="2.6")
    footer = pq.read_metadata(pa.BufferReader(sink.getvalue()))

    assert [] == find_repeated_texts(footer, [0], TABLE.schema)


def test_batches_with_codes_stay_as_they_are():
    batches = [coded(["a", "b"]), coded(["b"])]

    assert batches == decode_unlike(batches)


def test_a_text_is_decoded_if_another_batch_has_it_plain():
    batches = decode_unlike(
        [coded(["a", "b"], u=["x", "y"]), pa.record_batch({"t": ["c"], "u": ["z"]})]
    )

    assert [pa.string()] * 2 == [batch.schema.field("t").type for batch in batches]
    assert ["a", "b", "c"] == pa.Table.from_batches(batches).column("t").to_pylist()


@pytest.mark.parametrize("texts", [["c", None, "b", "c"], [None, None], []])
def test_a_dictionary_has_the_texts_in_use_in_the_order_of_the_rows(texts):
    batch = coded(["a", "b", "c", None, *texts, "d"])
    rows = pa.Table.from_batches([batch.slice(4, len(texts)), batch.slice(5 + len(texts))])
    (kept,) = sort_texts_by_use(rows).column("t").chunks or [coded([]).column("t")]

    assert texts == kept.to_pylist()
    assert [text for text in dict.fromkeys(texts) if text] == kept.dictionary.to_pylist()


def test_dictionaries_of_several_batches_become_one():
    rows = pa.Table.from_batches([coded(["a", "b"]), coded(["b", "c"])])
    kept = sort_texts_by_use(rows).column("t")

    assert 1 == kept.num_chunks
    assert ["a", "b", "b", "c"] == kept.to_pylist()
