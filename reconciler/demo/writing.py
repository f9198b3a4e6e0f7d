"""A batch into its table, by the writer that a cluster runs, in this process."""

from __future__ import annotations

from reconciler import world
from reconciler.demo.orders import Batch
from reconciler.spec.model import TableSpec
from reconciler.transaction.hold import Means
from reconciler.writer.asked import Ask, Outcome, way_of
from reconciler.writer.entry import write_table
from reconciler.writer.local import InProcess


def write_batch(spec: TableSpec, batch: Batch) -> Outcome:
    """Write it; raises as ``write_table``."""
    rows = batch.rows
    return write_table(
        spec,
        Ask(way=way_of(batch.operation), rows=[rows.to_batches()], schema=rows.schema),
        means=Means(
            open_storage=world.open_storage,
            clock=world.SystemClock(),
            process=world.process(),
            waits=lambda _name, _what: None,
            check=lambda: None,
        ),
        token=world.token(),
        writer=lambda ref: InProcess(world.open_storage(ref)),
    )
