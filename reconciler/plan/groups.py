"""Groups of file slices as canonical JSON text and back, as columns, never an object a slice.

Reading relies on what canonical bytes promise: a string before a colon is a key, and every other
string belongs to the key before it. ``document.load`` writes what it read and compares bytes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler import canonical
from reconciler.hudi import arrow
from reconciler.plan import columns
from reconciler.plan.model import Rewrites

_CHUNK_ROWS = 1 << 15
_COLON = 0x3A
#: the keys of a group and of a slice by what tells them apart: the first letter and the third
_BECAUSE, _BYTES, _PARTITION = b"bc", b"bt", b"pr"
_BASE, _FILE_ID, _LOGS = b"bs", b"fl", b"lg"


# --- writing -------------------------------------------------------------------------------------


def groups_text(groups: Rewrites | None) -> Iterator[bytes | memoryview]:
    """What stands between the brackets of ``groups``."""
    if groups is None:
        return
    starts = groups.starts.tolist()
    text = _Slices(groups)
    heads = zip(
        groups.because.to_pylist(),
        groups.bytes.tolist(),
        groups.outputs.tolist(),
        groups.partition.to_pylist(),
        strict=True,
    )
    for number, (because, size, outputs, partition) in enumerate(heads):
        head = {"because": because, "bytes": size, "outputs": outputs, "partition": partition}
        yield b"," * (number > 0) + canonical.dumps(head)[:-1] + b',"slices":['
        yield from text.rows(starts[number], starts[number + 1])
        yield b"]}"


class _Slices:
    """The text of slices, cut front to back out of chunks."""

    def __init__(self, groups: Rewrites) -> None:
        self._groups = groups
        self._first, self._bounds = 0, np.zeros(1, np.int32)
        self._text = memoryview(b"")

    def rows(self, start: int, end: int) -> Iterator[memoryview]:
        """The slices from start to end, without the first comma."""
        skip = 1
        while start < end:
            have = self._first + len(self._bounds) - 1
            if start >= have:
                text = _slices_text(self._groups, slice(have, have + _CHUNK_ROWS))
                self._first, self._bounds = have, arrow.bounds(text)
                self._text = memoryview(text.buffers()[2])
                continue
            stop = min(end, have)
            a, b = self._bounds[start - self._first], self._bounds[stop - self._first]
            yield self._text[a + skip : b]
            start, skip = stop, 0


def _slices_text(groups: Rewrites, rows: slice) -> Any:
    """A string a slice, comma first."""
    return pc.binary_join_element_wise(
        _word(',{"base":'),
        pc.fill_null(_quoted(groups.base[rows]), "null"),
        _word(',"fileId":'),
        _quoted(groups.file_id[rows]),
        _word(',"logs":['),
        _joined(groups.logs[rows]),
        _word("]}"),
        _EMPTY,
    )


def _joined(lists: Any) -> Any:
    """The strings of every list, quoted and with commas between."""
    values = lists.flatten()
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(_lengths(lists))])
    offsets = arrow.integers(ends.astype(np.int32))
    return pc.binary_join(pa.ListArray.from_arrays(offsets, _quoted(values)), ",")


def _quoted(column: Any) -> Any:
    """The values with quotes around them; a null stays one."""
    known = pc.fill_null(column, "")
    text = pc.binary_join_element_wise(_QUOTE, columns.escaped(known), _QUOTE, _EMPTY)
    return pc.if_else(pc.is_valid(column), text, _NULL) if column.null_count else text


def _lengths(lists: Any) -> NDArray[np.int64]:
    return arrow.numbers(pc.list_value_length(lists).cast(pa.int64()))


def _word(text: str) -> Any:
    return arrow.strings([text])[0]


_EMPTY, _QUOTE = _word(""), _word('"')
_NULL = pa.nulls(1, pa.string())[0]  # pa.scalar imports pandas, which takes longer than a plan


# --- reading -------------------------------------------------------------------------------------


def read_groups(document: bytes, start: int, end: int) -> Rewrites:
    """The inverse of ``groups_text`` for the bytes from start to end.

    Raises ValueError, IndexError or an Arrow error when the bytes aren't canonical.
    """
    found = _Strings(document[start:end])
    first = found.keys(_BECAUSE)
    slices, bases = found.keys(_FILE_ID), found.keys(_BASE)
    has_base = ~found.is_key[bases + 1]
    places = np.cumsum(has_base) - 1
    places[~has_base] = -1
    logs = found.values_of(_LOGS)
    ends = np.searchsorted(logs, np.append(found.keys(_LOGS), len(found.is_key)))
    return Rewrites(
        partition=found.values(found.keys(_PARTITION) + 1).dictionary_encode(),
        outputs=found.numbers(found.keys(_BYTES) + 1),
        bytes=found.numbers(found.keys(_BYTES)),
        because=found.values(first + 1).dictionary_encode(),
        starts=np.searchsorted(slices, np.append(first, len(found.is_key))),
        file_id=found.values(slices + 1),
        base=found.values(bases[has_base] + 1).take(_nullable(places)),
        logs=pa.ListArray.from_arrays(arrow.integers(ends.astype(np.int32)), found.values(logs)),
    )


class _Strings:
    """The strings of a block in order, keys and values. ``is_key``: one a string."""

    def __init__(self, block: bytes) -> None:
        at = columns.quotes(block).reshape(-1, 2)
        text = np.frombuffer(block, np.uint8)
        self._block, self._opens, self._closes = block, at[:, 0], at[:, 1]
        self.is_key = text[self._closes + 1] == _COLON
        self._name = np.stack([text[self._opens + 1], text[self._opens + 3]], axis=1)

    def keys(self, name: bytes) -> NDArray[np.int64]:
        """The places of a key among the strings."""
        return np.flatnonzero(self.is_key & self._is(name))

    def values_of(self, name: bytes) -> NDArray[np.int64]:
        """The places of the values that belong to a key."""
        places = np.arange(len(self.is_key))
        key = np.maximum.accumulate(np.where(self.is_key, places, 0))
        return np.flatnonzero(~self.is_key & self._is(name)[key])

    def values(self, places: NDArray[np.int64]) -> Any:
        """Strings of the block."""
        opens, closes = self._opens[places], self._closes[places]
        return columns.unescaped(columns.cut(self._block, opens + 1, closes))

    def numbers(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers between keys and the next ones."""
        text = columns.cut(self._block, self._closes[places] + 2, self._opens[places + 1] - 1)
        return np.array(arrow.numbers(text.cast(pa.int64())), np.int64)

    def _is(self, name: bytes) -> NDArray[np.bool_]:
        is_it: NDArray[np.bool_] = (self._name == np.frombuffer(name, np.uint8)).all(axis=1)
        return is_it


