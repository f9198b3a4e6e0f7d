"""A small table in this process: write a batch, read the rows, show how its files change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa

from reconciler import runtime
from reconciler.cli.demo.orders import OrderBatch
from reconciler.hudi.files.names import BaseName
from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.reader.slice_rows import SliceRowReader, get_slice_files
from reconciler.render import words
from reconciler.render.terminal import Terminal, draw_bar
from reconciler.spec.model import TableSpec
from reconciler.storage.api import Storage
from reconciler.transaction.session import RunContext
from reconciler.writer.local import LocalWriter
from reconciler.writer.request import WriteRequest, WriteResult, parse_mode
from reconciler.writer.run import write_table

#: characters of a file group's id that are enough to tell groups apart here
_ID: Final = 8
_NEW: Final = "new"
_ADDED: Final = "░"
#: bytes of the newest base file by partition and file group
FileSizesById = Mapping[tuple[str, str], int]


def write_batch(spec: TableSpec, batch: OrderBatch) -> WriteResult:
    """Write a batch into its table, with the code that workers of Spark run.

    Raises the errors of ``write_table``.
    """
    rows = batch.rows
    return write_table(
        spec,
        WriteRequest(
            mode=parse_mode(batch.operation), rows=[rows.to_batches()], schema=rows.schema
        ),
        context=RunContext(
            open_storage=runtime.open_storage,
            clock=runtime.SystemClock(),
            process=runtime.current_process(),
        ),
        token=runtime.new_token(),
        writer=lambda ref: LocalWriter(runtime.open_storage(ref)),
    )


def read_file_sizes(storage: Storage) -> FileSizesById:
    """Return the sizes of the current base files, sorted by partition and file group."""
    slices = open_scan(storage, ReadRequest()).slices
    paths, sizes = (slices.column(name).to_pylist() for name in ("base", "base_size"))
    sizes_by_id = {}
    for path, size in zip(paths, sizes, strict=True):
        partition, _, file = path.rpartition("/")
        name = BaseName.parse(file)
        assert name is not None, "a scan only has files with valid names"
        sizes_by_id[partition, name.file_id] = size
    return dict(sorted(sizes_by_id.items()))


def read_rows(storage: Storage, columns: pa.Schema) -> pa.Table:
    """Return the current rows of the table."""
    scan = open_scan(storage, ReadRequest(columns=tuple(columns.names)))
    reader = SliceRowReader.from_scan(scan)
    batches: list[pa.RecordBatch] = []
    for row, partition in enumerate(scan.slices.column("partition").to_pylist()):
        batches += reader.read(
            get_slice_files(scan, row), scan.get_partition_values(partition), storage
        )
    return pa.Table.from_batches(batches, schema=scan.schema).cast(columns)


def format_changes(
    before: FileSizesById, after: FileSizesById, full: int, terminal: Terminal
) -> Iterator[str]:
    """Yield a line per file: its size before and after, and a bar of its share of ``full``.

    The added part of the bar is lighter.
    """
    last = None
    for (partition, file_id), size in after.items():
        old_size = before.get((partition, file_id), 0)
        label = "" if partition == last else partition
        old = words.format_size(old_size) if old_size else _NEW
        bar = draw_bar(min(old_size, full), full)
        added = _ADDED * (len(draw_bar(min(size, full), full)) - len(bar))
        sizes = f"{old:>10} → {words.format_size(size):>10}"
        bar += terminal.good(added) if added else ""
        yield f"  {label:<14}  {file_id[:_ID]}  {sizes}  {bar}"
        last = partition


def count_new_groups(before: FileSizesById, after: FileSizesById) -> int:
    """Return the number of file groups that did not exist before."""
    return len(after.keys() - before.keys())
