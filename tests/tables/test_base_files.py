"""Rewrite base files of real Hudi and compare footer, schema and rows."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from reconciler.file_slices.base_file.schema import FileSchema
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.index.parquet_writers import NAN_FREE
from tests.base_files import write_base_file
from tests.trees import unpack

TABLES = Path(__file__).parent
#: number of base files with rows that Hudi's Avro writer wrote, per table
WRITTEN = {
    "v6_cow_part": 13,
    "v6_keygen": 4,
    "v8_mor_part": 4,
    "v9_cow_part": 13,
    "v9_keygen": 4,
    "merging/evol_0.15.0": 1,
    "merging/odec_1.2.0": 1,
    "merging/ots_1.2.0": 1,
    "merging/virt_0.15.0": 1,
}


def columns_of(file):
    """Return the Parquet schema without the root's name, which is Arrow's."""
    return str(file.schema).split("{", 1)[1]


@pytest.mark.parametrize("table", WRITTEN)
def test_a_file_written_again_has_the_footer_that_hudi_wrote(tmp_path, table):
    unpack(TABLES / f"{table}.zip", tmp_path)
    seen = 0
    for path in sorted(tmp_path.rglob("*.parquet")):
        before = pq.ParquetFile(path)
        said = before.metadata.metadata or {}
        text = said.get(b"parquet.avro.schema", b"").decode()
        if not text or ".hoodie" in path.parts or not before.metadata.num_rows:
            continue
        form = BaseFileSettings.from_footer(before.metadata, path.name)
        schema = FileSchema.from_avro(text, path.name)
        sink = io.BytesIO()
        rows = before.read()
        made = write_base_file(rows.to_batches(3), sink, path.name, schema, form)
        after = pq.ParquetFile(sink)
        seen += 1

        pairs = dict(after.metadata.metadata)
        pairs.pop(NAN_FREE.encode(), None)  # only parquet-mr's statistics have it

        assert said == pairs
        assert columns_of(before) == columns_of(after)
        assert rows.to_pylist() == after.read().to_pylist()
        assert "GZIP" == after.metadata.row_group(0).column(0).compression
        assert (len(rows), len(sink.getvalue())) == (made.rows, made.size)

    assert WRITTEN[table] == seen
