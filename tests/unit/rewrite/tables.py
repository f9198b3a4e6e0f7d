"""Tables in one folder in memory: base files by the writer, and groups of them."""

from __future__ import annotations

import io
import json
from collections import Counter
from itertools import count

import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.file_slices.base_file.meta_columns import CommitStamp
from reconciler.file_slices.base_file.schema import FileSchema
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.file_slices.base_file.writer import BaseFileWriter
from reconciler.file_slices.merge.avro_schema import META_COLUMNS
from reconciler.file_slices.merge.rules import MergeRules
from reconciler.file_slices.merge.slice_reader import SliceFiles, SliceReadOptions
from reconciler.hudi.codecs.bloom import BloomShape
from reconciler.layout.sizing.split_rule import SplitRule
from reconciler.rewrite.local import LocalRewriter, MemoryLimits
from reconciler.rewrite.model import RewriteGroup, RewriteJob, RowOrdering
from reconciler.storage.open import open_storage

FORM = BaseFileSettings(codec="snappy", bloom=BloomShape.from_options(entries=100, error=0.01))
SEED = "00112233445566778899aabbccddeeff"
INSTANT = "20300101000000000"
TREE = RowOrdering(columns=("x", "y"), curve="kd-tree", mapping="rank")
_numbers = count()


def avro(*fields):
    """Return the JSON of a table's schema; a field is (name, type), nullable."""
    named = [{"name": name, "type": ["null", kind], "default": None} for name, kind in fields]
    return json.dumps({"type": "record", "name": "t", "fields": named})


XY = avro(("id", "string"), ("x", "long"), ("y", "long"))


def storage():
    return open_storage(f"memory://rewrite/{next(_numbers)}")


def base_file(store, number, columns, *, schema=None, form=FORM, folder="", group_rows=None):
    """Write a base file of new rows, ``columns`` by name with one ``id``; returns its reference."""
    schema = schema or FileSchema.from_avro(XY, "t")
    rows = pa.table(columns)
    if form.has_keys:
        keys = rows.column("id").cast(pa.string())
        none = pa.array([""] * len(rows))
        for name in reversed(META_COLUMNS):
            rows = rows.add_column(0, name, keys if name == "_hoodie_record_key" else none)
    sink = io.BytesIO()
    stamp = CommitStamp(instant="20260101000000000", task=number)
    name = f"{number:08d}-0000-0000-0000-000000000000-0_0-1-{number}_{stamp.instant}.parquet"
    writer = BaseFileWriter(sink, name, schema, form, stamp=stamp if form.has_keys else None)
    for start in range(0, len(rows), group_rows or max(len(rows), 1)):
        for batch in rows.slice(start, group_rows).to_batches():
            writer.write(batch)
        writer.end_row_group()
    writer.close()
    path = f"{folder}/{name}" if folder else name
    store.create(path, sink.getvalue())
    return SliceFiles(base=path, base_size=len(sink.getvalue()))


def work(schema=None, **more):
    schema = schema or FileSchema.from_avro(XY, "t")
    said = {
        "instant": INSTANT,
        "seed": SEED,
        "reading": SliceReadOptions(rules=MergeRules(), schema=schema.columns),
        "schema": schema,
        "form": FORM,
        "ordering": TREE,
        "split": SplitRule(target=more.pop("target", 1 << 30)),
    }
    return RewriteJob(**{**said, **more})


def group(*slices, outputs=1, **more):
    size = sum(one.base_size for one in slices)
    said = {"number": 3, "partition": "", "slices": slices, "outputs": outputs, "bytes": size}
    return RewriteGroup(**{**said, **more})


def rewritten(store, asked, *groups, bounds=None, told=None):
    """Rewrite the groups in this process and return the results."""
    rewriter = LocalRewriter(lambda _: store, bounds or MemoryLimits())
    progress = (told if told is not None else []).append
    return rewriter.rewrite(store.ref, asked, list(groups), progress=progress)


def contents(store, made, folder=""):
    """Read each new file as a table."""
    prefix = f"{folder}/" if folder else ""
    return [pq.read_table(pa.BufferReader(store.read(prefix + file.name))) for file in made.files]


def footers(store, made):
    files = [pa.BufferReader(store.read(file.name)) for file in made.files]
    return [pq.ParquetFile(file).metadata for file in files]


def counted(*tables):
    """Count the rows by their text, without their file names."""
    return Counter(
        repr(row) for table in tables for row in table.drop_columns("_hoodie_file_name").to_pylist()
    )
