"""The storage lock beside Hudi's own provider, on a real S3 server: one holder at a time."""

from __future__ import annotations

import time

import pytest

from reconciler.errors import BusyError
from reconciler.hudi.timeline.storage_lock import STORAGE_LOCK_FILE, StorageLockFile
from reconciler.runtime import SystemClock, current_process
from reconciler.storage.open import open_storage
from reconciler.transaction.locks.storage_lock import StorageLock, StorageLockPlace
from tests.oracle.lock_turns import check_one_holder_at_a_time
from tests.oracle.storage_lock_holder import hudi_lock_holder
from tests.selection import examples

pytestmark = pytest.mark.oracle

VALIDITY_S = 10


def lock_of(storage, token, wait_s=0.0):
    process = current_process()
    return StorageLock(
        storage,
        process.make_owner(token),
        process=process,
        clock=SystemClock(),
        validity_s=VALIDITY_S,
        wait_s=wait_s,
    )


@pytest.fixture
def storage(s3_bucket):
    return open_storage(f"{s3_bucket.url}/table", s3_bucket.options)


@pytest.mark.parametrize("version", [pytest.param("1.1.1", marks=pytest.mark.long), "1.2.0"])
def test_hudi_and_reconciler_wait_for_each_other(version, storage):
    with hudi_lock_holder(version, storage, VALIDITY_S) as hudi:
        with lock_of(storage, "ours").acquire():
            assert not hudi.try_lock(1500)
        assert hudi.try_lock(5000)
        held = StorageLockFile.parse(storage.read(STORAGE_LOCK_FILE))
        place = StorageLockPlace(storage, VALIDITY_S, SystemClock())
        assert storage.read(STORAGE_LOCK_FILE) == held.encode()
        assert place.read_holder().name == "hudi-writer"
        with pytest.raises(BusyError, match="calls itself hudi-writer"):
            lock_of(storage, "ours", wait_s=0.5).acquire().__enter__()

        hudi.kill()
        begun = time.monotonic()
        with lock_of(storage, "ours", wait_s=30).acquire():
            assert VALIDITY_S - 3 < time.monotonic() - begun < VALIDITY_S + 10


def test_two_appliers_and_a_hudi_writer_hold_it_one_at_a_time(storage):
    with hudi_lock_holder("1.2.0", storage, VALIDITY_S) as hudi:
        check_one_holder_at_a_time(
            lambda token: lock_of(storage, token, wait_s=120), hudi, examples(2, many=20)
        )
