"""A clustering and a clean of one plan: both are done in one apply, and nothing is left to plan."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.executor import session
from reconciler.planners import compose
from reconciler.plans.model import Note
from tests.crash.clustering_drill import PlannedDrill, list_leftovers, make_drill_of
from tests.crash.drill import Killed, list_data_files
from tests.crash.finish_drill import FinishDrill, age_all
from tests.crash.write_drill import die_at
from tests.selection import take_turn
from tests.storage_wrappers import FaultyStorage, RecordingStorage, StorageFault

#: Hudi 1.2.0 wrote it in 8 commits, each with new small files: 42 files, of which 24 are read
TABLE = Path(__file__).parents[1] / "tables" / "clustering" / "orders.zip"
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  retention: {{{retention}}}
  files: {{target: 1MiB, small: 512KiB}}
  clustering: {{columns: [customer_id, amount]}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""


#: the spec of somebody who only finishes what others have planned
FINISHING = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  retention: {{commits: 3}}
  concurrency:
    lock: {{provider: filesystem}}
    staleAfter: 1h
    pending: {{clustering: finish}}
"""


class Both(PlannedDrill):
    SPEC_TEXT = SPEC


class Finishing(FinishDrill):
    SPEC_TEXT = FINISHING


@pytest.mark.parametrize("retention", ["commits: 3", "fileVersions: 1"])
def test_both_are_done_as_reviewed(retention, tmp_path):
    it = make_drill_of(Both, TABLE, tmp_path / "t", retention=retention)
    rows, plan = it.rows(), it.plan()
    (reviewed,) = plan.tables
    result = it.apply(plan)
    (table,) = result.tables
    clustered, cleaned = table.outcomes
    planned = reviewed.steps[1].files.name.to_pylist()

    assert ["cluster", "clean"] == [step.kind for step in reviewed.steps]
    assert (0, None) == (result.exit_code, table.error)
    assert (24, 3) == (clustered.rewritten.slices, clustered.rewritten.files_after)
    assert len(planned) == cleaned.removed > 0
    assert [] == [name for name in planned if list(it.table.rglob(name))]
    assert rows == it.rows()


def test_then_there_is_nothing_to_do(tmp_path):
    it = make_drill_of(Both, TABLE, tmp_path / "t", retention="commits: 3")
    it.apply(it.plan())

    (table,) = it.plan().tables
    assert () == table.steps


def test_the_clean_is_planned_without_another_rewrite(tmp_path, monkeypatch):
    """Then the replaced files count as newest ones once more, and they are small."""
    it = make_drill_of(Both, TABLE, tmp_path / "t", retention="commits: 3")
    planned = []

    def plan_table(*arguments, **options):
        planned.append(compose.plan_table(*arguments, **options))
        return planned[-1]

    monkeypatch.setattr(session, "plan_table", plan_table)
    it.apply(it.plan())

    assert [["cluster", "clean"], ["clean"]] == [
        [step.kind for step in plan.steps] for plan in planned
    ]


def stop_before_clean(it, plan):
    """Apply a plan in a process that dies before it requests the clean."""
    with pytest.raises(Killed):
        it.apply(plan, around=die_at(r"timeline/\d+\.clean\.requested"))


@pytest.mark.parametrize("retention", ["commits: 3", "fileVersions: 1"])
def test_the_clean_is_done_as_reviewed_by_the_apply_after_a_kill(retention, tmp_path):
    it = make_drill_of(Both, TABLE, tmp_path / "t", retention=retention)
    rows, plan = it.rows(), it.plan()
    (reviewed,) = plan.tables
    planned = reviewed.steps[1].files.name.to_pylist()
    stop_before_clean(it, plan)
    assert all(list(it.table.rglob(name)) for name in planned)

    result = it.apply(plan)
    (table,) = result.tables
    assert (0, None) == (result.exit_code, table.error)
    assert len(planned) == table.outcomes[-1].removed
    assert [] == [name for name in planned if list(it.table.rglob(name))]
    assert rows == it.rows()


def test_wherever_an_apply_dies_the_next_one_does_the_rest_of_both(tmp_path):
    it = make_drill_of(Both, TABLE, tmp_path / "t", retention="commits: 3")
    it.copy(tmp_path / "before")
    rows, plan = it.rows(), it.plan()
    (reviewed,) = plan.tables
    planned = reviewed.steps[1].files.name.to_pylist()
    counted = []
    it.apply(plan, around=lambda s: counted.append(RecordingStorage(s)) or counted[-1])
    changes = sum(len(one.mutations) for one in counted)

    for at in take_turn(range(1, changes + 1), of=8):
        it.again(tmp_path / "before")
        fault = StorageFault(at=at, mode="before")
        with suppress(Killed):
            it.apply(plan, around=lambda s, f=fault: FaultyStorage(s, f, Killed()))
        result = it.apply(plan)
        assert (at, 0) == (at, result.exit_code)
        assert [] == [name for name in planned if list(it.table.rglob(name))]
        assert rows == it.rows()
        assert [] == list_leftovers(it.table)


def test_another_plan_keeps_the_files_that_the_clustering_replaced(tmp_path):
    """Its review did not show the clustering together with the removal of these files."""
    it = make_drill_of(Both, TABLE, tmp_path / "t", retention="commits: 3")
    plan = it.plan()
    stop_before_clean(it, plan)
    files = list_data_files(it.table)

    (reviewed,) = plan.tables
    other = replace(plan, tables=(replace(reviewed, warnings=(Note("clock", "another review"),)),))
    result = it.apply(other)
    assert 4 == result.exit_code
    assert files == list_data_files(it.table)


def leave_clustering(folder, monkeypatch):
    """Let another writer leave a clustering that it has requested a month ago."""
    it = make_drill_of(Both, TABLE, folder, retention="commits: 3")
    plan = it.plan()
    with monkeypatch.context() as patch:
        patch.setattr(session.ApplySession, "make_extra", lambda _session: {})
        with pytest.raises(Killed):
            it.apply(plan, around=die_at("inflight"))
    for path in (it.table / ".hoodie").rglob("*heartbeat*/*"):
        path.unlink()
    age_all(it)
    return Finishing(it.folder, {})


def test_the_clean_is_done_after_a_kill_where_another_writer_has_planned_the_clustering(
    tmp_path, monkeypatch
):
    it = leave_clustering(tmp_path / "t", monkeypatch)
    rows, plan = it.rows(), it.plan()
    resume, clean = plan.tables[0].steps
    planned = clean.files.name.to_pylist()
    stop_before_clean(it, plan)

    result = it.apply(plan)
    assert ("resume", "foreign", "clean") == (resume.kind, resume.writer, clean.kind)
    assert (0, len(planned)) == (result.exit_code, result.tables[0].outcomes[-1].removed)
    assert [] == [name for name in planned if list(it.table.rglob(name))]
    assert rows == it.rows()
