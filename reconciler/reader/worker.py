"""What Python workers of Spark run: the slices of a task, as Arrow batches.

Slices are grouped into tasks like Spark's files. Source:
org.apache.spark.sql.execution.datasources.FilePartition.maxSplitBytes, for slices, which cannot be
split.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from reconciler.arrays import Integers, to_arrow, to_numpy
from reconciler.errors import NotFoundError, StorageError
from reconciler.file_slices.merge.slice_reader import SliceFiles
from reconciler.reader.model import Scan
from reconciler.reader.slice_rows import SliceRowReader
from reconciler.spark.failures import FILE_REMOVED
from reconciler.storage.api import Storage, StorageRef
from reconciler.storage.read_only import ReadOnlyStorage

_SLICE: Final = ("base", "base_size", "logs")
_VALUES: Final = "values"
#: defaults of Spark's spark.sql.files.maxPartitionBytes and openCostInBytes
_MAX_TASK_BYTES: Final = 128 * 1024 * 1024
_OPEN_COST_BYTES: Final = 4 * 1024 * 1024
#: how much longer a byte of a log file takes to read than one of a base file
_LOG_WEIGHT: Final = 4


def weigh_slices(slices: pa.Table) -> Integers:
    """Estimate the time to read each slice, in bytes of a base file."""
    base, logs = (
        to_numpy(slices.column(name).combine_chunks()) for name in ("base_size", "log_size")
    )
    found: Integers = base + logs * _LOG_WEIGHT
    return found


def group_into_tasks(weight: Integers, slots: int) -> list[Integers]:
    """Return the rows that each task reads, the longest tasks first; ``slots`` tasks run at once.

    >>> [task.tolist() for task in group_into_tasks(np.array([1, 900 << 20, 2]), 2)]
    [[1], [2, 0]]
    """
    if not len(weight):
        return []
    order = np.argsort(-weight, kind="stable")
    cost = weight[order] + _OPEN_COST_BYTES
    max_cost = min(_MAX_TASK_BYTES, max(_OPEN_COST_BYTES, int(cost.sum()) // max(slots, 1)))
    number = (np.cumsum(cost) - cost) // max_cost
    return np.split(order, np.flatnonzero(np.diff(number)) + 1)


def pack_slices(scan: Scan, tasks: Sequence[Integers]) -> list[bytes]:
    """Encode what each task must know of its slices, given by their rows; an Arrow stream each."""
    number = scan.slices.column("partition").combine_chunks()
    known = scan.slices.select(_SLICE).append_column(
        _VALUES, _combine_partition_values(scan).take(number)
    )
    return [_encode_table(known.take(to_arrow(rows))) for rows in tasks]


def _combine_partition_values(scan: Scan) -> pa.Array:
    """Return the values of each partition as one column, so that no name clashes."""
    if not scan.partition_schema.names:
        return pa.nulls(len(scan.partitions))
    columns = [scan.partitions.column(n).combine_chunks() for n in scan.partition_schema.names]
    return pa.StructArray.from_arrays(columns, fields=list(scan.partition_schema))


def _encode_table(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SliceReadTask:
    """Reads the slices of tasks; picklable, for ``mapInArrow`` over a column of task numbers.

    ``packs``: the result of ``pack_slices``, or a broadcast of it, which disks may hold; secrets
    are in ``ref`` alone.
    """

    ref: StorageRef
    reading: SliceRowReader
    packs: Any

    @classmethod
    def from_scan(cls, scan: Scan, ref: StorageRef, packs: Any) -> Self:
        return cls(ref=ref, reading=SliceRowReader.from_scan(scan), packs=packs)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the tasks whose numbers the batches hold.

        Raises FormatError and UnsupportedError as ``read_slice`` does, StorageError for a missing
        file.
        """
        from reconciler.storage.open import open_storage  # noqa: PLC0415 (on the worker)

        storage = ReadOnlyStorage(open_storage(self.ref))
        packs = self.packs if isinstance(self.packs, list) else self.packs.value
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self._read_slices(packs[number], storage)

    def _read_slices(self, data: bytes, storage: Storage) -> Iterator[pa.RecordBatch]:
        for row in pa.ipc.open_stream(data).read_all().to_pylist():
            files = SliceFiles(
                base=row["base"], base_size=row["base_size"], logs=tuple(row["logs"])
            )
            try:
                yield from self.reading.read(files, row[_VALUES] or {}, storage)
            except NotFoundError as error:
                raise StorageError(error.path, FILE_REMOVED) from None
