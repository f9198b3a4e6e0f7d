"""The status of a table's log files: how many a read merges, how many bytes, and how old; pure.

Only merge-on-read tables have one. Many log files alone make no table unhealthy: only what its spec
declares under ``compaction`` is due.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reconciler.arrays import Codes, Integers
from reconciler.lazy_dataclass import dataclass
from reconciler.state.model import TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLogs:
    """The log files of one partition; fields as in ``LogStatus``."""

    partition: str
    files: int
    bytes: int
    base_bytes: int
    bytes_per_base_byte: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStatus:
    """The log files of the newest file slices, which a snapshot read merges.

    ``slices``: file slices with log files, ``of_slices`` in all. ``files``, ``bytes``: these log
    files. ``base_bytes``: of all newest base files. ``bytes_per_base_byte``: None without base
    files. ``worst``: the partition with most bytes per base byte, None without log files.
    ``oldest``: instant of the write that made the oldest log file, None if unknown; not
    ``is_oldest_exact``: the file is at least as old. ``oldest_age_seconds`` needs the timeline's
    zone.
    """

    slices: int
    of_slices: int
    files: int
    bytes: int
    base_bytes: int
    bytes_per_base_byte: float | None
    worst: PartitionLogs | None
    oldest: str | None
    oldest_age_seconds: int | None
    is_oldest_exact: bool


def log_status(state: TableState, age: Callable[[str | None], int | None]) -> LogStatus | None:
    """Return the status of a table's log files; None for a copy-on-write table.

    ``age``: returns the seconds since an instant, None if its zone is unknown.
    """
    if not state.is_merge_on_read:
        return None
    from reconciler.planners.newest_slices import find_candidates  # noqa: PLC0415 (few tables)

    slices = find_candidates(state)
    files = np.bincount(slices.log_slice, minlength=len(slices)).astype(np.int64)
    oldest = state.oldest_log
    base_bytes, log_bytes = int(slices.base.sum()), int(slices.logs.sum())
    return LogStatus(
        slices=int((files > 0).sum()),
        of_slices=int((slices.has_base | (files > 0)).sum()),
        files=int(files.sum()),
        bytes=log_bytes,
        base_bytes=base_bytes,
        bytes_per_base_byte=_divide(log_bytes, base_bytes),
        worst=_find_worst(
            state.files.partitions, slices.partition, (files, slices.logs, slices.base)
        ),
        oldest=None if oldest is None else oldest.instant,
        oldest_age_seconds=None if oldest is None else age(oldest.instant),
        is_oldest_exact=oldest is not None and oldest.is_exact,
    )


def _divide(log_bytes: int, base_bytes: int) -> float | None:
    return round(log_bytes / base_bytes, 6) if base_bytes else None


def _find_worst(
    paths: tuple[str, ...], partition: Codes, values: tuple[Integers, Integers, Integers]
) -> PartitionLogs | None:
    """Return the partition with most bytes of log files per byte of base files.

    One without base files comes first; of several the one with most bytes of log files.
    """
    count = len(paths)
    files, logs, bases = (
        np.bincount(partition, of, minlength=count).astype(np.int64) for of in values
    )
    if not files.any():
        return None
    per_byte = np.where(bases > 0, logs / np.maximum(bases, 1), np.inf)
    per_byte[files == 0] = -1.0
    worst = int(np.lexsort((logs, per_byte))[-1])
    log_bytes, base_bytes = int(logs[worst]), int(bases[worst])
    return PartitionLogs(
        partition=paths[worst],
        files=int(files[worst]),
        bytes=log_bytes,
        base_bytes=base_bytes,
        bytes_per_base_byte=_divide(log_bytes, base_bytes),
    )
