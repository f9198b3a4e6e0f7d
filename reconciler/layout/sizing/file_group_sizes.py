"""File groups as whoever assigns rows to files sees them: how big each one's newest slice is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.arrays import to_integer_array
from reconciler.hudi.files.table_files import FileKind
from reconciler.hudi.files.view import FileView, find_group_codes
from reconciler.layout.sizing.record_size import LOG_RATIO


@dataclass(frozen=True, kw_only=True, eq=False)
class FileGroupSizes:
    """One element a file group that has files, replaced ones too, sorted by partition.

    Within a partition groups come as a listing meets them. ``partitions``: paths, sorted.
    ``partition``: int32, index into them. ``hash_file_name``: pyarrow string array without nulls.
    ``base``: int64, bytes of the newest slice's base file, -1 where it has none; ``logs``: int64,
    bytes of its log files; ``log_files``: int64, how many. A slice that a pending compaction is
    going to fill counts with the one before. ``slice_start``: int32, index into ``instants``, which are
    sorted: the instant that began the slice. ``is_live``: bool, readers see it. ``is_compacting``:
    bool, a pending compaction or log compaction is going to rewrite it; ``is_clustering``: bool, a
    pending clustering is.
    """

    partitions: tuple[str, ...]
    partition: NDArray[np.int32]
    file_id: Any
    base: NDArray[np.int64]
    logs: NDArray[np.int64]
    log_files: NDArray[np.int64]
    slice_start: NDArray[np.int32]
    instants: tuple[str, ...]
    is_live: NDArray[np.bool_]
    is_compacting: NDArray[np.bool_]
    is_clustering: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.base)

    @cached_property
    def size(self) -> NDArray[np.int64]:
        """Bytes of each group's newest slice, those of log files as a base file would have them."""
        logs = np.floor(LOG_RATIO * self.logs).astype(np.int64)
        found: NDArray[np.int64] = np.maximum(self.base, 0) + logs
        return found

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {path: code for code, path in enumerate(self.partitions)}

    def partition_range(self, partition: str) -> slice:
        """Where the groups of a partition are; empty where it has none."""
        code = self._codes.get(partition)
        if code is None:
            return slice(0, 0)
        start, end = np.searchsorted(self.partition, [code, code + 1]).tolist()
        return slice(start, end)


def measure_groups(
    view: FileView,
    *,
    compacting: Iterable[tuple[str, str]] = (),
    clustering: Iterable[tuple[str, str]] = (),
) -> FileGroupSizes:
    """The groups of a view, of which (partition, file id) pairs are pending in table services.

    A group that no completed write has a slice of is not live.
    """
    files = view.files
    count = len(files.group_partition)
    read = _visible_slices(view)
    of_slice = np.full(len(view), -1, np.int64)
    of_slice[read] = view.group[read]
    of_file = of_slice[view.row_slice]
    is_base = (files.kind == FileKind.BASE) & (of_file >= 0)
    is_log = (files.kind == FileKind.LOG) & (of_file >= 0)
    base = np.full(count, -1, np.int64)
    base[of_file[is_base]] = files.size[is_base]
    begun = np.zeros(count, np.int32)
    begun[view.group[read[::-1]]] = view.key[read[::-1]]  # of two slices the older one's
    is_live = np.zeros(count, np.bool_)
    is_live[view.group[read]] = True
    order = _listing_order(view)
    return FileGroupSizes(
        partitions=files.partitions,
        partition=files.group_partition[order],
        file_id=files.group_id.take(to_integer_array(order)),
        base=base[order],
        logs=_sum_sizes(of_file[is_log], files.size[is_log], count)[order],
        log_files=np.bincount(of_file[is_log], minlength=count)[order],
        slice_start=begun[order],
        instants=view.times,
        is_live=is_live[order],
        is_compacting=_mark_groups(view, compacting, count)[order],
        is_clustering=_mark_groups(view, clustering, count)[order],
    )


def newest_base_names(view: FileView) -> Any:
    """The name of each group's newest base file, null where it has none.

    A pyarrow string array, in the order of ``measure_groups``.
    """
    files = view.files
    at = np.full(len(files.group_partition), -1, np.int64)
    is_read = np.zeros(len(view), np.bool_)
    is_read[_visible_slices(view)] = True
    rows = np.flatnonzero((files.kind == FileKind.BASE) & is_read[view.row_slice])
    at[view.group[view.row_slice[rows]]] = rows
    at = at[_listing_order(view)]
    return files.name.take(pa.array(at, mask=at < 0))


def _visible_slices(view: FileView) -> NDArray[np.int64]:
    """The slices that a reader of now sees, ascending: the newest of every live group.

    Where a pending compaction is going to fill that one, the slice before as well.
    """
    rows = np.flatnonzero(view.is_visible & view.is_live)
    newest = np.flatnonzero(np.append(np.diff(view.group[rows]) != 0, True)[: len(rows)])
    waiting = newest[view.is_phantom[rows[newest]] & (newest > 0)]
    waiting = waiting[view.group[rows[waiting - 1]] == view.group[rows[waiting]]]
    found: NDArray[np.int64] = rows[np.sort(np.concatenate([newest, waiting - 1]))]
    return found


def _listing_order(view: FileView) -> NDArray[np.int64]:
    """Groups of each partition by their first file in the order of names, as stores list them."""
    groups, first = np.unique(view.files.group, return_index=True)
    found: NDArray[np.int64] = groups[np.argsort(first, kind="stable")].astype(np.int64)
    return found


def _sum_sizes(at: NDArray[np.int64], sizes: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    found = np.zeros(count, np.int64)
    np.add.at(found, at, sizes)
    return found


def _mark_groups(view: FileView, pairs: Iterable[tuple[str, str]], count: int) -> NDArray[np.bool_]:
    found = np.zeros(count, np.bool_)
    codes = find_group_codes(view.files, pairs)
    found[codes[codes >= 0]] = True
    return found
