from __future__ import annotations

import json

import pytest

from reconciler.errors import BusyError, StorageError
from reconciler.executor.result import ApplyResult, TableResult
from reconciler.plans.model import Note
from reconciler.plans.plan import Plan
from reconciler.render.terminal import Terminal
from reconciler.render.write_result import reconciliation_text, write_json
from reconciler.spec.model import TableSpec
from reconciler.status.reconciliation import add_reconciliation, reconcile_written
from reconciler.writer.request import WriteResult

WRITTEN = WriteResult(status="completed", instant="20261122000000000", files=3)
SPEC = TableSpec(name="orders", path="/lake/orders")
PLAN = Plan(created_at="2026-11-22T00:00:00Z", tool="t", tables=())


def reconcile(table):
    result = ApplyResult(plan_digest="sha256:0", tables=(table,))
    return reconcile_written(WRITTEN, SPEC, lambda _: PLAN, lambda _: result)


@pytest.mark.parametrize(
    "error",
    [BusyError("the lock is held by ann"), StorageError("a", "is gone"), ZeroDivisionError("x")],
)
def test_an_error_after_a_write_never_hides_that_it_is_committed(error):
    def fail(_):
        raise error

    for steps in ((fail, fail), (lambda _: PLAN, fail)):
        done = reconcile_written(WRITTEN, SPEC, *steps)

        assert ("completed", WRITTEN.instant, 3) == (done.status, done.instant, done.files)
        assert str(error) in done.reconciliation.error
        assert 5 == done.exit_code
        assert 1 == done.reconciliation.exit_code


@pytest.mark.parametrize("code", [1, 3, 4, 5, 6])
def test_whatever_is_left_to_do_ends_with_one_exit_code(code):
    done = reconcile(TableResult(name="orders", path="/lake/orders", code=code))

    assert (code, 5) == (done.reconciliation.exit_code, done.exit_code)


def test_a_table_that_is_as_declared_ends_with_0():
    assert 0 == reconcile(TableResult(name="orders", path="/lake/orders", unchanged=True)).exit_code
    assert 0 == add_reconciliation(WRITTEN, None).exit_code


def test_text_and_json_say_what_was_done_after_the_write():
    refusal = Note("maxFilesRemoved", "4 files would go, 0 may")
    done = reconcile(TableResult(name="orders", path="/lake/orders", code=3, refusals=(refusal,)))
    text = reconciliation_text("orders", done.reconciliation, Terminal())
    document = json.loads(write_json("orders", "upsert", done))

    assert text.startswith("\nthen reconciled:\n")
    assert "4 files would go, 0 may" in text
    assert "Exit code 5: the write is done, but the table is not reconciled in whole" in text
    assert "Exit code 3" not in text
    assert 3 == document["reconciliation"]["exitCode"]
    assert "4 files would go, 0 may" in str(document["reconciliation"]["result"]["tables"])
    assert "reconciliation" not in json.loads(
        write_json("orders", "upsert", add_reconciliation(WRITTEN, None))
    )
