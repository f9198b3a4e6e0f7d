"""What a write is asked to do and what it tells: values between the driver and its workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Protocol, Self

import pyarrow as pa

from reconciler.hudi.files.view import FileView
from reconciler.hudi.metadata.record_index import RecordIndex
from reconciler.layout.sizing.assignment_rules import AssignmentRule
from reconciler.layout.sizing.buckets import BucketAssignment, Workload
from reconciler.layout.sizing.file_group_sizes import (
    FileGroupSizes,
    measure_groups,
    newest_base_names,
)
from reconciler.storage.api import Storage
from reconciler.writer.bucket import BucketSettings, WrittenBaseFile
from reconciler.writer.dedupe import DedupeRule
from reconciler.writer.partition_paths import PartitionRule
from reconciler.writer.record_keys import KeyRule


class RowOperation(Enum):
    """What becomes of rows, by Hudi's names (WriteOperationType)."""

    INSERT = "insert"
    UPSERT = "upsert"
    DELETE = "delete"
    BULK_INSERT = "bulk_insert"

    @property
    def needs_lookup(self) -> bool:
        """Whether rows go where their keys are already."""
        return self in (RowOperation.UPSERT, RowOperation.DELETE)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowJob:
    """What is done with rows, the same for all of them; picklable.

    ``work``: of the base files that they get into. ``columns``: of the table, in the types that
    rows have to be of; ``incoming``: those that they are read as before (``SchemaEvolution``; empty for a
    delete, which looks at no other columns than keys and folders are made of). ``dedupes``: of an
    insert, whether a key is written once; of rows that are looked up each key is.
    """

    operation: RowOperation
    settings: BucketSettings
    key_rule: KeyRule
    partition_rule: PartitionRule
    dedupe_rule: DedupeRule
    columns: pa.Schema
    incoming: pa.Schema
    dedupes: bool = False

    @property
    def keeps_one_per_key(self) -> bool:
        """Whether of the rows of a key one is written."""
        return self.dedupes or self.operation.needs_lookup


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableGroups:
    """The file groups of a table, and per group the name of its newest base file, null for none."""

    groups: FileGroupSizes
    bases: Any

    @classmethod
    def from_view(
        cls,
        view: FileView,
        *,
        compacting: Iterable[tuple[str, str]] = (),
        clustering: Iterable[tuple[str, str]] = (),
    ) -> Self:
        """Of a view; (partition, file id) pairs are pending in table services."""
        groups = measure_groups(view, compacting=compacting, clustering=clustering)
        return cls(groups=groups, bases=newest_base_names(view))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WriteJob:
    """One write. ``seed``: 32 hex digits that no other attempt has; new file ids are made of it.

    ``size_rule``: which files take new rows, and how many. ``has_commits``: a write was completed on the
    table. ``needs_blooms``: whether results carry the bloom filters of new files, half a megabyte each.
    ``is_stream_batch``: it is the batch of a stream. ``index``: where every key of the table is, in which
    partition whatsoever; None where keys belong to partitions.
    """

    row_job: RowJob
    seed: str
    table_groups: TableGroups
    size_rule: AssignmentRule
    has_commits: bool = True
    needs_blooms: bool = False
    is_stream_batch: bool = False
    index: RecordIndex | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WriteAssignment:
    """What is known before the first file is begun: the ground of an inflight instant's profile."""

    workload: Workload
    assignment: BucketAssignment


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """Rows of a write.

    ``incoming`` by the caller; ``dropped``: others of their key are written instead; ``absent_deletes``:
    deletions of keys that the table has not. ``inserts``, ``updates`` and ``deletes``: what the new
    files count; an update that is older than the row that is there counts nowhere, one that moves
    to another partition as an insert and a deletion.
    """

    incoming: int
    dropped: int
    absent_deletes: int
    inserts: int
    updates: int
    deletes: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WrittenFiles:
    """The new base files, in the order of buckets. What else has a marker is to be removed."""

    files: tuple[WrittenBaseFile, ...]
    counts: RowCounts
    assignment: WriteAssignment


class TaskContext(Protocol):
    """Where a task works; picklable."""

    def open_storage(self) -> Storage:
        """The table's storage, a task's own."""

    def get_attempt(self) -> int:
        """A number that no other try at any task has."""

    def make_folder(self) -> AbstractContextManager[Path]:
        """An empty one on the local disk, gone after the block."""


class Broadcast(Protocol):
    """A value that all tasks can look at."""

    @property
    def value(self) -> Any:
        """The value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRunner:
    """What runs the tasks of a write.

    ``partitions``: into how many parts rows are spread by their keys; ``search_tasks``: about how many
    tasks look for keys in files.
    """

    context: TaskContext
    broadcast: Callable[[Any], Broadcast]
    partitions: int
    search_tasks: int


class RowWriter(Protocol):
    """Something that writes rows into base files, here or elsewhere."""

    def write(
        self, rows: Any, job: WriteJob, *, assigned: Callable[[WriteAssignment], None]
    ) -> WrittenFiles:
        """Write the files, each after its marker; ``assignment`` hears before the first of them.

        Raises ReconcilerError, after which no task writes any more; files may stay, each with its
        marker.
        """
