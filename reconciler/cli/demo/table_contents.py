"""A small table as it is, looked at in this process: its newest files and its rows."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from reconciler.hudi.files.names import BaseName
from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.reader.slice_rows import SliceRowReader, get_slice_files
from reconciler.storage.api import Storage

#: bytes of the newest base file by partition and file group
FileSizesById = Mapping[tuple[str, str], int]


def read_file_sizes(storage: Storage) -> FileSizesById:
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


def read_rows(storage: Storage, columns: pa.Schema) -> pa.Table:
    """The rows that a reader of now sees."""
    scan = open_scan(storage, ReadRequest(columns=tuple(columns.names)))
    reading = SliceRowReader.from_scan(scan)
    found: list[pa.RecordBatch] = []
    for row, partition in enumerate(scan.slices.column("partition").to_pylist()):
        found += reading.read(
            get_slice_files(scan, row), scan.get_partition_values(partition), storage
        )
    return pa.Table.from_batches(found, schema=scan.schema).cast(columns)
