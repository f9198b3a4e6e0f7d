"""Prove in the footer that float columns hold no NaN."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.file_slices.base_file.meta_columns import CommitStamp
from reconciler.file_slices.base_file.schema import FileSchema
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.index.footers import index_footers
from tests.base_files import write_base_file

NAME = "f1-0_0-1-2_20240101000000000.parquet"
POINT = {"type": "record", "name": "p", "fields": [{"name": "x", "type": ["null", "float"]}]}
AVRO = {
    "type": "record",
    "name": "t",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "y", "type": ["null", "double"]},
        {"name": "at", "type": ["null", POINT]},
    ],
}
COLUMNS = ["y", "at.x"]
TABLE = pa.schema([("y", pa.float64()), ("at", pa.struct([("x", pa.float32())]))])
NAN = float("nan")


def proven(*batches):
    """Return whether each column of a file of (y, x) batches is proven to hold no NaN."""
    made = []
    for values in batches:
        ys, xs = zip(*values, strict=True)
        keys = pa.array([f"{n}" for n in range(len(ys))])
        columns = {
            "_hoodie_record_key": keys,
            "_hoodie_partition_path": pa.array([""] * len(ys)),
            "id": keys,
            "y": pa.array(ys, pa.float64()),
            "at": pa.array([{"x": x} for x in xs], pa.struct([("x", pa.float32())])),
        }
        made.append(pa.RecordBatch.from_pydict(columns))
    sink = io.BytesIO()
    stamp = CommitStamp(instant="2024", task=1)
    write_base_file(
        made,
        sink,
        NAME,
        FileSchema.from_avro(json.dumps(AVRO), "t"),
        BaseFileSettings(),
        stamp=stamp,
    )
    footer = pq.ParquetFile(sink).metadata
    found = index_footers([("", NAME, 1, footer)], COLUMNS, TABLE).columns
    return [bool(found[column].is_nan_free[0]) for column in COLUMNS]


def test_floats_without_nan_are_proven_to_hold_none():
    assert [True, True] == proven([(1.5, None), (None, 2.5)], [(float("inf"), -0.0)])


def test_one_nan_in_any_batch_is_enough():
    assert [False, True] == proven([(1.5, 1.5)], [(NAN, 1.5)], [(1.5, 1.5)])
    assert [True, False] == proven([(1.5, NAN)], [(1.5, 1.5)])


def test_a_file_of_nan_alone_proves_nothing():
    assert [False, False] == proven([(NAN, NAN)])
