"""A few row groups of the files that a clustering rewrites, read with pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler import parallel
from reconciler.foresight.reading import Opened, Reading, Wanted, evenly
from reconciler.foresight.whole_rows import read_whole_rows
from reconciler.hudi.files import Files
from reconciler.state.foresight import Sample, ToSample
from reconciler.storage.api import Storage

#: row groups that are read at most, and rows of them that are kept
MOST_GROUPS: Final = 64
MOST_ROWS: Final = 1_000_000
#: files at once: reading waits for the store
_AT_ONCE: Final = 4


def read_sample(  # noqa: PLR0913
    storage: Storage,
    files: Files,
    groups: Sequence[ToSample],
    columns: Sequence[str],
    schema: Any,
    *,
    most: int = MOST_GROUPS,
    rows: int = MOST_ROWS,
    whole: int = 0,
) -> Sample:
    """Rows of base files that are rewritten together, always the same ones of the same files.

    ``groups``: of each some files are looked into, as many as its bytes are worth and spread over
    these, and of the files some row groups, spread over their rows. ``columns``: names with dots;
    ``schema``: the table's columns. ``most``: row groups; ``rows``: how many of their rows are
    kept, the same share of each, beside those that the rewrite will fit its layout to; ``whole``:
    how many are read in all columns. A file that cannot be read is left out; if it is damaged that
    is said. Memory: the kept rows, and the chunks of the columns in the row groups that are read.
    """
    reading = Reading(storage, files, tuple(columns), schema)
    chosen = _chosen(reading, groups, most)
    there = sum(int(one.sizes.sum()) for one in chosen)
    share = min(1.0, rows / max(there, 1))
    read = parallel.each(lambda one: reading.rows(one, share), chosen, at_once=_AT_ONCE)
    found = sorted(
        ((one, table) for one, table in zip(chosen, read, strict=True) if table is not None),
        key=lambda pair: pair[0].row,
    )
    rows_of = np.array([one.row for one, _ in found], np.int64)
    times = [one.places(share)[1] for one, _ in found]
    return Sample(
        rows=pa.concat_tables([table for _, table in found]) if found else reading.nothing(),
        file=np.repeat(rows_of, [len(table) for _, table in found]),
        fitted=np.concatenate([np.zeros(0, np.int8), *times]),
        files=rows_of,
        total=np.array([one.total for one, _ in found], np.int64),
        is_whole=np.array([one.is_whole for one, _ in found], np.bool_),
        groups=sum(len(one.groups) for one, _ in found),
        of=sum(one.of for one, _ in found),
        shares=_shares([one for one, _ in found], columns),
        whole=read_whole_rows(reading, [one for one, _ in found], most=whole) if whole else None,
        damaged=dict(sorted(reading.damaged.items())),
    )


def _shares(files: Sequence[Opened], columns: Sequence[str]) -> dict[str, float]:
    """What columns take of the bytes of row groups."""
    sums, total = dict.fromkeys(columns, 0), 0
    for one in files:
        for group in map(one.file.metadata.row_group, one.groups):
            for chunk in map(group.column, range(group.num_columns)):
                total += chunk.total_compressed_size
                if chunk.path_in_schema in sums:
                    sums[chunk.path_in_schema] += chunk.total_compressed_size
    return {name: size / max(total, 1) for name, size in sums.items()}


def _chosen(reading: Reading, groups: Sequence[ToSample], most: int) -> list[Opened]:
    """The files that are looked into, with the row groups that are read of them.

    Groups get row groups by their bytes, one at least; what one has not goes to those after it.
    """
    if len(groups) > most:
        groups = [groups[at] for at in evenly(len(groups), most)]
    sizes = [float(reading.files.size[group.files].sum()) for group in groups]
    wanted = _wanted(reading.files, groups, _shared(sizes, most))
    opened = [one for one in parallel.each(reading.open, wanted, at_once=_AT_ONCE) if one]
    of: list[list[Opened]] = [[] for _ in groups]
    for one in opened:
        of[one.wanted.group].append(one)
    there = [sum(one.of for one in files) for files in of]
    found = []
    for files, count in zip(of, _shared(sizes, most, there), strict=True):
        found += _by_rows(files, count)
    return sorted(found, key=lambda one: one.row)


def _shared(sizes: Sequence[float], most: int, there: Sequence[int] | None = None) -> list[int]:
    """How many of ``most`` each gets by its size, one at least; no more than are ``there``.

    >>> _shared([1.0, 1.0, 6.0], 8), _shared([1.0, 1.0, 6.0], 8, [9, 9, 2])
    ([1, 1, 6], [3, 3, 2])
    """
    limits = [most] * len(sizes) if there is None else list(there)
    found, left, bytes_left = [0] * len(sizes), most, sum(sizes)
    # those that have least for their size first, so that the others get what these have not
    order = sorted(range(len(sizes)), key=lambda n: (limits[n] / max(sizes[n], 1.0), n))
    for place, number in enumerate(order):
        others = len(order) - place - 1
        share = round(left * sizes[number] / max(bytes_left, 1.0))
        found[number] = min(max(1, min(left - others, share)), limits[number])
        left, bytes_left = left - found[number], bytes_left - sizes[number]
    return found


def _wanted(files: Files, groups: Sequence[ToSample], shares: Sequence[int]) -> list[Wanted]:
    """So many files of each group, spread evenly over its bytes; all where there are no more."""
    found = []
    for number, (group, share) in enumerate(zip(groups, shares, strict=True)):
        for at in _spread_over(files.size[group.files], share).tolist():
            row, fitted = int(group.files[at]), int(group.fitted[at])
            found.append(Wanted(row, number, fitted, at))
    return sorted(found, key=lambda one: one.row)


def _spread_over(sizes: NDArray[np.int64], wanted: int) -> NDArray[np.int64]:
    """So many places, ascending: those that are hit by marks evenly over the sizes.

    Where several hit one, the largest of the others make up for it.

    >>> _spread_over(np.array([1, 1, 8, 1, 1]), 3).tolist()
    [0, 2, 3]
    """
    if wanted >= len(sizes):
        return np.arange(len(sizes))
    ends = np.cumsum(np.maximum(sizes, 1))
    marks = (np.arange(wanted) + 0.5) * (ends[-1] / wanted)
    hits = np.bincount(np.searchsorted(ends, marks, side="right"), minlength=len(sizes)) > 0
    rest = np.flatnonzero(~hits)
    more = rest[np.argsort(-sizes[rest], kind="stable")][: wanted - int(hits.sum())]
    found: NDArray[np.int64] = np.sort(np.concatenate([np.flatnonzero(hits), more]))
    return found


def _by_rows(files: Sequence[Opened], count: int) -> list[Opened]:
    """So many row groups of the files, spread over their rows; files of none are left out."""
    if not files:
        return []
    sizes = np.concatenate([one.sizes for one in files])
    owner = np.repeat(np.arange(len(files)), [one.of for one in files])
    first = np.cumsum([0, *(one.of for one in files)])[:-1]
    places = _spread_over(sizes, count)
    found = []
    for nth, one in enumerate(files):
        here = places[owner[places] == nth] - first[nth]
        if len(here) or not one.of:
            found.append(replace(one, groups=here.tolist(), sizes=one.sizes[here]))
    return found
