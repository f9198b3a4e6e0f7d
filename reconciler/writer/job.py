"""Define the input and result of a write's tasks: values between the driver and its workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import field
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from reconciler.hudi.metadata.record_index import RecordIndex
from reconciler.layout.sizing.assign import BucketAssignment, Workload
from reconciler.layout.sizing.assignment_rules import AssignmentRule, CopyOnWrite, TableKind
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.lazy_dataclass import dataclass
from reconciler.storage.api import Storage
from reconciler.writer.bucket import BucketSettings, WrittenBaseFile
from reconciler.writer.dedupe import DedupeRule
from reconciler.writer.index_buckets import IndexBuckets
from reconciler.writer.log_bucket import WrittenLog
from reconciler.writer.log_targets import LogTargets
from reconciler.writer.lookup_costs import KeyLookup
from reconciler.writer.partition_paths import PartitionRule
from reconciler.writer.record_keys import KeyRule
from reconciler.writer.slice_keys import SliceLogs


class RowOperation(Enum):
    """The operation on rows, by Hudi's names (WriteOperationType)."""

    INSERT = "insert"
    UPSERT = "upsert"
    DELETE = "delete"
    BULK_INSERT = "bulk_insert"

    @property
    def needs_lookup(self) -> bool:
        """True if rows go to the files that hold their keys."""
        return self in (RowOperation.UPSERT, RowOperation.DELETE)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowRules:
    """The rules by which incoming rows become rows of the table.

    ``key``, ``partition``: how their keys and folders are made; ``dedupe``: which row of a key is
    written. ``columns``: the table's columns, in the types that rows are converted to;
    ``incoming``: the columns before that (``SchemaEvolution``; empty for a delete, which reads the
    columns of keys and folders only).
    """

    key: KeyRule
    partition: PartitionRule
    dedupe: DedupeRule
    columns: pa.Schema
    incoming: pa.Schema


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowJob:
    """The job that every task does with its rows; picklable.

    ``instant``: the pending write's. ``settings``: those of the base files to write. ``dedupes``:
    an insert writes each key once; operations with a lookup always do that. ``needs_blooms``:
    results carry the bloom filters of new files, half a megabyte each. ``index_buckets``: the
    buckets of the table's bucket index, if it has one.
    """

    operation: RowOperation
    instant: str
    settings: BucketSettings
    rules: RowRules
    dedupes: bool = False
    needs_blooms: bool = False
    index_buckets: IndexBuckets | None = None

    @property
    def keeps_one_per_key(self) -> bool:
        """True if one row per key is written."""
        return self.dedupes or self.operation.needs_lookup


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WriteJob:
    """One write. ``seed``: 32 hex digits that no other attempt has; file ids are derived from it.

    ``size_rule``: which files take new rows, and how many; ``kind``: of the table. ``has_commits``:
    the table has a completed write. ``is_stream_batch``: it is the batch of a stream. ``index``:
    where each key of the table is, in any partition; None if a key belongs to its partition.
    ``log_targets``: finds the log files to append, None for a copy-on-write table. ``logs``: per
    group, the log files that readers merge; ``searches_logs``: they are searched for keys.
    """

    row_job: RowJob
    seed: str
    groups: FileGroupSizes
    size_rule: AssignmentRule
    kind: TableKind = CopyOnWrite()
    has_commits: bool = True
    is_stream_batch: bool = False
    index: RecordIndex | None = None
    log_targets: LogTargets | None = None
    logs: Mapping[int, SliceLogs] = field(default_factory=dict)
    searches_logs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WriteAssignment:
    """The assignment of rows to files, known before the first file; for the inflight profile."""

    workload: Workload
    assignment: BucketAssignment


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """Rows of a write.

    ``incoming``: from the caller; ``dropped``: replaced by another row of the same key;
    ``absent_deletes``: deletions of keys that the table lacks. ``inserts``, ``updates`` and
    ``deletes``: as the new files count them. An update older than the existing row counts nowhere,
    unless it went to a log file, which readers merge; one that moves to another partition counts as
    an insert and a deletion.
    """

    incoming: int
    dropped: int
    absent_deletes: int
    inserts: int
    updates: int
    deletes: int


#: a file of a write, with its partition and its statistic
WrittenDataFile = WrittenBaseFile | WrittenLog


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WrittenFiles:
    """The new base files and log files in bucket order.

    Other files with markers are to be removed. ``lookup``: how keys were looked up, None if none
    were.
    """

    files: tuple[WrittenBaseFile, ...]
    counts: RowCounts
    assignment: WriteAssignment
    logs: tuple[WrittenLog, ...] = ()
    lookup: KeyLookup | None = None

    @property
    def partitions(self) -> set[str]:
        """The partitions with new files."""
        return {written.partition for written in self.all_files}

    @property
    def all_files(self) -> tuple[WrittenDataFile, ...]:
        """The new base files and log files."""
        return (*self.files, *self.logs)


class TaskContext(Protocol):
    """The services that a task works with; picklable."""

    def open_storage(self) -> Storage:
        """Open the table's storage for this task."""

    def get_attempt(self) -> int:
        """Return a number that no other attempt at any task has."""

    def make_folder(self) -> AbstractContextManager[Path]:
        """Make an empty folder on the local disk; it is removed after the block."""


class Broadcast(Protocol):
    """A value that all tasks can read."""

    @property
    def value(self) -> Any:
        """The value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRunner:
    """The runner of a write's tasks.

    ``partitions``: shuffle partitions, by which rows are spread by their keys; ``search_tasks``:
    about how many tasks look for keys in files.
    """

    context: TaskContext
    broadcast: Callable[[Any], Broadcast]
    partitions: int
    search_tasks: int


class RowWriter(Protocol):
    """Writes rows into base files, in this process or elsewhere."""

    def write(
        self, rows: Any, job: WriteJob, *, assigned: Callable[[WriteAssignment], None]
    ) -> WrittenFiles:
        """Write the files, each after its marker; calls ``assigned`` before the first of them.

        Raises ReconcilerError, after which no task writes any more. Files may stay, each with its
        marker.
        """
