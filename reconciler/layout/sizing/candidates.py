"""Find the file groups of a partition that may take new rows, in order.

Source: UpsertPartitioner, SparkUpsertDeltaCommitPartitioner (0.15.0, 1.2.0). Hudi takes the groups
of its file-system view in the order of a Java HashSet of file ids, which looks random
(AbstractTableFileSystemView.buildFileGroups, java.util.HashMap).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from reconciler.arrays import Integers, Mask, to_arrow
from reconciler.hudi.codecs.java_hash import compute_java_hashes
from reconciler.layout.sizing.assignment_rules import (
    AssignmentRule,
    CopyOnWrite,
    FileSizeLimits,
    HudiRule,
    MergeOnRead,
    TableKind,
)
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.layout.sizing.record_size import PastWrite

#: the least capacity of a HashMap; it grows when more than 3/4 of its slots are taken
_MIN_CAPACITY: Final = 16


def find_table_kind(
    groups: FileGroupSizes,
    written: Sequence[PastWrite],
    *,
    is_merge_on_read: bool,
    has_record_index: bool,
) -> TableKind:
    """Return how rows go to existing file groups, as the table's own writers do it.

    ``written``: past writes. Writers whose index finds rows in log files put new rows there. With a
    record index they must not, because it locates rows of base files.
    """
    if not is_merge_on_read:
        return CopyOnWrite()
    is_log_only = groups.is_live & (groups.base < 0) & (groups.log_files > 0)
    has_logged = bool(is_log_only.any()) or any(write.logged_inserts for write in written)
    return MergeOnRead(indexes_logs=has_logged and not has_record_index)


def find_small_files(
    groups: FileGroupSizes,
    partition: str,
    kind: TableKind,
    rule: AssignmentRule,
    *,
    has_commits: bool = True,
) -> Integers:
    """Return the groups of a partition that may take new rows, as indexes into ``groups``.

    Empty without a completed write, or if ``small`` is 0. Groups of a pending compaction or
    clustering are skipped. Hudi's rule takes them in the order of Hudi's view, and by size if
    rows are merged into base files of a merge-on-read table. The steady rule takes them by size,
    then by file id.
    """
    if rule.sizes.small <= 0 or not has_commits:
        return np.zeros(0, np.int64)
    find = _find_by_hudi if isinstance(rule, HudiRule) else _find_steadily
    return find(groups, groups.partition_range(partition), kind, rule.sizes)


def _find_by_hudi(
    groups: FileGroupSizes, place: slice, kind: TableKind, sizes: FileSizeLimits
) -> Integers:
    base = groups.base[place]
    at = sort_as_hash_set(groups.file_id[place], (base < 0) & (groups.log_files[place] > 0))
    at = at[_takes_rows(groups, place, kind, sizes)[at]]
    if isinstance(kind, MergeOnRead) and not kind.indexes_logs:
        at = at[np.argsort(base[at], kind="stable")][: kind.max_candidates]
    # after the limit: groups of a pending clustering are dropped, not replaced by larger ones
    small: Integers = at[~groups.is_clustering[place][at]] + place.start
    return small


def _find_steadily(
    groups: FileGroupSizes, place: slice, kind: TableKind, sizes: FileSizeLimits
) -> Integers:
    is_whole = groups.base[place] != 0  # an empty base file is damaged
    is_free = ~groups.is_clustering[place]
    at = np.flatnonzero(_takes_rows(groups, place, kind, sizes) & is_whole & is_free) + place.start
    ids = groups.file_id.take(to_arrow(at)).to_pylist()
    size = groups.size[at].tolist()
    order = sorted(range(len(at)), key=lambda nth: (size[nth], ids[nth]))
    small: Integers = at[np.array(order, np.int64)]
    return small


def _takes_rows(
    groups: FileGroupSizes, place: slice, kind: TableKind, sizes: FileSizeLimits
) -> Mask:
    """Return a mask of the small groups that may take rows; pending clusterings are ignored."""
    base = groups.base[place]
    is_open: Mask = groups.is_live[place] & ~groups.is_compacting[place]
    if isinstance(kind, MergeOnRead) and kind.indexes_logs:
        return is_open & (groups.size[place] < sizes.target)
    if isinstance(kind, MergeOnRead):
        is_open &= groups.log_files[place] == 0
    return is_open & (base >= 0) & (base < sizes.small)


def sort_as_hash_set(ids: Any, is_log_only: Mask) -> Integers:
    """Return the file groups of one partition, as indexes, in the order of Hudi's view.

    ``ids``: file ids of every group with files, replaced ones too, in the order of Hudi's listing;
    a string array without nulls. If ids share a slot, the last one comes first, because
    Collectors.groupingBy puts it at the head of its slot. ``is_log_only``: groups without a base
    file. The order of eight ids in one slot, which random ids never have, is not reproduced.

    >>> import pyarrow as pa
    >>> sort_as_hash_set(pa.array(["b", "a", "q"]), np.zeros(3, np.bool_)).tolist()
    [2, 1, 0]
    """
    count = len(ids)
    capacity = _hash_set_capacity(count - int(is_log_only.sum()), count)
    hashes = compute_java_hashes(ids).view(np.uint32)
    slots = (hashes ^ (hashes >> np.uint32(16))) & np.uint32(capacity - 1)
    order: Integers = np.lexsort((-np.arange(count), is_log_only, slots))
    return order


def _hash_set_capacity(first: int, count: int) -> int:
    """Return the slots of ``new HashSet<>(first)`` after ``count`` elements were added."""
    requested, capacity = max(int(first / 0.75) + 1, _MIN_CAPACITY), 1
    while capacity < requested or count > 0.75 * capacity:
        capacity *= 2
    return capacity
