"""Log files that real Hudi 0.15.0, 1.0.2 and 1.2.0 wrote, written again from their rows."""

from __future__ import annotations

import base64
import io
import struct
import zipfile
from collections import Counter
from pathlib import Path

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.file_slices.base_file.schema import FileSchema
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.file_slices.log_file.log_file import (
    LogChanges,
    LogFileHeader,
    LogFileSettings,
    write_log_file,
)
from reconciler.file_slices.merge.avro_schema import to_arrow_schema
from reconciler.file_slices.merge.delete_blocks import decode_deletions
from reconciler.file_slices.merge.log_records import read_data_batches
from reconciler.hudi.codecs.avro_binary import load_schema_text, parse_schema
from reconciler.hudi.codecs.log_blocks import BlockType, HeaderKey, get_block_schema, read_blocks
from reconciler.hudi.files.names import LogName
from reconciler.hudi.table.properties import TableProperties
from reconciler.state.schema import has_meta_columns
from tests.selection import long

TABLES = Path(__file__).parent
ZIPS = sorted(path.relative_to(TABLES).as_posix() for path in TABLES.rglob("*.zip"))
#: one of each version and kind of block; the others under ALL_TESTS
USUAL = {
    "v6_mor_nopart.zip",
    "v8_mor_part.zip",
    "v9_mor_part.zip",
    "merging/event_0.15.0.zip",
    "merging/multi_1.2.0.zip",
    "merging/odec_0.15.0.zip",
    "merging/odate_0.15.0.zip",
    "merging/ots_1.2.0.zip",
    "updated/1.2.0.zip",
    "v8_mor_nopart.zip",
}
every_table = pytest.mark.parametrize(
    "table", [name if name in USUAL else long(name) for name in ZIPS]
)
POSITIONS = HeaderKey.RECORD_POSITIONS
BASE = HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS
#: headers of rewritten blocks and of partial updates, which reconciler does not write
OTHERS = {HeaderKey.COMPACTED_BLOCK_TIMES, HeaderKey.IS_PARTIAL}


def list_log_files(table):
    """Yield the log files of a table's writes with their blocks, and the table's properties."""
    with zipfile.ZipFile(TABLES / table) as archive:
        names = archive.namelist()
        found = [name for name in names if name.endswith(".hoodie/hoodie.properties")]
        roots = [name for name in found if "/metadata/" not in name]
        if not roots:
            return
        properties = TableProperties.parse(archive.read(roots[0]), "hoodie.properties")
        if not has_meta_columns(properties):
            return
        for name in names:
            parsed = LogName.parse(name.rpartition("/")[2])
            if parsed is None or parsed.is_cdc or "/metadata/" in name:
                continue
            blocks = [*read_blocks(archive.read(name), name)]
            kinds = {block.type for block in blocks}
            written = kinds and kinds <= {
                BlockType.AVRO_DATA,
                BlockType.PARQUET_DATA,
                BlockType.DELETE,
            }
            if written and not any(OTHERS & block.header.keys() for block in blocks):
                yield parsed, blocks, properties


def read_positions(block):
    """Return the row numbers of a block's header; these tables have small arrays or runs."""
    text = block.header.get(POSITIONS)
    if text is None:
        return None
    data = base64.b64decode(text)
    (cookie,) = struct.unpack_from("<I", data, 12)
    if cookie & 0xFFFF == 12346:
        (count,) = struct.unpack_from("<H", data, 22)
        return np.frombuffer(data, "<u2", count + 1, 28).astype(np.int64)
    runs = np.frombuffer(data, "<u2", -1, 23).reshape(-1, 2).astype(np.int64)
    return np.concatenate([np.arange(start, start + more + 1) for start, more in runs])


def write_again(parsed, blocks, properties):
    """Write what a log file holds to another one, and return its blocks."""
    data = [block for block in blocks if block.type is not BlockType.DELETE]
    deletes = [block for block in blocks if block.type is BlockType.DELETE]
    text = get_block_schema(blocks[0])
    schema = to_arrow_schema(text, "")
    rows = [batch for block in data for batch in read_data_batches(block, [*schema.names])]
    fields = [schema.field(name).type for name in properties.ordering_fields]
    deleted, partition = None, ""
    if deletes:
        deleted = decode_deletions(deletes[0], tuple(fields))
        listed = parse_schema(load_schema_text("HoodieDeleteRecordList.avsc"), "")
        found = fastavro.schemaless_reader(io.BytesIO(deletes[0].content[8:]), listed, None)
        partition = found["deleteRecordList"][0]["partitionPath"]
    none = pa.array([], pa.string())
    changes = LogChanges(
        rows=pa.Table.from_batches([evolve(batch, schema) for batch in rows], schema),
        deleted_keys=deleted.keys if deleted else none,
        is_final=deleted.is_final if deleted else np.zeros(0, np.bool_),
        event_times=deleted.ordering if deleted else (),
        row_positions=read_positions(data[0]) if data else None,
        deleted_positions=read_positions(deletes[0]) if deletes else None,
    )
    settings = LogFileSettings(
        schema=FileSchema.from_avro(text, ""),
        form=BaseFileSettings(),
        table_version=properties.table_version,
        data_block=data[0].type if data else BlockType.AVRO_DATA,
    )
    header = LogFileHeader(
        instant=blocks[0].instant,
        file_id=parsed.file_id,
        partition=partition,
        base_instant=blocks[0].header.get(BASE),
    )
    sink = io.BytesIO()
    written = write_log_file(sink, parsed.text, changes, header, settings)
    assert len(sink.getvalue()) == written.size
    return [*read_blocks(sink.getvalue(), parsed.text)]


def evolve(batch, schema):
    columns = [batch.column(field.name).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def show(block):
    """Return what readers see of a block; of a Parquet file its rows, as writers encode it."""
    content = block.content
    if block.type is BlockType.PARQUET_DATA:
        file = pq.ParquetFile(io.BytesIO(content))
        content = (file.read().to_pylist(), sorted(file.metadata.metadata))
    return block.type, dict(block.header), content


def show_expected(block):
    """Return the same of a block of Hudi, whose Parquet files lack a note about numbers."""
    kind, header, content = show(block)
    if kind is BlockType.PARQUET_DATA:
        content = (content[0], sorted({*content[1], b"reconciler.nan_free"}))
    return kind, header, content


@every_table
def test_log_files_have_the_bytes_that_hudi_wrote(table):
    counts: Counter[str] = Counter()
    for parsed, blocks, properties in list_log_files(table):
        instants = {block.instant for block in blocks}
        if len(instants) > 1 or "schema" in parsed.text:
            continue
        expected = [show_expected(block) for block in blocks]

        assert expected == [show(block) for block in write_again(parsed, blocks, properties)]
        counts.update(block.type.name for block in blocks)
    assert counts or table not in USUAL
