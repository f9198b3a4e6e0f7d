"""Read the rows of a scan's slices as Arrow batches; Python workers of Spark run this.

Slices are grouped into tasks like Spark's files. Source:
org.apache.spark.sql.execution.datasources.FilePartition.maxSplitBytes, for slices, which cannot be
split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Integers, Mask, to_arrow, to_numpy
from reconciler.errors import NotFoundError, StorageError, UnsupportedError
from reconciler.file_slices.merge.slice_reader import (
    SliceFiles,
    SliceReadOptions,
    SliceSource,
    read_slice,
)
from reconciler.lazy_dataclass import dataclass
from reconciler.reader.model import Scan
from reconciler.reader.skipping import RowGroupTest, repeat_value
from reconciler.spark.failures import FILE_REMOVED
from reconciler.storage.api import Storage, StorageRef
from reconciler.storage.read_only import ReadOnlyStorage

COMMIT_TIME: Final = "_hoodie_commit_time"
#: the end of base file names of a metadata-only bootstrap, whose data are elsewhere
_SKELETON: Final = "_00000000000001.parquet"
_SLICE: Final = ("base", "base_size", "logs")
_VALUES: Final = "values"
#: defaults of Spark's spark.sql.files.maxPartitionBytes and openCostInBytes
_MAX_TASK_BYTES: Final = 128 * 1024 * 1024
_OPEN_COST_BYTES: Final = 4 * 1024 * 1024
#: how much longer a byte of a log file takes to read than one of a base file
_LOG_WEIGHT: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SliceRowReader:
    """Turns slices of a scan into rows of its result; the same for all slices, picklable.

    ``schema``: the result's. ``restored``: its columns that folder names hold. ``commit_times``:
    the writes whose rows count, None for all. ``groups``: which row groups of base files may match.
    """

    slices: SliceReadOptions
    schema: pa.Schema
    restored: frozenset[str]
    commit_times: tuple[str, ...] | None
    groups: RowGroupTest | None = None

    @classmethod
    def from_scan(cls, scan: Scan) -> Self:
        from_folder = frozenset(scan.partition_schema.names)
        columns = [name for name in scan.schema.names if name not in from_folder]
        if scan.commit_times is not None and COMMIT_TIME not in columns:
            columns.append(COMMIT_TIME)
        return cls(
            slices=SliceReadOptions(
                rules=scan.rules,
                schema=scan.table_schema,
                committed=scan.committed,
                columns=tuple(columns),
            ),
            schema=scan.schema,
            restored=from_folder,
            commit_times=scan.commit_times,
            groups=RowGroupTest.from_scan(scan),
        )

    def read(
        self, files: SliceFiles, values: Mapping[str, Any], source: SliceSource
    ) -> Iterator[pa.RecordBatch]:
        """Yield a slice's rows in the columns of ``schema``; ``values``: those of its partition.

        Row groups in which no row can match are skipped. Raises as ``read_slice`` does.
        """
        for batch in read_slice(
            files, self.slices, source, select_row_groups=self._make_row_group_filter(files, values)
        ):
            rows = batch if self.commit_times is None else self._filter_commits(batch)
            if len(rows):
                yield self._add_partition_values(rows, values)

    def _make_row_group_filter(
        self, files: SliceFiles, values: Mapping[str, Any]
    ) -> Callable[[Any], Mask] | None:
        row_groups = self.groups
        if row_groups is None or files.base is None:
            return None
        return lambda footer: row_groups.may_match(files.base or "", footer, values)

    def _filter_commits(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        times = pa.array(self.commit_times, pa.string())
        return batch.filter(pc.is_in(batch.column(COMMIT_TIME), value_set=times))

    def _add_partition_values(
        self, rows: pa.RecordBatch, values: Mapping[str, Any]
    ) -> pa.RecordBatch:
        if not self.schema.names:
            return rows.select([])
        columns = [
            repeat_value(values[field.name], field.type, len(rows))
            if field.name in self.restored
            else rows.column(field.name)
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def get_slice_files(scan: Scan, row: int) -> SliceFiles:
    """Return the files of a slice by its row in ``Scan.slices``."""
    slices = scan.slices
    return SliceFiles(
        base=slices.column("base")[row].as_py(),
        base_size=slices.column("base_size")[row].as_py(),
        logs=tuple(slices.column("logs")[row].as_py()),
    )


def check_mergeable(scan: Scan) -> None:
    """Raise UnsupportedError naming a slice that cannot be read here.

    Call it after pruning, so that slices that are not read do not count.
    """
    bases = scan.slices.column("base")
    skeletons = bases.filter(pc.fill_null(pc.ends_with(bases, _SKELETON), False))
    if len(skeletons):
        raise UnsupportedError(
            f"{skeletons[0].as_py()}: is a bootstrap skeleton, whose data are in files outside the "
            "table; rewrite its partition with Hudi (for example by clustering)"
        )
    if scan.rules.refusal and scan.has_logs.any():
        raise UnsupportedError(f"{scan.rules.refusal}; its log files cannot be read")


def weigh_slices(slices: pa.Table) -> Integers:
    """Estimate the time to read each slice, in bytes of a base file."""
    base, logs = (
        to_numpy(slices.column(name).combine_chunks()) for name in ("base_size", "log_size")
    )
    weights: Integers = base + logs * _LOG_WEIGHT
    return weights


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
    """Reads the slices of tasks; picklable, for ``mapInArrow``.

    Its first column has task numbers. ``packs``: the result of ``pack_slices``, or a broadcast of
    it, which disks may hold; secrets are in ``ref`` alone. None: the column has the packs.
    """

    ref: StorageRef
    reading: SliceRowReader
    packs: Any

    @classmethod
    def from_scan(cls, scan: Scan, ref: StorageRef, packs: Any) -> Self:
        return cls(ref=ref, reading=SliceRowReader.from_scan(scan), packs=packs)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the tasks that the batches name.

        Raises FormatError and UnsupportedError as ``read_slice`` does, StorageError for a missing
        file.
        """
        from reconciler.storage.open import open_storage  # noqa: PLC0415 (on the worker)

        storage = ReadOnlyStorage(open_storage(self.ref))
        has_values = self.packs is None or isinstance(self.packs, list)
        packs = self.packs if has_values else self.packs.value
        for batch in batches:
            for task in batch.column(0).to_pylist():
                yield from self._read_slices(task if packs is None else packs[task], storage)

    def _read_slices(self, data: bytes, storage: Storage) -> Iterator[pa.RecordBatch]:
        for row in pa.ipc.open_stream(data).read_all().to_pylist():
            files = SliceFiles(
                base=row["base"], base_size=row["base_size"], logs=tuple(row["logs"])
            )
            try:
                yield from self.reading.read(files, row[_VALUES] or {}, storage)
            except NotFoundError as error:
                raise StorageError(error.path, FILE_REMOVED) from None
