"""File slices as columns: Hudi's file-system view over all partitions at once.

A base file or a compaction starts a slice; its log files belong to it. The write timeline
(completed writes and pending compactions) decides what a reader or cleaner may see. Source:
HoodieFileGroup, AbstractTableFileSystemView.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow.compute as pc

from reconciler.arrays import (
    Codes,
    Integers,
    Mask,
    find_run_ends,
    sort_unique,
    to_arrow,
    to_numpy,
)
from reconciler.hudi.files.table_files import FileKind, TableFiles
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.instant import WRITES, Action
from reconciler.lazy_dataclass import dataclass

#: the first table version whose log names carry the deltacommit's instant, not the base's
LOGS_BY_COMPLETION = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FileView:
    """Slices sorted by (group, key); arrays have one element per slice unless said otherwise.

    ``times``: every instant the view compares, sorted, so that codes compare as instants.

    ``group``: int32, index into the groups of ``files``. ``key``: int32, index into ``times``.

    ``is_visible``: a completed write made the slice, or a pending compaction will.

    ``is_phantom``: a pending compaction will fill the slice.

    ``newer``: int32 into ``times``, key of the next newer visible slice of the group; len(times) if
    there is none. ``rank``: int32, number of newer visible slices in the group.

    ``file_counts``: int64, number of files.

    ``row_slice``: int32 per row of ``files``, the slice of the file.

    ``row_slice_1x``: the same as Hudi 1.x assigns files of version 6; None if it does not differ.

    ``replaced``: int32 per group into ``times``, when it was replaced; len(times) for a live group.
    """

    files: TableFiles
    times: tuple[str, ...]
    group: Codes
    key: Codes
    is_visible: Mask
    is_phantom: Mask
    newer: Codes
    rank: Codes
    file_counts: Integers
    row_slice: Codes
    row_slice_1x: Codes | None
    replaced: Codes

    def __len__(self) -> int:
        return len(self.key)

    @property
    def never_code(self) -> int:
        """The code after every time."""
        return len(self.times)

    def time_code(self, time: str) -> int:
        """Return the number of known times before ``time``; ``x < code`` means that x is older."""
        return bisect_left(self.times, time)

    @property
    def is_live(self) -> Mask:
        """Per slice: its group is not replaced."""
        is_live = self.replaced == self.never_code
        if is_live.all():  # as in most tables
            return np.ones(len(self), np.bool_)
        live: Mask = is_live[self.group]
        return live

    @property
    def is_current(self) -> Mask:
        """Per slice: readers see it now, as the newest of a live group or before a phantom."""
        is_newest = self.is_visible & (self.rank == 0)
        waits = np.zeros(len(self.replaced), np.bool_)
        waits[self.group[is_newest & self.is_phantom]] = True
        is_previous = self.is_visible & (self.rank == 1) & waits[self.group]
        current: Mask = (is_newest | is_previous) & self.is_live
        return current

    @property
    def is_newest(self) -> Mask:
        """Per slice: the newest visible one of its group, or the newest visible one with files."""
        has_files = self.is_visible & (self.file_counts > 0)
        is_last_with_files = np.zeros(len(self), np.bool_)
        rows = np.flatnonzero(has_files)
        is_last_with_files[rows[np.append(np.diff(self.group[rows]) != 0, True)[: len(rows)]]] = (
            True
        )
        newest: Mask = is_last_with_files | (self.is_visible & (self.rank == 0))
        return newest


def build_view(
    files: TableFiles,
    timeline: Timeline,
    *,
    table_version: int,
    completions: Mapping[str, str],
    compactions: Mapping[tuple[str, str], str],
    replaced: Mapping[tuple[str, str], str],
) -> FileView:
    """Build the slices of every group.

    ``completions``: requested -> completion time. In version 6 they are those that Hudi 1.x
    derives, for ``row_slice_1x``, or empty. ``compactions``: (partition, file id) -> instant of the
    pending compaction. ``replaced``: (partition, file id) -> replacing instant.
    """
    times = _collect_times(files, timeline, completions, (compactions, replaced))
    time_codes = {time: code for code, time in enumerate(times)}
    # a slice is encoded as one number, group * width + code of its start, so that slices sort
    width = len(times) + 1
    name_times = _codes((time_codes[i] for i in files.instants), len(files.instants))[files.instant]
    named = files.group.astype(np.int64) * width + name_times
    completed = _completion_codes(files, timeline, completions, time_codes)[files.instant]
    groups, keys = _encode_pairs(files, compactions, time_codes)
    phantoms = sort_unique(groups.astype(np.int64) * width + keys)
    by_name = table_version < LOGS_BY_COMPLETION
    if by_name and not completions:
        slices, slices_1x = named, named
    else:
        slices, slices_1x = _assign_slices(
            files, named, completed, phantoms, width, by_name=by_name
        )
    all_slices = sort_unique(np.concatenate([slices, phantoms]))
    group, key = (all_slices // width).astype(np.int32), (all_slices % width).astype(np.int32)
    is_visible = _find_visible(timeline, time_codes)[key]
    newer, rank = _find_newer(group, key, is_visible, len(times))
    row_slice = _find_places(all_slices, slices)
    row_slice_1x = row_slice if slices_1x is slices else _find_places(all_slices, slices_1x)
    return FileView(
        files=files,
        times=times,
        group=group,
        key=key,
        is_visible=is_visible,
        is_phantom=np.isin(all_slices, phantoms),
        newer=newer,
        rank=rank,
        file_counts=np.bincount(row_slice, minlength=len(all_slices)),
        row_slice=row_slice,
        row_slice_1x=None if np.array_equal(row_slice_1x, row_slice) else row_slice_1x,
        replaced=_replaced_codes(files, replaced, time_codes),
    )


def _find_places(all_slices: Integers, slices: Integers) -> Codes:
    """Return the place of each slice among all, which are sorted and distinct."""
    if np.array_equal(all_slices, slices):  # one file a slice
        return np.arange(len(slices), dtype=np.int32)
    return np.searchsorted(all_slices, slices).astype(np.int32)


def _assign_slices(
    files: TableFiles,
    named: Integers,
    completed: Codes,
    phantoms: Integers,
    width: int,
    *,
    by_name: bool,
) -> tuple[Integers, Integers]:
    """Return the slice of each row by the table's rule and by Hudi 1.x's rule for version 6."""
    is_base = files.kind == FileKind.BASE
    if is_base.all():
        return named, named
    starts = sort_unique(np.concatenate([named if by_name else named[is_base], phantoms]))
    slices = named.copy()
    slices[~is_base] = assign_by_completion(starts, named[~is_base], completed[~is_base], width)
    return (named if by_name else slices), slices


def _encode_pairs(
    files: TableFiles, pairs: Mapping[tuple[str, str], str], time_codes: Mapping[str, int]
) -> tuple[Codes, Codes]:
    """Return group and time codes of a mapping by (partition, file id), of groups with files."""
    groups = find_group_codes(files, pairs)
    has_files = np.flatnonzero(groups >= 0)
    return groups[has_files], _codes((time_codes[time] for time in pairs.values()), len(pairs))[
        has_files
    ]


def find_group_codes(files: TableFiles, pairs: Iterable[tuple[str, str]]) -> Codes:
    """Return the group of each (partition, file id), -1 if the table has no file of it."""
    wanted = list(pairs)
    if not wanted:
        return np.zeros(0, np.int32)
    if not len(files.group_partition):
        return np.full(len(wanted), -1, np.int32)
    partitions = {path: code for code, path in enumerate(files.partitions)}
    in_partition = np.array([partitions.get(path, -1) for path, _ in wanted], np.int64)
    encoded = files.group_id.dictionary_encode()
    id_codes = pc.index_in(to_arrow([file_id for _, file_id in wanted]), encoded.dictionary)
    wanted_ids = np.where(to_numpy(pc.is_valid(id_codes)), to_numpy(id_codes), -1).astype(np.int64)
    width = len(encoded.dictionary)
    group_keys = files.group_partition.astype(np.int64) * width + to_numpy(encoded.indices)
    order = np.argsort(group_keys, kind="stable")
    wanted_keys = in_partition * width + wanted_ids
    position = np.minimum(np.searchsorted(group_keys[order], wanted_keys), len(group_keys) - 1)
    is_match = (
        (group_keys[order][position] == wanted_keys) & (in_partition >= 0) & (wanted_ids >= 0)
    )
    return np.where(is_match, order[position], -1).astype(np.int32)


def _collect_times(
    files: TableFiles,
    timeline: Timeline,
    completions: Mapping[str, str],
    more: Iterable[Mapping[tuple[str, str], str]],
) -> tuple[str, ...]:
    times = {*files.instants, *(i.requested for i in timeline.instants)}
    times |= {completions[i] for i in files.instants if i in completions}
    return tuple(sorted(times.union(*(mapping.values() for mapping in more))))


def _completion_codes(
    files: TableFiles,
    timeline: Timeline,
    completions: Mapping[str, str],
    time_codes: Mapping[str, int],
) -> Codes:
    """Return per instant of ``files`` the code of its completion, -1 while it is pending.

    The completion of an instant before the active timeline is its start, if no other is known.
    """
    start = timeline.start or ""
    codes = (
        time_codes[completions[i]] if i in completions else (time_codes[i] if i < start else -1)
        for i in files.instants
    )
    return _codes(codes, len(files.instants))


def assign_by_completion(
    starts: Integers, named: Integers, completed: Codes, width: int
) -> Integers:
    """Return the slice of each log file: the newest that began before the log completed.

    ``starts``: the existing slices, sorted. ``named``: the slice in each log's name. ``completed``:
    code of the log's completion, -1 while pending; a pending log goes to the newest slice. A log
    without a slice before its completion begins the one in its name; other such logs of its group
    join the oldest of them. Slices are encoded as group * width + code of the start.
    """
    group = named // width
    bound = group * width + np.where(completed >= 0, completed, width - 1)
    position = np.searchsorted(starts, bound, side="right") - 1
    is_match = (
        (position >= 0) & (starts[position] // width == group)
        if len(starts)
        else np.zeros(len(named), np.bool_)
    )
    slices = np.where(is_match, starts[position], named) if len(starts) else named.copy()
    early = np.flatnonzero(~is_match)
    if len(early):
        groups, which = np.unique(group[early], return_inverse=True)
        oldest = np.full(len(groups), np.iinfo(np.int64).max)
        np.minimum.at(oldest, which, named[early])
        slices[early] = oldest[which]
    return slices


def _find_visible(timeline: Timeline, time_codes: Mapping[str, int]) -> Mask:
    """Return per time whether a slice of that key is visible (Hudi's isFileSliceCommitted)."""
    visible_times = sorted(
        i.requested
        for i in timeline.instants
        if i.action in WRITES and (i.is_completed or i.action is Action.COMPACTION)
    )
    visible = np.zeros(len(time_codes), np.bool_)
    if visible_times:
        visible[: time_codes[visible_times[0]]] = True
        visible[[time_codes[time] for time in visible_times]] = True
    return visible


def _find_newer(group: Codes, key: Codes, is_visible: Mask, never: int) -> tuple[Codes, Codes]:
    """Return per slice the key of the next newer visible slice, and how many are newer."""
    count = len(group)
    newer = np.full(count, never, np.int32)
    up_to = np.cumsum(is_visible, dtype=np.int64)
    rank: Codes = (up_to[find_run_ends(group)] - up_to).astype(np.int32)
    rows = np.flatnonzero(is_visible)
    has_newer = rank > 0
    newer[has_newer] = key[rows[up_to[has_newer]]]  # the next one, as many are visible up to here
    return newer, rank


def _replaced_codes(
    files: TableFiles, replaced: Mapping[tuple[str, str], str], time_codes: Mapping[str, int]
) -> Codes:
    codes = np.full(len(files.group_partition), len(time_codes), np.int32)
    groups, times = _encode_pairs(files, replaced, time_codes)
    codes[groups] = times
    return codes


def _codes(values: Iterable[int], count: int) -> Codes:
    return np.fromiter(values, np.int32, count)
