"""Choose the columns that get a dictionary."""

from __future__ import annotations

import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.file_slices.base_file.parquet import (
    choose_plain_columns,
    list_dictionary_paths,
)
from reconciler.file_slices.base_file.schema import FileSchema
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.file_slices.merge.avro_schema import META_COLUMNS
from tests.base_files import write_base_file

ROWS = 50_000
EVERY = np.arange(ROWS)
SHUFFLED = np.random.default_rng(1).permutation(ROWS)


def plain(values):
    return bool(choose_plain_columns(pa.table({"x": values})))


def test_distinct_values_get_no_dictionary():
    assert plain(EVERY)
    assert plain(SHUFFLED / 7)
    assert plain(pa.array(SHUFFLED).cast(pa.string()))
    assert plain(pa.array(SHUFFLED).cast(pa.timestamp("us", "UTC")))
    assert plain(pa.array([b"%x" % n for n in SHUFFLED]))
    assert plain(pa.array(SHUFFLED).cast(pa.decimal128(38, 2)))


def test_few_values_get_a_dictionary_in_any_order():
    assert not plain(EVERY % 10)
    assert not plain(EVERY // 100)
    assert not plain(np.sort(EVERY % 10_000))
    assert not plain(pa.array(EVERY % 3000).cast(pa.string()))
    assert not plain(np.random.default_rng(1).integers(0, 20_000, ROWS).round(2) / 4)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        *((values, pa.float64()) for values in (5_000, 30_000, 180_000, 600_000)),
        *((values, pa.string()) for values in (5_000, 30_000, 600_000)),
    ],
)
def test_a_column_gets_a_dictionary_where_that_is_smaller(values, kind):
    drawn = pa.array(np.random.default_rng(1).integers(0, values, ROWS) + 10**6).cast(kind)
    table = pa.table({"x": drawn})
    sizes = {}
    for has_dictionary in (True, False):
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, use_dictionary=has_dictionary, compression="none")
        sizes[has_dictionary] = sink.tell()

    assert plain(drawn) == (sizes[False] < sizes[True])


def test_a_dictionary_that_saves_little_is_left_out():
    drawn = np.random.default_rng(1).integers(0, 60_000, 60_000)  # 38 000 of them differ

    assert plain(drawn / 7)
    assert not plain(drawn // 3 / 7)


def test_small_samples_keep_the_dictionary():
    mostly_null = pa.array([n if n % 10 == 0 else None for n in range(2000)])

    assert not plain(np.arange(200))
    assert not plain(mostly_null)
    assert not plain(pa.nulls(1000, pa.int64()))
    assert not plain(np.arange(0))


def test_nulls_among_many_values_are_left_out():
    assert plain(pa.array([n if n % 3 else None for n in range(ROWS)]))


def test_rows_in_many_pieces_are_those_of_one():
    table = pa.table({"x": EVERY, "y": EVERY % 10})
    pieces = pa.concat_tables([table.slice(0, 10), table.slice(10, 0), table.slice(10)])

    assert {"x"} == choose_plain_columns(pieces)


def test_nested_columns_are_named_by_their_leaves():
    kind = pa.struct([pa.field("a", pa.int64()), pa.field("b", pa.list_(pa.string()))])
    schema = pa.schema([pa.field("x", pa.int64()), pa.field("s", kind), pa.field("y", pa.int32())])

    assert ["s.a", "s.b.list.element", "y"] == list_dictionary_paths(schema, frozenset({"x"}))
    assert ["y"] == list_dictionary_paths(schema.remove(1), frozenset({"x"}))


def test_values_inside_of_nested_columns_are_examined():
    many, few = pa.array(SHUFFLED), pa.array(EVERY % 10).cast(pa.string())
    ends = pa.array(np.arange(0, ROWS + 1, 5), pa.int32())
    struct = pa.StructArray.from_arrays([many, few], ["many", "few"])
    table = pa.table(
        {
            "lists": pa.ListArray.from_arrays(ends, many),
            "items": pa.ListArray.from_arrays(ends, struct),
            "map": pa.MapArray.from_arrays(ends, few, many),
            "struct": struct.slice(0, ROWS // 5),
        }
    )
    plain_paths = {
        "lists.list.element",
        "items.list.element.many",
        "map.key_value.value",
        "struct.many",
    }

    assert plain_paths == choose_plain_columns(table)
    assert [
        "items.list.element.few",
        "map.key_value.key",
        "struct.few",
    ] == list_dictionary_paths(table.schema, frozenset(plain_paths))
    assert plain_paths == choose_plain_columns(table.slice(ROWS // 10))


def test_lists_without_values_keep_their_dictionaries():
    empty = pa.array([[] for _ in range(2000)], pa.list_(pa.struct([("a", pa.int64())])))

    assert frozenset() == choose_plain_columns(pa.table({"x": empty}))


def test_a_file_has_dictionaries_where_they_save_space():
    fields = [{"name": "id", "type": "string"}, {"name": "kind", "type": "int"}]
    schema = FileSchema.from_avro(
        json.dumps({"type": "record", "name": "t", "fields": fields}), "t"
    )
    ids = pa.array(SHUFFLED).cast(pa.string())
    meta = dict.fromkeys(META_COLUMNS, ids) | {"_hoodie_commit_time": ["2024"] * ROWS}
    kinds = pa.array(EVERY % 5).cast(pa.int32())
    table = pa.table(meta | {"id": ids, "kind": kinds})
    sink = io.BytesIO()
    write_base_file(
        table.to_batches(10_000), sink, "f.parquet", schema, BaseFileSettings(bloom=None)
    )
    group = pq.ParquetFile(sink).metadata.row_group(0)
    columns = [group.column(nth) for nth in range(group.num_columns)]
    found = {c.path_in_schema for c in columns if c.has_dictionary_page}

    assert {"_hoodie_commit_time", "_hoodie_file_name", "kind"} == found
    assert kinds.to_pylist() == pq.read_table(sink)["kind"].to_pylist()
    assert ids.to_pylist() == pq.read_table(sink)["id"].to_pylist()
