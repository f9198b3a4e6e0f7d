"""Compute Z-order and Hilbert keys from ranks.

A key is one or more lanes of 64 bits, the most significant lane first. Keys compare in the order in
which the curve visits the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from reconciler.layout.curves.lanes import Lane, row_blocks

_BYTE: Final = 8
_LANE: Final = 64
_MAX_RANK_BITS: Final = 16  # bits, at most


def interleave_bits(columns: Sequence[NDArray[Any]], bits: int) -> Lane:
    """Interleave the lowest ``bits`` bits of the columns, starting with the first column.

    Returns lanes by rows; the interleaved bits are the lowest bits of the key.

    >>> interleave_bits([np.array([0b10]), np.array([0b11])], 2).tolist() == [[0b1101]]
    True
    """
    if bits <= _MAX_RANK_BITS and len(columns) <= _BYTE and len(columns) * bits <= _LANE:
        return _interleave_by_table(columns, bits)[np.newaxis]
    lanes = -(-len(columns) * bits // 64)
    keys = np.empty((lanes, len(columns[0])), np.uint64)
    for part in row_blocks(len(columns[0])):
        keys[:, part] = _interleave_unpacked([column[part] for column in columns], bits, lanes)
    return keys


@cache
def _spread_table(apart: int) -> Lane:
    """Return a table that maps each byte to its bits spread ``apart`` bits from each other."""
    byte = np.arange(256, dtype=np.uint64)
    table = np.zeros(256, np.uint64)
    for bit in range(8):
        table |= ((byte >> np.uint64(bit)) & np.uint64(1)) << np.uint64(bit * apart)
    return table


def _interleave_by_table(columns: Sequence[NDArray[Any]], bits: int) -> Lane:
    """Interleave with a lookup table, one byte of a column at a time."""
    keys = np.empty(len(columns[0]), np.uint64)
    apart = len(columns)
    table = _spread_table(apart)
    for part in row_blocks(len(keys)):
        key = np.zeros(len(keys[part]), np.uint64)
        for nth, column in enumerate(columns):
            values = column[part].astype(np.uint16)
            bit = np.uint64(apart - 1 - nth)
            key |= table.take(values & np.uint16(0xFF)) << bit
            if bits > _BYTE:
                key |= table.take(values >> np.uint16(_BYTE)) << (bit + np.uint64(_BYTE * apart))
        keys[part] = key
    return keys


def _interleave_unpacked(columns: Sequence[NDArray[Any]], bits: int, lanes: int) -> Lane:
    """Interleave unpacked bits, for any number of columns and bits."""
    words = np.stack(columns, axis=1).astype(">u8")
    each = np.unpackbits(words.view(np.uint8).reshape(len(words), -1, 8), axis=2)[:, :, 64 - bits :]
    key = each.transpose(0, 2, 1).reshape(len(words), -1)
    missing = lanes * 64 - key.shape[1]
    key = np.pad(key, ((0, 0), (missing, 0)))
    packed: Lane = np.packbits(key, axis=1).view(">u8").astype(np.uint64).T
    return packed


def hilbert_keys(columns: Sequence[NDArray[Any]], bits: int) -> Lane:
    """Return the position of each row on a Hilbert curve through a cube with side ``2**bits``.

    Returns lanes by rows; a single column keeps its own order. Source: J. Skilling, Programming the
    Hilbert curve (2004), like the library that Hudi uses.

    >>> hilbert_keys([np.array([0, 0, 1, 1]), np.array([0, 1, 1, 0])], 1).tolist()
    [[0, 1, 2, 3]]
    """
    if len(columns) == 1:
        return interleave_bits(columns, bits)
    narrow = np.dtype(np.uint16 if bits <= _MAX_RANK_BITS else np.uint64)
    turned = [np.empty(len(columns[0]), narrow) for _ in columns]
    for part in row_blocks(len(columns[0])):
        axes = [column[part].astype(narrow) for column in columns]
        _axes_to_hilbert(axes, bits)
        for whole, axis in zip(turned, axes, strict=True):
            whole[part] = axis
    return interleave_bits(turned, bits)


def _axes_to_hilbert(axes: Sequence[NDArray[Any]], bits: int) -> None:
    """Transform coordinates to the bits of the Hilbert index, column by column, in place."""
    kind = axes[0].dtype.type
    first, others = axes[0], axes[1:]
    for bit in range(bits - 1, 0, -1):
        below = kind((1 << bit) - 1)
        first ^= _bit_masks(first, bit) & below
        for axis in others:
            is_set = _bit_masks(axis, bit)
            turn = first ^ axis
            turn |= is_set
            turn &= below
            first ^= turn
            np.invert(is_set, out=is_set)
            turn &= is_set
            np.bitwise_xor(axis, turn, out=axis)
    for before, axis in pairwise(axes):
        np.bitwise_xor(axis, before, out=axis)
    flip = np.zeros_like(first)
    for bit in range(bits - 1, 0, -1):
        flip ^= _bit_masks(axes[-1], bit) & kind((1 << bit) - 1)
    for axis in axes:
        np.bitwise_xor(axis, flip, out=axis)


def _bit_masks(axis: NDArray[Any], bit: int) -> NDArray[Any]:
    """Return a mask with all bits set in the rows whose given bit is set, else zero."""
    width = 8 * axis.itemsize
    signed = axis.view(np.dtype(f"i{axis.itemsize}"))
    kind = signed.dtype.type
    masks: NDArray[Any] = (signed << kind(width - 1 - bit)) >> kind(width - 1)
    return masks.view(axis.dtype)
