"""Decide which slices Spark's own parquet reader reads, and which Python workers read."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Final

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import to_arrow, to_numpy
from reconciler.reader.model import Scan


class PythonReason(StrEnum):
    """Why a Python worker reads a slice; the first that applies."""

    LOGS = "logs"
    EVOLVES = "evolves"
    EMPTY = "empty"
    STORE = "store"


#: reason -> text for people
BECAUSE: Final = {
    PythonReason.LOGS: "log files are merged with the base file",
    PythonReason.EVOLVES: "the base file holds a column in another type than the table",
    PythonReason.EMPTY: "the base file is empty, which Spark would skip",
    PythonReason.STORE: "this Spark has no file system for the table's store",
}
_ORDER: Final = tuple(PythonReason)


def find_python_reasons(scan: Scan, *, spark_reaches: bool = True) -> NDArray[np.int8]:
    """Return per slice the code of its ``PythonReason``, -1 where Spark's own reader reads it.

    ``spark_reaches``: whether Spark has a file system for the table's location.
    """
    slices = scan.slices
    logs = pc.list_value_length(slices.column("logs"))
    reasons = np.full(
        len(slices), -1 if spark_reaches else _ORDER.index(PythonReason.STORE), np.int8
    )
    for reason, applies in (
        (PythonReason.EMPTY, pc.equal(slices.column("base_size"), 0)),
        (PythonReason.EVOLVES, slices.column("evolves")),
        (PythonReason.LOGS, pc.greater(logs, 0)),
    ):
        reasons[to_numpy(applies.combine_chunks())] = _ORDER.index(reason)
    return reasons


def select_slices(scan: Scan, mask: NDArray[np.bool_]) -> Scan:
    """Return the scan of some slices; ``mask`` has an element per slice."""
    return replace(scan, slices=scan.slices.filter(to_arrow(mask)))
