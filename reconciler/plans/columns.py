"""Work on the string columns of a plan: distinct values, JSON escapes, order and file names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import Codes, Integers, get_value_offsets, sort_unique, to_arrow, to_numpy

_MAX_INT32 = np.iinfo(np.int32).max
_QUOTE, _BACKSLASH, _SPACE, _SLASH = 0x22, 0x5C, 0x20, 0x2F


def build_dictionary(codes: Codes, values: Sequence[str]) -> Any:
    """Return a pyarrow dictionary<int32, string> array of codes into values.

    >>> build_dictionary(np.array([1, 0], np.int32), ["a", "b"]).to_pylist()
    ['b', 'a']
    """
    return pa.DictionaryArray.from_arrays(to_arrow(codes.astype(np.int32)), to_arrow(values))


def encode_dictionary(values: Sequence[str]) -> Any:
    """Return the values as a pyarrow dictionary<int32, string> array.

    >>> encode_dictionary(["b", "a", "b"]).indices.to_pylist()
    [0, 1, 0]
    """
    return to_arrow(values).dictionary_encode()


def dictionary_codes(column: Any) -> NDArray[Any]:
    """Return the codes of a dictionary array as a numpy view of its memory."""
    return to_numpy(column.indices)


def nullable_indices(indices: Integers) -> Any:
    """Return indices as Arrow integers, with null for -1."""
    is_known = to_arrow(indices >= 0).buffers()[1]
    return pa.Array.from_buffers(pa.int64(), len(indices), [is_known, pa.py_buffer(indices)])


def rank_values(column: Any) -> tuple[list[str], Codes]:
    """Return the sorted distinct values of a dictionary array and the rank of every row.

    >>> rank_values(build_dictionary(np.array([1, 0, 1], np.int32), ["b", "a"]))[1].tolist()
    [0, 1, 0]
    """
    values = column.dictionary.to_pylist()
    if values == sorted(values) and len(set(values)) == len(values):  # as planners make them
        return values, dictionary_codes(column)
    distinct = sorted(set(values))
    place = {value: rank for rank, value in enumerate(distinct)}
    ranks = np.array([place[value] for value in values], np.int32)
    return distinct, ranks[dictionary_codes(column)]


def string_bytes(column: Any) -> NDArray[np.uint8]:
    """Return the bytes that the offsets of a string array point into."""
    return np.frombuffer(column.buffers()[2] or b"", dtype=np.uint8)


def get_text(column: Any) -> memoryview:
    """Return the text of all values of a string array, one after the other."""
    starts = get_value_offsets(column)
    return memoryview(column.buffers()[2] or b"")[int(starts[0]) : int(starts[-1])]


def replace_rows(column: Any, rows: Integers, values: Sequence[str]) -> Any:
    """Return the string array with new values in the given rows (ascending)."""
    is_replaced = np.zeros(len(column), np.bool_)
    is_replaced[rows] = True
    return pc.replace_with_mask(column, to_arrow(is_replaced), to_arrow(values))


def escape_json(column: Any) -> Any:
    r"""Return the values as canonical JSON writes them between the quotes.

    >>> escape_json(to_arrow(["plain", 'quo"te', "\n"])).to_pylist()
    ['plain', 'quo\\"te', '\\n']
    """
    rows = _find_rows(column, lambda b: (b < _SPACE) | (b == _QUOTE) | (b == _BACKSLASH))
    if not len(rows):
        return column
    values = column.take(to_arrow(rows)).to_pylist()
    return replace_rows(
        column, rows, [json.dumps(value, ensure_ascii=False)[1:-1] for value in values]
    )


def unescape_json(column: Any) -> Any:
    r"""Undo ``escape_json``. Raises ValueError for text that is not a JSON string.

    >>> unescape_json(to_arrow(["plain", 'quo\\"te'])).to_pylist()
    ['plain', 'quo"te']
    """
    rows = _find_rows(column, lambda b: b == _BACKSLASH)
    if not len(rows):
        return column
    values = column.take(to_arrow(rows)).to_pylist()
    return replace_rows(column, rows, [json.loads(f'"{value}"') for value in values])


def _find_rows(column: Any, test: Any) -> Integers:
    """Return the rows that contain a byte that passes the test."""
    starts = get_value_offsets(column)
    rows = np.flatnonzero(test(string_bytes(column)[starts[0] : starts[-1]])) + starts[0]
    return sort_unique(np.searchsorted(starts, rows, side="right") - 1).astype(np.int64)


def cut_strings(block: bytes, starts: NDArray[Any], ends: NDArray[Any]) -> Any:
    """Return the strings between byte positions of a block.

    Raises ValueError when the positions do not rise within the block, because Arrow would read
    outside of it, or when a value is not UTF-8.
    """
    positions = np.empty(2 * len(starts), np.int64)
    positions[0::2], positions[1::2] = starts, ends
    if not len(positions):
        return to_arrow([])
    if positions[0] < 0 or positions[-1] > min(len(block), _MAX_INT32):
        raise ValueError("positions outside the block")
    if (np.diff(positions) < 0).any():
        raise ValueError("positions out of order")
    every_other = to_arrow(np.arange(0, len(positions) - 1, 2))
    column = _string_array(positions.astype(np.int32), pa.py_buffer(block)).take(every_other)
    column.validate(full=True)
    return column


def find_quotes(block: bytes) -> Integers:
    """Return the positions of the quotes that delimit strings, without the escaped ones."""
    bytes_ = np.frombuffer(block, np.uint8)
    quotes = np.flatnonzero(bytes_ == _QUOTE)
    if b"\\" not in block:
        return quotes
    slashes = np.flatnonzero(bytes_ == _BACKSLASH)
    is_first = np.diff(slashes, prepend=-2) != 1
    first_of_run = np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
    escaping = slashes[(slashes - slashes[first_of_run]) % 2 == 0]
    return quotes[~np.isin(quotes, escaping + 1)]


def is_increasing(groups: NDArray[Any], column: Any) -> bool:
    """Return whether (group, value) rises from row to row: sorted and without duplicates."""
    steps = np.diff(groups)
    if (steps < 0).any():
        return False
    # all neighbours are compared, since taking those of one group would copy their texts
    rises = to_numpy(pc.less(column[:-1], column[1:]))
    return bool((rises | (steps > 0)).all())


def _string_array(ends: Codes, values: Any) -> Any:
    return pa.StringArray.from_buffers(len(ends) - 1, pa.py_buffer(ends), values)


def are_file_names(column: Any) -> bool:
    """Return whether every value is a plain file name: no separator, no NUL, no ``..``."""
    starts = get_value_offsets(column)
    text = string_bytes(column)[starts[0] : starts[-1]]
    if ((text == _SLASH) | (text == _BACKSLASH) | (text == 0)).any():
        return False
    short = np.flatnonzero(np.diff(starts) <= len(".."))
    return not {"", ".", ".."} & set(column.take(to_arrow(short)).to_pylist())
