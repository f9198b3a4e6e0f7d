"""What a rewrite is asked to do and what it tells: values between the driver and its workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from reconciler.file_slices.base_file.schema import FileSchema
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.file_slices.base_file.writer import WrittenFile
from reconciler.file_slices.merge.slice_reader import SliceFiles, SliceReadOptions
from reconciler.storage.api import StorageRef

#: sums of key hashes wrap around here
_WRAP = 1 << 64


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOrdering:
    """What orders the rows; no columns: rows stay as they come. As ``curves.layout.fit`` has it.

    ``positions``: of the columns in the file's schema, meta columns counted; ``zone``: of the session
    (both for mapping ``direct`` alone). ``queries``: SQL predicates.
    """

    columns: tuple[str, ...] = ()
    curve: str | None = None
    mapping: str | None = None
    queries: tuple[str, ...] = ()
    positions: tuple[int, ...] = ()
    zone: str = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RewriteJob:
    """What all groups of one clustering have in common; picklable.

    ``instant``: of the pending clustering, whose markers are written. ``seed``: 32 hex digits that
    no other attempt has; file ids are made of it. ``reading``: gives every column that files hold.
    ``schema``, ``form``: of the new files. ``target``: bytes of a file. ``range_columns``: columns whose
    ranges are told for every new file. ``key_fields``: the columns that make a row's key where the
    table has no meta columns.
    """

    instant: str
    seed: str
    reading: SliceReadOptions
    schema: FileSchema
    form: BaseFileSettings
    ordering: RowOrdering = field(default_factory=RowOrdering)
    target: int
    range_columns: tuple[str, ...] = ()
    key_fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteGroup:
    """Slices of one partition whose rows go into new files together.

    ``number``: of the group in its clustering. ``partition``: its path, "" where there is none;
    ``values``: of the columns that only its folder says. ``outputs``: files wanted. ``bytes``: of
    base and log files, what progress is counted in.
    """

    number: int
    partition: str
    slices: tuple[SliceFiles, ...]
    outputs: int
    bytes: int
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Rows and the sum of their keys' hashes (modulo 2^64): the same whatever their order."""

    rows: int = 0
    keys: int = 0

    def add(self, other: Self) -> Self:
        return type(self)(rows=self.rows + other.rows, keys=(self.keys + other.keys) % _WRAP)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RewrittenGroup:
    """A group's new files in the order of their rows, without ``footer``.

    ``read`` and ``written`` must be equal before anything is published. ``splits``: how many files
    are there only because another one grew beyond 1.15 times the target.
    """

    number: int
    files: tuple[WrittenFile, ...]
    read: Tally
    written: Tally
    splits: int = 0


class Rewriter(Protocol):
    """Something that rewrites groups, here or elsewhere."""

    def rewrite(
        self,
        ref: StorageRef,
        job: RewriteJob,
        groups: Sequence[RewriteGroup],
        *,
        progress: Callable[[int], None],
    ) -> list[RewrittenGroup]:
        """Write the new files of every group, each after its marker; results in any order.

        ``progress`` hears of bytes read. Files of attempts that failed or were overtaken may stay,
        each with its marker: what is not in the results is to be removed. Raises ReconcilerError.
        """
