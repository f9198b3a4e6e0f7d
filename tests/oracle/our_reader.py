"""Our reader's answers without Spark: every file slice in turn, as Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from reconciler.errors import ReconcilerError
from reconciler.reader.model import ReadRequest, Scan
from reconciler.reader.open_scan import open_scan
from reconciler.reader.slice_rows import SliceRowReader, check_mergeable, get_slice_files
from reconciler.storage.api import Storage
from reconciler.storage.open import open_storage
from tests.oracle.answers import Answer
from tests.oracle.read_queries import Query


def read_our_answers(table: Path, asked: list[Query]) -> dict[str, Answer]:
    """Return our reader's answers by the query's name."""
    storage = open_storage(str(table))
    return {query.name: _answer(storage, query.request) for query in asked}


def _answer(storage: Storage, request: ReadRequest) -> Answer:
    try:
        scan = open_scan(storage, request)
        check_mergeable(scan)
        return Answer.from_rows(pa.Table.from_batches(_rows(scan, storage), scan.schema))
    except ReconcilerError as refusal:
        return Answer(refusal=(f"{type(refusal).__name__}: {refusal}",))


def _rows(scan: Scan, storage: Storage) -> Iterator[pa.RecordBatch]:
    reading = SliceRowReader.from_scan(scan)
    partitions = scan.slices.column("partition").to_pylist()
    for row, partition in enumerate(partitions):
        yield from reading.read(
            get_slice_files(scan, row), scan.get_partition_values(partition), storage
        )
