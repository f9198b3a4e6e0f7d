"""What our reader answers without Spark: every file slice, one after the other, as Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from reconciler.errors import ReconcilerError
from reconciler.reader.load import open_scan
from reconciler.reader.model import ReadRequest, Scan
from reconciler.reader.rows import RowReading, refuse_unreadable, slice_files
from reconciler.storage.api import Storage
from reconciler.storage.open import open_storage
from tests.oracle.answers import Answer
from tests.oracle.reading import Query


def our_answers(table: Path, asked: list[Query]) -> dict[str, Answer]:
    """What our reader answers, by the query's name."""
    storage = open_storage(str(table))
    return {query.name: _answer(storage, query.request) for query in asked}


def _answer(storage: Storage, request: ReadRequest) -> Answer:
    try:
        scan = open_scan(storage, request)
        refuse_unreadable(scan)
        return Answer.of(pa.Table.from_batches(_rows(scan, storage), scan.schema))
    except ReconcilerError as refusal:
        return Answer(refusal=(f"{type(refusal).__name__}: {refusal}",))


def _rows(scan: Scan, storage: Storage) -> Iterator[pa.RecordBatch]:
    reading = RowReading.of(scan)
    partitions = scan.slices.column("partition").to_pylist()
    for row, partition in enumerate(partitions):
        yield from reading.read(slice_files(scan, row), scan.values(partition), storage)
