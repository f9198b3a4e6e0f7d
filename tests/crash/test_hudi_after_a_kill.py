"""An apply that dies at any storage call, and real Hudi that comes first afterwards.

``./ci/test --all`` takes every call, also those that leave Hudi what another has left already.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler import runtime
from reconciler.storage.open import open_storage
from tests.applying import ImpatientClock
from tests.crash.drill import CASES
from tests.oracle import our_clean
from tests.oracle.hudi import HudiTable, keep_commits
from tests.oracle.prepared_tables import (
    TableKind,
    assert_reads,
    assert_rows_and_listing,
    assert_still_correct,
)
from tests.selection import EVERY_CASE, take_turn
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageCall, StorageFault
from tests.trees import unpack

pytestmark = pytest.mark.oracle
KINDS = [
    TableKind(version="0.15.0", indexes=True),
    TableKind(version="1.0.2", merge_on_read=True),
    TableKind(version="1.2.0", indexes=True),
]


class KilledError(BaseException):
    """Nothing catches it."""


class Dying(FaultyStorage):
    """Dies at a call, half-way through a list of deletions; files are created whole or not."""

    def create(self, path, data):
        self._intercept(StorageCall("create", (path,)), lambda: self._inner.create(path, data))

    def replace(self, path, data):
        self._intercept(StorageCall("replace", (path,)), lambda: self._inner.replace(path, data))


def killed(table, at):
    """Apply until the call ``at`` that changes something; whether it got that far."""
    stores = {}

    def breaking(ref):
        store = open_storage(ref)
        fault = StorageFault(at=at, mode="torn")
        return stores.setdefault(store.location, Dying(store, fault, KilledError()))

    someone = replace(runtime.current_process(), pid=2**22 - 1, started="a process that is gone")
    plan = our_clean.make_plan(table, {"commits": 1})
    try:
        our_clean.apply_here(plan, storage=breaking, process=someone)
    except KilledError:
        return True
    return False


def calls_of(table):
    """What an undisturbed apply changes, call by call."""
    stores = {}

    def recording(ref):
        store = open_storage(ref)
        return stores.setdefault(store.location, RecordingStorage(store))

    our_clean.apply_here(our_clean.make_plan(table, {"commits": 1}), storage=recording)
    (store,) = stores.values()
    return store.mutations


def kills(calls, *, every_call=EVERY_CASE):
    """Return the calls to die at, from 1: one for each state of the table that Hudi may find.

    Hudi never looks at our lock, so a death at a call on it leaves what the next one leaves, and a
    death before the request leaves the table as it was. Of logs of the metadata table that are
    written one after the other, the first and the last are taken: none is there, and all but one.
    ``every_call``: each of them, and one too many, so that nothing dies.
    """
    if every_call:
        return list(range(1, len(calls) + 2))
    numbered = list(enumerate(calls, 1))
    logs = [at for at, call in numbered if is_log(call)]
    others = [at for at, call in numbered if call.paths != (".hoodie/lock",)]
    return [at for at in others[1:] if at not in logs[1:-1]]


def is_log(call):
    return call.method == "create" and ".log." in call.paths[0]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_hudi_writes_and_cleans_first_after_an_apply_that_died(library, tmp_path, kind):
    hudi, table = library.table(kind, tmp_path / "undisturbed")
    before, calls = hudi.rows(table), calls_of(table)
    for at in take_turn(kills(calls), of=3 * len(KINDS), turn=3 * KINDS.index(kind)):
        hudi, table = library.table(kind, tmp_path / f"{at}")
        rows = before
        # never copied: a requested clean holds absolute paths
        assert (at <= len(calls)) == killed(table, at)

        assert_reads(hudi, table, rows)  # the metadata table may still list what is gone
        hudi.write(table, [("a1", "a", 50)], options={"hoodie.clean.automatic": "true"})
        rows = [["a1", "a", 50, "v50", 50.0] if row[0] == "a1" else row for row in rows]
        assert_still_correct(hudi, table, rows)
        assert [] == [n for n in pending(table) if ".clean." in n]
        hudi.clean(table, keep_commits(1))
        our_clean.apply_here(our_clean.make_plan(table, {"commits": 1}), clock=ImpatientClock())
        assert_rows_and_listing(hudi, table, rows)
        assert () == our_clean.make_plan(table, {"commits": 1}).tables[0].steps


@pytest.mark.parametrize(
    "case", ["cow_mdt_incremental__0.15.0", "cow_mdt_incremental__1.2.0", "mor_compacted__1.0.2"]
)
def test_an_apply_dies_at_every_kind_of_call_but_those_on_the_lock(case, tmp_path):
    unpack(CASES / case / "table.zip", tmp_path / "t", hollow=True)
    calls = calls_of(HudiTable(path=tmp_path / "t"))
    taken = [calls[at - 1] for at in kills(calls, every_call=False)]
    left_out = [call for call in calls if call not in taken and not is_log(call)]

    (request,) = [call for call in left_out if call.paths[0] != ".hoodie/lock"]
    assert request.paths[0].endswith(".clean.requested")
    assert {is_log(call) for call in calls} == {is_log(call) for call in taken}
    assert len(calls) == kills(calls, every_call=False)[-1]
    assert [*range(1, len(calls) + 2)] == kills(calls, every_call=True)


def pending(table):
    """Names of instants that have no completed file."""
    names = table.instants()
    done = {
        n.split(".")[0].split("_")[0] for n in names if not n.endswith(("requested", "inflight"))
    }
    return [n for n in names if n.split(".")[0] not in done]
