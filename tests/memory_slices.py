"""File slices in memory: base files, log blocks and delete blocks as Hudi writes them."""

from __future__ import annotations

import io
import json
import struct

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.file_slices.merge.slice_reader import SliceFiles, SliceReadOptions, read_slice
from reconciler.hudi.codecs.avro_binary import load_schema_text, parse_schema
from reconciler.hudi.codecs.log_blocks import BlockType, HeaderKey, encode_block

BASE = "f1-0_0-1-1_20260101000000000.parquet"
MODEL = "org.apache.hudi.avro.model."


class MemoryFiles:
    """A source of files; ``files``: bytes by path."""

    def __init__(self, files):
        self.files = files

    def read(self, path):
        return self.files[path]

    def read_range(self, path, start, length):
        return self.files[path][start : start + length]


def record_schema(*fields, name="r"):
    """Return the JSON of a record schema; fields: (name, type), nullable unless type is a list."""
    return json.dumps(
        {
            "type": "record",
            "name": name,
            "fields": [
                {"name": n, "type": t if isinstance(t, list) else ["null", t]} for n, t in fields
            ],
        }
    )


def avro_content(schema, records):
    parsed = fastavro.parse_schema(json.loads(schema))
    parts = [struct.pack(">ii", 3, len(records))]
    for record in records:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, parsed, record)
        data = stream.getvalue()
        parts += [struct.pack(">i", len(data)), data]
    return b"".join(parts)


def log_block(kind, instant, content, **header):
    head = [(HeaderKey.INSTANT_TIME, instant)]
    head += [(HeaderKey[key.upper()], value) for key, value in header.items()]
    return encode_block(kind, head, content)


def data_block(instant, schema, records, **header):
    content = avro_content(schema, records)
    return log_block(BlockType.AVRO_DATA, instant, content, schema=schema, **header)


def parquet_block(instant, schema, table, **header):
    content = parquet_bytes(table)
    return log_block(BlockType.PARQUET_DATA, instant, content, schema=schema, **header)


def delete_block(instant, *records):
    """Encode a delete block; records are (key, wrapper, value), or (key,) without event time."""
    listed = [
        {
            "recordKey": key,
            "partitionPath": "",
            "orderingVal": (MODEL + rest[0], rest[1]) if rest else None,
        }
        for key, *rest in records
    ]
    parsed = parse_schema(load_schema_text("HoodieDeleteRecordList.avsc"), "")
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, parsed, {"deleteRecordList": listed})
    body = stream.getvalue()
    return log_block(BlockType.DELETE, instant, struct.pack(">ii", 3, len(body)) + body)


def rollback_block(instant, target):
    return log_block(
        BlockType.COMMAND, instant, b"", target_instant_time=target, command_block_type="0"
    )


def parquet_bytes(table, **options):
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def read_rows(schema, rules, logs, *, base=None, row_group_size=None, counts=None, **reading):
    """Return the sorted rows of a slice; ``logs``: one list of blocks per log file."""
    files = {f".f1-0_1.log.{n}_0-1-1": b"".join(blocks) for n, blocks in enumerate(logs, 1)}
    ref = SliceFiles(logs=tuple(files))
    if base is not None:
        files[BASE] = parquet_bytes(base, row_group_size=row_group_size)
        ref = SliceFiles(base=BASE, base_size=len(files[BASE]), logs=ref.logs)
    how = SliceReadOptions(rules=rules, schema=schema, **reading)
    batches = list(read_slice(ref, how, MemoryFiles(files), counts=counts))
    assert all(batch.schema == how.wanted.columns for batch in batches)
    found = pa.Table.from_batches(batches, how.wanted.columns).to_pylist()
    return sorted(found, key=lambda row: [(v is not None, str(v)) for v in row.values()])
