"""Writes of small tables in this process, as runs of their own."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.state.observe import observe
from reconciler.state.view import newest_bases, view_of
from reconciler.storage.open import open_storage
from reconciler.transaction.hold import Means
from reconciler.writer.asked import Ask, Way
from reconciler.writer.left import undo_dead_writes
from reconciler.writer.local import InProcess
from reconciler.writer.opening import open_for_writing
from reconciler.writer.run import run_write
from tests.crash.drill import TestClock, process

COLUMNS = ("id", "p", "ts", "x")
SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("ts", pa.int64()), ("x", pa.string())])


def rows(*found, schema=SCHEMA):
    """A batch of rows given as tuples in the order of the columns."""
    columns = list(zip(*found, strict=True)) if found else [[] for _ in schema]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


class Runs:
    """Runs that write to one table one after the other; each is a process of its own."""

    def __init__(self, spec):
        self.spec, self.clock, self.count = spec, TestClock(), 0

    def write(
        self,
        batch,
        way=Way.UPSERT,
        *,
        around=lambda storage: storage,
        living=frozenset(),
        host="here",
        extra=None,
        **asked,
    ):
        """One run."""
        self.count += 1
        storage = around(open_storage(self.spec.path))
        who = replace(process(self.count, living), host=host)
        means = Means(
            open_storage=lambda ref, _options=None: around(open_storage(ref)),
            clock=self.clock,
            process=who,
            waits=lambda *_said: None,
            check=lambda: None,
            lock_wait_s=0,
        )
        ask = Ask(way=way, rows=[[batch]], schema=batch.schema, **asked)
        hold, announced = open_for_writing(self.spec, storage, means, f"run-{self.count}", ask)
        undo_dead_writes(hold, who)
        return run_write(
            hold, self.spec, ask, InProcess(storage), extra=extra or {}, announced=announced
        )

    def rows(self):
        """What a reader sees, sorted."""
        storage = open_storage(self.spec.path)
        state = observe(storage, None, observed_ms=self.clock.now_ms())
        found = []
        for row in newest_bases(view_of(state)).tolist():
            path = state.files.partitions[state.files.partition[row]]
            name = state.files.name[row].as_py()
            table = pq.read_table(f"{self.spec.path}/{path}/{name}")
            found += [tuple(one[name] for name in COLUMNS) for one in table.to_pylist()]
        return sorted(found, key=str)
