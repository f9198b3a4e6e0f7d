"""The lock: who has it, when it is stale, and that nobody else's is ever released."""

from __future__ import annotations

import json

import pytest

from reconciler.errors import BusyError, UnsupportedError, VanishedLockError
from reconciler.transaction.locks.file_lock import FileLock, break_lock, read_lock_holder
from reconciler.transaction.locks.table_lock import NoLock
from reconciler.transaction.process import Process
from tests.unit.transaction.fakes import FakeClock, Shelf, process

PATH = ".hoodie/lock"


def lock_of(
    shelf: Shelf,
    *,
    token: str = "mine",
    me: Process | None = None,
    expire: int = 0,
    wait_s: float = 0,
) -> FileLock:
    me = me or process()
    return FileLock(
        shelf,
        PATH,
        me.make_owner(token),
        process=me,
        clock=shelf.clock,
        expire_minutes=expire,
        wait_s=wait_s,
    )


@pytest.fixture
def shelf() -> Shelf:
    return Shelf(FakeClock())


def test_the_lock_file_is_there_inside_the_block_only(shelf):
    with lock_of(shelf).acquire():
        inside = json.loads(shelf.read(PATH))

    assert (inside["who"], inside["host"], inside["token"]) == ("ann", "here", "mine")
    assert shelf.files == {}


def test_a_lock_of_hudi_is_never_stale_without_expiry(shelf):
    shelf.create(PATH, b"")
    shelf.clock.pass_seconds(10**6)

    with pytest.raises(BusyError, match=r"left no name.*1000000 s ago.*unlock"):
        lock_of(shelf).acquire().__enter__()
    assert PATH in shelf.files


def test_a_wait_is_reported_once_with_the_lock_holder(shelf):
    shelf.create(PATH, b"")
    heard = []
    me = process()
    lock = FileLock(
        shelf,
        PATH,
        me.make_owner("mine"),
        process=me,
        clock=shelf.clock,
        expire_minutes=0,
        wait_s=30,
        on_wait=heard.append,
    )

    with pytest.raises(BusyError):
        lock.acquire().__enter__()
    assert heard == ["a writer that left no name (Hudi's locks do not), last sign of life 0 s ago"]


def test_a_lock_of_hudi_expires_by_the_configured_minutes(shelf):
    shelf.create(PATH, b"")
    shelf.clock.pass_seconds(61)

    with lock_of(shelf, expire=1).acquire():
        assert b"mine" in shelf.read(PATH)


def test_a_lock_of_ours_goes_at_once_when_its_process_is_gone(shelf):
    shelf.create(PATH, process(pid=9).make_owner("theirs").encode())

    with lock_of(shelf).acquire():
        assert b"mine" in shelf.read(PATH)


def test_a_lock_of_a_living_process_stays_however_old(shelf):
    shelf.create(PATH, process(pid=9).make_owner("theirs").encode())
    shelf.clock.pass_seconds(10**6)

    with pytest.raises(BusyError, match="ann on here, process 9"):
        lock_of(shelf, me=process(living=frozenset({9}))).acquire().__enter__()


@pytest.mark.parametrize(("silent_s", "is_taken"), [(299, False), (301, True)])
def test_a_lock_of_another_host_goes_after_five_minutes_of_silence(shelf, silent_s, is_taken):
    shelf.create(PATH, process(host="there", pid=9).make_owner("theirs").encode())
    shelf.clock.pass_seconds(silent_s)
    lock = lock_of(shelf)

    if is_taken:
        with lock.acquire():
            assert b"mine" in shelf.read(PATH)
    else:
        with pytest.raises(BusyError):
            lock.acquire().__enter__()


