"""Plans of rollbacks that Hudi is writing, or has left empty or damaged, while we work."""

from __future__ import annotations

import os

import pytest

from reconciler.errors import BusyError
from reconciler.hudi.codecs import avro_container
from tests.crash.drill import Killed
from tests.crash.test_archiving_beside import check_applied, make_drill
from tests.crash.write_drill import (
    AFTER,
    BATCH,
    BEFORE,
    LATE,
    act_after,
    die_at,
    find_pending_instant,
    get_timeline_folder,
    list_leftovers,
    make_table,
    put_timeline_file,
    write_rollback,
)
from tests.storage_wrappers import RecordingStorage

VERSIONS = pytest.mark.parametrize("version", [6, 9])
PLAN = f"{LATE}.rollback.requested"
EMPTY, HALF = b"", b"Obj\x01\x02"
PARTS = pytest.mark.parametrize("part", [EMPTY, HALF])
DATA_FILE = r"\.parquet$"


@pytest.fixture
def it(tmp_path, version):
    return make_table(tmp_path / "it", version)


def encode_plan(instant):
    target = {"commitTime": instant, "action": "commit"}
    plan = {"instantToRollback": target, "RollbackRequests": [], "version": 1}
    return avro_container.encode_container("HoodieRollbackPlan.avsc", plan)


def begin_plan(it, part):
    """Write a part of a plan, as a writer that is at it now."""
    put_timeline_file(it, PLAN, part)
    now_s = it.clock.now_ms() / 1000
    os.utime(get_timeline_folder(it) / PLAN, (now_s, now_s))


def finish_plan_after(it, part, whole):
    """Return storage in which a plan is begun after our data files, and whole at the next look."""
    begin = act_after(DATA_FILE, lambda: begin_plan(it, part))

    class Finishing(begin):
        looks = 0

        def stat(self, path):
            found = super().stat(path)
            if path.endswith(PLAN):
                type(self).looks += 1
                put_timeline_file(it, PLAN, whole)
            return found

    return Finishing


@VERSIONS
@PARTS
def test_a_write_waits_for_a_plan_that_is_being_written(it, part):
    around = finish_plan_after(it, part, encode_plan("20200101000000000"))

    assert "completed" == it.write(BATCH, around=around).status
    assert around.looks
    assert AFTER == it.read_rows()


@VERSIONS
@PARTS
def test_a_write_gives_up_if_the_plan_undoes_what_it_has_read(it, part):
    (known,) = (file.name[:17] for file in get_timeline_folder(it).glob("*.commit"))
    around = finish_plan_after(it, part, encode_plan(known))
    with pytest.raises(BusyError, match=f"rollback {LATE}"):
        it.write(BATCH, around=around)

    assert around.looks
    assert [PLAN] == list_leftovers(it)


@VERSIONS
@PARTS
def test_a_write_is_busy_beside_a_plan_that_is_never_finished(it, part):
    begin_plan(it, part)
    stat = RecordingStorage.stat

    class Young(RecordingStorage):
        def stat(self, path):
            if path.endswith(PLAN):
                begin_plan(it, part)
            return stat(self, path)

    with pytest.raises(BusyError, match=rf"{PLAN} is being written, so it is not known"):
        it.write(BATCH, around=Young)

    assert [PLAN] == list_leftovers(it)
    assert BEFORE == it.read_rows()


@VERSIONS
@pytest.mark.parametrize("begins", [False, True])
def test_a_write_goes_on_beside_an_empty_plan_of_a_dead_writer(it, begins):
    around = RecordingStorage
    if begins:
        put_timeline_file(it, PLAN, EMPTY)
    else:
        around = act_after(DATA_FILE, lambda: put_timeline_file(it, PLAN, EMPTY))

    assert "completed" == it.write(BATCH, around=around).status
    assert [PLAN] == list_leftovers(it)
    assert AFTER == it.read_rows()


@VERSIONS
def test_a_clustering_goes_on_beside_an_empty_plan_of_a_dead_writer(tmp_path, version):
    table = make_drill(tmp_path, "cluster", version)
    plan = table.plan()
    file = get_timeline_folder(table) / PLAN
    around = act_after(DATA_FILE, lambda: file.write_bytes(EMPTY))
    result = table.apply(plan, around=around)
    file.unlink()

    check_applied(table, result)


@VERSIONS
def test_a_write_beside_a_damaged_plan_says_what_to_do_and_is_undone_after_it(it):
    around = act_after(DATA_FILE, lambda: put_timeline_file(it, PLAN, HALF))
    expected = rf"{PLAN} is damaged, .* delete this file, then run it again"
    with pytest.raises(BusyError, match=expected):
        it.write(BATCH, around=around)
    with pytest.raises(BusyError, match=expected):
        it.write(BATCH)
    assert BEFORE == it.read_rows()
    (get_timeline_folder(it) / PLAN).unlink()

    assert "completed" == it.write(BATCH).status
    assert ([], AFTER) == (list_leftovers(it), it.read_rows())


@VERSIONS
def test_a_damaged_plan_that_is_begun_may_have_undone_anything(it):
    write_rollback(it, "20200101000000000")
    put_timeline_file(it, PLAN, EMPTY)
    with pytest.raises(BusyError, match=f"{PLAN} is damaged"):
        it.write(BATCH)

    assert BEFORE == it.read_rows()


@VERSIONS
def test_a_dead_write_is_not_taken_back_while_a_plan_of_it_may_be_written(it):
    with pytest.raises(Killed):
        it.write(BATCH, around=die_at(r"\.commit$"))
    instant = find_pending_instant(it)
    begin_plan(it, HALF)

    class Finishing(RecordingStorage):
        def stat(self, path):
            found = super().stat(path)
            if path.endswith(PLAN):
                put_timeline_file(it, PLAN, encode_plan(instant))
            return found

    it.write(BATCH, around=Finishing)

    assert f"{instant}.commit.requested" in [f.name for f in get_timeline_folder(it).iterdir()]
