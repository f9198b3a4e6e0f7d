"""Hudi's file-system lock: a file whose existence is the lock.

Hudi creates the file exclusively, ignores its content and deletes it to release the lock. It breaks
a lock that was modified more than the configured minutes ago (0 = never). Source:
FileSystemBasedLockProvider.
"""

from __future__ import annotations

from typing import Final

LOCK_FILE: Final = "lock"
DEFAULT_FOLDER: Final = ".hoodie"

_MINUTE_MS: Final = 60_000


def lock_path(folder: str = DEFAULT_FOLDER) -> str:
    """Return the path of the lock file in a folder.

    >>> lock_path(), lock_path("locks/orders/"), lock_path("")
    ('.hoodie/lock', 'locks/orders/lock', 'lock')
    """
    folder = folder.rstrip("/")
    return f"{folder}/{LOCK_FILE}" if folder else LOCK_FILE


def is_lock_expired(modified_ms: int, now_ms: int, expire_minutes: int) -> bool:
    """Return whether Hudi would break the lock; times in milliseconds since 1970.

    The rule is the same for every owner.

    >>> is_lock_expired(0, 60_001, 1), is_lock_expired(0, 60_000, 1), is_lock_expired(0, 10**12, 0)
    (True, False, False)
    """
    return expire_minutes > 0 and now_ms - modified_ms > expire_minutes * _MINUTE_MS
