"""Contents of a small table, read in this process: its newest base files and its rows."""

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
    """Return the sizes of the current base files, sorted by partition and file group."""
    slices = open_scan(storage, ReadRequest()).slices
    paths, sizes = (slices.column(name).to_pylist() for name in ("base", "base_size"))
    found = {}
    for path, size in zip(paths, sizes, strict=True):
        partition, _, file = path.rpartition("/")
        name = BaseName.parse(file)
        assert name is not None, "a scan only has files with valid names"
        found[partition, name.file_id] = size
    return dict(sorted(found.items()))


def read_rows(storage: Storage, columns: pa.Schema) -> pa.Table:
    """Return the current rows of the table."""
    scan = open_scan(storage, ReadRequest(columns=tuple(columns.names)))
    reader = SliceRowReader.from_scan(scan)
    found: list[pa.RecordBatch] = []
    for row, partition in enumerate(scan.slices.column("partition").to_pylist()):
        found += reader.read(
            get_slice_files(scan, row), scan.get_partition_values(partition), storage
        )
    return pa.Table.from_batches(found, schema=scan.schema).cast(columns)
