"""Our side of an oracle test of writes: whole runs in this process, without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

import reconciler
from reconciler import runtime
from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.reader.slice_rows import SliceRowReader, get_slice_files
from reconciler.spec.model import TableSpec
from reconciler.storage.api import Storage
from reconciler.storage.open import open_storage
from reconciler.transaction.process import Process
from reconciler.transaction.recovery.dead_writes import undo_dead_writes
from reconciler.transaction.session import RunContext
from reconciler.writer.local import LocalWriter
from reconciler.writer.request import WriteMode, WriteRequest, WriteResult
from reconciler.writer.run import run_write
from reconciler.writer.table_opening import open_for_writing
from tests.applying import ImpatientClock
from tests.oracle.hudi import HudiTable

_SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: "{name}"}}
spec:
  path: "{path}"
  timezone: UTC
  files: {{target: {target}B, small: {small}B, when: {{largeFiles: false}}}}
  concurrency: {{lock: {{provider: filesystem}}}}
  table:
    type: {type}
    version: {version}
    recordKey: [id]
    partitionBy: [p]
    ordering: [ts]
    hiveStyle: {hive}
    {index}
"""
_MIB = 1 << 20
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("x", pa.string()),
        ("n", pa.float64()),
    ]
)

Row = Sequence[Any]


def make_spec(
    table: HudiTable,
    version: int,
    *,
    merge_on_read: bool = False,
    hive_style: bool = False,
    target: int = 120 * _MIB,
    buckets: int | None = None,
) -> TableSpec:
    """Load the spec of a table from a file beside it."""
    file = table.path.parent / f"{table.path.name}.yaml"
    file.write_text(
        _SPEC.format(
            name=table.path.name,
            path=table.path,
            type="MERGE_ON_READ" if merge_on_read else "COPY_ON_WRITE",
            version=version,
            hive=json.dumps(hive_style),
            target=target,
            small=target * 4 // 5,
            index="" if buckets is None else f"index: {{type: bucket, buckets: {buckets}}}",
        )
    )
    (spec,) = reconciler.load_specs(file)
    return spec


def write(
    spec: TableSpec,
    rows: Sequence[Row],
    way: WriteMode = WriteMode.UPSERT,
    *,
    partitions: Sequence[str] | None = None,
    around: Callable[[Storage], Storage] = lambda storage: storage,
    process: Process | None = None,
    schema: pa.Schema = SCHEMA,
) -> WriteResult:
    """Run a write of full rows of ``schema``, beside nobody; ``around`` wraps the one storage."""
    storage, who = around(open_storage(spec.path)), process or runtime.current_process()
    means = RunContext(
        open_storage=lambda _ref, _options=None: storage,
        clock=ImpatientClock(),
        process=who,
        report_wait=lambda *_said: None,
        check_stop=lambda: None,
        lock_wait_s=10,
    )
    named = [dict(zip(schema.names, row, strict=True)) for row in rows]
    batch = pa.RecordBatch.from_pylist(named, schema=schema)
    ask = WriteRequest(mode=way, rows=[[batch]], schema=schema, partitions=partitions)
    hold, announced = open_for_writing(spec, storage, means, runtime.new_token(), ask)
    undo_dead_writes(hold)
    writer = LocalWriter(storage) if partitions is None else None
    return run_write(hold, spec, ask, writer, announced=announced)


def read_rows(table: HudiTable, request: ReadRequest | None = None) -> list[list[Any]]:
    """Return our reader's rows in the form of ``RealHudi.rows``, of a snapshot by default."""
    storage = open_storage(str(table.path))
    scan = open_scan(storage, request or ReadRequest())
    reading = SliceRowReader.from_scan(scan)
    found = []
    for row, partition in enumerate(scan.slices.column("partition").to_pylist()):
        values = scan.get_partition_values(partition)
        for batch in reading.read(get_slice_files(scan, row), values, storage):
            found += [list(one.values()) for one in batch.select(SCHEMA.names).to_pylist()]
    return sorted(found, key=repr)
