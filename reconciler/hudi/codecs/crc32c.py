"""CRC-32C of many short pieces at once, in numpy: HBase's checksum, absent from Python's library.

The register starts as all ones, which is the same as inverting the first four bytes and starting
with zero; then zeros in front change nothing, and pieces of any length become rows of one matrix.
Each row is cut into lanes that advance together, and neighbours are joined, two by two again and
again, by the operator "so many zero bytes later": what is slow here is the number of operations,
not that of bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_POLYNOMIAL: Final = 0x82F63B78  # Castagnoli, reflected
_LANE: Final = 64  # bytes
_INVERTED: Final = 4  # leading bytes that stand for the register of ones


def compute_crc32c(pieces: Sequence[bytes | memoryview]) -> NDArray[np.uint32]:
    """The checksum of every piece; each must have 4 bytes or more.

    >>> [hex(x) for x in compute_crc32c([b"123456789", bytes(32)])]
    ['0xe3069283', '0x8a9136aa']
    """
    longest = max((len(piece) for piece in pieces), default=0)
    lanes = max(1, -(-longest // _LANE))
    rows = np.zeros((len(pieces), lanes * _LANE), np.uint8)
    for row, piece in zip(rows, pieces, strict=True):
        start = len(row) - len(piece)
        row[start:] = np.frombuffer(piece, np.uint8)
        row[start : start + _INVERTED] ^= 0xFF
    words = rows.view("<u2").reshape(len(pieces) * lanes, _LANE // 2).T.astype(np.uint32)
    partial = np.zeros(len(pieces) * lanes, np.uint32)
    for word in words:
        partial = _advance_two_bytes(partial ^ word)
    total: NDArray[np.uint32] = _join_lanes(partial.reshape(len(pieces), lanes))
    return ~total


def _advance_two_bytes(register: NDArray[Any]) -> Any:
    """The register after two bytes, which are in its low half already."""
    return _two_byte_table()[register & 0xFFFF] ^ (register >> 16)


def _join_lanes(lanes: NDArray[Any]) -> Any:
    """The register after all lanes of a row; each lane began with zero."""
    doublings = 0
    while lanes.shape[1] > 1:
        if lanes.shape[1] % 2:
            lanes = np.pad(lanes, ((0, 0), (1, 0)))
        lanes = _advance_zeros(lanes[:, ::2], _zero_lane_tables(doublings)) ^ lanes[:, 1::2]
        doublings += 1
    return lanes[:, 0]


def _advance_zeros(register: NDArray[Any], tables: NDArray[Any]) -> Any:
    later = tables[0][register & 0xFF]
    for place in (1, 2, 3):
        later ^= tables[place][(register >> (8 * place)) & 0xFF]
    return later


@cache
def _two_byte_table() -> NDArray[Any]:
    table = np.arange(1 << 16, dtype=np.uint32)
    for _ in range(16):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1)
    return table


@cache
def _zero_lane_tables(doublings: int) -> NDArray[Any]:
    """For each of the register's four bytes: what its 256 values become so many zeros later.

    One lane of zeros, doubled so many times.
    """
    if doublings:
        half = _zero_lane_tables(doublings - 1)
        return np.stack([_advance_zeros(table, half) for table in half])
    shifts = (8 * np.arange(4, dtype=np.uint32))[:, None]
    tables = np.arange(256, dtype=np.uint32)[None, :] << shifts
    for _ in range(_LANE // 2):
        tables = _advance_two_bytes(tables)
    return tables
