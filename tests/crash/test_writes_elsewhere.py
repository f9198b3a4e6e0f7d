"""What a run on another host has pending: nobody's clock but the store's says that it is dead."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconciler.hudi.timeline.heartbeat import HEARTBEAT_FOLDER
from tests.crash.drill import Killed
from tests.crash.write_drill import (
    AFTER,
    BATCH,
    BEFORE,
    die_at,
    find_pending_instant,
    get_timeline_folder,
    make_table,
    set_store_clock,
)
from tests.write_runs import make_rows


@pytest.fixture(params=[6, 9])
def it(request, tmp_path):
    """A write of another host is pending; by our clock its last beat is an hour ago."""
    found = make_table(tmp_path / "t", request.param)
    with pytest.raises(Killed):
        found.write(BATCH, host="there", around=die_at(r"\.parquet$"))
    (heart,) = Path(found.spec.path, HEARTBEAT_FOLDER).iterdir()
    beat_s = found.clock.ms // 1000 - 3600
    os.utime(heart, (beat_s, beat_s))
    found.beat_ms = beat_s * 1000
    return found


def is_pending(it, instant):
    return (get_timeline_folder(it) / f"{instant}.inflight").exists()


def test_a_living_write_is_not_taken_back_by_a_run_whose_clock_is_fast(it):
    theirs = find_pending_instant(it)

    it.write(make_rows((2, "b", 5, "TWO")), around=set_store_clock(it.beat_ms + 299_000))

    assert is_pending(it, theirs)
    assert [BEFORE[0], (2, "b", 5, "TWO"), BEFORE[2]] == it.read_rows()


def test_a_write_that_the_store_has_not_heard_of_for_five_minutes_is_taken_back(it):
    theirs = find_pending_instant(it)

    it.write(BATCH, around=set_store_clock(it.beat_ms + 301_000))

    assert not is_pending(it, theirs)
    assert sorted(AFTER) == it.read_rows()
    assert [] == [*Path(it.spec.path, HEARTBEAT_FOLDER).iterdir()]
    assert [] == [*Path(it.spec.path).rglob("*.clock")]
