"""Signs of life, and who counts as dead."""

from __future__ import annotations

import threading

import pytest

from reconciler.errors import AlreadyExistsError, ChangedError, StorageError, UnsupportedError
from reconciler.hudi.timeline.heartbeat import heartbeat_path
from reconciler.transaction.heartbeat import Heartbeat, HeartbeatThread
from reconciler.transaction.recovery.takeover import find_living_owner
from tests.unit.transaction.fakes import FakeClock, Shelf, process

INSTANT = "20260101000000000"


@pytest.fixture
def shelf() -> Shelf:
    return Shelf(FakeClock())


def find_owner(shelf, requested_by=None, me=None, fast_s=0):
    return find_living_owner(
        shelf,
        INSTANT,
        requested_by=requested_by,
        requested_ms=1_767_225_600_000,
        process=me or process(),
        now_ms=shelf.clock.ms + fast_s * 1000,
    )


def test_a_run_on_another_host_is_alive_for_five_minutes_after_its_heartbeat(shelf):
    owner = process(host="there").make_owner("t")
    Heartbeat(shelf, INSTANT, owner, shelf.clock).beat()
    shelf.clock.pass_seconds(300)

    assert find_owner(shelf).token == "t"
    shelf.clock.pass_seconds(1)
    assert find_owner(shelf) is None


def test_a_recent_heartbeat_by_the_store_clock_counts_whatever_our_clock_is(shelf):
    owner = process(host="there").make_owner("t")
    Heartbeat(shelf, INSTANT, owner, shelf.clock).beat()

    assert find_owner(shelf, fast_s=3600).token == "t"
    shelf.clock.pass_seconds(301)
    assert find_owner(shelf, fast_s=3600) is None
    assert [heartbeat_path(INSTANT)] == list(shelf.files)


def test_what_is_registered_is_called_although_nothing_else_runs_the_thread():
    heartbeats, beaten = HeartbeatThread(0.01), threading.Event()

    for _ in range(2):
        with heartbeats.repeat(beaten.set):
            assert beaten.wait(10)
        beaten.clear()
    assert not any(thread.name == "reconciler-pulse" for thread in threading.enumerate())


def test_the_first_heartbeat_overwrites_no_other(shelf):
    shelf.create(heartbeat_path(INSTANT), b"")

    with pytest.raises(AlreadyExistsError):
        Heartbeat(shelf, INSTANT, process().make_owner("t"), shelf.clock).create()
    assert b"" == shelf.read(heartbeat_path(INSTANT))


def test_a_run_that_ended_is_dead_at_once(shelf):
    owner = process(host="there").make_owner("t")
    Heartbeat(shelf, INSTANT, owner, shelf.clock).end()

    assert find_owner(shelf, requested_by=owner) is None


def test_without_a_heartbeat_the_requested_file_names_the_owner(shelf):
    there, here_dead = process(host="there").make_owner("t"), process(pid=9).make_owner("u")

    assert find_owner(shelf, requested_by=there) == there
    assert find_owner(shelf, requested_by=here_dead) is None
    shelf.clock.pass_seconds(301)
    assert find_owner(shelf, requested_by=there) is None


def test_the_owner_is_the_last_run_that_resumed(shelf):
    me = process(living=frozenset({2}))
    Heartbeat(shelf, INSTANT, process(pid=2).make_owner("resumer"), shelf.clock).beat()

    assert (
        find_owner(shelf, requested_by=process(pid=9).make_owner("dead"), me=me).token == "resumer"
    )


def test_a_heartbeat_that_is_removed_is_gone(shelf):
    heartbeat = Heartbeat(shelf, INSTANT, process().make_owner("t"), shelf.clock)
    heartbeat.beat()
    heartbeat.remove()

    assert heartbeat_path(INSTANT) not in shelf.files


@pytest.mark.parametrize("method", ["beat", "end", "remove"])
def test_the_heartbeat_of_a_run_that_took_the_instant_over_stays(shelf, method):
    silent, other = (
        Heartbeat(shelf, INSTANT, process(pid=pid).make_owner(str(pid)), shelf.clock)
        for pid in (1, 2)
    )
    silent.start()
    other.start()
    before = dict(shelf.files)
    shelf.clock.pass_seconds(60)
    getattr(silent, method)()

    assert before == shelf.files
    assert (True, False) == (silent.is_taken_over(), other.is_taken_over())


def test_a_heartbeat_overwrites_none_that_comes_after_its_look(shelf, monkeypatch):
    silent, other = (
        Heartbeat(shelf, INSTANT, process(pid=pid).make_owner(str(pid)), shelf.clock)
        for pid in (1, 2)
    )
    silent.start()
    look = shelf.read_version

    def look_in_time(path):
        found = look(path)
        other.start()
        return found

    monkeypatch.setattr(shelf, "read_version", look_in_time)
    with pytest.raises(ChangedError):
        silent.beat()
    assert silent.is_taken_over()


def test_a_store_that_cannot_compare_gets_heartbeats_too(shelf, monkeypatch):
    def refuse(*_arguments):
        raise UnsupportedError("no condition")

    monkeypatch.setattr(shelf, "replace_version", refuse)
    heartbeat = Heartbeat(shelf, INSTANT, process().make_owner("t"), shelf.clock)
    heartbeat.start()
    shelf.clock.pass_seconds(60)
    heartbeat.beat()

    assert shelf.clock.ms == shelf.stat(heartbeat_path(INSTANT)).modified_ms


@pytest.mark.parametrize("failure", [StorageError("x", "is away"), RuntimeError("of a client")])
def test_beats_go_on_in_the_background_even_after_a_failure(failure):
    beats, enough = [], threading.Event()

    def beat():
        beats.append(1)
        if len(beats) == 3:
            enough.set()
        raise failure

    pulse = HeartbeatThread(interval_s=0.001)
    with pulse.run(), pulse.repeat(beat):
        assert enough.wait(5)
