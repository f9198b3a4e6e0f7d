"""The least and the greatest record key of a file, in Java's order of strings.

Hudi skips a file whose range a key is not in (HoodieBloomIndex, KeyRangeLookupTree), and compares
UTF-16 units there. Its row writer orders by UTF-8 bytes instead, and then misses keys with
characters beyond U+FFFF; its Avro writer, and this one, do not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.compute as pc

from reconciler.arrays import get_value_offsets, to_integer_array

#: the first byte of a character that UTF-16 needs two units for
_BEYOND = 0xF0


class KeyRange:
    """Takes keys in any order; ``least`` and ``greatest`` are None as long as there are none."""

    def __init__(self) -> None:
        self.least: str | None = None
        self.greatest: str | None = None

    def add(self, keys: Any) -> None:
        """More keys: a string array without nulls."""
        if not len(keys):
            return
        found = pc.min_max(keys)
        ends = [found["min"].as_py(), found["max"].as_py(), *_find_extremes(keys)]
        for key in ends:
            if self.least is None or java_sort_key(key) < java_sort_key(self.least):
                self.least = key
            if self.greatest is None or java_sort_key(key) > java_sort_key(self.greatest):
                self.greatest = key


def java_sort_key(key: str) -> bytes:
    """Sorts keys as Java's String.compareTo does.

    >>> java_order("😀") < java_order("ｱ")
    True
    """
    return key.encode("utf-16-be")


def _find_extremes(keys: Any) -> list[str]:
    """The ends in Java's order of the keys that it orders otherwise than their bytes."""
    data = np.frombuffer(keys.buffers()[2] or b"", np.uint8)
    ends = get_value_offsets(keys)
    if not (data[ends[0] : ends[-1]] >= _BEYOND).any():
        return []
    places = np.flatnonzero(data >= _BEYOND)
    after = np.searchsorted(places, ends)
    odd = keys.take(to_integer_array(np.flatnonzero(np.diff(after)))).to_pylist()
    even = pc.min_max(keys.take(to_integer_array(np.flatnonzero(np.diff(after) == 0))))
    rest = [key for end in ("min", "max") if (key := even[end].as_py()) is not None]
    return [*rest, min(odd, key=java_sort_key), max(odd, key=java_sort_key)]
