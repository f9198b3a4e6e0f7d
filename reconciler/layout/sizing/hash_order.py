"""The order in which Java's HashSet gives file ids: the order of Hudi's file-system view.

Source: AbstractTableFileSystemView.buildFileGroups (0.15.0, 1.2.0), java.util.HashMap. It looks
random to a person, and decides which small files Hudi fills first.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from reconciler.hudi.codecs.java_hash import compute_java_hashes

#: HashMap's least capacity; a map grows when more than 3/4 of its slots are taken
_MIN_CAPACITY: Final = 16


def sort_as_hash_set(ids: Any, is_log_only: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Where the file groups of one partition come in Hudi's view: indexes, the first one first.

    ``ids``: file ids, a string array without nulls, of every group that has files, replaced ones
    too, in the order in which Hudi's listing meets them; of ids that share a slot the last one is
    first (Collectors.groupingBy puts it at the head of its slot).
    ``is_log_only``: groups without any base file. Eight ids in one slot, which random ids never
    are, would be in an order that is not known here.

    >>> import pyarrow as pa
    >>> view_order(pa.array(["b", "a", "q"]), np.zeros(3, np.bool_)).tolist()
    [2, 1, 0]
    """
    count = len(ids)
    capacity = _hash_set_capacity(count - int(is_log_only.sum()), count)
    hashes = compute_java_hashes(ids).view(np.uint32)
    slots = (hashes ^ (hashes >> np.uint32(16))) & np.uint32(capacity - 1)
    found: NDArray[np.int64] = np.lexsort((-np.arange(count), is_log_only, slots))
    return found


def _hash_set_capacity(first: int, count: int) -> int:
    """Slots of ``new HashSet<>(first)`` after more were added, up to ``count``."""
    asked, capacity = max(int(first / 0.75) + 1, _MIN_CAPACITY), 1
    while capacity < asked or count > 0.75 * capacity:
        capacity *= 2
    return capacity
