"""Values that describe one read of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import Mask, to_arrow, to_numpy
from reconciler.file_slices.merge.committed_blocks import CommittedInstants
from reconciler.file_slices.merge.rules import MergeRules
from reconciler.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from reconciler.index.predicates.syntax import Predicate
    from reconciler.index.temporal import SessionZone

ReadKind = Literal["snapshot", "readOptimized", "incremental"]

#: the column of ``Scan.partitions`` with the folder; no data column has this name
PATH: Final = "_hoodie_partition_path"

#: the columns of ``Scan.slices``
SLICES: Final = pa.schema(
    [
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("base", pa.string()),
        pa.field("base_size", pa.int64(), nullable=False),
        pa.field("logs", pa.list_(pa.string()), nullable=False),
        pa.field("log_size", pa.int64(), nullable=False),
        pa.field("evolves", pa.bool_(), nullable=False),
    ]
)


class CodedReason(IntEnum):
    """A reason whose number is its code in arrays.

    ``key``: its name in documents; ``because``: its text.
    """

    key: str
    because: str

    def __new__(cls, key: str, because: str) -> Self:
        code = len(cls.__members__)
        member = int.__new__(cls, code)
        member._value_ = code
        member.key, member.because = key, because
        return member


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """A read of a table.

    ``as_of``: an instant of the timeline, None for now; ``begin``, ``end``: an incremental read
    shows the writes after ``begin`` up to ``end`` (None: the newest); ``columns``: names in order,
    None for all.
    """

    kind: ReadKind = "snapshot"
    as_of: str | None = None
    begin: str | None = None
    end: str | None = None
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCondition:
    """The parsed part of a ``where``. ``zone``: the zone of the session whose rows it filters."""

    predicate: Predicate
    zone: SessionZone


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scan:
    """The files that a read touches, and how their rows become the result.

    ``as_of``: the shown instant, None for a table without a completed write. ``schema``: the wanted
    columns in order. ``table_schema``: all columns of the table as of that instant, meta columns
    first; log records and base files are converted to it. ``partition_schema``: the columns that
    rows take from their folder's name instead of their file. ``partitions``: a row per partition:
    the folder as ``PATH`` ("" if not partitioned) and the columns of ``partition_schema``.
    ``slices``: a row per file slice, columns as ``SLICES``: ``partition`` is a row of
    ``partitions``, paths are below the table's root, ``logs`` in merge order, sizes in bytes,
    ``base_size`` 0 if ``base`` is null; ``evolves``: the base file has another type in a column
    than the table, so readers that cannot widen types (Spark's parquet reader) must not read it.
    ``commit_times``: the instants whose rows an incremental read shows, sorted; else None.
    ``condition``: rows for which it is not true may be skipped; None: no row may.
    """

    location: str
    as_of: str | None
    schema: pa.Schema
    table_schema: pa.Schema
    partition_schema: pa.Schema
    partitions: pa.Table
    slices: pa.Table
    rules: MergeRules
    committed: CommittedInstants
    commit_times: tuple[str, ...] | None = None
    condition: ReadCondition | None = None

    @property
    def has_logs(self) -> Mask:
        """A mask of the slices that have log files."""
        counts = pc.list_value_length(self.slices.column("logs")).combine_chunks()
        mask: Mask = to_numpy(counts) > 0
        return mask

    def get_numbers(self, name: str) -> NDArray[Any]:
        """Return a column of ``slices`` that holds numbers."""
        return to_numpy(self.slices.column(name).combine_chunks())

    def select_slices(self, mask: Mask) -> Self:
        """Return the scan of some slices; ``mask`` has an element per slice."""
        return replace(self, slices=self.slices.filter(to_arrow(mask)))

    def get_partition_values(self, partition: int) -> Mapping[str, Any]:
        """Return the values that the rows of a partition have in ``partition_schema``."""
        names = self.partition_schema.names
        return {name: self.partitions.column(name)[partition] for name in names}


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
