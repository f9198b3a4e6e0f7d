"""The orders of a small shop, in batches: the same at every run. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import accumulate
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import Floats, Integers
from reconciler.lazy_dataclass import dataclass

DAYS: Final = ("2026-11-02", "2026-11-03", "2026-11-04")
SCHEMA: Final = pa.schema(
    [
        ("order_id", pa.int64()),
        ("customer_id", pa.int64()),
        ("day", pa.string()),
        ("amount", pa.float64()),
        ("payment", pa.string()),
        ("status", pa.string()),
        ("updated_at", pa.timestamp("us", tz="UTC")),
    ]
)
#: the columns of a row to delete
_KEY: Final = ["order_id", "day"]
#: orders per day from each shift at the counter, and from the web shop
_COUNTER: Final = {"morning": 1_000, "noon": 500, "evening": 1_500}
_WEB: Final = 19_500
_CUSTOMERS: Final = 2_000
#: one of so many orders is shipped; this customer asks for deletion
_SHIPPED: Final = 150
_DELETED_CUSTOMER: Final = 7
_SECOND: Final = 1_000_000
_DAY: Final = 86_400


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OrderBatch:
    """The rows of one write, of ``SCHEMA``; those of a deletion have only keys and partitions.

    ``name`` is the name of the file with the rows.
    """

    name: str
    operation: str
    rows: pa.Table


def make_batches() -> tuple[OrderBatch, ...]:
    """Return the batches in the order in which they are written."""
    firsts = accumulate(_COUNTER.values(), initial=0)
    counter = [
        OrderBatch(name=shift, operation="bulk-insert", rows=_new_orders(first, count))
        for first, (shift, count) in zip(firsts, _COUNTER.items(), strict=False)
    ]
    web = OrderBatch(name="web", operation="insert", rows=_new_orders(sum(_COUNTER.values()), _WEB))
    orders = pa.concat_tables([batch.rows for batch in (*counter, web)])
    deleted = orders.filter(pc.equal(orders.column("customer_id"), _DELETED_CUSTOMER)).select(_KEY)
    return (
        *counter,
        web,
        OrderBatch(name="shipped", operation="upsert", rows=_ship_orders(orders)),
        OrderBatch(name="forgotten", operation="delete", rows=deleted),
    )


def remaining_orders(written: Sequence[OrderBatch]) -> pa.Table:
    """Return the orders that exist after these writes, sorted by id."""
    rows = SCHEMA.empty_table()
    for batch in written:
        ids = batch.rows.column("order_id")
        rows = rows.filter(pc.invert(pc.is_in(rows.column("order_id"), value_set=ids)))
        if batch.operation != "delete":
            rows = pa.concat_tables([rows, batch.rows])
    return rows.sort_by("order_id")


def _new_orders(first: int, count: int) -> pa.Table:
    """Return ``count`` new orders for each day, which has ``first`` orders already."""
    numbers = first + np.arange(count)
    return pa.concat_tables([_day_orders(at, numbers) for at in range(len(DAYS))])


def _day_orders(at: int, numbers: Integers) -> pa.Table:
    ids = (at + 1) * 1_000_000 + numbers
    midnight = int(datetime.fromisoformat(DAYS[at]).replace(tzinfo=UTC).timestamp())
    seconds = midnight + _uniform_numbers(ids, 1) * _DAY
    return pa.table(
        [
            pa.array(ids),
            # some customers order every day
            pa.array(1 + (_CUSTOMERS * _uniform_numbers(ids, 2) ** 2).astype(np.int64)),
            pa.repeat(DAYS[at], len(ids)),
            # most amounts are small
            pa.array(np.floor(500 + 50_000 * _uniform_numbers(ids, 3) ** 3) / 100),
            _payment_references(ids),
            pa.repeat("paid", len(ids)),
            pa.array(seconds.astype(np.int64) * _SECOND).cast(SCHEMA.field("updated_at").type),
        ],
        schema=SCHEMA,
    )


def _ship_orders(orders: pa.Table) -> pa.Table:
    """Return some of the orders as shipped a day later."""
    ids = orders.column("order_id").to_numpy()
    some = orders.filter(pa.array(ids % _SHIPPED == 0))
    later = some.column("updated_at").cast(pa.int64()).to_numpy() + _DAY * _SECOND
    changed = {"status": pa.repeat("shipped", len(some)), "updated_at": pa.array(later)}
    columns = [changed.get(name, some.column(name)) for name in SCHEMA.names]
    return pa.table(
        [column.cast(field.type) for column, field in zip(columns, SCHEMA, strict=True)],
        schema=SCHEMA,
    )


def _payment_references(ids: Integers) -> pa.Array:
    """Return references that cannot be compressed, like those of a bank."""
    halves = zip(_mix_bits(ids, 4).tolist(), _mix_bits(ids, 5).tolist(), strict=True)
    return pa.array([f"{one:016x}{other:016x}" for one, other in halves])


def _uniform_numbers(ids: Integers, salt: int) -> Floats:
    """Return a pseudorandom number from 0 to 1 for each id, the same at every run."""
    return (_mix_bits(ids, salt) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix_bits(ids: Integers, salt: int) -> NDArray[np.uint64]:
    """Return 64 pseudorandom bits for each id and each ``salt`` below 8 (SplitMix64)."""
    mixed = (ids.astype(np.uint64) * np.uint64(8) + np.uint64(salt)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
