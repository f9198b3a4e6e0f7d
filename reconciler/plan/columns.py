"""Arrow string columns without a Python object per value, and without importing pandas.

``pa.array`` and ``pa.scalar`` import pandas (150 ms of CPU), so arrays are made from buffers here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_MOST = np.iinfo(np.int32).max
_QUOTE, _BACKSLASH, _SPACE, _SLASH = 0x22, 0x5C, 0x20, 0x2F


def strings(values: Sequence[str]) -> Any:
    """A pyarrow string array of Python strings.

    >>> strings(["a", "", "é"]).to_pylist()
    ['a', '', 'é']
    """
    encoded = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    return _string_array(ends, pa.py_buffer(b"".join(encoded)))


def integers(values: NDArray[Any]) -> Any:
    """A pyarrow integer array over the memory of a numpy array.

    >>> integers(np.array([3, 1])).to_pylist()
    [3, 1]
    """
    values = np.ascontiguousarray(values)
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def dictionary(codes: NDArray[np.int32], values: Sequence[str]) -> Any:
    """A pyarrow dictionary<int32, string> array of codes into values.

    >>> dictionary(np.array([1, 0], np.int32), ["a", "b"]).to_pylist()
    ['b', 'a']
    """
    return pa.DictionaryArray.from_arrays(integers(codes.astype(np.int32)), strings(values))


def codes(column: Any) -> NDArray[Any]:
    """The codes of a dictionary array, over its own memory."""
    indices = column.indices
    whole = np.frombuffer(indices.buffers()[1] or b"", dtype=str(indices.type))
    return whole[indices.offset : indices.offset + len(indices)]


def ranked(column: Any) -> tuple[list[str], NDArray[np.int32]]:
    """The distinct values of a dictionary array, sorted, and for every row its place in them.

    >>> ranked(dictionary(np.array([1, 0, 1], np.int32), ["b", "a"]))[1].tolist()
    [0, 1, 0]
    """
    values = column.dictionary.to_pylist()
    distinct = sorted(set(values))
    place = {value: rank for rank, value in enumerate(distinct)}
    ranks = np.array([place[value] for value in values], np.int32)
    return distinct, ranks[codes(column)]


def offsets(column: Any) -> NDArray[np.int32]:
    """Where each value of a string array starts in its data, and where the last one ends."""
    whole = np.frombuffer(column.buffers()[1] or bytes(4), dtype=np.int32)
    return whole[column.offset : column.offset + len(column) + 1]


def data(column: Any) -> NDArray[np.uint8]:
    """The bytes that the offsets of a string array point into."""
    return np.frombuffer(column.buffers()[2] or b"", dtype=np.uint8)


def replaced(column: Any, rows: NDArray[np.int64], values: Sequence[str]) -> Any:
    """The string array with other values in a few rows (ascending)."""
    mask = np.zeros(len(column), np.uint8)
    mask[rows] = 1
    bits = pa.py_buffer(np.packbits(mask, bitorder="little"))
    is_replaced = pa.Array.from_buffers(pa.bool_(), len(column), [None, bits])
    return pc.replace_with_mask(column, is_replaced, strings(values))


def escaped(column: Any) -> Any:
    r"""The values as they stand between the quotes of canonical JSON.

    >>> escaped(strings(["plain", 'quo"te', "\n"])).to_pylist()
    ['plain', 'quo\\"te', '\\n']
    """
    rows = _rows_with(column, lambda b: (b < _SPACE) | (b == _QUOTE) | (b == _BACKSLASH))
    if not len(rows):
        return column
    values = column.take(integers(rows)).to_pylist()
    return replaced(column, rows, [json.dumps(value, ensure_ascii=False)[1:-1] for value in values])


def unescaped(column: Any) -> Any:
    r"""The inverse of ``escaped``; raises ValueError for text that is no JSON string.

    >>> unescaped(strings(["plain", 'quo\\"te'])).to_pylist()
    ['plain', 'quo"te']
    """
    rows = _rows_with(column, lambda b: b == _BACKSLASH)
    if not len(rows):
        return column
    values = column.take(integers(rows)).to_pylist()
    return replaced(column, rows, [json.loads(f'"{value}"') for value in values])


def _rows_with(column: Any, test: Any) -> NDArray[np.int64]:
    """The rows in which a byte passes the test."""
    bounds = offsets(column)
    found = np.flatnonzero(test(data(column)[bounds[0] : bounds[-1]])) + bounds[0]
    return np.unique(np.searchsorted(bounds, found, side="right") - 1).astype(np.int64)


def cut(block: bytes, starts: NDArray[Any], ends: NDArray[Any]) -> Any:
    """The values between byte positions of a block, as a string array.

    Raises ValueError when the positions don't rise within the block (Arrow would trust them and
    read anywhere) or a value is not UTF-8.
    """
    bounds = np.empty(2 * len(starts), np.int64)
    bounds[0::2], bounds[1::2] = starts, ends
    if not len(bounds):
        return strings([])
    if bounds[0] < 0 or bounds[-1] > min(len(block), _MOST) or (np.diff(bounds) < 0).any():
        raise ValueError("positions out of order")
    every_other = integers(np.arange(0, len(bounds) - 1, 2))
    column = _string_array(bounds.astype(np.int32), pa.py_buffer(block)).take(every_other)
    column.validate(full=True)
    return column


def quotes(block: bytes) -> NDArray[np.int64]:
    """The positions of the quotes that delimit strings, escaped ones left out."""
    bytes_ = np.frombuffer(block, np.uint8)
    found = np.flatnonzero(bytes_ == _QUOTE)
    if b"\\" not in block:
        return found
    slashes = np.flatnonzero(bytes_ == _BACKSLASH)
    is_first = np.diff(slashes, prepend=-2) != 1
    first_of_run = np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
    escaping = slashes[(slashes - slashes[first_of_run]) % 2 == 0]
    return found[~np.isin(found, escaping + 1)]


def is_increasing(groups: NDArray[Any], column: Any) -> bool:
    """Whether (group, value) rises strictly from row to row: sorted, and nothing twice."""
    steps = np.diff(groups)
    if (steps < 0).any():
        return False
    same = integers(np.flatnonzero(steps == 0))
    before, after = column[:-1].take(same), column[1:].take(same)
    return len(same) == 0 or bool(pc.min(pc.less(before, after)).as_py())


def _string_array(ends: NDArray[np.int32], values: Any) -> Any:
    return pa.StringArray.from_buffers(len(ends) - 1, pa.py_buffer(ends), values)


def are_file_names(column: Any) -> bool:
    """Whether every value is the name of a file in its folder: no separator, no NUL, no ``..``."""
    bounds = offsets(column)
    text = data(column)[bounds[0] : bounds[-1]]
    if ((text == _SLASH) | (text == _BACKSLASH) | (text == 0)).any():
        return False
    short = np.flatnonzero(np.diff(bounds) <= len(".."))
    return not {"", ".", ".."} & set(column.take(integers(short)).to_pylist())
