"""Find instants as of which a table can be read, before and after a plan, and for reads; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Integers, Mask, sort_unique
from reconciler.hudi.files.table_files import FileKind, TableFiles, build_files
from reconciler.hudi.files.view import (
    LOGS_BY_COMPLETION,
    FileView,
    assign_by_completion,
    find_group_codes,
)
from reconciler.state.model import TableState


def find_earliest_readable(state: TableState, is_removed: Mask) -> tuple[str | None, str | None]:
    """Return the first completed write that is readable, before and after the removal.

    ``is_removed``: per row of the state's files. Reads from the time of a slice until that of the
    next slice of its group, or the group's replacement, need the slice. Earlier removals are known
    from the completed cleans of the active timeline.
    """
    counts = _count_missing_slices(state, is_removed)
    if counts is None:
        return None, None
    writes, before, after = counts
    return _first_uncovered(writes, before), _first_uncovered(writes, after)


def find_readable_writes(
    state: TableState, is_removed: Mask | None = None
) -> tuple[tuple[str, ...], Mask]:
    """Return the completed writes, oldest first, and whether the table is readable as of each.

    ``is_removed``: files that are removed before. The rule is that of ``find_earliest_readable``.
    With savepoints, readable writes can precede unreadable ones.
    """
    nothing = np.zeros(len(state.files), np.bool_)
    counts = _count_missing_slices(state, nothing if is_removed is None else is_removed)
    if counts is None:
        return (), np.zeros(0, np.bool_)
    writes, _now, after = counts
    return tuple(writes), after == 0


def _first_uncovered(writes: list[str], covered: Integers) -> str | None:
    """Return the first write without missing slices."""
    free = np.flatnonzero(covered == 0)
    return writes[free[0]] if len(free) else None


def _count_missing_slices(
    state: TableState, is_removed: Mask
) -> tuple[list[str], Integers, Integers] | None:
    """Return the completed writes and how many slices a read as of each misses.

    The counts are for before and after the removal. None for a table without writes.
    """
    writes, view = sorted({i.requested for i in state.timeline.commits}), state.view
    if not writes:
        return None
    removed_files = build_files(_list_removed_files(state), _base_extension(state.properties))
    times = tuple(
        sorted({*view.times, *removed_files.instants, *_list_completions(state, removed_files)})
    )
    place = {time: code for code, time in enumerate(times)}
    width = len(times) + 1
    recode = np.array([place[time] for time in view.times], np.int64)
    visible = np.flatnonzero(view.is_visible & ~view.is_phantom)
    existing = view.group[visible].astype(np.int64) * width + recode[view.key[visible]]
    group, until = _match_groups(state, view, removed_files, place)
    past = _find_past_slices(state, removed_files, group, existing, place)
    going = np.zeros(len(view), np.bool_)
    going[view.row_slice[is_removed]] = True
    now = existing[going[visible]]

    slices = sort_unique(np.concatenate([existing, past]))
    ends = np.minimum(_find_next_keys(slices, width), until[slices // width])
    at = np.array([place[time] for time in writes], np.int64)
    before = _count_coverage(slices, ends, np.isin(slices, past), at, width)
    after = _count_coverage(slices, ends, np.isin(slices, np.concatenate([past, now])), at, width)
    return writes, before, after


def _list_removed_files(state: TableState) -> Iterator[tuple[str, list[str], list[int]]]:
    """Yield the files that completed cleans removed, by partition.

    A clean with an empty record removed those of its planned files that no longer exist.
    """
    removed = [
        clean.removed or find_missing_names(state.files, clean.planned) for clean in state.cleans
    ]
    for path in dict.fromkeys(chain.from_iterable(removed)):
        names = list(chain.from_iterable(folders.get(path, ()) for folders in removed))
        yield path, names, [0] * len(names)


def find_missing_names(
    files: TableFiles, planned: Mapping[str, Sequence[str]]
) -> dict[str, tuple[str, ...]]:
    """Return the names of each partition that no file has."""
    codes = {path: code for code, path in enumerate(files.partitions)}
    missing = {}
    for path, names in planned.items():
        code = codes.get(path, len(files.partitions))
        low, high = np.searchsorted(files.partition, [code, code + 1]).tolist()
        wanted = pa.array(names, pa.string())
        is_there = pc.is_in(wanted, value_set=files.name.slice(low, high - low))
        missing[path] = tuple(wanted.filter(pc.invert(is_there)).to_pylist())
    return missing


def _base_extension(properties: Mapping[str, str]) -> str:
    return "." + properties.get("hoodie.table.base.file.format", "PARQUET").lower()


def _list_completions(state: TableState, removed_files: TableFiles) -> Iterator[str]:
    return (state.completions[i] for i in removed_files.instants if i in state.completions)


def _match_groups(
    state: TableState, view: FileView, removed_files: TableFiles, place: Mapping[str, int]
) -> tuple[Integers, Integers]:
    """Return the code of each group of ``removed_files`` and the end of each code.

    New groups get codes after those of the view. A group without newer slices whose replacement is
    not on the active timeline was replaced before it.
    """
    paths = (removed_files.partitions[code] for code in removed_files.group_partition)
    pairs = list(zip(paths, removed_files.group_id.to_pylist(), strict=True))
    known = find_group_codes(view.files, pairs).astype(np.int64)
    count = len(view.files.group_partition)
    new = np.flatnonzero(known < 0)
    codes = known.copy()
    codes[new] = count + np.arange(len(new))
    until = np.full(count + len(new), len(place), np.int64)
    replaced = view.replaced < view.never_code
    until[:count][replaced] = np.array(
        [place[view.times[code]] for code in view.replaced[replaced]], np.int64
    )
    start = place.get(state.timeline.start or "", 0)
    for row in new.tolist():
        when = state.replaced.get(pairs[row])
        until[codes[row]] = start if when is None else place.get(when, start)
    return codes, until


def _find_past_slices(
    state: TableState,
    removed_files: TableFiles,
    group: Integers,
    existing: Integers,
    place: Mapping[str, int],
) -> Integers:
    """Return the slices that earlier cleans removed, without those of rolled-back writes."""
    if not len(removed_files):
        return np.zeros(0, np.int64)
    width = len(place) + 1
    stamp = np.array([place[time] for time in removed_files.instants], np.int64)
    keys = group[removed_files.group] * width + stamp[removed_files.instant]
    is_log = removed_files.kind != FileKind.BASE
    if state.table_version >= LOGS_BY_COMPLETION and is_log.any():
        end = np.array(
            [place[state.completions.get(i, i)] for i in removed_files.instants], np.int32
        )
        keyed = sort_unique(np.concatenate([existing, keys[~is_log]]))
        keys[is_log] = assign_by_completion(
            keyed, keys[is_log], end[removed_files.instant][is_log], width
        )
    start = state.timeline.start or ""
    done = {i.requested for i in state.timeline.commits}
    is_done = np.array([time < start or time in done for time in place], np.bool_)
    return sort_unique(keys[is_done[keys % width]])


def _find_next_keys(slices: Integers, width: int) -> Integers:
    """Return per slice the key of the next slice of its group; the last key for the newest."""
    keys = np.full(len(slices), width - 1, np.int64)
    if len(slices) > 1:
        same = slices[1:] // width == slices[:-1] // width
        keys[:-1][same] = slices[1:][same] % width
    return keys


def _count_coverage(
    slices: Integers,
    ends: Integers,
    is_gone: Mask,
    at: Integers,
    width: int,
) -> Integers:
    """Return per time of ``at`` how many missing slices its reads need."""
    first = np.searchsorted(at, slices[is_gone] % width)
    last = np.maximum(np.searchsorted(at, ends[is_gone]), first)
    covered = np.zeros(len(at) + 1, np.int64)
    np.add.at(covered, first, 1)
    np.add.at(covered, last, -1)
    return np.cumsum(covered)[: len(at)]
