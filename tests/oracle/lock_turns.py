"""Two runs of reconciler and a writer of Hudi that want the same lock, again and again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from reconciler.transaction.locks.table_lock import TableLock
from tests.oracle.storage_lock_holder import HudiLockHolder

_WAIT_MS = 120_000


def check_one_holder_at_a_time(
    open_lock: Callable[[str], TableLock], hudi: HudiLockHolder, rounds: int
) -> None:
    """Let all three hold the lock so often; nobody ever holds it beside another.

    ``open_lock`` returns the lock of a run by its token, which waits for two minutes.
    """
    inside, seen, turn = [], [], threading.Lock()

    def enter(name):
        with turn:
            inside.append(name)
            seen.append(tuple(inside))
        time.sleep(0.02)
        with turn:
            inside.remove(name)

    def apply(name):
        for _ in range(rounds):
            with open_lock(name).acquire():
                enter(name)
            time.sleep(0.05)

    threads = [threading.Thread(target=apply, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for _ in range(rounds):
        assert hudi.try_lock(_WAIT_MS)
        enter("hudi")
        hudi.unlock()
        time.sleep(0.05)
    for thread in threads:
        thread.join()

    assert len(seen) == 3 * rounds
    assert all(len(holders) == 1 for holders in seen)
