"""Route each new row to one of its partition's buckets, by its record key alone.

The key decides, so a task that Spark repeats puts the same rows into the same files, whatever the
order of rows. Hudi divides the range of a hash as if hashes were spread evenly. Steady routing
divides it by the write's own hashes, so that files get the rows planned for them. Rows with equal
keys are never separated.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.layout.curves.tie_breakers import mix_bits

Hashes = NDArray[np.uint64]

_WORD: Final = 8
_BITS: Final = 64
#: bins per bucket: a boundary is off by at most half a bin, a file by one, 0.4 % of a bucket
_BINS_PER_BUCKET: Final = 256
_MIN_BITS: Final = 12


def route_by_md5(keys: Any, inserts: NDArray[np.int64]) -> NDArray[np.int32]:
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
    found = np.searchsorted(ends, share, "left")
    return np.where(found < len(inserts), found, 0).astype(np.int32)


def hash_record_keys(keys: Any) -> Hashes:
    """Return a hash of 64 bits of each whole record key; ``keys``: strings without nulls.

    >>> len(set(hash_record_keys(pa.array(["", "a", "aa", "a long record key"])).tolist()))
    4
    """
    if isinstance(keys, pa.ChunkedArray):
        keys = keys.combine_chunks()
    width = np.int64 if pa.types.is_large_string(keys.type) else np.int32
    if not len(keys):
        return np.zeros(0, np.uint64)
    ends = np.frombuffer(keys.buffers()[1], width)[keys.offset : keys.offset + len(keys) + 1]
    lengths = np.diff(ends).astype(np.int64)
    starts = ends[:-1].astype(np.int64) - int(ends[0])
    # extra bytes, because the last word of the last key is read past its end
    own = memoryview(keys.buffers()[2] or b"")[int(ends[0]) : int(ends[-1])]
    data = bytes(own) + bytes(_WORD)
    whole = np.ndarray((len(data) - _WORD + 1,), "<u8", data, strides=(1,))
    found = mix_bits(lengths.astype(np.uint64))
    rows: NDArray[np.int64] = np.flatnonzero(lengths)
    depth = 0
    while len(rows):
        left = lengths[rows] - depth
        word = whole[starts[rows] + depth]
        unused = np.uint64(8) * (np.uint64(_WORD) - np.minimum(left, _WORD).astype(np.uint64))
        found[rows] = mix_bits(found[rows] ^ ((word << unused) >> unused))
        depth += _WORD
        rows = rows[left > _WORD]
    return found


def histogram_bits(buckets: int) -> int:
    """Return the bits of a histogram that separates ``buckets``; it has 2**bits bins.

    >>> histogram_bits(1), histogram_bits(100)
    (12, 15)
    """
    return max(_MIN_BITS, (buckets * _BINS_PER_BUCKET - 1).bit_length())


def count_hashes(hashes: Hashes, bits: int) -> NDArray[np.int64]:
    """Count the rows in each bin of the range of hashes; counts of several tasks can be added."""
    places = (hashes >> np.uint64(_BITS - bits)).astype(np.int64)
    found: NDArray[np.int64] = np.bincount(places, minlength=1 << bits).astype(np.int64)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class RouteBoundaries:
    """The hashes at which each bucket except the first begins: uint64, ascending."""

    starts: Hashes

    def route(self, hashes: Hashes) -> NDArray[np.int32]:
        """Return the bucket of each row, numbered among those that take rows."""
        return np.searchsorted(self.starts, hashes, "right").astype(np.int32)


def find_route_boundaries(counts: NDArray[np.int64], inserts: NDArray[np.int64]) -> RouteBoundaries:
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


def find_exact_boundaries(hashes: Hashes, inserts: NDArray[np.int64]) -> RouteBoundaries:
    """Return boundaries from all hashes of a partition's new rows: buckets get their exact rows.

    Rows with equal keys that would be in several buckets all go to the last of them.
    """
    assert len(hashes) == inserts.sum(), "the hashes are those of the planned rows"
    return RouteBoundaries(np.sort(hashes)[np.cumsum(inserts)[:-1]])
