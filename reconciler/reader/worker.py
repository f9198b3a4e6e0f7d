"""What a Python worker of Spark does: the slices of a task, as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.errors import NotFoundError, StorageError
from reconciler.hudi.arrow import integers
from reconciler.merge.slice import FileSliceRef
from reconciler.reader.model import Scan
from reconciler.reader.rows import RowReading
from reconciler.storage.api import Storage, StorageRef
from reconciler.storage.wrappers import ReadOnly

_SLICE: Final = ("base", "base_size", "logs")
_VALUES: Final = "values"


def packed(scan: Scan, tasks: Sequence[NDArray[np.int64]]) -> list[bytes]:
    """What each task has to know of its slices, given by their rows; an Arrow stream each."""
    number = scan.slices.column("partition").combine_chunks()
    known = scan.slices.select(_SLICE).append_column(_VALUES, _values(scan).take(number))
    return [_stream(known.take(integers(rows))) for rows in tasks]


def _values(scan: Scan) -> pa.Array:
    """The values of each partition as one column, so that no name is taken twice."""
    if not scan.partition_schema.names:
        return pa.nulls(len(scan.partitions))
    columns = [scan.partitions.column(n).combine_chunks() for n in scan.partition_schema.names]
    return pa.StructArray.from_arrays(columns, fields=list(scan.partition_schema))


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Worker:
    """Reads the slices of tasks; picklable, for ``mapInArrow`` over a column of their numbers.

    ``packs``: what ``packed`` made, or a broadcast variable of it, which a disk may hold: secrets
    are in ``ref`` alone.
    """

    ref: StorageRef
    reading: RowReading
    packs: Any

    @classmethod
    def of(cls, scan: Scan, ref: StorageRef, packs: Any) -> Self:
        return cls(ref=ref, reading=RowReading.of(scan), packs=packs)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the tasks whose numbers the batches hold.

        Raises FormatError and UnsupportedError as ``read_slice`` does, StorageError for a file that
        went away.
        """
        from reconciler.storage.open import open_storage  # noqa: PLC0415 (on the worker)

        storage = ReadOnly(open_storage(self.ref))
        packs = self.packs if isinstance(self.packs, list) else self.packs.value
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self._task(packs[number], storage)

    def _task(self, pack: bytes, storage: Storage) -> Iterator[pa.RecordBatch]:
        for row in pa.ipc.open_stream(pack).read_all().to_pylist():
            files = FileSliceRef(
                base=row["base"], base_size=row["base_size"], logs=tuple(row["logs"])
            )
            try:
                yield from self.reading.read(files, row[_VALUES] or {}, storage)
            except NotFoundError as gone:
                raise StorageError(
                    gone.path,
                    "went away after the read began: a clean or a rollback has "
                    "removed it; read again",
                ) from None
