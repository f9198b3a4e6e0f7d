"""Measure what queries read of files on disk by their footers, to compare with predictions."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.parquet as pq

from reconciler.hudi.load import load_properties
from reconciler.index.footers import index_footers
from reconciler.index.predicate_columns import find_query_columns
from reconciler.planners.prediction.file_reads import find_reads
from reconciler.state.observe import observe
from reconciler.state.schema import build_table_schema, read_declared_schema


@dataclass(frozen=True, kw_only=True)
class MeasuredReads:
    """Files and bytes read, an element a query."""

    files: list[int]
    bytes: list[int]


def measure_reads(storage, spec, files):
    """Return what the spec's queries read of some files of its table."""
    properties = load_properties(storage)
    declared = read_declared_schema(storage, properties, observe(storage, None, observed_ms=0))
    schema = build_table_schema(declared.text, declared.path, properties)
    where = [query.where for query in spec.queries]
    index = index_footers(
        [("", file.name, file.stat().st_size, pq.read_metadata(file)) for file in files],
        find_query_columns(where, schema),
        schema,
    )
    found = find_reads(where, index, index.size, schema=schema)
    return MeasuredReads(files=found.files.tolist(), bytes=found.bytes.tolist())
