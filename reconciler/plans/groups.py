"""Encode and decode groups of file slices as canonical JSON, in columns, not an object per slice.

Reading relies on the canonical form: a string before a colon is a key, and every other string
belongs to the key before it. ``document.load_plan`` checks the result by writing it again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler import arrays, canonical_json
from reconciler.arrays import Integers, Mask
from reconciler.plans import columns
from reconciler.plans.rewrites import Rewrites

_CHUNK_ROWS = 1 << 15
_COLON = 0x3A
#: the first and third letters of the keys of a group and of a slice, which identify each key
_BECAUSE, _BYTES, _PARTITION = b"bc", b"bt", b"pr"
_BASE, _FILE_ID, _LOGS = b"bs", b"fl", b"lg"


# --- writing -------------------------------------------------------------------------------------


def encode_groups(groups: Rewrites | None) -> Iterator[bytes | memoryview]:
    """Yield the text between the brackets of ``groups``."""
    if groups is None:
        return
    starts = groups.starts.tolist()
    text = _SliceText(groups)
    heads = zip(
        groups.because.to_pylist(),
        groups.bytes.tolist(),
        groups.outputs.tolist(),
        groups.partition.to_pylist(),
        strict=True,
    )
    for number, (because, size, outputs, partition) in enumerate(heads):
        head = {"because": because, "bytes": size, "outputs": outputs, "partition": partition}
        yield b"," * (number > 0) + canonical_json.to_bytes(head)[:-1] + b',"slices":['
        yield from text.cut(starts[number], starts[number + 1])
        yield b"]}"


class _SliceText:
    """Cuts the text of slices out of chunks, from front to back."""

    def __init__(self, groups: Rewrites) -> None:
        self._groups = groups
        self._first, self._bounds = 0, np.zeros(1, np.int32)
        self._text = memoryview(b"")

    def cut(self, start: int, end: int) -> Iterator[memoryview]:
        """Yield the slices from start to end, without the first comma."""
        skip = 1
        while start < end:
            have = self._first + len(self._bounds) - 1
            if start >= have:
                text = _encode_slices(self._groups, slice(have, have + _CHUNK_ROWS))
                self._first, self._bounds = have, arrays.get_value_offsets(text)
                self._text = memoryview(text.buffers()[2])
                continue
            stop = min(end, have)
            a, b = self._bounds[start - self._first], self._bounds[stop - self._first]
            yield self._text[a + skip : b]
            start, skip = stop, 0


def _encode_slices(groups: Rewrites, rows: slice) -> Any:
    """Return one string per slice, with a comma in front."""
    return pc.binary_join_element_wise(
        _scalar(',{"base":'),
        pc.fill_null(_quote(groups.base[rows]), "null"),
        _scalar(',"fileId":'),
        _quote(groups.file_id[rows]),
        _scalar(',"logs":['),
        _join_lists(groups.logs[rows]),
        _scalar("]}"),
        _EMPTY,
    )


def _join_lists(lists: Any) -> Any:
    """Return the quoted strings of each list, joined by commas."""
    values = lists.flatten()
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(_list_lengths(lists))])
    offsets = arrays.to_arrow(ends.astype(np.int32))
    return pc.binary_join(pa.ListArray.from_arrays(offsets, _quote(values)), ",")


def _quote(column: Any) -> Any:
    """Return the values in quotes; nulls stay null."""
    known = pc.fill_null(column, "")
    text = pc.binary_join_element_wise(_QUOTE, columns.escape_json(known), _QUOTE, _EMPTY)
    return pc.if_else(pc.is_valid(column), text, _NULL) if column.null_count else text


def _list_lengths(lists: Any) -> Integers:
    return arrays.to_numpy(pc.list_value_length(lists).cast(pa.int64()))


def _scalar(text: str) -> Any:
    return arrays.to_arrow([text])[0]


_EMPTY, _QUOTE = _scalar(""), _scalar('"')
_NULL = pa.nulls(1, pa.string())[0]  # pa.scalar imports pandas, which takes longer than a plan


# --- reading -------------------------------------------------------------------------------------


def read_groups(document: bytes, start: int, end: int) -> Rewrites:
    """Undo ``encode_groups`` for the bytes from start to end.

    Raises ValueError, IndexError or an Arrow error when the bytes are not canonical.
    """
    strings = _QuotedStrings(document[start:end])
    first = strings.find_keys(_BECAUSE)
    slices, bases = strings.find_keys(_FILE_ID), strings.find_keys(_BASE)
    has_base = ~strings.is_key[bases + 1]
    places = np.cumsum(has_base) - 1
    places[~has_base] = -1
    logs = strings.find_values_of(_LOGS)
    ends = np.searchsorted(logs, np.append(strings.find_keys(_LOGS), len(strings.is_key)))
    return Rewrites(
        partition=strings.take_strings(strings.find_keys(_PARTITION) + 1).dictionary_encode(),
        outputs=strings.take_numbers(strings.find_keys(_BYTES) + 1),
        bytes=strings.take_numbers(strings.find_keys(_BYTES)),
        because=strings.take_strings(first + 1).dictionary_encode(),
        starts=np.searchsorted(slices, np.append(first, len(strings.is_key))),
        file_id=strings.take_strings(slices + 1),
        base=strings.take_strings(bases[has_base] + 1).take(columns.nullable_indices(places)),
        logs=pa.ListArray.from_arrays(
            arrays.to_arrow(ends.astype(np.int32)), strings.take_strings(logs)
        ),
    )


class _QuotedStrings:
    """The strings of a block in order, keys and values. ``is_key``: one flag per string."""

    def __init__(self, block: bytes) -> None:
        at = columns.find_quotes(block).reshape(-1, 2)
        text = np.frombuffer(block, np.uint8)
        self._block, self._opens, self._closes = block, at[:, 0], at[:, 1]
        self.is_key = text[self._closes + 1] == _COLON
        self._name = np.stack([text[self._opens + 1], text[self._opens + 3]], axis=1)

    def find_keys(self, name: bytes) -> Integers:
        """Return the positions of a key among the strings."""
        return np.flatnonzero(self.is_key & self._has_name(name))

    def find_values_of(self, name: bytes) -> Integers:
        """Return the positions of the values that belong to a key."""
        places = np.arange(len(self.is_key))
        key = np.maximum.accumulate(np.where(self.is_key, places, 0))
        return np.flatnonzero(~self.is_key & self._has_name(name)[key])

    def take_strings(self, places: Integers) -> Any:
        """Return the strings at the given positions."""
        opens, closes = self._opens[places], self._closes[places]
        return columns.unescape_json(columns.cut_strings(self._block, opens + 1, closes))

    def take_numbers(self, places: Integers) -> Integers:
        """Return the number after each of the given keys."""
        text = columns.cut_strings(
            self._block, self._closes[places] + 2, self._opens[places + 1] - 1
        )
        return np.array(arrays.to_numpy(text.cast(pa.int64())), np.int64)

    def _has_name(self, name: bytes) -> Mask:
        is_it: Mask = (self._name == np.frombuffer(name, np.uint8)).all(axis=1)
        return is_it


def empty_rewrites() -> Rewrites:
    """Return the columns of no group."""
    return rewrites_from_json(())


def rewrites_from_json(groups: Sequence[Mapping[str, Any]]) -> Rewrites:
    """Return the columns of validated JSON groups."""
    slices = [file_slice for group in groups for file_slice in group["slices"]]
    logs = [file_slice["logs"] for file_slice in slices]
    ends = np.cumsum([0, *map(len, logs)], dtype=np.int32)
    names = arrays.to_arrow(list(itertools.chain.from_iterable(logs)))
    return Rewrites(
        partition=columns.encode_dictionary([group["partition"] for group in groups]),
        outputs=np.array([group["outputs"] for group in groups], np.int64),
        bytes=np.array([group["bytes"] for group in groups], np.int64),
        because=columns.encode_dictionary([group["because"] for group in groups]),
        starts=np.cumsum([0, *(len(group["slices"]) for group in groups)], dtype=np.int64),
        file_id=arrays.to_arrow([file_slice["fileId"] for file_slice in slices]),
        base=pa.array([file_slice["base"] for file_slice in slices], pa.string()),
        logs=pa.ListArray.from_arrays(arrays.to_arrow(ends), names),
    )


# --- slices of groups ----------------------------------------------------------------------------


def group_of_slices(groups: Rewrites) -> Integers:
    """Return the number of the group of every slice.

    >>> slices = [{"fileId": "f", "base": None, "logs": []}]
    >>> group = {"partition": "", "outputs": 1, "bytes": 1, "because": "", "slices": slices}
    >>> group_of_slices(rewrites_from_json([group]))
    array([0])
    """
    return np.repeat(np.arange(len(groups)), np.diff(groups.starts))


def iterate_groups(groups: Rewrites) -> Iterator[tuple[str, slice]]:
    """Yield the partition of every group, and where its slices are.

    >>> slices = [{"fileId": name, "base": None, "logs": []} for name in "fg"]
    >>> group = {"partition": "p", "outputs": 1, "bytes": 1, "because": "", "slices": slices}
    >>> list(iterate_groups(rewrites_from_json([group])))
    [('p', slice(0, 2, None))]
    """
    starts = groups.starts.tolist()
    yield from zip(groups.partition.to_pylist(), map(slice, starts[:-1], starts[1:]), strict=True)


def slice_paths(groups: Rewrites) -> Any:
    """Return ``partition/file id`` of every slice as pyarrow strings."""
    folders = groups.partition.take(arrays.to_arrow(group_of_slices(groups)))
    folders = folders.dictionary.take(folders.indices)
    return pc.binary_join_element_wise(folders, groups.file_id, _scalar("/"))
