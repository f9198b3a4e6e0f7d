"""What a write is asked to do and what it tells: values between the driver and its workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Protocol, Self

import pyarrow as pa

from reconciler.hudi.record_index import RecordIndex
from reconciler.hudi.view import View
from reconciler.sizing.buckets import Assignment, Workload
from reconciler.sizing.groups import Groups, base_names, groups_of
from reconciler.sizing.rules import Rule
from reconciler.storage.api import Storage
from reconciler.writer.bucket import NewBase, Work
from reconciler.writer.dedupe import DedupeRule
from reconciler.writer.keys import KeyRule
from reconciler.writer.partitions import FolderRule


class Operation(Enum):
    """What becomes of rows, by Hudi's names (WriteOperationType)."""

    INSERT = "insert"
    UPSERT = "upsert"
    DELETE = "delete"
    BULK_INSERT = "bulk_insert"

    @property
    def looks_up(self) -> bool:
        """Whether rows go where their keys are already."""
        return self in (Operation.UPSERT, Operation.DELETE)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recipe:
    """What is done with rows, the same for all of them; picklable.

    ``work``: of the base files that they get into. ``columns``: of the table, in the types that
    rows have to be of; ``brought``: those that they are read as before (``Evolution``; empty for a
    delete, which looks at no other columns than keys and folders are made of). ``dedupes``: of an
    insert, whether a key is written once; of rows that are looked up each key is.
    """

    operation: Operation
    work: Work
    keys: KeyRule
    folders: FolderRule
    dedupe: DedupeRule
    columns: pa.Schema
    brought: pa.Schema
    dedupes: bool = False

    @property
    def takes_one_a_key(self) -> bool:
        """Whether of the rows of a key one is written."""
        return self.dedupes or self.operation.looks_up


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Standing:
    """The file groups of a table, and per group the name of its newest base file, null for none."""

    groups: Groups
    bases: Any

    @classmethod
    def of(
        cls,
        view: View,
        *,
        compacting: Iterable[tuple[str, str]] = (),
        clustering: Iterable[tuple[str, str]] = (),
    ) -> Self:
        """Of a view; (partition, file id) pairs are pending in table services."""
        groups = groups_of(view, compacting=compacting, clustering=clustering)
        return cls(groups=groups, bases=base_names(view))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WriteWork:
    """One write. ``seed``: 32 hex digits that no other attempt has; new file ids are made of it.

    ``rule``: which files take new rows, and how many. ``has_commits``: a write was completed on the
    table. ``blooms``: whether results carry the bloom filters of new files, half a megabyte each.
    ``streams``: it is the batch of a stream. ``index``: where every key of the table is, in which
    partition whatsoever; None where keys belong to partitions.
    """

    recipe: Recipe
    seed: str
    standing: Standing
    rule: Rule
    has_commits: bool = True
    blooms: bool = False
    streams: bool = False
    index: RecordIndex | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Assigned:
    """What is known before the first file is begun: the ground of an inflight instant's profile."""

    workload: Workload
    assignment: Assignment


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Rows of a write.

    ``brought`` by the caller; ``dropped``: others of their key are written instead; ``idle``:
    deletions of keys that the table has not. ``inserts``, ``updates`` and ``deletes``: what the new
    files count; an update that is older than the row that is there counts nowhere, one that moves
    to another partition as an insert and a deletion.
    """

    brought: int
    dropped: int
    idle: int
    inserts: int
    updates: int
    deletes: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WriteDone:
    """The new base files, in the order of buckets. What else has a marker is to be removed."""

    files: tuple[NewBase, ...]
    totals: Totals
    assigned: Assigned


class Bench(Protocol):
    """Where a task works; picklable."""

    def open(self) -> Storage:
        """The table's storage, a task's own."""

    def attempt(self) -> int:
        """A number that no other try at any task has."""

    def folder(self) -> AbstractContextManager[Path]:
        """An empty one on the local disk, gone after the block."""


class Shared(Protocol):
    """A value that all tasks can look at."""

    @property
    def value(self) -> Any:
        """The value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """What runs the tasks of a write.

    ``places``: into how many parts rows are spread by their keys; ``searches``: about how many
    tasks look for keys in files.
    """

    bench: Bench
    shared: Callable[[Any], Shared]
    places: int
    searches: int


class Writer(Protocol):
    """Something that writes rows into base files, here or elsewhere."""

    def write(
        self, rows: Any, work: WriteWork, *, assigned: Callable[[Assigned], None]
    ) -> WriteDone:
        """Write the files, each after its marker; ``assigned`` hears before the first of them.

        Raises ReconcilerError, after which no task writes any more; files may stay, each with its
        marker.
        """