def none() -> Rewrites:
    """No group."""
    return Rewrites(
        partition=columns.dictionary(np.empty(0, np.int32), []),
        outputs=np.empty(0, np.int64),
        bytes=np.empty(0, np.int64),
        because=columns.dictionary(np.empty(0, np.int32), []),
        starts=np.zeros(1, np.int64),
        file_id=arrow.strings([]),
        base=arrow.strings([]),
        logs=pa.array([], pa.list_(pa.string())),
    )


def from_values(groups: Iterable[Any]) -> Rewrites | None:
    """The columns of plain JSON groups that ``shape.check`` let pass; None for none."""
    found = list(groups)
    if not found:
        return None
    slices = [each for group in found for each in group["slices"]]
    logs = [each["logs"] for each in slices]
    ends = np.cumsum([0, *map(len, logs)], dtype=np.int32)
    names = arrow.strings(list(itertools.chain.from_iterable(logs)))
    return Rewrites(
        partition=_encoded([group["partition"] for group in found]),
        outputs=np.array([group["outputs"] for group in found], np.int64),
        bytes=np.array([group["bytes"] for group in found], np.int64),
        because=_encoded([group["because"] for group in found]),
        starts=np.cumsum([0, *(len(group["slices"]) for group in found)], dtype=np.int64),
        file_id=arrow.strings([each["fileId"] for each in slices]),
        base=pa.array([each["base"] for each in slices], pa.string()),
        logs=pa.ListArray.from_arrays(arrow.integers(ends), names),
    )


def _encoded(values: list[str]) -> Any:
    return arrow.strings(values).dictionary_encode()


def _nullable(places: NDArray[np.int64]) -> Any:
    """Places as Arrow integers, null where there is none."""
    known = arrow.booleans(places >= 0).buffers()[1]
    return pa.Array.from_buffers(pa.int64(), len(places), [known, pa.py_buffer(places)])


# --- what is said about a group ------------------------------------------------------------------


def owners(groups: Rewrites) -> NDArray[np.int64]:
    """The group of every slice.

    >>> owners(from_values([{"partition": "", "outputs": 1, "bytes": 1, "because": "", "slices": [
    ...     {"fileId": "f", "base": None, "logs": []}]}]))
    array([0])
    """
    return np.repeat(np.arange(len(groups)), np.diff(groups.starts))


def paths(groups: Rewrites) -> Any:
    """Partition and file id of every slice, as pyarrow strings with a slash between."""
    folders = groups.partition.take(arrow.integers(owners(groups)))
    folders = folders.dictionary.take(folders.indices)
    return pc.binary_join_element_wise(folders, groups.file_id, _word("/"))
