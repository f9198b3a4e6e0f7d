"""Find the smallest and the largest record key of a file in Java's string order.

Hudi skips a file whose key range excludes a key (HoodieBloomIndex, KeyRangeLookupTree), comparing
UTF-16 units. Hudi's row writer orders by UTF-8 bytes instead and so misses keys with characters
above U+FFFF. Its Avro writer and this one do not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.compute as pc

from reconciler.arrays import get_value_offsets, to_arrow

#: smallest first UTF-8 byte of a character that takes two UTF-16 units
_BEYOND = 0xF0


class KeyRange:
    """Collects keys in any order; ``least`` and ``greatest`` are None without keys."""

    def __init__(self) -> None:
        self.least: str | None = None
        self.greatest: str | None = None

    def add(self, keys: Any) -> None:
        """Add the keys of a string array without nulls."""
        if not len(keys):
            return
        bounds = pc.min_max(keys)
        ends = [bounds["min"].as_py(), bounds["max"].as_py(), *_find_extremes(keys)]
        for key in ends:
            if self.least is None or java_sort_key(key) < java_sort_key(self.least):
                self.least = key
            if self.greatest is None or java_sort_key(key) > java_sort_key(self.greatest):
                self.greatest = key


def java_sort_key(key: str) -> bytes:
    """Return a sort key that orders keys as Java's String.compareTo.

    >>> java_sort_key("😀") < java_sort_key("ｱ")
    True
    """
    return key.encode("utf-16-be")


def _find_extremes(keys: Any) -> list[str]:
    """Return the extremes in Java's order, where that differs from the order of bytes."""
    data = np.frombuffer(keys.buffers()[2] or b"", np.uint8)
    ends = get_value_offsets(keys)
    if not (data[ends[0] : ends[-1]] >= _BEYOND).any():
        return []
    positions = np.flatnonzero(data >= _BEYOND)
    after = np.searchsorted(positions, ends)
    odd = keys.take(to_arrow(np.flatnonzero(np.diff(after)))).to_pylist()
    even = pc.min_max(keys.take(to_arrow(np.flatnonzero(np.diff(after) == 0))))
    rest = [key for end in ("min", "max") if (key := even[end].as_py()) is not None]
    return [*rest, min(odd, key=java_sort_key), max(odd, key=java_sort_key)]
