"""Which slices of a scan Spark's own parquet reader may read, and why it may not the others."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Final

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import to_boolean_array, to_numpy_bools
from reconciler.reader.model import Scan


class PythonReason(StrEnum):
    """Why a slice is read by a Python worker; the first that holds."""

    LOGS = "logs"
    EVOLVES = "evolves"
    EMPTY = "empty"
    STORE = "store"


#: what people are told
BECAUSE: Final = {
    PythonReason.LOGS: "log files are merged with the base file",
    PythonReason.EVOLVES: "the base file holds a column in another type than the table",
    PythonReason.EMPTY: "the base file has no bytes, which Spark would pass over",
    PythonReason.STORE: "this Spark has no file system for the table's store",
}
_ORDER: Final = tuple(PythonReason)


def find_python_reasons(scan: Scan, *, spark_reaches: bool = True) -> NDArray[np.int8]:
    """Per slice the place of its reason in ``PythonReason``, -1 where Spark's own reader reads it.

    ``spark_reaches``: whether Spark has a file system for the table's location.
    """
    slices = scan.slices
    logs = pc.list_value_length(slices.column("logs"))
    found = np.full(len(slices), -1 if spark_reaches else _ORDER.index(PythonReason.STORE), np.int8)
    for reason, holds in (
        (PythonReason.EMPTY, pc.equal(slices.column("base_size"), 0)),
        (PythonReason.EVOLVES, slices.column("evolves")),
        (PythonReason.LOGS, pc.greater(logs, 0)),
    ):
        found[to_numpy_bools(holds.combine_chunks())] = _ORDER.index(reason)
    return found


def select_slices(scan: Scan, mask: NDArray[np.bool_]) -> Scan:
    """The same read of some slices only; ``mask`` has an element a slice."""
    return replace(scan, slices=scan.slices.filter(to_boolean_array(mask)))
