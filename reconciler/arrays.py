"""Convert between numpy and Arrow through their buffers.

pyarrow's own conversions import pandas, which takes 150 ms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Codes = NDArray[np.int32]
_Columns = TypeVar("_Columns", bound=Any)


def to_arrow(values: Sequence[str] | NDArray[Any]) -> Any:
    """Return an Arrow array of a numpy array of integers or booleans, or of Python strings.

    Integers share the memory of the numpy array. Raises UnicodeEncodeError for a file name that
    is not valid UTF-8.

    >>> to_arrow(np.array([3, 1])).to_pylist(), to_arrow(np.array([True, False])).to_pylist()
    ([3, 1], [True, False])
    >>> to_arrow(["a", "", "é"]).to_pylist()
    ['a', '', 'é']
    """
    if not isinstance(values, np.ndarray):
        return _encode_strings(values)
    if values.dtype == np.bool_:
        buffer = pa.py_buffer(np.packbits(values, bitorder="little"))
    else:
        buffer = pa.py_buffer(np.ascontiguousarray(values))
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [None, buffer])


def to_nullable(values: NDArray[Any], is_known: NDArray[np.bool_], kind: Any = None) -> Any:
    """Return an Arrow array of numbers or booleans, with null for those that are not known.

    ``kind``: the type of the array, by default that of the numbers; days and times are numbers too.

    >>> to_nullable(np.array([3, 1]), np.array([True, False])).to_pylist()
    [3, None]
    """
    column = to_arrow(values)
    buffers = [to_arrow(is_known).buffers()[1], column.buffers()[1]]
    return pa.Array.from_buffers(kind or column.type, len(values), buffers)


def _encode_strings(values: Sequence[str]) -> Any:
    text = "".join(values)
    data = text.encode()
    is_ascii = len(data) == len(text)
    lengths = map(len, values if is_ascii else map(str.encode, values))
    ends = np.zeros(len(values) + 1, np.int32)
    np.cumsum(np.fromiter(lengths, np.int32, len(values)), out=ends[1:])
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(ends), pa.py_buffer(data))


def to_numpy(column: Any) -> NDArray[Any]:
    """Return the values of an Arrow array of numbers or booleans without nulls.

    Numbers share the memory of the Arrow array.

    >>> to_numpy(to_arrow(np.array([3, 1], np.int32))[1:]).tolist()
    [1]
    >>> to_numpy(to_arrow(np.array([True, False, True]))[1:]).tolist()
    [False, True]
    """
    if not pa.types.is_boolean(column.type):
        return view_values(column, str(column.type))
    if not len(column):
        return np.zeros(0, np.bool_)
    start = column.offset
    count = start + len(column)
    bits = np.frombuffer(column.buffers()[1], np.uint8)
    return np.unpackbits(bits, count=count, bitorder="little")[start:].astype(np.bool_)


def view_values(column: Any, kind: Any, words: int = 1) -> NDArray[Any]:
    """Return the buffer of a column of fixed width as numbers of a numpy type.

    The content of null rows is undefined. ``words``: numbers per value; several give a column each.

    >>> view_values(pa.array([1.5, None, 2.5])[1:], np.float64)[-1:].tolist()
    [2.5]
    """
    whole: NDArray[Any] = np.frombuffer(column.buffers()[1] or b"", kind)
    if words > 1:
        whole = whole.reshape(-1, words)
    return whole[column.offset : column.offset + len(column)]


def sum_by_code(codes: NDArray[Any], values: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return the sum of the values of each code from 0 to ``count``, exact unlike sums of floats.

    >>> sum_by_code(np.array([0, 2, 0]), np.array([1, 2, 3]), 3).tolist()
    [4, 0, 2]
    """
    sums = np.zeros(count, np.int64)
    np.add.at(sums, codes, values)
    return sums


def sort_unique(values: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct values of an array in ascending order.

    ``np.unique`` does the same but hashes, which is slower than sorting and imports ``numpy.ma``.

    >>> sort_unique(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(values)
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def find_distinct(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the distinct integers in ascending order, and the place among them of each value.

    It is ``np.unique`` with its inverse, without sorting values that are sorted or of few kinds.

    >>> [part.tolist() for part in find_distinct(np.array([7, 3, 7]))]
    [[3, 7], [1, 0, 1]]
    >>> [part.tolist() for part in find_distinct(np.array([3, 3, 10**9]))]
    [[3, 1000000000], [0, 0, 1]]
    """
    if not len(values):
        return values, np.zeros(0, np.intp)
    is_first = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=is_first[1:])
    if (values[1:] >= values[:-1]).all():
        return values[is_first], np.cumsum(is_first) - 1
    least, greatest = int(values.min()), int(values.max())
    if greatest - least < len(values):
        is_there = np.zeros(greatest - least + 1, np.bool_)
        places = values - least
        is_there[places] = True
        distinct = (np.flatnonzero(is_there) + least).astype(values.dtype)
        return distinct, (np.cumsum(is_there) - 1)[places]
    distinct, inverse = np.unique(values, return_inverse=True)
    return distinct, inverse


def find_run_ends(codes: NDArray[Any]) -> NDArray[np.int64]:
    """Return for each of sorted codes the place of the last one that is equal.

    >>> find_run_ends(np.array([1, 1, 4])).tolist()
    [1, 1, 2]
    """
    is_last = np.ones(len(codes), np.bool_)
    np.not_equal(codes[1:], codes[:-1], out=is_last[:-1])
    ends = np.flatnonzero(is_last)
    return np.repeat(ends, np.diff(ends, prepend=-1))


def get_value_offsets(column: Any) -> NDArray[np.int32]:
    """Return the offset of each value in a string array's data, and the end of the last one."""
    if not len(column):
        return np.zeros(1, np.int32)
    whole = np.frombuffer(column.buffers()[1], dtype=np.int32)
    return whole[column.offset : column.offset + len(column) + 1]


def encode_distinct(column: Any) -> tuple[NDArray[np.int32], Any]:
    """Return a code per row and the distinct values the codes index, in order of appearance."""
    encoded = column.dictionary_encode()
    return to_numpy(encoded.indices), encoded.dictionary


def encode_sorted_distinct(column: Any) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Return a code per row and the distinct values the codes index, sorted as strings.

    >>> codes, values = encode_sorted_distinct(to_arrow(["b", "a", "b"]))
    >>> codes.tolist(), values
    ([1, 0, 1], ('a', 'b'))
    """
    codes, distinct = encode_distinct(column)
    values = distinct.to_pylist()
    order = sorted(range(len(values)), key=values.__getitem__)
    rank = np.empty(len(values), np.int32)
    rank[order] = np.arange(len(values), dtype=np.int32)
    return rank[codes], tuple(values[code] for code in order)


def take_rows(columns: _Columns, rows: Integers) -> _Columns:
    """Return some rows of a dataclass whose fields are columns, either of numpy or of Arrow.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Sizes:
    ...     name: Any
    ...     size: Integers
    >>> taken = take_rows(Sizes(to_arrow(["a", "b"]), np.array([7, 8])), np.array([1]))
    >>> taken.name.to_pylist(), taken.size.tolist()
    (['b'], [8])
    """
    places = to_arrow(rows)
    by_name = {field.name: getattr(columns, field.name) for field in fields(columns)}
    taken = {
        name: column[rows] if isinstance(column, np.ndarray) else column.take(places)
        for name, column in by_name.items()
    }
    return cast("_Columns", type(columns)(**taken))
