"""Log files that came to the slices of a pending compaction after its plan was made (version 6)."""

from __future__ import annotations

from reconciler.hudi.files.names import LogName
from reconciler.rewrite.local import LocalRewriter
from reconciler.runtime import open_storage
from reconciler.transaction.recovery.failed_writes import encode_command_block
from tests.crash.compaction_drill import make_compacting
from tests.our_compaction import find_timeline


def list_planned_logs(it):
    """Return the newest log file of every slice that is compacted, with its parsed name."""
    newest = {}
    for file in sorted(it.table.glob("*/.*.log.*")):
        name = LogName.parse(file.name)
        assert name is not None
        if name.instant < it.instant:
            newest[name.file_id] = (file, name)
    return list(newest.values())


def name_next(file, name):
    """Return the path of the next log file of a slice."""
    next_one = LogName(
        file_id=name.file_id,
        instant=name.instant,
        version=name.version + 1,
        token="1-0-1",
        is_cdc=False,
    )
    return file.with_name(next_one.text)


def find_newest_write(it):
    """Return the newest write that the compaction's plan knows."""
    names = (entry.name for entry in find_timeline(it.table).glob("*.deltacommit"))
    return max(name for name in names if name < it.instant).partition(".")[0]


def test_a_write_rolled_back_after_the_plan_stays_undone_when_the_timeline_is_archived(tmp_path):
    it = make_compacting("0.15.0", tmp_path / "t")
    undone = find_newest_write(it)
    for file, name in list_planned_logs(it):
        name_next(file, name).write_bytes(encode_command_block("20261126212335400", undone))
    for file in it.table.glob(f"*/*_{undone}.parquet"):
        file.unlink()
    for entry in find_timeline(it.table).iterdir():
        if entry.name[:17].isdigit() and entry.name[:17] < it.instant:
            entry.unlink()
    it.forget_metadata()
    before = it.rows()

    result = it.apply(it.plan())

    assert 0 == result.exit_code, result.tables
    assert before == it.rows()
    assert it.list_written()


def test_a_compaction_that_would_lose_a_late_write_stays_pending(tmp_path):
    it = make_compacting("0.15.0", tmp_path / "t")
    late = find_newest_write(it)
    (file, name) = next(one for one in list_planned_logs(it) if one[0].parent.name == "a")
    name_next(file, name).write_bytes(file.read_bytes())
    it.forget_metadata()
    before = it.rows()

    result = it.apply(it.plan())

    (outcome,) = result.tables[0].outcomes
    (warning,) = outcome.warnings
    assert (5, "failed") == (result.exit_code, outcome.how)
    assert f"holds rows of write {late}, which began before" in warning.because
    assert before == it.rows()
    assert ([".compaction.requested"], []) == (it.list_states(), it.list_written())


def test_a_write_that_completes_during_a_compaction_of_its_slices_is_not_lost(tmp_path):
    it = make_compacting("0.15.0", tmp_path / "t")
    it.forget_metadata()
    rows = it.rows()
    late = find_timeline(it.table) / f"{find_newest_write(it)}.deltacommit"
    content = late.read_bytes()
    late.unlink()

    class LateWriter(LocalRewriter):
        def compact(self, *args, **kwargs):
            done = super().compact(*args, **kwargs)
            late.write_bytes(content)
            return done

    result = it.apply(it.plan(), rewriter=LateWriter(open_storage))

    assert 6 == result.exit_code
    assert "has completed meanwhile; run apply again" in result.tables[0].error
    assert ([".compaction.requested"], []) == (it.list_states(), it.list_written())
    assert 0 == it.apply(it.plan()).exit_code
    assert rows == it.rows()
