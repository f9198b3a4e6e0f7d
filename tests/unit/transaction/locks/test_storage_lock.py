"""Hudi's storage lock: its bytes, who has it, when it expires, and answers that get lost."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from itertools import count

import pytest

from reconciler.errors import BusyError, FormatError, StorageError
from reconciler.hudi.timeline.storage_lock import (
    AUDIT_FOLDER,
    AUDIT_SWITCH_FILE,
    STORAGE_LOCK_FILE,
    StorageLockFile,
)
from reconciler.storage.open import open_storage
from reconciler.transaction.locks.storage_lock import (
    STORAGE_LOCK_CLOCK,
    StorageLock,
    StorageLockPlace,
)
from tests.storage_wrappers import FaultyStorage, StorageFault
from tests.unit.transaction.fakes import FakeClock, process

_number = count()
VALIDITY_S = 300


@pytest.fixture
def storage():
    return open_storage(f"memory://storage-locks/{next(_number)}")


@pytest.fixture
def clock():
    return FakeClock()


def lock_of(storage, clock, token="mine", *, me=None, wait_s=0.0, on_pause=lambda: None):
    me = me or process()
    return StorageLock(
        storage,
        me.make_owner(token),
        process=me,
        clock=clock,
        validity_s=VALIDITY_S,
        wait_s=wait_s,
        on_pause=on_pause,
    )


def read_file(storage):
    return StorageLockFile.parse(storage.read(STORAGE_LOCK_FILE))


def lock_as_hudi(storage, clock, *, expired=False):
    until_ms = clock.now_ms() + VALIDITY_S * 1000
    file = StorageLockFile(expired=expired, valid_until_ms=until_ms, owner="f3a1-hudi")
    storage.replace(STORAGE_LOCK_FILE, file.encode())


def test_a_held_lock_has_the_bytes_that_hudi_reads_and_names_the_run(storage, clock):
    with lock_of(storage, clock).acquire():
        held = storage.read(STORAGE_LOCK_FILE)
        until_ms = clock.now_ms() + 300_000

    assert held.startswith(b'{"expired":false,"validUntil":%d,"owner":"mine",' % until_ms)
    assert json.loads(held)["reconciler"]["who"] == "ann"


def test_a_released_lock_has_expired_and_is_taken_again(storage, clock):
    with lock_of(storage, clock).acquire():
        pass
    assert read_file(storage).expired
    with lock_of(storage, clock, "next").acquire():
        assert (read_file(storage).owner, read_file(storage).expired) == ("next", False)


def test_a_lock_of_hudi_is_waited_for_until_its_time_is_over(storage, clock):
    lock_as_hudi(storage, clock)

    with pytest.raises(BusyError, match=r"a writer that calls itself f3a1-hudi"):
        lock_of(storage, clock, wait_s=299).acquire().__enter__()
    with lock_of(storage, clock, wait_s=10).acquire():
        assert read_file(storage).owner == "mine"


def test_a_clock_that_is_set_forward_ends_no_lock(storage):
    clock = FakeClock(ms=int(time.time() * 1000))
    lock_as_hudi(storage, clock)
    clock.pass_seconds(3600)

    with pytest.raises(BusyError, match="f3a1-hudi"):
        lock_of(storage, clock).acquire().__enter__()
    assert read_file(storage).owner == "f3a1-hudi"
    assert storage.stat(STORAGE_LOCK_CLOCK) is None


def test_a_lock_that_hudi_released_is_free_at_once(storage, clock):
    lock_as_hudi(storage, clock, expired=True)

    with lock_of(storage, clock).acquire():
        assert read_file(storage).owner == "mine"


def test_a_dead_run_of_this_host_holds_nothing_and_one_elsewhere_until_it_expires(storage, clock):
    dead = replace(process(), is_running=lambda _pid, _started: False)
    with lock_of(storage, clock, "dead").acquire():
        lock_of(storage, clock, me=dead).release_stale()
        assert read_file(storage).expired

    elsewhere = replace(process(), host="there")
    with (
        lock_of(storage, clock, "other", me=elsewhere).acquire(),
        pytest.raises(BusyError, match="ann on there"),
    ):
        lock_of(storage, clock, me=dead).acquire().__enter__()


def test_a_renewal_moves_the_end_and_a_lost_lock_publishes_nothing(storage, clock):
    lock = lock_of(storage, clock)
    with lock.acquire():
        clock.pass_seconds(200)
        lock.renew()
        assert read_file(storage).valid_until_ms == clock.now_ms() + 300_000
        lock.confirm()
        lock_as_hudi(storage, clock)
        with pytest.raises(BusyError, match="taken from us"):
            lock.confirm()

    assert read_file(storage).owner == "f3a1-hudi"
    assert not read_file(storage).expired


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_lost_answer_is_not_taken_for_another_holder(storage, clock, at):
    fault = StorageFault(at=at, mode="after", is_permanent=False)
    faulty = FaultyStorage(storage, fault, StorageError(STORAGE_LOCK_FILE, "no answer"))
    lock = lock_of(faulty, clock)
    for _ in range(2):  # the first try ends with the error, and the second one goes on
        try:
            with lock.acquire():
                lock.confirm()
            break
        except StorageError:
            continue

    assert read_file(storage).owner == "mine"
    with lock_of(storage, clock, "mine").acquire():
        assert not read_file(storage).expired


def test_the_status_names_the_holder_and_only_that_holder_is_removed(storage, clock):
    place = StorageLockPlace(storage, VALIDITY_S, clock)
    assert place.read_holder() is None
    lock_as_hudi(storage, clock)
    clock.pass_seconds(60)
    holder = place.read_holder()
    assert holder.describe(clock.now_ms()) == (
        "a writer that calls itself f3a1-hudi, last sign of life 60 s ago"
    )

    lock_as_hudi(storage, clock)
    assert not place.break_lock(holder)
    assert place.break_lock(place.read_holder())
    assert place.read_holder() is None


def test_a_damaged_lock_file_is_named(storage, clock):
    storage.replace(STORAGE_LOCK_FILE, b'{"expired":false}')

    with pytest.raises(FormatError, match=r"table_lock\.json: is no lock file"):
        lock_of(storage, clock).acquire().__enter__()


def test_the_audit_has_hudis_lines_where_it_is_switched_on(storage, clock):
    storage.create(AUDIT_SWITCH_FILE, b'{"STORAGE_LOCK_AUDIT_SERVICE_ENABLED": true}')
    start = clock.now_ms()
    lock = lock_of(storage, clock)
    with lock.acquire():
        clock.pass_seconds(1)
        lock.renew()

    lines = storage.read(f"{AUDIT_FOLDER}/{start}_mine.jsonl").decode().splitlines()
    assert [json.loads(line)["state"] for line in lines] == ["START", "RENEW", "END"]
    assert lines[0] == (
        f'{{"transactionStartTime":{start},"lockHeld":true,"state":"START",'
        f'"lockExpiration":{start + 300_000},"ownerId":"mine","timestamp":{start}}}'
    )
