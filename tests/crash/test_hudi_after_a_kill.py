"""An apply that dies at any storage call, and real Hudi that comes first afterwards."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler import world
from reconciler.storage.open import open_storage
from reconciler.storage.wrappers import Call, Fault, Faulty
from tests.oracle import ours
from tests.oracle.hudi import keep_commits
from tests.oracle.stories import Kind, assert_reads, assert_right

pytestmark = pytest.mark.oracle
KINDS = [
    Kind(version="0.15.0", indexes=True),
    Kind(version="1.0.2", merge_on_read=True),
    Kind(version="1.2.0", indexes=True),
]


class KilledError(BaseException):
    """Nothing catches it."""


class Dying(Faulty):
    """Dies at a call, half-way through a list of deletions; files are created whole or not."""

    def create(self, path, data):
        self._gate(Call("create", (path,)), lambda: self._inner.create(path, data))

    def replace(self, path, data):
        self._gate(Call("replace", (path,)), lambda: self._inner.replace(path, data))


def killed(table, at):
    """Apply until the call ``at`` that changes something; whether it got that far."""
    stores = {}

    def breaking(ref):
        store = open_storage(ref)
        fault = Fault(at=at, how="torn")
        return stores.setdefault(store.location, Dying(store, fault, KilledError()))

    someone = replace(world.process(), pid=2**22 - 1, started="a process that is gone")
    plan = ours.planned(table, {"commits": 1})
    try:
        ours.applied(plan, storage=breaking, process=someone)
    except KilledError:
        return True
    return False


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_hudi_writes_and_cleans_first_after_an_apply_that_died(library, tmp_path, kind):
    at = 1
    while True:
        hudi, table = library.table(kind, tmp_path / f"{at}")
        rows = hudi.rows(table)
        died = killed(table, at)  # never copied: a requested clean holds absolute paths

        assert_reads(hudi, table, rows)  # the metadata table may still list what is gone
        hudi.write(table, [("a1", "a", 50)], options={"hoodie.clean.automatic": "true"})
        rows = [["a1", "a", 50, "v50", 50.0] if row[0] == "a1" else row for row in rows]
        assert_right(hudi, table, rows)
        assert [] == [n for n in pending(table) if ".clean." in n]
        hudi.clean(table, keep_commits(1))
        assert_right(hudi, table, rows)
        ours.applied(ours.planned(table, {"commits": 1}))
        assert_right(hudi, table, rows)
        assert () == ours.planned(table, {"commits": 1}).tables[0].steps
        if not died:
            break
        at += 1

    assert at > 5


def pending(table):
    """Names of instants that have no completed file."""
    names = table.instants()
    done = {
        n.split(".")[0].split("_")[0] for n in names if not n.endswith(("requested", "inflight"))
    }
    return [n for n in names if n.split(".")[0] not in done]
