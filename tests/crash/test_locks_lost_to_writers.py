"""A lock file that vanishes while we hold it, and a writer that commits before we take it again.

Version 6 and 9: the next log file of the metadata table has one name for all writers only in the
first.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest

from reconciler.errors import BusyError, ReconcilerError
from reconciler.hudi.load import load_properties, load_timeline
from tests.crash.clustering_drill import PlannedDrill
from tests.crash.declared_drill import MORE, make_drill, write_three_times
from tests.crash.drill import TestClock, list_traces, list_unlisted
from tests.crash.write_drill import BATCH, BEFORE
from tests.selection import cover_pairs, long, take_turn
from tests.storage_wrappers import RecordingStorage
from tests.write_runs import COLUMNS, WriteRuns, make_rows

LOCK = ".hoodie/lock"
#: rows of the other writer: beside all that we change, or in its way
FOREIGN = {"beside": [(9, "d", 9, "nine")], "in the way": [(1, "a", 9, "by another")]}
OURS = 11


@dataclass
class Thief:
    """Deletes the lock file before a call of ours, and lets a writer commit then.

    ``also_at``: a later call before which the lock file is deleted once more.
    """

    it: PlannedDrill
    rows: list[Any]
    at: int = 0
    also_at: int = 0
    calls: int = 0
    is_done: bool = False
    hits: int = 0

    def watch(self, storage):
        return Watched(storage, self)

    def look(self, inner):
        self.calls += 1
        if self.calls == self.at and inner.delete(LOCK):
            self.hits += 1
            writer = WriteRuns(self.it.spec)
            writer.clock, writer.count = self.it.clock, 50
            try:
                writer.write(make_rows(*self.rows), living=frozenset(range(50)))
            except ReconcilerError:
                return  # a clustering has announced what it rewrites
            self.is_done = True
        elif self.calls == self.also_at:
            self.hits += inner.delete(LOCK)


class Watched(RecordingStorage):
    def __init__(self, inner, thief):
        super().__init__(inner)
        self.thief = thief

    def _intercept(self, call, act, torn=None):
        self.thief.look(self._inner)
        return super()._intercept(call, act, torn)


class Work:
    """Our change of one kind of a table with three commits, and a copy of that table."""

    def __init__(self, kind, version, folder):
        self.kind, self.it, self.before = kind, make_drill(folder, kind, version), folder / "before"
        self.rows = {key: (key, p, ts + 2, x) for key, p, ts, x in BEFORE}
        write_three_times(self.it)
        self.plan, self.ms = self.it.plan(), self.it.clock.ms
        shutil.copytree(self.it.folder, self.before)
        self.calls = self.run(Thief(self.it, [])).calls

    def begin_again(self):
        shutil.rmtree(self.it.folder)
        shutil.copytree(self.before, self.it.folder)
        self.it.clock = TestClock(self.ms)

    def run(self, thief):
        """Run our change; its result is checked as far as it does not depend on the thief."""
        self.told = None
        if self.kind != "write":
            result = self.it.apply(self.plan, around=thief.watch, pid=OURS)
            (self.told,) = result.tables
            assert (None, []) == (self.told.error, list_notes(self.told)), thief
            assert result.exit_code in {0, 4}, thief
        else:
            runs = WriteRuns(self.it.spec)
            runs.clock, runs.count = self.it.clock, OURS - 1
            with suppress(BusyError):  # the writer was in its way
                self.told = runs.write(BATCH, around=thief.watch)
        return thief

    def check(self, thief):
        """Check the rows, the metadata table's listing, and that nothing is left behind."""
        model = dict(self.rows)
        ours = BATCH.to_pylist() if self.kind == "write" and self.told else []
        for row in [*(thief.rows if thief.is_done else ()), *(tuple(r.values()) for r in ours)]:
            if row[0] not in model or model[row[0]][2] <= row[2]:
                model[row[0]] = row
        found = [tuple(row[name] for name in COLUMNS) for row in self.it.rows()]
        timeline = load_timeline(self.it.storage, load_properties(self.it.storage))

        assert sorted(model.values()) == sorted(found), thief
        assert set() == list_unlisted(self.it), thief
        assert [] == list_traces(self.it.table), thief
        assert [] == [one for one in timeline.instants if not one.is_completed], thief


def list_notes(table):
    return [note for one in table.outcomes for note in (*one.differences, *one.warnings)]


CASES = cover_pairs(product(MORE, [6, 9], FOREIGN))


@pytest.mark.parametrize(("kind", "version", "way"), CASES)
def test_nothing_is_lost_when_another_commits_while_our_lock_is_gone(kind, version, way, tmp_path):
    work, hits = Work(kind, version, tmp_path), 0
    for at in take_turn(range(1, work.calls + 1), of=16):
        work.begin_again()
        thief = work.run(Thief(work.it, FOREIGN[way], at))
        work.check(thief)
        hits += thief.hits
        if way == "beside":
            assert work.told is not None, thief
    assert hits > 1


@pytest.mark.parametrize("version", [6, long(9)])
def test_a_clustering_whose_lock_vanishes_after_it_dropped_a_group_completes(version, tmp_path):
    work, found = Work("cluster", version, tmp_path), set()
    request = find_request(work)
    for at in take_turn(range(request + 1, work.calls + 1), of=16):
        work.begin_again()
        thief = work.run(Thief(work.it, FOREIGN["in the way"], request, also_at=at))
        work.check(thief)
        (outcome,) = work.told.outcomes
        found.add((outcome.how, outcome.rewritten.groups))
    assert {("completed", 1)} == found


@pytest.mark.parametrize("version", [long(6), 9])
def test_a_table_that_another_creates_while_our_lock_is_gone_has_all_rows(version, tmp_path):
    it = make_drill(tmp_path, "write", version)
    hits, at, calls = 0, 0, 1
    for at in take_turn(range(150), of=16):
        shutil.rmtree(it.table, ignore_errors=True)
        it.clock, thief = TestClock(), Thief(it, FOREIGN["beside"], at)
        runs = WriteRuns(it.spec)
        runs.clock, runs.count = it.clock, OURS - 1
        ours = None
        with suppress(BusyError):
            ours = runs.write(BATCH, around=thief.watch)
        calls = max(calls, thief.calls)
        hits += thief.hits
        rows = [*(tuple(row.values()) for row in (BATCH.to_pylist() if ours else []))]
        rows += thief.rows if thief.is_done else []

        assert ours or thief.is_done, thief
        assert sorted(rows) == sorted(tuple(r[c] for c in COLUMNS) for r in it.rows()), thief
        assert (set(), []) == (list_unlisted(it), list_traces(it.table)), thief
    assert calls < 150
    assert hits > 2


def find_request(work):
    """Return the number of the call that writes our requested file."""
    work.begin_again()
    seen = []

    class Noting(Watched):
        def _intercept(self, call, act, torn=None):
            seen.append(call)
            return super()._intercept(call, act, torn)

    thief = Thief(work.it, [])
    thief.watch = lambda storage: Noting(storage, thief)
    work.run(thief)
    names = [call.paths[0] if call.method == "create" else "" for call in seen]
    return 1 + next(at for at, name in enumerate(names) if name.endswith(".requested"))
