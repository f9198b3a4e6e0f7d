"""Route each new row to one of its partition's buckets, by its record key alone.

The key decides, so a task that Spark repeats puts the same rows into the same files, whatever the
order of rows. Hudi divides the range of a hash as if hashes were spread evenly. Steady routing
divides it by the write's own hashes, so that files get the rows planned for them. Rows with equal
keys are never separated.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from reconciler.arrays import Codes, Integers
from reconciler.layout.curves.lanes import to_plain_array
from reconciler.layout.curves.pseudo_random import hash_text
from reconciler.lazy_dataclass import dataclass

Hashes = NDArray[np.uint64]

_WORD: Final = 8
_BITS: Final = 64
#: bins per bucket: a boundary is off by at most half a bin, a file by one, 0.4 % of a bucket
_BINS_PER_BUCKET: Final = 256
_MIN_BITS: Final = 12


def route_by_md5(keys: Any, inserts: Integers) -> Codes:
    """Return the bucket of each record key by Hudi's rule, numbered among those that take rows.

    ``keys``: string array without nulls. ``inserts``: planned rows of the partition's buckets in
    order. Source: UpsertPartitioner.getPartition, NumericUtils.
    """
    total = max(int(inserts.sum()), 1)
    digests = b"".join(
        hashlib.md5(key.encode(), usedforsecurity=False).digest()[:_WORD]
        for key in keys.to_pylist()
    )
    hashes = np.frombuffer(digests, "<i8")
    share = np.mod(hashes, np.int64(total)) / total
    ends = np.cumsum(inserts / total)
    buckets = np.searchsorted(ends, share, "left")
    return np.where(buckets < len(inserts), buckets, 0).astype(np.int32)


def hash_record_keys(keys: Any) -> Hashes:
    """Return a hash of 64 bits of each whole record key; ``keys``: strings without nulls.

    >>> import pyarrow as pa
    >>> len(set(hash_record_keys(pa.array(["", "a", "aa", "a long record key"])).tolist()))
    4
    """
    return hash_text(to_plain_array(keys), byteswaps=True)


def histogram_bits(buckets: int) -> int:
    """Return the bits of a histogram that separates ``buckets``; it has 2**bits bins.

    >>> histogram_bits(1), histogram_bits(100)
    (12, 15)
    """
    return max(_MIN_BITS, (buckets * _BINS_PER_BUCKET - 1).bit_length())


def count_hashes(hashes: Hashes, bits: int) -> Integers:
    """Count the rows in each bin of the range of hashes; counts of several tasks can be added."""
    places = (hashes >> np.uint64(_BITS - bits)).astype(np.int64)
    counts: Integers = np.bincount(places, minlength=1 << bits).astype(np.int64)
    return counts


@dataclass(frozen=True, slots=True, eq=False)
class RouteBoundaries:
    """The hashes at which each bucket except the first begins: uint64, ascending."""

    starts: Hashes

    def route(self, hashes: Hashes) -> Codes:
        """Return the bucket of each row, numbered among those that take rows."""
        return np.searchsorted(self.starts, hashes, "right").astype(np.int32)


def find_route_boundaries(counts: Integers, inserts: Integers) -> RouteBoundaries:
    """Return boundaries at the starts of bins, from a histogram of a partition's new rows.

    ``inserts``: planned rows of the partition's buckets in order. Each bucket gets its planned rows
    give or take those of one bin.
    """
    before = np.cumsum(counts) - counts
    ends = np.cumsum(inserts)[:-1]
    above = np.searchsorted(before, ends, "left").clip(1, len(counts) - 1)
    below = above - 1
    nearest = np.where(ends - before[below] <= before[above] - ends, below, above)
    bits = len(counts).bit_length() - 1
    return RouteBoundaries(nearest.astype(np.uint64) << np.uint64(_BITS - bits))
