"""Estimate record size as fixed bytes per file plus bytes per row. No I/O.

Hudi divides bytes by records, which overestimates the rows of small files: a bloom filter alone
takes 440 kB by default. Two numbers, fitted over many files, avoid that error. Versions of Hudi
compute the average differently. Source: AverageRecordSizeEstimator (1.x),
UpsertPartitioner.averageBytesPerRecord (0.15.0).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import Final, Literal

import numpy as np

from reconciler.arrays import Floats, Integers, Mask
from reconciler.hudi.timeline.instant import COMMITS, Action
from reconciler.lazy_dataclass import dataclass

#: bytes of base file per byte of log file (hoodie.logfile.to.parquet.compression.ratio)
LOG_RATIO: Final = 0.35
#: the rows of a full file take at least this share of the target, however many fixed bytes it has
MIN_DATA_SHARE: Final = 0.15
#: the fewest base files for a fit
_MIN_FILES: Final = 3
#: the smallest ratio of the most to the fewest rows of a file for a fit
_MIN_SPREAD: Final = 1.5
#: actions of ingestion and compaction; files of replacecommits may have other footers
_USUAL_ACTIONS: Final = frozenset({Action.COMMIT, Action.DELTACOMMIT})
#: the newest instants with base files to examine
_MAX_INSTANTS: Final = 20
#: the newest instants that 1.x examines (_hoodie.record.size.estimator.max.commits)
_MAX_HUDI_INSTANTS: Final = 5
#: 1.x ignores replacecommits; 0.15.0 counts them, although its own comment denies it
_COUNTED_ACTIONS: Final = {"1.x": _USUAL_ACTIONS, "0.15": _USUAL_ACTIONS | {Action.REPLACECOMMIT}}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PastWrite:
    """The files that one completed instant wrote, an element a write statistic.

    ``rows``: int64, numWrites: the records in the file; in a merged base file, old and new ones.
    ``bytes``: int64, totalWriteBytes: for a base file, the size of the file. ``is_base``: bool, a
    base file, not a log file. ``operation``: Hudi's name of the write operation. ``is_ours``:
    whether this tool wrote them, by an apply or a write; it takes sizes from the spec. ``inserts``:
    new rows by partition, without partitions of zero. ``partitions``: all that it wrote to.
    ``options``: Hudi's options in its extra metadata. ``logged_inserts``: new rows in log files.
    """

    instant: str
    action: Action
    rows: Integers
    bytes: Integers
    is_base: Mask
    operation: str | None = None
    is_ours: bool = False
    inserts: Mapping[str, int] = field(default_factory=dict)
    partitions: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    logged_inserts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FooterSizes:
    """Sizes from the footers of base files, an element a file.

    ``data``: int64, compressed bytes of the row groups. The rest of ``bytes`` are the fixed bytes
    of the file: bloom filter, schema, column statistics.
    """

    rows: Integers
    bytes: Integers
    data: Integers


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSize:
    """The size of base files: a file of n rows has about ``fixed`` + n * ``per_row`` bytes.

    ``because``: source of the numbers. ``rows``: number of rows in the estimate, 0 if the
    size is declared.
    """

    fixed: int
    per_row: float
    because: str
    rows: int = 0

    def data_bytes(self, bases: Integers, logs: Integers | int = 0) -> Integers:
        """Return the bytes that the rows of slices take in new files.

        ``bases``, ``logs``: int64, bytes of the slices' base files and log files.
        """
        data: Integers = np.maximum(bases - self.fixed, 0) + estimate_compacted_bytes(logs)
        return data

    def count_files(self, data: Integers, target: int) -> Integers:
        """Return the number of files, at least one, that hold ``data`` bytes of rows.

        Each file has at most ``target`` bytes with its fixed bytes. If the fixed bytes take nearly
        the whole target, files exceed it by 15 %.
        """
        room = max(target - self.fixed, int(MIN_DATA_SHARE * target), 1)
        files: Integers = np.maximum(-(-data // room), 1)
        return files


def estimate_compacted_bytes(logs: Integers | int) -> Integers:
    """Return the bytes of base file that log files become, rounded down; ``logs``: their bytes."""
    compacted: Integers = np.floor(LOG_RATIO * np.asarray(logs)).astype(np.int64)
    return compacted


def estimate_record_size(
    history: Sequence[PastWrite],
    footers: FooterSizes | None = None,
    *,
    actions: Collection[Action] = _USUAL_ACTIONS,
    fallback: int = 1024,
) -> RecordSize:
    """Estimate the fixed bytes and the bytes per row of a table's base files.

    Least squares weighted by rows; if history does not allow a fit, from footers; else the mean;
    else ``fallback`` bytes. ``history``: in the order of requested times. ``actions``: the instants
    that count, or all if none of them wrote base files. Clustering may write other footers than
    ingestion, so that no line fits both.
    """
    fitted = _fit_history(history, actions)
    if fitted is not None:
        return fitted
    if footers is not None and footers.rows.sum() > 0:
        return _estimate_from_footers(footers)
    rows, sizes = _select_base_files(history, actions)
    if rows.sum() > 0:
        per_row = float(sizes.sum() / rows.sum())
        total = int(rows.sum())
        because = f"the mean of {total} rows"
        return RecordSize(fixed=0, per_row=per_row, because=because, rows=total)
    because = "declared: no past writes to measure"
    return RecordSize(fixed=0, per_row=float(fallback), because=because)


def can_fit_size(
    history: Sequence[PastWrite], *, actions: Collection[Action] = _USUAL_ACTIONS
) -> bool:
    """Return whether past writes allow a fit; otherwise read a few footers."""
    return _fit_history(history, actions) is not None


def _fit_history(history: Sequence[PastWrite], actions: Collection[Action]) -> RecordSize | None:
    rows, sizes = _select_base_files(history, actions)
    if len(rows) < _MIN_FILES or rows.max() < _MIN_SPREAD * rows.min():
        return None
    line = _fit_line(rows.astype(np.float64), sizes.astype(np.float64))
    if line is None:
        return None
    fixed, per_row = line
    because = f"fitted over {len(rows)} base files of past writes"
    return RecordSize(fixed=round(fixed), per_row=per_row, because=because, rows=int(rows.sum()))


def _select_base_files(
    history: Sequence[PastWrite], actions: Collection[Action]
) -> tuple[Integers, Integers]:
    rows, sizes = _collect_base_files(history, actions)
    return (rows, sizes) if len(rows) else _collect_base_files(history, COMMITS)


def _collect_base_files(
    history: Sequence[PastWrite], actions: Collection[Action]
) -> tuple[Integers, Integers]:
    """Return the rows and the bytes of the non-empty base files of the newest matching instants."""
    nothing = np.zeros(0, np.int64)
    files = []
    for write in reversed(history):
        is_counted = write.is_base & (write.rows > 0) & (write.bytes > 0)
        if write.action in actions and is_counted.any():
            files.append((write.rows[is_counted], write.bytes[is_counted]))
        if len(files) == _MAX_INSTANTS:
            break
    rows = np.concatenate([nothing, *(r for r, _ in files)])
    return rows, np.concatenate([nothing, *(b for _, b in files)])


def _fit_line(rows: Floats, sizes: Floats) -> tuple[float, float] | None:
    """Return intercept and slope, weighted by rows and not negative; None without a rising line."""
    weight = rows / rows.sum()
    mean_rows, mean_size = float(weight @ rows), float(weight @ sizes)
    around = rows - mean_rows
    slope = float(weight @ (around * (sizes - mean_size)) / (weight @ around**2))
    if slope <= 0:
        return None
    fixed = mean_size - slope * mean_rows
    if fixed < 0:
        return 0.0, float(sizes.sum() / rows.sum())
    return fixed, slope


def _estimate_from_footers(footers: FooterSizes) -> RecordSize:
    fixed = float(np.maximum(footers.bytes - footers.data, 0).mean())
    return RecordSize(
        fixed=round(fixed),
        per_row=float(footers.data.sum() / footers.rows.sum()),
        because=f"by the footers of {len(footers.rows)} of its files",
        rows=int(footers.rows.sum()),
    )


def compute_average_size(
    history: Sequence[PastWrite],
    *,
    small: int,
    fallback: int = 1024,
    threshold: float = 1.0,
    rule: Literal["1.x", "0.15"] = "1.x",
) -> int:
    """Return the bytes of a record that Hudi's writers assume.

    They divide the bytes of the newest completed instant with more than ``threshold`` times
    ``small`` bytes by its records, rounded up. ``fallback``: the result if no instant is that big.
    ``history`` is in the order of requested times. Of a deltacommit only base files count.
    """
    least = int(threshold * small)
    counted = [written for written in history if written.action in _COUNTED_ACTIONS[rule]]
    if rule == "1.x":
        counted = counted[-_MAX_HUDI_INSTANTS:]
    for written in reversed(counted):
        is_counted = written.is_base | (written.action is not Action.DELTACOMMIT)
        total, records = int(written.bytes[is_counted].sum()), int(written.rows[is_counted].sum())
        if total > least and records > 0:
            return math.ceil(total / records)
    return fallback
