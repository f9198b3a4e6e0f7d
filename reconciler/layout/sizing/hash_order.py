"""Sort file ids as Java's HashSet does, which is the order of Hudi's file-system view.

This order looks random, and decides which small files Hudi fills first.
Source: AbstractTableFileSystemView.buildFileGroups (0.15.0, 1.2.0), java.util.HashMap.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from reconciler.hudi.codecs.java_hash import compute_java_hashes

#: the least capacity of a HashMap; it grows when more than 3/4 of its slots are taken
_MIN_CAPACITY: Final = 16


def sort_as_hash_set(ids: Any, is_log_only: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the file groups of one partition, as indexes, in the order of Hudi's view.

    ``ids``: file ids of every group with files, replaced ones too, in the order of Hudi's listing;
    a string array without nulls. If ids share a slot, the last one comes first, because
    Collectors.groupingBy puts it at the head of its slot. ``is_log_only``: groups without a base
    file. The order of eight ids in one slot, which random ids never have, is not reproduced.

    >>> import pyarrow as pa
    >>> sort_as_hash_set(pa.array(["b", "a", "q"]), np.zeros(3, np.bool_)).tolist()
    [2, 1, 0]
    """
    count = len(ids)
    capacity = _hash_set_capacity(count - int(is_log_only.sum()), count)
    hashes = compute_java_hashes(ids).view(np.uint32)
    slots = (hashes ^ (hashes >> np.uint32(16))) & np.uint32(capacity - 1)
    found: NDArray[np.int64] = np.lexsort((-np.arange(count), is_log_only, slots))
    return found


def _hash_set_capacity(first: int, count: int) -> int:
    """Return the slots of ``new HashSet<>(first)`` after ``count`` elements were added."""
    asked, capacity = max(int(first / 0.75) + 1, _MIN_CAPACITY), 1
    while capacity < asked or count > 0.75 * capacity:
        capacity *= 2
    return capacity
