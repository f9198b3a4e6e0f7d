"""Statuses as people, programs and Prometheus see them: one table by real Hudi and some by hand.

After a change that was meant: ``pytest tests/cases --update-cases``, and read the diff.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.planners.compose import plan_table
from reconciler.plans.model import Note
from reconciler.render.prometheus import status_prometheus
from reconciler.render.status import status_json, status_text
from reconciler.render.terminal import Terminal
from reconciler.spec.model import Policy, Retention, TableSpec
from reconciler.state.observe import observe
from reconciler.status.conditions import TableCondition
from reconciler.status.index import IndexStatus
from reconciler.status.model import CleanStatus, LastApply, LockStatus, TableStatus
from reconciler.status.table import table_status
from reconciler.storage.open import open_storage
from tests.trees import unpack

HERE = Path(__file__).parent
NOW = datetime(2026, 11, 22, tzinfo=UTC)
IN_SYNC = TableCondition(type="Synced", status="True", reason="InSync", message="the plan is empty")
WELL = TableCondition(type="Healthy", status="True", reason="Healthy", message="nothing is stuck")
APPLIED = TableStatus(
    name="core.customers",
    path="s3://lake/customers",
    sync="in sync",
    conditions=(IN_SYNC, WELL),
    table_type="MERGE_ON_READ",
    table_version=9,
    timezone="UTC",
    last_completed="20261121041500123",
    files=12410,
    bytes=1981000000000,
    bytes_reclaimable=0,
    active_commits=30,
    last_clean=CleanStatus(
        instant="20261121041500123",
        policy="KEEP_LATEST_COMMITS",
        earliest_instant_to_retain="20261120041500123",
        commits=24,
        is_ours=True,
    ),
    last_apply=LastApply(
        instant="20261121041500123",
        at="2026-11-21T04:15:00.123+00:00",
        plan_digest="sha256:" + 8 * "01234567",
        spec_digest="sha256:" + 8 * "89abcdef",
        spec_commit="9defe52c0ffee",
        actor="ann",
    ),
    index=IndexStatus(
        declared=("customer_id", "order_ts", "tags"),
        unindexable=("tags",),
        file=".hoodie/.zindex/20261120041500123_2/index-77427737.parquet",
        bytes=77427737,
        instant="20261120041500123",
        commits_since=24,
        columns=("customer_id", "order_ts"),
        files=12410,
        files_covered=12290,
        damaged=("index-9.parquet: it is cut short; delete it",),
        hudi_columns=("customer_id",),
    ),
    writers=(
        Note(
            "writersFiles",
            "240 of the newest base files below files.small (100MiB) in 12 partitions written by "
            "bulk_insert, which never fills files: use insert, write fewer and larger "
            "batches, or let a clustering join them",
        ),
    ),
)
GONE = TableStatus(
    name='hostile "\\\n\x1b[31m',
    path="/lake/no\tthing\udce9",
    sync="error",
    error="/lake/no\tthing: is not there",
    conditions=(
        TableCondition(
            type="Synced", status="Unknown", reason="Unreadable", message="is not there"
        ),
        TableCondition(type="Healthy", status="False", reason="Unreadable", message="is not there"),
    ),
)


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> list[TableStatus]:
    """A version 6 table with a savepoint, two pending writes, a clean by Hudi and a stale lock."""
    root = tmp_path_factory.mktemp("table")
    unpack(HERE.parent / "tables" / "v6_cow_part.zip", root, hollow=True)
    location = str(next(root.rglob(".hoodie")).parent)
    spec = TableSpec(
        name="sales.orders",
        path="/lake/orders",
        timezone="UTC",
        retention=Retention(policy=Policy.COMMITS, keep=1),
    )
    seen = replace(spec, path=location)
    state = observe(open_storage(location), seen, observed_ms=int(NOW.timestamp() * 1000))
    lock = LockStatus(path="/lake/orders/.hoodie/lock", held_by="a writer", age_seconds=7200)
    orders = table_status(spec, state, plan_table(spec, state, NOW), lock=lock)
    return [orders, APPLIED, GONE]


def test_the_text_is_as_reviewed(tables, golden):
    found = status_text(tables, Terminal()).encode(errors="backslashreplace").decode()

    assert golden.expected(HERE / "status" / "status.txt", found) == found


def test_the_metrics_are_as_reviewed(tables, golden):
    found = status_prometheus(tables, observed_at=NOW, environment="prod")

    assert golden.expected(HERE / "status" / "status.prom", found) == found


def test_the_document_is_as_reviewed(tables, golden):
    found = json.loads(
        status_json(tables[:2], observed_at=NOW.isoformat(), tool="hudi-reconciler 0")
    )
    text = json.dumps(found, indent=1) + "\n"

    assert golden.expected(HERE / "status" / "status.json", text) == text
