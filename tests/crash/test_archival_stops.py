"""Stop an archival at any call: no instant is lost, and the next apply finishes it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.hudi.timeline.archive_v1 import read_archive
from reconciler.hudi.timeline.archive_v2 import read_current_manifest
from tests.crash.archival_drill import OTHERS, USUAL, make_drill
from tests.crash.drill import Killed
from tests.selection import EVERY_CASE, long, take_turn
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageFault
from tests.trees import Tree


@pytest.fixture(params=[*USUAL, *map(long, OTHERS)])
def it(tmp_path, request):
    return make_drill(request.param, tmp_path / "it")


def test_an_archival_moves_the_oldest_instants(it):
    before, archived = it.active(), it.archived()
    plan = it.plan()
    (step,) = plan.tables[0].steps
    (told,) = it.apply(plan).tables
    moved = [
        {(one.instant, one.action) for one in listed}
        for listed in (step.instants, step.metadata_table)
    ]

    assert step.instants
    assert (None, 0, "done") == (told.error, told.exit_code, told.status)
    assert [known - gone for known, gone in zip(before, moved, strict=True)] == it.active()
    assert [sorted({*known, *gone}) for known, gone in zip(archived, moved, strict=True)] == (
        it.archived()
    )


def test_the_same_plan_again_does_nothing_and_a_new_one_is_empty(it):
    plan = it.plan()
    it.apply(plan)
    state = it.active(), it.archived()
    (told,) = it.apply(plan).tables
    (outcome,) = told.outcomes

    assert (0, "nothing") == (told.exit_code, outcome.how)
    assert state == (it.active(), it.archived())
    assert ((),) == tuple(table.steps for table in it.plan().tables)


def test_no_stop_loses_an_instant_or_makes_one_look_pending(it):
    plan, tree, halves = it.plan(), Tree.from_folder(it.folder), it.list_halves()
    recording = []

    def record(storage):
        recording.append(RecordingStorage(storage))
        return recording[-1]

    it.apply(plan, around=record)
    goal = it.active(), it.archived()
    everything = [set(one) | other for one, other in zip(goal[1], goal[0], strict=True)]
    count = sum(len(one.mutations) for one in recording)
    turns = range(1, count + 1)
    for at in take_turn(turns, of=1 if EVERY_CASE else max(1, count // 3)):
        for mode in ("before", "torn") if EVERY_CASE else ("before",):
            it.begin_again(tree)
            kill(it, plan, StorageFault(at=at, mode=mode))

            assert halves == it.list_halves()
            assert everything == [
                set(one) | other for one, other in zip(it.archived(), it.active(), strict=True)
            ]
            it.apply(plan)
            it.apply(it.plan())

            assert goal[0] == it.active(), (at, mode)
            assert [sorted({*one}) for one in goal[1]] == it.archived()
            assert [] == list_doubles(it)


def kill(it, plan, fault):
    def around(storage):
        return AtomicFaults(storage, fault, Killed())

    with pytest.raises(Killed):
        it.apply(plan, around=around)


class AtomicFaults(FaultyStorage):
    """Stores write a file whole or not at all; a request for several deletes may end in between."""

    def _intercept(self, call, act, torn=None):
        return super()._intercept(call, act, torn if call.method == "delete_many" else None)


def list_doubles(it):
    """Return what an archive holds twice."""
    doubles = []
    for one in it.timelines:
        found = [*list_rows(it.storage, one)]
        doubles += sorted({row for row in found if found.count(row) > 1})
    return doubles


def list_rows(storage, properties):
    """Yield every row of an archive, with its state."""
    folder = properties.archive_folder
    if properties.layout == 1:
        yield from read_archive(storage, folder)
        return
    for file in read_current_manifest(storage, folder).files:
        rows = pq.read_table(pa.BufferReader(storage.read(f"{folder}/{file.name}")))
        yield from zip(
            *(rows.column(n).to_pylist() for n in ("instantTime", "action")), strict=True
        )
