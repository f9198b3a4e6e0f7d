"""What queries read of files on disk, by their footers: what predictions are held against."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.parquet as pq

from reconciler.hudi.load import load_properties
from reconciler.index.footers import index_of
from reconciler.index.named import asked_columns
from reconciler.planners.reads import reads
from reconciler.state.columns import declared_columns, table_schema
from reconciler.state.observe import observe


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Files and bytes, an element a query."""

    files: list[int]
    bytes: list[int]


def measured(storage, spec, files):
    """What the spec's queries read of so many files of its table."""
    properties = load_properties(storage)
    declared = declared_columns(storage, properties, observe(storage, None, observed_ms=0))
    schema = table_schema(declared.text, declared.path, properties)
    where = [query.where for query in spec.queries]
    index = index_of(
        [("", file.name, file.stat().st_size, pq.read_metadata(file)) for file in files],
        asked_columns(where, schema),
        schema,
    )
    found = reads(where, index, index.size, schema=schema)
    return Measured(files=found.files.tolist(), bytes=found.bytes.tolist())
