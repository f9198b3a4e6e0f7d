"""Write small tables in this process, each write as a separate run."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.file_slices.merge.slice_reader import SliceFiles, SliceReadOptions, read_slice
from reconciler.hudi.load import load_properties
from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.state.current_files import find_newest_bases
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from reconciler.transaction.recovery.dead_writes import undo_dead_writes
from reconciler.transaction.session import RunContext
from reconciler.writer.local import LocalWriter
from reconciler.writer.request import WriteMode, WriteRequest
from reconciler.writer.run import run_write
from reconciler.writer.table_opening import open_for_writing
from tests.crash.drill import TestClock, process

COLUMNS = ("id", "p", "ts", "x")
SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("ts", pa.int64()), ("x", pa.string())])


def make_rows(*found, schema=SCHEMA):
    """Return a batch of rows given as tuples in the order of the columns."""
    columns = list(zip(*found, strict=True)) if found else [[] for _ in schema]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def read_snapshot(storage, columns=COLUMNS):
    """Return the rows of a snapshot read as tuples of the columns."""
    scan = open_scan(storage, ReadRequest(), is_checked=True)
    options = SliceReadOptions(rules=scan.rules, schema=scan.table_schema, committed=scan.committed)
    found = []
    for one in scan.slices.to_pylist():
        files = SliceFiles(base=one["base"], base_size=one["base_size"], logs=tuple(one["logs"]))
        for batch in read_slice(files, options, storage):
            found += [tuple(row[name] for name in columns) for row in batch.to_pylist()]
    return found


class WriteRuns:
    """Runs that write to one table one after the other, each as another process."""

    def __init__(self, spec):
        self.spec, self.clock, self.count = spec, TestClock(), 0

    def write(
        self,
        batch,
        way=WriteMode.UPSERT,
        *,
        around=lambda storage: storage,
        living=frozenset(),
        host="here",
        extra=None,
        **asked,
    ):
        """Run one write."""
        self.count += 1
        storage = around(open_storage(self.spec.path))
        who = replace(process(self.count, living), host=host)
        means = RunContext(
            open_storage=lambda ref, _options=None: around(open_storage(ref)),
            clock=self.clock,
            process=who,
            report_wait=lambda *_said: None,
            check_stop=lambda: None,
            lock_wait_s=0,
        )
        ask = WriteRequest(
            mode=way, rows=[[batch]], schema=batch.schema, extra=extra or {}, **asked
        )
        hold, announced = open_for_writing(self.spec, storage, means, f"run-{self.count}", ask)
        undo_dead_writes(hold)
        return run_write(hold, self.spec, ask, LocalWriter(storage), announced=announced)

    def read_rows(self):
        """Return the rows that a reader sees, sorted."""
        storage = open_storage(self.spec.path)
        if load_properties(storage).table_type == "MERGE_ON_READ":
            return sorted(read_snapshot(storage), key=str)
        state = observe(storage, None, observed_ms=self.clock.now_ms())
        found = []
        for row in find_newest_bases(state.view).tolist():
            path = state.files.partitions[state.files.partition[row]]
            name = state.files.name[row].as_py()
            table = pq.read_table(f"{self.spec.path}/{path}/{name}")
            found += [tuple(one[name] for name in COLUMNS) for one in table.to_pylist()]
        return sorted(found, key=str)
