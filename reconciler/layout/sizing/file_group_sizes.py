"""Measure file groups for the assignment of rows: the size of each group's newest slice."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np

from reconciler.arrays import Codes, Integers, Mask, sum_by_code, to_arrow, to_nullable
from reconciler.hudi.files.names import make_file_path
from reconciler.hudi.files.table_files import FileKind
from reconciler.hudi.files.view import FileView, find_group_codes
from reconciler.layout.sizing.record_size import estimate_compacted_bytes
from reconciler.lazy_dataclass import dataclass


@dataclass(frozen=True, kw_only=True, eq=False)
class FileGroupSizes:
    """File groups with files, replaced ones too: an element a group, sorted by partition.

    Within a partition, groups come in the order of a listing. ``partitions``: sorted paths.
    ``partition``: int32, index into them. ``file_id``: pyarrow string array without nulls.
    ``base``: int64, bytes of the newest slice's base file, -1 if it has none; ``base_name``:
    pyarrow string array, its name, null if it has none. ``logs``: int64, bytes of its log files;
    ``log_files``: int64, their number. The slice of a pending compaction counts together with the
    one before. ``slice_start``: int32, index into the sorted ``instants``, the instant that began
    the slice. ``is_live``: bool, whether readers see the group. ``is_compacting``: bool, whether a
    pending compaction or log compaction will rewrite it; ``is_clustering``: bool, whether a pending
    clustering will.
    """

    partitions: tuple[str, ...]
    partition: Codes
    file_id: Any
    base: Integers
    base_name: Any
    logs: Integers
    log_files: Integers
    slice_start: Codes
    instants: tuple[str, ...]
    is_live: Mask
    is_compacting: Mask
    is_clustering: Mask

    def __len__(self) -> int:
        return len(self.base)

    @cached_property
    def size(self) -> Integers:
        """Bytes of each group's newest slice, log files converted to bytes of a base file."""
        total: Integers = np.maximum(self.base, 0) + estimate_compacted_bytes(self.logs)
        return total

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {path: code for code, path in enumerate(self.partitions)}

    def get_partition(self, group: int) -> str:
        """Return the path of a group's partition."""
        return self.partitions[int(self.partition[group])]

    def get_file_id(self, group: int) -> str:
        """Return the file id of a group."""
        return str(self.file_id[group])

    def get_base_path(self, group: int) -> str:
        """Return the path of a group's newest base file, which it must have."""
        return make_file_path(self.get_partition(group), str(self.base_name[group]))

    def list_file_ids(self, groups: Integers) -> dict[str, list[str]]:
        """Return the file ids of some groups by partition."""
        file_ids = self.file_id.take(to_arrow(groups)).to_pylist()
        by_partition: dict[str, list[str]] = {}
        for code, file_id in zip(self.partition[groups].tolist(), file_ids, strict=True):
            by_partition.setdefault(self.partitions[code], []).append(file_id)
        return by_partition

    def partition_range(self, partition: str) -> slice:
        """Return the range of a partition's groups, empty if it has none."""
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
    """Return the groups of a view.

    ``compacting``, ``clustering``: (partition, file id) pairs in pending table services. A group
    without a slice of a completed write is not live.
    """
    files = view.files
    count = len(files.group_partition)
    read = np.flatnonzero(view.is_current)
    of_slice = np.full(len(view), -1, np.int64)
    of_slice[read] = view.group[read]
    of_file = of_slice[view.row_slice]
    # a pending compaction may have written a base file that readers do not open yet
    is_base = (files.kind == FileKind.BASE) & (of_file >= 0) & ~view.is_phantom[view.row_slice]
    is_log = (files.kind == FileKind.LOG) & (of_file >= 0)
    base_row = np.full(count, -1, np.int64)
    base_row[of_file[is_base]] = np.flatnonzero(is_base)
    base = np.full(count, -1, np.int64)
    base[of_file[is_base]] = files.size[is_base]
    slice_start = np.zeros(count, np.int32)
    slice_start[view.group[read[::-1]]] = view.key[read[::-1]]  # the older one of two slices
    is_live = np.zeros(count, np.bool_)
    is_live[view.group[read]] = True
    order = _listing_order(view)
    return FileGroupSizes(
        partitions=files.partitions,
        partition=files.group_partition[order],
        file_id=files.group_id.take(to_arrow(order)),
        base=base[order],
        base_name=files.name.take(to_nullable(base_row[order], base_row[order] >= 0)),
        logs=sum_by_code(of_file[is_log], files.size[is_log], count)[order],
        log_files=np.bincount(of_file[is_log], minlength=count)[order],
        slice_start=slice_start[order],
        instants=view.times,
        is_live=is_live[order],
        is_compacting=_mark_groups(view, compacting, count)[order],
        is_clustering=_mark_groups(view, clustering, count)[order],
    )


def _listing_order(view: FileView) -> Integers:
    """Return the groups of each partition sorted by their first file name, as stores list them."""
    groups, first = np.unique(view.files.group, return_index=True)
    order: Integers = groups[np.argsort(first, kind="stable")].astype(np.int64)
    return order


def _mark_groups(view: FileView, pairs: Iterable[tuple[str, str]], count: int) -> Mask:
    mask = np.zeros(count, np.bool_)
    codes = find_group_codes(view.files, pairs)
    mask[codes[codes >= 0]] = True
    return mask
