"""What others do to a table between the request of our compaction and its end."""

from __future__ import annotations

import io
import re

import fastavro
import pytest

from reconciler.hudi.codecs import avro_container
from reconciler.hudi.files.names import BaseName
from tests.crash.compaction_drill import Overtaken
from tests.crash.test_compact_step import list_compactions, make
from tests.crash.write_drill import act_after
from tests.our_compaction import find_timeline
from tests.selection import long

#: an instant after that of the compaction
LATER = "20261201000500000"


def begin_rollback(it):
    """Request a rollback of the newest completed deltacommit, and return its time."""
    timeline = find_timeline(it.table)
    done = max(timeline.glob("*.deltacommit"))
    instant = done.name.partition("_")[0]
    target = {"commitTime": instant, "action": "deltacommit"}
    plan = {"instantToRollback": target, "RollbackRequests": [], "version": 1}
    data = avro_container.encode_container("HoodieRollbackPlan.avsc", plan)
    (timeline / f"{LATER}.rollback.requested").write_bytes(data)
    return instant


def roll_back_newest(it):
    """Undo the newest completed deltacommit as Hudi does from version 8 on; nobody has a lock."""
    timeline = find_timeline(it.table)
    instant = begin_rollback(it)
    (timeline / f"{LATER}.rollback.inflight").write_bytes(b"")
    for log in it.table.rglob(f".*_{instant}.log.*"):
        log.unlink()
    for file in timeline.glob(f"{instant}*"):
        file.unlink()
    (timeline / f"{LATER}_{int(LATER) + 9}.rollback").write_bytes(b"")


@pytest.mark.parametrize("version", ["1.2.0", long("1.0.2")])
def test_rows_of_a_write_that_is_rolled_back_meanwhile_do_not_come_back(tmp_path, version):
    it = make(version, tmp_path)
    it.forget_metadata()
    undone = it.copy(tmp_path / "undone")
    roll_back_newest(undone)
    rows = undone.rows()
    assert rows != it.rows()
    plan = it.plan()

    result = it.apply(plan, rewriter=Overtaken(lambda: roll_back_newest(it)))

    assert (6, rows) == (result.exit_code, it.rows()), result.tables


def test_nothing_is_compacted_while_a_completed_write_is_being_rolled_back(tmp_path):
    it = make("1.2.0", tmp_path)
    plan = it.plan()
    begin_rollback(it)

    result = it.apply(plan)

    (outcome,) = result.tables[0].outcomes
    assert (4, "nothing", []) == (result.exit_code, outcome.how, list_compactions(it))
    assert all(f"rollback {LATER} is pending" in left.because for left in outcome.rewritten.left)


def write_to_the_old_slice(it):
    """Complete a write that began after the compaction, and did not see it; version 6."""
    timeline = find_timeline(it.table)
    done = max(timeline.glob("*.deltacommit"))
    instant = done.name.partition(".")[0]
    log = max(it.table.joinpath("a").glob(".*.log.*"))
    version = int(re.search(r"\.log\.(\d+)_", log.name)[1])
    late = log.with_name(log.name.replace(f".log.{version}_", f".log.{version + 1}_"))
    late.write_bytes(log.read_bytes().replace(instant.encode(), LATER.encode()))
    for suffix in ("deltacommit.requested", "deltacommit.inflight"):
        (timeline / f"{LATER}.{suffix}").write_bytes(b"")
    text = done.read_text().replace(log.name, late.name).replace(instant, LATER)
    (timeline / f"{LATER}.deltacommit").write_text(text)


def test_rows_that_a_write_brings_to_the_compacted_slices_are_not_lost(tmp_path):
    """Writers of version 6 name log files after the slice that they have found."""
    it = make("0.15.0", tmp_path)
    it.forget_metadata()
    late = it.copy(tmp_path / "late")
    write_to_the_old_slice(late)
    rows, plan = late.rows(), it.plan()
    assert rows != it.rows()

    result = it.apply(plan, rewriter=Overtaken(lambda: write_to_the_old_slice(it)))

    assert (6, rows) == (result.exit_code, it.rows()), result.tables
    assert "which it did not see, so its rows would be lost" in result.tables[0].error
    again = it.apply(it.plan())
    assert (5, rows) == (again.exit_code, it.rows())
    assert "so they would be lost" in again.tables[0].outcomes[0].warnings[0].because


