"""A small table as it is, looked at in this process: its newest files and its rows."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from reconciler.hudi.names import BaseName
from reconciler.reader.load import open_scan
from reconciler.reader.model import ReadRequest
from reconciler.reader.rows import RowReading, slice_files
from reconciler.storage.api import Storage

#: bytes of the newest base file by partition and file group
Sizes = Mapping[tuple[str, str], int]


def sizes_of(storage: Storage) -> Sizes:
    """The base files that a reader of now sees, in the order of partitions and file groups."""
    slices = open_scan(storage, ReadRequest()).slices
    paths, sizes = (slices.column(name).to_pylist() for name in ("base", "base_size"))
    found = {}
    for path, size in zip(paths, sizes, strict=True):
        partition, _, file = path.rpartition("/")
        name = BaseName.parse(file)
        assert name is not None, "a scan knows its files by their names"
        found[partition, name.file_id] = size
    return dict(sorted(found.items()))


def rows_of(storage: Storage, columns: pa.Schema) -> pa.Table:
    """The rows that a reader of now sees."""
    scan = open_scan(storage, ReadRequest(columns=tuple(columns.names)))
    reading = RowReading.of(scan)
    found: list[pa.RecordBatch] = []
    for row, partition in enumerate(scan.slices.column("partition").to_pylist()):
        found += reading.read(slice_files(scan, row), scan.values(partition), storage)
    return pa.Table.from_batches(found, schema=scan.schema).cast(columns)
