"""A run that resumes a clean is silent for so long that another run takes the clean over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.errors import ReconcilerError
from reconciler.executor import run
from reconciler.hudi.load import load_heartbeat_owner, load_properties, load_timeline
from reconciler.hudi.timeline.heartbeat import heartbeat_path
from tests.crash.drill import CASES, Killed, list_data_files, make_drill, process
from tests.crash.test_moves import savepoint
from tests.crash.write_drill import die_at
from tests.storage_wrappers import RecordingStorage
from tests.trees import Tree

LOCK = ".hoodie/lock"


@pytest.fixture
def it(tmp_path):
    """A clean whose run died, and whose files a savepoint has, so that a resume withdraws it."""
    zipped = CASES / "cow_mdt_delete_partition__1.2.0" / "table.zip"
    found = make_drill(zipped, tmp_path / "it", retention="commits: 1")
    plan = found.plan()
    with pytest.raises(Killed):
        found.apply(plan, around=die_at(r"\.clean\.inflight$"))
    (step,) = plan.tables[0].steps
    names = {}
    for folder, name in zip(
        step.files.partition.to_pylist(), step.files.name.to_pylist(), strict=True
    ):
        names.setdefault(folder, []).append(name)
    savepoint(found, find_commit(found), names)
    return found


def find_commit(it):
    timeline = load_timeline(it.storage, load_properties(it.storage))
    return max(one.requested for one in timeline.commits if one.is_completed)


def find_pending(it):
    timeline = load_timeline(it.storage, load_properties(it.storage))
    return next(one.requested for one in timeline.instants if not one.is_completed)


def test_a_clean_that_another_run_has_taken_over_is_not_withdrawn(it):
    instant, files = find_pending(it), list_data_files(it.table)
    other = replace(process(99), host="there").make_owner("other")

    class Silent(RecordingStorage):
        """Of a run that has taken the clean over, and is silent before it takes the lock again."""

        def create(self, path, data):
            owner = load_heartbeat_owner(self._inner, instant)
            if path == LOCK and owner is not None and owner.token.startswith("run2"):
                self._inner.replace(heartbeat_path(instant), other.encode())
            super().create(path, data)

    result = it.apply(it.plan(), around=Silent)

    assert 6 == result.exit_code
    assert f"clean {instant} was taken over by another run" in result.tables[0].error
    assert instant == find_pending(it)
    assert files == list_data_files(it.table)


def test_the_code_that_finishes_a_clean_is_there_before_the_table_changes(it, monkeypatch):
    """The plan need not name what is pending."""

    def fail():
        raise ReconcilerError("it is not there")

    monkeypatch.setattr(run, "import_resumption_code", fail)
    plan, before = it.plan(), Tree.from_folder(it.table)
    result = it.apply(plan)

    assert "it is not there" == result.tables[0].error
    assert before == Tree.from_folder(it.table)
