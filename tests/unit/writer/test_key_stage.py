from __future__ import annotations

import pyarrow as pa
import pytest

from reconciler.errors import FormatError, RowsError
from reconciler.file_slices.base_file.meta_columns import CommitStamp, build_meta_column
from reconciler.file_slices.merge.avro_schema import META_COLUMNS
from reconciler.writer.key_stage import add_keys

ROWS = pa.RecordBatch.from_pydict({"n": [1, 2], "_hoodie_record_key": ["old", "old"]})
KEYS = pa.array(["a", "b"])
PATHS = pa.array(["p=x", "p=x"]).dictionary_encode()


def add_meta_columns(batch, stamp, file_name, first=0):
    """Add the five columns as the base file writer makes them, before the rows' own."""
    own = [name for name in batch.schema.names if name not in META_COLUMNS]
    made = [build_meta_column(name, batch, file_name, stamp, first) for name in META_COLUMNS]
    columns = [*made, *(batch.column(name) for name in own)]
    return pa.RecordBatch.from_arrays(columns, [*META_COLUMNS, *own])


def test_new_rows_get_all_five_columns_in_front_of_their_own():
    found = add_meta_columns(
        add_keys(ROWS, KEYS, PATHS), CommitStamp(instant="20240101", task=3), "f.parquet", first=9
    )

    assert {
        "_hoodie_commit_time": ["20240101", "20240101"],
        "_hoodie_commit_seqno": ["20240101_3_9", "20240101_3_10"],
        "_hoodie_record_key": ["a", "b"],
        "_hoodie_partition_path": ["p=x", "p=x"],
        "_hoodie_file_name": ["f.parquet", "f.parquet"],
        "n": [1, 2],
    } == found.to_pydict()
    assert list(found.to_pydict()) == found.schema.names


def test_keys_that_the_rows_bring_give_way_to_those_that_are_made():
    found = add_keys(ROWS, KEYS, PATHS)

    assert ["_hoodie_record_key", "_hoodie_partition_path", "n"] == found.schema.names
    assert ["a", "b"] == found.column(0).to_pylist()


@pytest.mark.parametrize("keys", [pa.array(["a"]), pa.array(["a", None])])
def test_a_row_without_a_key_is_refused(keys):
    with pytest.raises(RowsError, match="every row needs one"):
        add_keys(ROWS, keys, PATHS)


def test_rows_that_were_given_no_path_are_refused_by_the_files_name():
    rows = ROWS.select(["n"])
    with pytest.raises(FormatError, match=r"f\.parquet"):
        add_meta_columns(rows, CommitStamp(instant="1", task=0), "f.parquet")
