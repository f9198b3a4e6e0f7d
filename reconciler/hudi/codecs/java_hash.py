"""Compute Java's ``String.hashCode`` for a column of strings.

Hudi uses this hash to assign record keys to file groups of the record index and file ids to hash
sets. It works on UTF-16 code units.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from reconciler.arrays import Codes, Integers, Mask, get_value_offsets

_WRAP: Final = 0xFFFF_FFFF
_ASCII: Final = 0x7F


def compute_java_hashes(texts: Any) -> Codes:
    """Return the hash of each text of a string array without nulls.

    >>> import pyarrow as pa
    >>> compute_java_hashes(pa.array(["", "b", "aa", "polygenelubricants", "é😀"])).tolist()
    [0, 98, 3104, -2147483648, 1996812]
    """
    whole = get_value_offsets(texts).astype(np.int64)
    ends = whole - whole[0]
    lengths = np.diff(ends)
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = ends[:-1][order], lengths[order]
    data = np.frombuffer((texts.buffers()[2] if len(texts) else None) or b"", np.uint8)
    data = data[whole[0] : whole[-1]]  # only the bytes of this slice
    hashes = np.zeros(len(texts), np.uint32)
    for at in range(int(lengths.max(initial=0))):
        has = int(np.searchsorted(-lengths, -at, "left"))
        hashes[:has] = hashes[:has] * np.uint32(31) + data[starts[:has] + at]
    result = np.empty_like(hashes)
    result[order] = hashes
    for at in np.flatnonzero(_has_non_ascii(data, ends)).tolist():
        units = np.frombuffer(texts[at].as_py().encode("utf-16-le"), "<u2")
        result[at] = _hash_units(units.tolist())
    return result.view(np.int32)


def _has_non_ascii(data: NDArray[np.uint8], ends: Integers) -> Mask:
    positions = np.flatnonzero(data > _ASCII)
    return np.diff(np.searchsorted(positions, ends)) > 0


def _hash_units(units: Iterable[int]) -> int:
    total = 0
    for unit in units:
        total = (total * 31 + unit) & _WRAP
    return total
