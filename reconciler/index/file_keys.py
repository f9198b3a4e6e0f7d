"""Sort, join and look up files of an index by their keys (partition, name, size). No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Codes, Integers, Mask, to_arrow, to_numpy
from reconciler.index.model import PARTITION, UNKNOWN, ColumnStats, FileIndex, FileKeys


def sort_index(index: FileIndex) -> FileIndex:
    """Sort the rows of an index given in any order.

    If a key occurs twice, the last one counts.
    """
    index = replace(index, partition=sort_partitions(index.partition))
    codes, size = to_numpy(index.partition.indices), index.size
    order = _sort_keys(codes, index.name, size)
    if len(order) > 1:
        is_last = np.ones(len(order), np.bool_)
        before, after = order[:-1], order[1:]
        is_last[:-1] = (codes[before] != codes[after]) | (size[before] != size[after])
        is_last[:-1] |= _names_differ(index.name, before, after)
        order = order[is_last]
    if len(order) == len(size) and (order == np.arange(len(order))).all():
        return index
    return take_files(index, order)


def join_indexes(parts: Sequence[FileIndex]) -> FileIndex:
    """Join parts of an index with the same columns; at least one part.

    If a file is in several parts, the last one counts.
    """
    paths = pa.chunked_array([part.partition for part in parts], PARTITION).unify_dictionaries()
    joined = FileIndex(
        partition=pa.concat_arrays(paths.chunks),
        name=pa.concat_arrays([part.name for part in parts]),
        size=np.concatenate([part.size for part in parts]),
        rows=np.concatenate([part.rows for part in parts]),
        columns={
            column: ColumnStats.concat([part.columns[column] for part in parts])
            for column in parts[0].columns
        },
    )
    return sort_index(joined)


def take_files(index: FileIndex, rows: Integers) -> FileIndex:
    """Return some files of an index; ``rows`` must ascend, or the result is not sorted."""
    keys = index.take(rows)
    return FileIndex(
        partition=keys.partition,
        name=keys.name,
        size=keys.size,
        rows=index.rows[rows],
        columns={column: stats.take(rows) for column, stats in index.columns.items()},
    )


def find_rows(index: FileIndex, files: FileKeys) -> Integers:
    """Return the row of each given file in an index, -1 if it is missing.

    Fast if the files are exactly those of the index in its order.
    """
    name, size = files.name, files.size
    if len(size) == len(index) and (size == index.size).all() and name.equals(index.name):
        wanted, kept = sort_partitions(files.partition), index.partition
        if wanted.dictionary.equals(kept.dictionary) and wanted.indices.equals(kept.indices):
            return np.arange(len(size))
    at_row = _find_first(index.name, name)
    is_same = at_row >= 0
    at = at_row[is_same]
    is_same[is_same] = index.size[at] == size[is_same]
    paths = _find_first(index.partition.dictionary, files.partition.dictionary)
    codes = paths[to_numpy(files.partition.indices)[is_same]]
    is_same[is_same] = codes == to_numpy(index.partition.indices)[at_row[is_same]]
    other = np.flatnonzero((at_row >= 0) & ~is_same)  # found by name, but in another partition
    if len(other):
        keys = files.take(other)
        rows = np.flatnonzero(to_numpy(pc.is_in(index.name, value_set=keys.name)))
        again = _find_first(_key_texts(index.take(rows)), _key_texts(keys))
        at_row[other] = np.where(again >= 0, rows[again], UNKNOWN)
    return at_row


def _find_first(among: Any, values: Any) -> Integers:
    """Return the first position of each value, -1 if it is missing."""
    return fill_unknown(pc.index_in(values, value_set=among))


def fill_unknown(counts: Any) -> Integers:
    """Return an integer array with -1 for null; pyarrow's ``fill_null`` would import pandas."""
    return np.where(to_numpy(counts.is_valid()), to_numpy(counts), UNKNOWN).astype(np.int64)


def _key_texts(files: FileKeys) -> Any:
    """Return one unique text per key; names contain no slash, and sizes are digits."""
    digits = to_arrow(np.ascontiguousarray(files.size)).cast(pa.string())
    paths = files.partition.dictionary.take(files.partition.indices)
    return pc.binary_join_element_wise(digits, files.name, paths, "/")


def sort_partitions(partition: Any) -> Any:
    """Return the dictionary array with sorted, distinct paths and without unused ones."""
    codes = to_numpy(partition.indices)
    used = np.zeros(len(partition.dictionary), np.bool_)
    used[codes] = True
    paths: Sequence[str] = partition.dictionary.to_pylist()
    wanted = sorted({path for path, is_used in zip(paths, used.tolist(), strict=True) if is_used})
    if len(wanted) == len(paths) and wanted == list(paths) and partition.type == PARTITION:
        return partition
    place = {path: at for at, path in enumerate(wanted)}
    moved = np.array([place.get(path, 0) for path in paths], np.int32)
    return pa.DictionaryArray.from_arrays(
        to_arrow(moved[codes] if len(codes) else np.zeros(0, np.int32)),
        to_arrow(wanted),
    )


def is_in_order(index: FileIndex) -> bool:
    """Return whether the rows ascend by (partition, name, size) and no key repeats."""
    codes, name, size = to_numpy(index.partition.indices), index.name, index.size
    if len(size) < 2:  # noqa: PLR2004
        return True
    is_same = codes[1:] == codes[:-1]
    rises = to_numpy(pc.less(name[:-1], name[1:]))
    if (codes[1:] < codes[:-1]).any():
        return False
    alike = np.flatnonzero(is_same & ~rises)
    if not len(alike):
        return True
    is_same_name = ~_names_differ(name, alike, alike + 1)
    return bool((is_same_name & (size[alike] < size[alike + 1])).all())


def _sort_keys(codes: Codes, name: Any, size: Integers) -> Integers:
    """Return the rows sorted by (partition, name, size); equal rows keep their order."""
    rows = {
        "partition": to_arrow(codes),
        "name": name,
        "size": to_arrow(size),
        "row": to_arrow(np.arange(len(size))),
    }
    keys = [(key, "ascending") for key in rows]
    return to_numpy(pc.sort_indices(pa.table(rows), sort_keys=keys)).astype(np.int64)


def _names_differ(name: Any, before: Integers, after: Integers) -> Mask:
    differs: Mask = to_numpy(pc.not_equal(name.take(to_arrow(before)), name.take(to_arrow(after))))
    return differs
