"""Which slices one task reads: the big ones first, small ones together; pure.

Source: org.apache.spark.sql.execution.datasources.FilePartition.maxSplitBytes, for slices, which
cannot be split.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.arrays import to_numpy_numbers

#: as Spark's spark.sql.files.maxPartitionBytes and openCostInBytes
_MAX_TASK_BYTES: Final = 128 * 1024 * 1024
_OPEN_COST_BYTES: Final = 4 * 1024 * 1024
#: a byte of a log file takes about so much longer to read than one of a base file
_LOG_WEIGHT: Final = 4


def weigh_slices(slices: pa.Table) -> NDArray[np.int64]:
    """About how long each slice takes to read, in bytes of a base file."""
    base, logs = (
        to_numpy_numbers(slices.column(name).combine_chunks()) for name in ("base_size", "log_size")
    )
    found: NDArray[np.int64] = base + logs * _LOG_WEIGHT
    return found


def group_into_tasks(weight: NDArray[np.int64], slots: int) -> list[NDArray[np.int64]]:
    """The rows that each task reads, of which ``slots`` run at a time; the longest tasks first.

    >>> [task.tolist() for task in group_into_tasks(np.array([1, 900 << 20, 2]), 2)]
    [[1], [2, 0]]
    """
    if not len(weight):
        return []
    order = np.argsort(-weight, kind="stable")
    cost = weight[order] + _OPEN_COST_BYTES
    most = min(_MAX_TASK_BYTES, max(_OPEN_COST_BYTES, int(cost.sum()) // max(slots, 1)))
    number = (np.cumsum(cost) - cost) // most
    return np.split(order, np.flatnonzero(np.diff(number)) + 1)