def complete_an_earlier_write(it):
    """Complete a write at a time before the compaction's, whose file comes only now."""
    timeline = find_timeline(it.table)
    done = max(timeline.glob("*.deltacommit"))
    instant, earlier = done.name.partition("_")[0], "20261129000000000"
    for log in [*it.table.glob(f"*/.*_{instant}.log.*")]:
        new = log.with_name(log.name.replace(instant, earlier))
        new.write_bytes(log.read_bytes().replace(instant.encode(), earlier.encode()))
    for suffix in ("deltacommit.requested", "deltacommit.inflight"):
        (timeline / f"{earlier}.{suffix}").write_bytes(b"")
    data = done.read_bytes().replace(instant.encode(), earlier.encode())
    (timeline / f"{earlier}_{int(earlier) + 9}.deltacommit").write_bytes(data)


def test_a_write_that_shows_late_is_merged_by_the_next_apply(tmp_path):
    """A writer without the lock has its time of completion before its file is there."""
    it = make("1.2.0", tmp_path)
    it.forget_metadata()
    late = it.copy(tmp_path / "late")
    complete_an_earlier_write(late)
    rows, plan = late.rows(), it.plan()
    assert rows != it.rows()

    result = it.apply(plan, rewriter=Overtaken(lambda: complete_an_earlier_write(it)))

    assert (6, rows, []) == (result.exit_code, it.rows(), list_compactions(it)), result.tables
    assert "completed before compaction" in result.tables[0].error
    again = it.apply(it.plan())
    assert (0, rows) == (again.exit_code, it.rows()), again.tables


def write_elsewhere(it):
    """Complete a write to a partition whose slices have no log files."""
    timeline = find_timeline(it.table)
    done = max(timeline.glob("*.deltacommit"))
    instant, earlier = done.name.partition("_")[0], "20261129000000000"
    base = BaseName.parse(max(path.name for path in it.table.joinpath("c").glob("*.parquet")))
    log = next(it.table.glob(f"*/.*_{instant}.log.*"))
    new = it.table / "c" / f".{base.file_id}_{earlier}.log.1_0-0-0"
    new.write_bytes(log.read_bytes().replace(instant.encode(), earlier.encode()))
    for suffix in ("deltacommit.requested", "deltacommit.inflight"):
        (timeline / f"{earlier}.{suffix}").write_bytes(b"")
    found = fastavro.reader(io.BytesIO(done.read_bytes()))
    (commit,) = found
    stat = next(iter(commit["partitionToWriteStats"].values()))[0]
    stat |= {"fileId": base.file_id, "path": f"c/{new.name}", "partitionPath": "c"}
    commit["partitionToWriteStats"] = {"c": [stat]}
    data = io.BytesIO()
    fastavro.writer(data, found.writer_schema, [commit])
    (timeline / f"{earlier}_{int(earlier) + 9}.deltacommit").write_bytes(data.getvalue())


def test_a_write_to_other_slices_that_completes_before_the_request_is_no_obstacle(tmp_path):
    it = make("1.2.0", tmp_path)
    it.forget_metadata()
    done = []

    def write():
        if not done:
            done.append(write_elsewhere(it))

    result = it.apply(it.plan(), around=act_after(r"hoodie/lock$", write))

    assert 0 == result.exit_code, result.tables
    ((_, states),) = list_compactions(it)
    assert [".commit", ".compaction.requested"] == states


@pytest.mark.parametrize("plans_again", [True, long(False)])
def test_of_two_applies_at_once_one_compacts_and_the_other_is_turned_away(tmp_path, plans_again):
    it = make("1.2.0", tmp_path)
    rows, plan, others = it.rows(), it.plan(), []

    def run_other():
        again = it.plan() if plans_again else plan
        others.append(it.apply(again, pid=99, living=frozenset({7})))

    result = it.apply(plan, pid=7, rewriter=Overtaken(run_other))

    ((_, states),) = list_compactions(it)
    assert [0, 6] == [result.exit_code, others[0].exit_code], others
    assert (rows, [".commit", ".compaction.requested"]) == (it.rows(), states)
