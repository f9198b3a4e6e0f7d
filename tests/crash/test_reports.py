"""What an apply says it did is what it did, whatever goes wrong around it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.errors import StorageError
from reconciler.executor.deletion import LocalDeleter
from reconciler.hudi.timeline.clean import CleanerPlan
from tests.crash.drill import (
    CASES,
    Drill,
    Killed,
    list_data_files,
    list_traces,
    make_drill,
    read_cleans,
)
from tests.crash.test_moves import (
    NEW,
    OLD,
    hooked,
    of,
    planned,
    put,
    savepoint,
    timeline_folder,
)
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageFault

LISTED = ("cow_mdt_incremental__0.15.0", "cow_mdt_incremental__1.2.0")


@pytest.fixture(params=[OLD, NEW])
def it(request, tmp_path) -> Drill:
    """A table with two partitions and history to remove."""
    return make_drill(CASES / request.param / "table.zip", tmp_path / "t", retention="commits: 2")


class Unreadable(RecordingStorage):
    """Once a clean is completed, nothing of the metadata table can be listed."""

    completed = False

    def _intercept(self, call, act, torn=None):
        if self.completed and call.paths[0].startswith(".hoodie/metadata"):
            raise StorageError(call.paths[0], "cannot be listed")
        found = super()._intercept(call, act, torn)
        self.completed |= call.method == "create" and call.paths[0].endswith(".clean")
        return found


@pytest.mark.parametrize("case", LISTED)
def test_a_check_that_cannot_be_made_does_not_undo_what_was_done(case, tmp_path):
    it = make_drill(CASES / case / "table.zip", tmp_path / "t", retention="commits: 1")
    plan = it.plan()
    result = it.apply(plan, around=Unreadable)
    (outcome,) = result.tables[0].outcomes
    (warning,) = outcome.warnings

    assert (result.exit_code, outcome.how, outcome.removed) == (0, "completed", len(planned(plan)))
    assert "the clean is completed" in warning.because
    assert list_traces(it.table) == []


def test_a_lock_that_cannot_be_had_for_completing_says_what_is_gone(it):
    plan = it.plan()
    lock = it.table / ".hoodie/lock"
    result = it.apply(plan, around=hooked(".parquet", lambda: lock.write_bytes(b"")))

    assert result.exit_code == 6
    assert "are deleted and it is not completed" in result.tables[0].error
    assert not planned(plan) & list_data_files(it.table)
    lock.unlink()
    assert it.apply(plan).exit_code == 0
    assert list_traces(it.table) == []


class Silent(LocalDeleter):
    """Deletes nothing and says nothing."""

    def delete_files(self, ref, batches, *, progress):  # noqa: ARG002
        return []


def test_files_that_an_executor_says_nothing_of_do_not_count_as_gone(it, monkeypatch):
    plan = it.plan()
    with monkeypatch.context() as patched:
        patched.setattr("tests.crash.drill.LocalDeleter", Silent)
        result = it.apply(plan)

    assert result.exit_code == 5
    assert planned(plan) <= list_data_files(it.table)
    assert it.apply(plan).exit_code == 0
    assert not planned(plan) & list_data_files(it.table)


def test_a_policy_that_nobody_declared_reaches_no_timeline(it):
    (table,) = it.plan().tables
    (step,) = table.steps
    forged = replace(table, steps=(replace(step, policy="NO_SUCH_POLICY"),))
    it.apply(replace(it.plan(), tables=(forged,)))
    (request,) = timeline_folder(it).glob("*.clean.requested")

    assert CleanerPlan.parse(request.read_bytes(), "x").policy == "KEEP_LATEST_COMMITS"


def test_a_clean_that_another_writer_begins_is_not_undone_under_its_hands(it):
    plan = it.plan()
    with pytest.raises(Killed):
        it.apply(plan, around=lambda s: FaultyStorage(s, StorageFault(at=3), Killed()))
    (request,) = timeline_folder(it).glob("*.clean.requested")
    saved: dict[str, list[str]] = {}
    for path in planned(plan):
        saved.setdefault(path.rpartition("/")[0], []).append(path.rpartition("/")[2])
    savepoint(it, min(of(path) for path in planned(plan)), saved)
    begin = lambda: put(it, request.name.replace("requested", "inflight"))  # noqa: E731
    result = it.apply(plan, around=hooked(".heartbeat/" + request.name.split(".")[0], begin))

    assert result.exit_code == 6
    assert request.exists()


def test_a_file_that_no_listing_shows_is_not_said_to_be_gone(it):
    plan = it.plan()
    with pytest.raises(Killed):
        it.apply(plan, around=lambda s: FaultyStorage(s, StorageFault(at=3), Killed()))
    for metafile in (it.table / "a").glob(".hoodie_partition_metadata*"):
        metafile.unlink()
    it.apply(plan)
    (_, partitions) = read_cleans(it.table)[-1]
    said = {f"{path}/{name}" for path, (names, _) in partitions.items() for name in names}

    assert any(path.startswith("a/") for path in planned(plan))
    assert not said & list_data_files(it.table)
