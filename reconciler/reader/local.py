"""Read the rows of a scan in this process, without Spark.

What Spark's reader, its workers and its filter do is done here, slice by slice, so memory holds a
row group, or the log records of a slice. Rows come in the order of the scan's slices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from reconciler.errors import NotFoundError, StorageError
from reconciler.index.predicates.syntax import Predicate
from reconciler.lazy_dataclass import dataclass
from reconciler.reader.model import Scan
from reconciler.reader.plain_condition import (
    can_filter_rows,
    filter_rows,
    list_columns,
    parse_plain_condition,
    prune_plainly,
)
from reconciler.reader.pruning import PrunedScan, keep_all
from reconciler.reader.slice_rows import SliceRowReader, check_mergeable, get_slice_files
from reconciler.spark.failures import FILE_REMOVED
from reconciler.storage.api import Storage
from reconciler.storage.read_only import ReadOnlyStorage

#: why a condition is left to Spark
NOT_PLAIN = "the condition is more than comparisons of columns with values of their type"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalRead:
    """A read without Spark: the slices that are read, and the condition on their rows."""

    pruned: PrunedScan
    predicate: Predicate | None = None

    @property
    def bytes(self) -> int:
        """Size of the files that are read."""
        kept = self.pruned.kept
        return int(kept.get_numbers("base_size").sum() + kept.get_numbers("log_size").sum())


def plan_local_read(scan: Scan, where: str | None, index: Storage | None) -> LocalRead | None:
    """Return how a scan is read without Spark; None for a condition that only Spark interprets.

    ``index``: the storage, to skip files by statistics.
    """
    if where is None:
        return LocalRead(pruned=keep_all(scan))
    predicate = parse_plain_condition(where, scan)
    if predicate is None or not can_filter_rows(predicate, scan):
        return None
    return LocalRead(pruned=prune_plainly(scan, predicate, index), predicate=predicate)


def read_rows(plan: LocalRead, storage: Storage) -> Iterator[pa.RecordBatch]:
    """Yield the matching rows in the scan's columns; no batch is empty.

    Raises UnsupportedError for slices that cannot be merged, FormatError and StorageError.
    """
    scan, predicate, source = plan.pruned.scan, plan.predicate, ReadOnlyStorage(storage)
    named = () if predicate is None else list_columns(predicate)
    extra = [scan.table_schema.field(name) for name in named if name not in scan.schema.names]
    kept = replace(plan.pruned.kept, schema=pa.schema([*scan.schema, *extra]))
    check_mergeable(kept)
    reader = SliceRowReader.from_scan(kept)
    partition = kept.get_numbers("partition")
    for row in range(len(kept.slices)):
        values = kept.get_partition_values(int(partition[row]))
        try:
            for batch in reader.read(get_slice_files(kept, row), values, source):
                rows = batch if predicate is None else filter_rows(batch, predicate)
                if len(rows):
                    yield rows.select(scan.schema.names) if extra else rows
        except NotFoundError as error:
            raise StorageError(error.path, FILE_REMOVED) from None


def take_rows(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """Yield batches up to a number of rows in all, None for no limit; reads no further."""
    left = limit
    while left is None or left > 0:
        batch = next(batches, None)
        if batch is None:
            return
        rows = batch if left is None else batch.slice(0, left)
        left = None if left is None else left - len(rows)
        yield rows
