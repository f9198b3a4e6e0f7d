"""Writing a batch in this process, with the code that workers of Spark run."""

from __future__ import annotations

from reconciler import runtime
from reconciler.cli.demo.orders import OrderBatch
from reconciler.spec.model import TableSpec
from reconciler.transaction.session import RunContext
from reconciler.writer.entry import write_table
from reconciler.writer.local import LocalWriter
from reconciler.writer.request import WriteRequest, WriteResult, parse_mode


def write_batch(spec: TableSpec, batch: OrderBatch) -> WriteResult:
    """Write a batch into its table; raises the errors of ``write_table``."""
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
            report_wait=lambda _name, _what: None,
            check_stop=lambda: None,
        ),
        token=runtime.new_token(),
        writer=lambda ref: LocalWriter(runtime.open_storage(ref)),
    )
