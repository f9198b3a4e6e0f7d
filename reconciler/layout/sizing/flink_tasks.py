"""Assign file groups to tasks, so that no two tasks fill one small file.

Source: Flink's KeyGroupRangeAssignment and MathUtils.murmurHash, which Hudi's BucketAssigner uses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reconciler.arrays import to_arrow
from reconciler.hudi.codecs.java_hash import compute_java_hashes


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTask:
    """One of ``tasks`` tasks, numbered from 0. ``key_groups``: Flink's maximum parallelism.

    >>> ids = to_arrow(["a", "b", "c", "d"])
    >>> first, second = (StreamTask(number=n, tasks=2).owns(ids) for n in (0, 1))
    >>> bool((first != second).all())
    True
    """

    number: int = 0
    tasks: int = 1
    key_groups: int = 128

    def __post_init__(self) -> None:
        assert 0 <= self.number < self.tasks <= self.key_groups, "a task is one of its tasks"

    def owns(self, file_ids: Any) -> NDArray[np.bool_]:
        """Return a mask of the file ids that belong to this task; each belongs to one task."""
        key_group = murmur_hashes(compute_java_hashes(file_ids)) % self.key_groups
        found: NDArray[np.bool_] = key_group * self.tasks // self.key_groups == self.number
        return found

    def first_owned(self, file_ids: Iterator[str]) -> str:
        """Return the first file id that belongs to this task."""
        return next(file_id for file_id in file_ids if self.owns(to_arrow([file_id]))[0])


def murmur_hashes(codes: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return MurmurHash3 of each 32-bit number, as an absolute value.

    >>> murmur_hashes(np.array([0, -0x789ABCDF], np.int32)).tolist() == [0x2362F9DE, 0x0AA4AE95]
    True
    """
    bits = codes.view(np.uint32) * np.uint32(0xCC9E2D51)
    bits = _rotate_left(bits, 15) * np.uint32(0x1B873593)
    bits = _rotate_left(bits, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    bits ^= np.uint32(4)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        bits ^= bits >> np.uint32(shift)
        bits *= np.uint32(factor)
    bits ^= bits >> np.uint32(16)
    signed = bits.view(np.int32).astype(np.int64)
    # the least number has no absolute value in Java, and Flink returns 0
    found: NDArray[np.int64] = np.where(signed == -(1 << 31), 0, np.abs(signed))
    return found


def _rotate_left(bits: NDArray[np.uint32], by: int) -> NDArray[np.uint32]:
    found: NDArray[np.uint32] = (bits << np.uint32(by)) | (bits >> np.uint32(32 - by))
    return found
