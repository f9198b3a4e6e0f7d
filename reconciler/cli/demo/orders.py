"""The orders of a small shop, in the batches in which they come: the same every time; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

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
#: what a deletion has to know of a row
_KEY: Final = ["order_id", "day"]
#: orders of a day that the shifts at the counter bring, and that the web shop does
_COUNTER: Final = {"morning": 1_000, "noon": 500, "evening": 1_500}
_WEB: Final = 19_500
_CUSTOMERS: Final = 2_000
#: every so many orders one is shipped, and this customer asks to be forgotten
_SHIPPED: Final = 150
_DELETED_CUSTOMER: Final = 7
_SECOND: Final = 1_000_000
_DAY: Final = 86_400


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OrderBatch:
    """Rows that one write brings: of ``SCHEMA``, of a deletion keys and partitions alone.

    ``name``: what a file with them is called.
    """

    name: str
    operation: str
    rows: pa.Table


def make_batches() -> tuple[OrderBatch, ...]:
    """What is written, one after the other."""
    firsts = accumulate(_COUNTER.values(), initial=0)
    counter = [
        OrderBatch(name=shift, operation="bulk-insert", rows=_new_orders(first, count))
        for first, (shift, count) in zip(firsts, _COUNTER.items(), strict=False)
    ]
    web = OrderBatch(name="web", operation="insert", rows=_new_orders(sum(_COUNTER.values()), _WEB))
    brought = pa.concat_tables([batch.rows for batch in (*counter, web)])
    forgotten = brought.filter(pc.equal(brought.column("customer_id"), _DELETED_CUSTOMER)).select(
        _KEY
    )
    return (
        *counter,
        web,
        OrderBatch(name="shipped", operation="upsert", rows=_ship_orders(brought)),
        OrderBatch(name="forgotten", operation="delete", rows=forgotten),
    )


def remaining_orders(written: Sequence[OrderBatch]) -> pa.Table:
    """The orders that there are after these writes, by their ids."""
    rows = SCHEMA.empty_table()
    for batch in written:
        brought = batch.rows.column("order_id")
        rows = rows.filter(pc.invert(pc.is_in(rows.column("order_id"), value_set=brought)))
        if batch.operation != "delete":
            rows = pa.concat_tables([rows, batch.rows])
    return rows.sort_by("order_id")


def _new_orders(first: int, count: int) -> pa.Table:
    """New orders, so many a day, of which the day has ``first`` already."""
    numbers = first + np.arange(count)
    return pa.concat_tables([_day_orders(at, numbers) for at in range(len(DAYS))])


def _day_orders(at: int, numbers: NDArray[np.int64]) -> pa.Table:
    ids = (at + 1) * 1_000_000 + numbers
    midnight = int(datetime.fromisoformat(DAYS[at]).replace(tzinfo=UTC).timestamp())
    seconds = midnight + _uniform_numbers(ids, 1) * _DAY
    return pa.table(
        [
            pa.array(ids),
            # some come every day
            pa.array(1 + (_CUSTOMERS * _uniform_numbers(ids, 2) ** 2).astype(np.int64)),
            pa.repeat(DAYS[at], len(ids)),
            # most are small
            pa.array(np.floor(500 + 50_000 * _uniform_numbers(ids, 3) ** 3) / 100),
            _payment_references(ids),
            pa.repeat("paid", len(ids)),
            pa.array(seconds.astype(np.int64) * _SECOND).cast(SCHEMA.field("updated_at").type),
        ],
        schema=SCHEMA,
    )


def _ship_orders(orders: pa.Table) -> pa.Table:
    """Some of the orders, as they are a day later."""
    ids = orders.column("order_id").to_numpy()
    some = orders.filter(pa.array(ids % _SHIPPED == 0))
    later = some.column("updated_at").cast(pa.int64()).to_numpy() + _DAY * _SECOND
    changed = {"status": pa.repeat("shipped", len(some)), "updated_at": pa.array(later)}
    columns = [changed.get(name, some.column(name)) for name in SCHEMA.names]
    return pa.table(
        [column.cast(field.type) for column, field in zip(columns, SCHEMA, strict=True)],
        schema=SCHEMA,
    )


def _payment_references(ids: NDArray[np.int64]) -> pa.Array:
    """References that nobody can compress, as a bank's are."""
    halves = zip(_mix_bits(ids, 4).tolist(), _mix_bits(ids, 5).tolist(), strict=True)
    return pa.array([f"{one:016x}{other:016x}" for one, other in halves])


def _uniform_numbers(ids: NDArray[np.int64], what: int) -> NDArray[np.float64]:
    """A number from 0 to 1 for each id, without a pattern but the same every time."""
    return (_mix_bits(ids, what) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix_bits(ids: NDArray[np.int64], what: int) -> NDArray[np.uint64]:
    """64 bits for each id, others for each ``what`` below 8 (SplitMix64)."""
    mixed = (ids.astype(np.uint64) * np.uint64(8) + np.uint64(what)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
