"""Hudi's lock in ZooKeeper: nodes in the form and order of Curator's InterProcessMutex.

Whoever wants the lock creates an ephemeral node below the lock's path; ZooKeeper appends the next
number of a sequence. The node with the smallest number has the lock, and a node goes when its
owner deletes it or when the session of its owner ends. Source: ZookeeperBasedLockProvider of Hudi;
LockInternals, StandardLockInternalsDriver and ProtectedUtils of Curator; the same in all releases.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

#: of a lock, before the number; Curator's LOCK_NAME
_LOCK_NAME: Final = "lock-"
#: seconds after which ZooKeeper ends a session without a sign of life; Hudi's default
DEFAULT_SESSION_S: Final = 60


def make_node_prefix(identifier: str) -> str:
    """Return the name of a node without its number; ``identifier`` is unique per request.

    A creation whose answer was lost is found again by it, as Curator does.

    >>> make_node_prefix("8c0b")
    '_c_8c0b-lock-'
    """
    return f"_c_{identifier}-{_LOCK_NAME}"


def sort_nodes(names: Iterable[str]) -> list[str]:
    """Return the nodes of a lock in the order in which they get it; other children are left out.

    >>> sort_nodes(["_c_b-lock-0000000012", "_c_z-lock-0000000003", "config"])
    ['_c_z-lock-0000000003', '_c_b-lock-0000000012']
    """
    numbered = (name for name in names if _LOCK_NAME in name)
    return sorted(numbered, key=lambda name: name.rpartition(_LOCK_NAME)[2])


def join_lock_path(base_path: str, key: str) -> str:
    """Return the path of a lock, as Hudi joins it.

    >>> join_lock_path("/hudi/locks", "orders")
    '/hudi/locks/orders'
    """
    return f"{base_path.rstrip('/')}/{key}"
