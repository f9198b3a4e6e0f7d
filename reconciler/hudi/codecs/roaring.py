"""Encode row numbers as Hudi's log blocks carry them: a compressed bitmap of 64-bit numbers.

The bytes are those of a Roaring64NavigableMap in its portable form, as base64. Each upper half of
32 bits has a bitmap of its own, of containers that each hold the lower 16 bits of numbers as an
array, as bits or as runs, whichever is smallest. Source: LogReaderUtils.encodePositions, and the
Roaring format specification.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from typing import Final

import numpy as np

from reconciler.arrays import Integers

_COOKIE: Final = 12346
_COOKIE_WITH_RUNS: Final = 12347
#: from this number of containers on, a bitmap with runs has their offsets too
_MIN_OFFSETS: Final = 4
#: more numbers than this are stored as bits
_MAX_ARRAY: Final = 4096
_BITS: Final = 1 << 16


def encode_positions(positions: Integers) -> str:
    """Return the text of a set of row numbers; they may repeat and come in any order.

    >>> encode_positions(np.array([8, 0, 2, 6, 4]))
    'AQAAAAAAAAAAAAAAOjAAAAEAAAAAAAQAEAAAAAAAAgAEAAYACAA='
    """
    numbers = np.unique(positions)
    parts = [*_split(numbers, 32)]
    data = struct.pack("<q", len(parts))
    for high, lows in parts:
        data += struct.pack("<I", high) + _encode_bitmap(lows)
    return base64.b64encode(data).decode()


def _split(numbers: Integers, bits: int) -> Iterator[tuple[int, Integers]]:
    """Yield the upper parts of ascending numbers, each with the lower bits of its numbers."""
    highs = numbers >> bits
    starts = np.flatnonzero(np.append(True, highs[1:] != highs[:-1])[: len(highs)]).tolist()
    for start, end in zip(starts, [*starts[1:], len(numbers)], strict=True):
        lows = numbers[start:end] & ((1 << bits) - 1)
        yield int(highs[start]), lows


def _encode_bitmap(numbers: Integers) -> bytes:
    """Encode ascending numbers of 32 bits as a RoaringBitmap."""
    keys, counts, containers, has_runs = [], [], [], []
    for key, lows in _split(numbers, 16):
        is_run, data = _encode_container(lows)
        keys.append(key)
        counts.append(len(lows) - 1)
        containers.append(data)
        has_runs.append(is_run)
    head = struct.pack("<II", _COOKIE, len(keys))
    if any(has_runs):
        flags = np.packbits(has_runs, bitorder="little").tobytes()
        head = struct.pack("<I", _COOKIE_WITH_RUNS | (len(keys) - 1) << 16) + flags
    head += np.column_stack([keys, counts]).astype("<u2").tobytes()
    if not any(has_runs) or len(keys) >= _MIN_OFFSETS:
        lengths = [len(head) + 4 * len(keys), *map(len, containers[:-1])]
        head += np.cumsum(lengths).astype("<u4").tobytes()
    return head + b"".join(containers)


def _encode_container(lows: Integers) -> tuple[bool, bytes]:
    """Encode ascending numbers of 16 bits; also returns whether as runs."""
    breaks = np.flatnonzero(np.diff(lows) != 1)
    first = lows[np.append(0, breaks + 1)]
    last = lows[np.append(breaks, len(lows) - 1)]
    if min(2 * len(lows), _BITS // 8) > 2 + 4 * len(first):
        runs = np.column_stack([first, last - first]).astype("<u2")
        return True, struct.pack("<H", len(first)) + runs.tobytes()
    if len(lows) <= _MAX_ARRAY:
        return False, lows.astype("<u2").tobytes()
    bits = np.zeros(_BITS, np.bool_)
    bits[lows] = True
    return False, np.packbits(bits, bitorder="little").tobytes()