@pytest.mark.parametrize(
    "theirs", [b"", process(host="there", pid=9).make_owner("theirs").encode()]
)
def test_a_lock_renewed_recently_by_the_store_clock_stays_whatever_our_clock_is(shelf, theirs):
    shelf.create(PATH, theirs)
    ours = FakeClock()
    ours.pass_seconds(3600)
    me = process()
    lock = FileLock(
        shelf, PATH, me.make_owner("mine"), process=me, clock=ours, expire_minutes=1, wait_s=0
    )

    lock.release_stale()
    with pytest.raises(BusyError):
        lock.acquire().__enter__()
    assert {PATH: theirs} == {path: data for path, (data, _) in shelf.files.items()}
    shelf.clock.pass_seconds(301)
    with lock.acquire():
        assert b"mine" in shelf.read(PATH)


def test_waiting_is_bounded_and_backs_off(shelf):
    shelf.create(PATH, b"")

    with pytest.raises(BusyError):
        lock_of(shelf, wait_s=1).acquire().__enter__()
    assert shelf.clock.slept == pytest.approx([0.1, 0.2, 0.4, 0.3])


def test_a_lock_released_while_we_wait_is_taken(shelf):
    shelf.create(PATH, b"")
    shelf.clock.while_sleeping = lambda: shelf.files.pop(PATH, None)

    with lock_of(shelf, wait_s=10).acquire():
        assert b"mine" in shelf.read(PATH)


def test_the_last_run_to_break_a_stale_lock_has_it(shelf):
    shelf.create(PATH, process(pid=9).make_owner("dead").encode())
    rival = process(pid=2).make_owner("rival").encode()
    shelf.clock.while_sleeping = lambda: shelf.replace(PATH, rival)

    with pytest.raises(BusyError, match="process 2"):
        lock_of(shelf, me=process(living=frozenset({2}))).acquire().__enter__()
    assert shelf.read(PATH) == rival


def test_a_lock_that_became_somebody_elses_is_neither_renewed_nor_released(shelf):
    lock = lock_of(shelf)
    with lock.acquire():
        shelf.replace(PATH, b"theirs")
        lock.renew()
        with pytest.raises(BusyError, match="taken from us"):
            lock.confirm()

    assert shelf.read(PATH) == b"theirs"


@pytest.mark.parametrize("is_taken", [True, False])
def test_a_lock_that_another_deletes_before_it_is_renewed_is_not_taken_back(
    shelf, monkeypatch, is_taken
):
    replace_version, lock = shelf.replace_version, lock_of(shelf)

    def replace_late(path, data, version):
        shelf.delete(PATH)  # as Hudi's writers do when they close
        if is_taken:
            shelf.create(PATH, b"")
        return replace_version(path, data, version)

    monkeypatch.setattr(shelf, "replace_version", replace_late)
    with lock.acquire():
        lock.renew()
        with pytest.raises(BusyError if is_taken else VanishedLockError):
            lock.confirm()
    assert is_taken == (PATH in shelf.files)


def test_renewing_moves_the_time(shelf):
    lock = lock_of(shelf)
    with lock.acquire():
        shelf.clock.pass_seconds(60)
        lock.renew()

        assert read_lock_holder(shelf, PATH).since_ms == shelf.clock.ms
        lock.confirm()


def test_a_lock_in_a_store_that_cannot_compare_is_renewed_too(shelf, monkeypatch):
    def refuse(*_arguments):
        raise UnsupportedError("no condition")

    monkeypatch.setattr(shelf, "replace_version", refuse)
    lock = lock_of(shelf)
    with lock.acquire():
        shelf.clock.pass_seconds(60)
        lock.renew()
        assert shelf.clock.ms == shelf.stat(PATH).modified_ms


def test_a_lock_that_is_not_held_is_not_renewed(shelf):
    lock_of(shelf).renew()

    assert shelf.files == {}


def test_a_lock_that_changed_since_it_was_read_is_not_broken(shelf):
    shelf.create(PATH, b"")
    held = read_lock_holder(shelf, PATH)
    shelf.clock.pass_seconds(1)
    shelf.replace(PATH, b"")

    assert break_lock(shelf, held) is False
    assert PATH in shelf.files


def test_no_lock_touches_nothing(shelf):
    lock = NoLock()
    with lock.acquire():
        lock.confirm()
        lock.renew()

    assert shelf.files == {}
