"""One of reconciler's processes at a table that others write too, told by JSON lines what to do.

``python -m tests.oracle.locked_run SPEC NAME RECORD`` reads a list of rows a line. It writes them
and applies a plan, again while others are in the way, and answers with its exit codes. RECORD gets
a line each time that the lock is taken or given back, as ``RecordingLock.java`` writes them.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

import reconciler
from reconciler import runtime
from reconciler.errors import BusyError, StaleError
from reconciler.executor.deletion import LocalDeleter
from reconciler.rewrite.local import LocalRewriter
from reconciler.spec.model import TableSpec
from reconciler.transaction.locks.table_lock import WaitingLock
from reconciler.transaction.recovery.dead_writes import undo_dead_writes
from reconciler.transaction.session import RunContext
from reconciler.writer.local import LocalWriter
from reconciler.writer.request import WriteMode, WriteRequest
from reconciler.writer.run import run_write
from reconciler.writer.table_opening import open_for_writing
from tests.applying import admit_and_apply

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("x", pa.string()),
        ("n", pa.float64()),
    ]
)
_MOST_S = 300


def record_holding(record: Path) -> None:
    """Write a line when a lock is taken, and one before it is given back."""
    acquire = WaitingLock.acquire

    def write(sign: str) -> None:
        with record.open("a") as lines:
            lines.write(f"{sign} {time.monotonic_ns()}\n")

    @contextmanager
    def acquire_and_record(self: WaitingLock) -> Any:
        with acquire(self):
            write("+")
            try:
                yield
            finally:
                write("-")

    WaitingLock.acquire = acquire_and_record  # type: ignore[method-assign]


def write_rows(spec: TableSpec, rows: list[list[Any]]) -> int:
    """Upsert rows until nobody is in the way; return the number of tries."""
    named = [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]
    batch = pa.RecordBatch.from_pylist(named, schema=SCHEMA)
    request = WriteRequest(mode=WriteMode.UPSERT, rows=[[batch]], schema=SCHEMA)
    context = RunContext(
        open_storage=runtime.open_storage,
        clock=runtime.SystemClock(),
        process=runtime.current_process(),
        lock_wait_s=120,
        heartbeat_s=5,
    )
    until, tries = time.monotonic() + _MOST_S, 0
    while True:
        tries += 1
        storage = runtime.open_storage(spec.path, spec.storage_options)
        try:
            session, announced = open_for_writing(
                spec, storage, context, runtime.new_token(), request
            )
            undo_dead_writes(session)
            run_write(session, spec, request, LocalWriter(storage), announced=announced)
        except (BusyError, StaleError) as error:
            print(f"write {tries}: {error}", file=sys.stderr, flush=True)
            if time.monotonic() > until:
                raise
        else:
            return tries


def apply_until_done(spec: TableSpec) -> list[int]:
    """Plan and apply until no other run is in the way; return the exit codes."""
    until, codes = time.monotonic() + _MOST_S, [apply_plan(spec)]
    while codes[-1] == BusyError.exit_code and time.monotonic() < until:
        codes.append(apply_plan(spec))
    return codes


def apply_plan(spec: TableSpec) -> int:
    """Plan and apply once; return the exit code."""
    plan = reconciler.plan([spec])
    problems = [(table.error, table.refusals) for table in plan.tables]
    assert problems == [(None, ())], problems
    result = admit_and_apply(
        plan,
        open_storage=runtime.open_storage,
        deleter=LocalDeleter(runtime.open_storage),
        rewriter=LocalRewriter(runtime.open_storage),
        clock=runtime.SystemClock(),
        new_token=runtime.new_token,
        process=runtime.current_process(),
        lock_wait_s=120,
    )
    (table,) = result.tables
    told = [(one.kind, one.how, one.removed) for one in table.outcomes]
    print(f"apply: {result.exit_code} {told} {table.error}", file=sys.stderr, flush=True)
    return result.exit_code


def main() -> None:
    spec_file, name, record = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    record_holding(record)
    (spec,) = reconciler.load_specs(spec_file, env="prod")
    print(json.dumps({"ready": name}), flush=True)
    for line in sys.stdin:
        tries = write_rows(spec, json.loads(line))
        print(json.dumps({"tries": tries, "codes": apply_until_done(spec)}), flush=True)


if __name__ == "__main__":
    main()
