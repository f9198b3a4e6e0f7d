"""Measure a table's file sizes: a histogram, the partitions with small files, their origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final

import numpy as np

from reconciler.arrays import Integers, Mask, sum_by_code
from reconciler.layout.sizing.assignment_rules import MAX_OVERFILL, FileSizeLimits
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.lazy_dataclass import dataclass
from reconciler.units import MAX_SIZE

#: the ends of the histogram's bars as shares of the target; ``small`` is a further end
_BAR_ENDS: Final = (1 / 64, 1 / 16, 1 / 4, 1 / 2, 1.0, MAX_OVERFILL)
#: the operation of files whose instant is archived or names no operation
UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramBar:
    """The base files of at least ``least`` and less than ``below`` bytes; None: no upper limit."""

    least: int
    below: int | None
    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSmallFiles:
    """The small files of a partition.

    ``files``: all files. ``small``: the small ones. ``pinned``: those small ones that a pending
    service will rewrite. ``bytes``: size of the small ones.
    """

    partition: str
    files: int
    small: int
    pinned: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationFiles:
    """The base files whose slices one operation began, and how many of them are small."""

    operation: str
    files: int
    small: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFileSizes:
    """The log files of newest slices; ``slices``: number of base files that they change."""

    files: int
    bytes: int
    slices: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSizeState:
    """The base files of newest slices.

    ``partitions``: those with small files, most small files first. ``operations``: those that wrote
    the files, most small files first. ``log_only``: number of slices without a base file.
    ``log_files``: None if there are none.
    """

    files: int
    bytes: int
    small: int
    log_only: int
    histogram: tuple[HistogramBar, ...]
    partitions: tuple[PartitionSmallFiles, ...]
    operations: tuple[OperationFiles, ...]
    log_files: LogFileSizes | None = field(default=None, metadata={"optional": True})


def measure_file_sizes(
    groups: FileGroupSizes, sizes: FileSizeLimits, operations: Mapping[str, str] | None = None
) -> FileSizeState:
    """Return the state of a table's file sizes.

    ``operations``: operation of each write on the active timeline, by its requested time (INSERT,
    UPSERT, CLUSTER, …).
    """
    is_base = groups.is_live & (groups.base >= 0)
    size = groups.base[is_base]
    is_small = size < sizes.small
    return FileSizeState(
        files=len(size),
        bytes=int(size.sum()),
        small=int(is_small.sum()),
        log_only=int((groups.is_live & (groups.base < 0)).sum()),
        histogram=_build_histogram(size, sizes),
        partitions=_count_by_partition(groups, is_base, is_small),
        operations=_count_by_operation(groups, is_base, is_small, operations or {}),
        log_files=_count_logs(groups, is_base),
    )


def _count_logs(groups: FileGroupSizes, is_base: Mask) -> LogFileSizes | None:
    has_logs = groups.is_live & (groups.log_files > 0)
    if not has_logs.any():
        return None
    return LogFileSizes(
        files=int(groups.log_files[has_logs].sum()),
        bytes=int(groups.logs[has_logs].sum()),
        slices=int((has_logs & is_base).sum()),
    )


def _build_histogram(size: Integers, sizes: FileSizeLimits) -> tuple[HistogramBar, ...]:
    ends = sorted(
        {min(round(share * sizes.target), MAX_SIZE) for share in _BAR_ENDS}
        | ({sizes.small} if sizes.small > 0 else set())
    )
    at = np.searchsorted(ends, size, "right")
    files = np.bincount(at, minlength=len(ends) + 1).tolist()
    total = sum_by_code(at, size, len(ends) + 1).tolist()
    return tuple(
        HistogramBar(least=least, below=below, files=files[nth], bytes=total[nth])
        for nth, (least, below) in enumerate(zip([0, *ends], [*ends, None], strict=True))
    )


def _count_by_partition(
    groups: FileGroupSizes, is_base: Mask, is_small: Mask
) -> tuple[PartitionSmallFiles, ...]:
    count = len(groups.partitions)
    partition = groups.partition[is_base]
    is_pinned = (groups.is_compacting | groups.is_clustering)[is_base] & is_small
    files = np.bincount(partition, minlength=count).tolist()
    small = np.bincount(partition[is_small], minlength=count)
    pinned = np.bincount(partition[is_pinned], minlength=count).tolist()
    total = sum_by_code(partition[is_small], groups.base[is_base][is_small], count).tolist()
    order = np.argsort(-small, kind="stable")[: np.count_nonzero(small)].tolist()
    return tuple(
        PartitionSmallFiles(
            partition=groups.partitions[code],
            files=files[code],
            small=int(small[code]),
            pinned=pinned[code],
            bytes=total[code],
        )
        for code in order
    )


def _count_by_operation(
    groups: FileGroupSizes,
    is_base: Mask,
    is_small: Mask,
    operations: Mapping[str, str],
) -> tuple[OperationFiles, ...]:
    of_instant = [operations.get(instant, UNKNOWN) for instant in groups.instants]
    names = sorted(set(of_instant))
    codes = np.array([names.index(name) for name in of_instant], np.int64)
    made = codes[groups.slice_start[is_base]] if len(codes) else np.zeros(0, np.int64)
    files = np.bincount(made, minlength=len(names)).tolist()
    small = np.bincount(made[is_small], minlength=len(names)).tolist()
    total = sum_by_code(made, groups.base[is_base], len(names)).tolist()
    order = sorted(range(len(names)), key=lambda nth: (-small[nth], -files[nth], names[nth]))
    return tuple(
        OperationFiles(operation=names[nth], files=files[nth], small=small[nth], bytes=total[nth])
        for nth in order
        if files[nth]
    )
