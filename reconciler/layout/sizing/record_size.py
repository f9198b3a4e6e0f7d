"""Record size as a fixed cost of every file and bytes for every row; pure.

Hudi divides bytes by records, so files with few rows look as if their rows were big: a bloom filter
alone takes 440 kB by default. Two numbers fitted over many files don't have that fault.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from reconciler.hudi.timeline.instant import COMMITS, Action
from reconciler.layout.sizing.write_history import FooterSizes, PastWrite

#: bytes of base file that a byte of log makes (hoodie.logfile.to.parquet.compression.ratio)
LOG_RATIO: Final = 0.35
#: a file is filled with at least this share of the target, however big its fixed cost
_MIN_DATA_SHARE: Final = 0.15
#: the fewest base files of history that a fit is made of
_MIN_FILES: Final = 3
#: a fit needs files whose numbers of rows differ at least so many times
_MIN_SPREAD: Final = 1.5
#: what ingestion and compaction end as; a replacecommit's files may have other footers
_USUAL_ACTIONS: Final = frozenset({Action.COMMIT, Action.DELTACOMMIT})
#: how many instants with base files are looked at, newest first
_MAX_INSTANTS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSize:
    """A base file of n rows has about ``fixed`` + n * ``per_row`` bytes; ``because`` says whence.

    ``rows``: so many tell it, 0 where it is declared.

    >>> size = RecordSize(fixed=440_000, per_row=100.0, because="an example")
    >>> size.bytes_of(10_000)
    1440000
    """

    fixed: int
    per_row: float
    because: str
    rows: int = 0

    def file_bytes(self, rows: int) -> int:
        """Bytes of one file of so many rows."""
        return self.fixed + round(rows * self.per_row)

    def data_bytes(
        self, bases: NDArray[np.int64], logs: NDArray[np.int64] | int = 0
    ) -> NDArray[np.int64]:
        """Bytes of rows that slices would bring into new files: int64 bytes of base and of logs."""
        of_logs = np.floor(LOG_RATIO * np.asarray(logs)).astype(np.int64)
        data: NDArray[np.int64] = np.maximum(bases - self.fixed, 0) + of_logs
        return data

    def count_files(self, data: NDArray[np.int64], target: int) -> NDArray[np.int64]:
        """Files that so many bytes of rows make, each with its fixed cost at most ``target``.

        At least one. Where the fixed cost leaves next to nothing of the target, files grow 15 %
        beyond it.
        """
        room = max(target - self.fixed, int(_MIN_DATA_SHARE * target), 1)
        files: NDArray[np.int64] = np.maximum(-(-data // room), 1)
        return files


def estimate_record_size(
    history: Sequence[PastWrite],
    footers: FooterSizes | None = None,
    *,
    actions: Collection[Action] = _USUAL_ACTIONS,
    fallback: int = 1024,
) -> RecordSize:
    """Fixed cost and bytes for every row of the table's base files.

    ``history`` is in the order of requested times; ``actions`` says which instants count, all where none
    of them wrote base files: clustering may write other footers than ingestion, and no line goes
    through both. Fitted by least squares, weighted by rows; from footers where history does not
    tell the two apart; else the mean; ``fallback`` bytes without either.
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
    return RecordSize(fixed=0, per_row=float(fallback), because="declared: no write tells yet")


def can_fit_size(
    history: Sequence[PastWrite], *, actions: Collection[Action] = _USUAL_ACTIONS
) -> bool:
    """Whether past writes tell the fixed cost from that of rows; else a few footers would."""
    return _fit_history(history, actions) is not None


def _fit_history(history: Sequence[PastWrite], of: Collection[Action]) -> RecordSize | None:
    rows, sizes = _select_base_files(history, of)
    if len(rows) < _MIN_FILES or rows.max() < _MIN_SPREAD * rows.min():
        return None
    line = _fit_line(rows.astype(np.float64), sizes.astype(np.float64))
    if line is None:
        return None
    fixed, per_row = line
    because = f"fitted over {len(rows)} base files of past writes"
    return RecordSize(fixed=round(fixed), per_row=per_row, because=because, rows=int(rows.sum()))


def _select_base_files(
    history: Sequence[PastWrite], of: Collection[Action]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    rows, sizes = _collect_base_files(history, of)
    return (rows, sizes) if len(rows) else _collect_base_files(history, COMMITS)


def _collect_base_files(
    history: Sequence[PastWrite], of: Collection[Action]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and bytes of the base files with rows that the newest of these instants wrote."""
    nothing = np.zeros(0, np.int64)
    found = []
    for written in reversed(history):
        told = written.is_base & (written.rows > 0) & (written.bytes > 0)
        if written.action in of and told.any():
            found.append((written.rows[told], written.bytes[told]))
        if len(found) == _MAX_INSTANTS:
            break
    rows = np.concatenate([nothing, *(r for r, _ in found)])
    return rows, np.concatenate([nothing, *(b for _, b in found)])


def _fit_line(rows: NDArray[np.float64], sizes: NDArray[np.float64]) -> tuple[float, float] | None:
    """Intercept and slope, weighted by rows, neither below 0; None where no line rises."""
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
