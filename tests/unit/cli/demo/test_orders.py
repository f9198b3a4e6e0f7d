"""The demo's orders: the same every time, and a plain model of what is left of them."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

from reconciler.cli.demo.orders import DAYS, SCHEMA, make_batches, remaining_orders

BATCHES = make_batches()


def test_orders_are_the_same_every_time():
    assert all(
        one.rows.equals(other.rows) for one, other in zip(BATCHES, make_batches(), strict=True)
    )
    first = BATCHES[0].rows.slice(0, 1).to_pylist()[0]
    assert (first["order_id"], first["customer_id"], first["amount"]) == (1_000_000, 985, 136.96)
    assert first["payment"] == "fd5d9cf7dfba81e4a0b6b2ac98af3506"
    assert first["updated_at"] == datetime(2026, 11, 2, 1, 47, 32, tzinfo=UTC)


def test_what_comes_new_comes_once_and_for_every_day():
    new = [batch for batch in BATCHES if "insert" in batch.operation]
    ids = [each for batch in new for each in batch.rows.column("order_id").to_pylist()]

    assert len(ids) == len(set(ids))
    for batch in new:
        assert set(batch.rows.column("day").to_pylist()) == set(DAYS)
        assert batch.rows.schema == SCHEMA


def test_what_is_left_is_what_a_dictionary_says():
    known = {}
    for batch in BATCHES:
        for row in batch.rows.to_pylist():
            if batch.operation == "delete":
                del known[row["order_id"]]
            else:
                known[row["order_id"]] = row

    assert remaining_orders(BATCHES).to_pylist() == [known[key] for key in sorted(known)]


def test_a_forgotten_customer_has_no_orders_and_others_have_theirs():
    customers = Counter(remaining_orders(BATCHES).column("customer_id").to_pylist())

    assert customers[7] == 0
    assert customers[42] > 10
    assert Counter(remaining_orders(BATCHES).column("status").to_pylist()).keys() == {
        "paid",
        "shipped",
    }
