"""Decide which slices Spark's own parquet reader reads, and which Python workers read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reconciler.arrays import to_numpy
from reconciler.reader.model import CodedReason, Scan


class PythonReason(CodedReason):
    """Why a Python worker reads a slice; the first that applies."""

    LOGS = "logs", "log files are merged with the base file"
    EVOLVES = "evolves", "the base file holds a column in another type than the table"
    EMPTY = "empty", "the base file is empty, which Spark would skip"
    STORE = "store", "this Spark has no file system for the table's store"


def find_python_reasons(scan: Scan, *, spark_reaches: bool = True) -> NDArray[np.int8]:
    """Return per slice the code of its ``PythonReason``, -1 if Spark's own reader reads it.

    ``spark_reaches``: Spark has a file system for the table's location.
    """
    reasons = np.full(len(scan.slices), -1 if spark_reaches else PythonReason.STORE, np.int8)
    reasons[scan.get_numbers("base_size") == 0] = PythonReason.EMPTY
    reasons[to_numpy(scan.slices.column("evolves").combine_chunks())] = PythonReason.EVOLVES
    reasons[scan.has_logs] = PythonReason.LOGS
    return reasons
