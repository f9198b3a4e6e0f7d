"""Define the input and result of a rewrite: values between the driver and its workers."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol, Self

from reconciler.file_slices.base_file.schema import FileSchema
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.file_slices.base_file.writer import WrittenFile
from reconciler.file_slices.merge.merge_counts import MergeCounts
from reconciler.file_slices.merge.slice_reader import SliceFiles, SliceReadOptions
from reconciler.layout.sizing.split_rule import SplitRule
from reconciler.lazy_dataclass import dataclass
from reconciler.storage.api import Advance, StorageRef

#: sums of key hashes are taken modulo this
_HASH_MODULUS = 1 << 64


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOrdering:
    """The row order for ``fit_layout`` of ``layout.curves``; without columns rows keep theirs.

    ``positions``: where the columns are in the file's schema, meta columns included; ``zone``: the
    session's (both only for mapping ``direct``). ``queries``: SQL predicates.
    """

    columns: tuple[str, ...] = ()
    curve: str | None = None
    mapping: str | None = None
    queries: tuple[str, ...] = ()
    positions: tuple[int, ...] = ()
    zone: str = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RewriteJob:
    """The settings that all groups of one clustering share; picklable.

    ``instant``: the pending clustering's, for markers. ``seed``: 32 hex digits that no other
    attempt has; file ids are derived from it. ``reading``: reads every column that files hold.
    ``schema``, ``form``: those of the new files. ``split``: their sizes. ``range_columns``: columns
    whose ranges are collected for every new file. ``key_fields``: the columns of a row's key if the
    table has no meta columns. ``keeps_bloom``: results have the text of each file's bloom filter,
    which is large; only an index of filters needs it.
    """

    instant: str
    seed: str
    reading: SliceReadOptions
    schema: FileSchema
    form: BaseFileSettings
    ordering: RowOrdering = field(default_factory=RowOrdering)
    split: SplitRule
    range_columns: tuple[str, ...] = ()
    key_fields: tuple[str, ...] = ()
    keeps_bloom: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteGroup:
    """Slices of one partition whose rows go into new files together.

    ``number``: the group's index in its clustering. ``partition``: its path, "" if there is none;
    ``values``: values of columns that only the folder name holds. ``outputs``: wanted files.
    ``bytes``: size of base and log files, the unit of progress. ``bucket``: the file id whose
    bucket number the one new file keeps, which is never split; "" if the group is no bucket.
    """

    number: int
    partition: str
    slices: tuple[SliceFiles, ...]
    outputs: int
    bytes: int
    values: Mapping[str, Any] = field(default_factory=dict)
    bucket: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Number of rows and the sum of their key hashes (modulo 2^64), independent of their order."""

    rows: int = 0
    keys: int = 0

    def add(self, other: Self) -> Self:
        return type(self)(
            rows=self.rows + other.rows, keys=(self.keys + other.keys) % _HASH_MODULUS
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RewrittenGroup:
    """A group's new files in the order of their rows, without ``footer``.

    ``read`` and ``written`` must be equal before anything is published. ``splits``: files that
    exist only because another one exceeded ``RewriteJob.split``.
    """

    number: int
    files: tuple[WrittenFile, ...]
    read: Tally
    written: Tally
    splits: int = 0


def make_seed(instant: str, attempt: str) -> str:
    """Return the 32 hex digits from which the file ids of an attempt are derived.

    >>> len(make_seed("20260101000000000", "a"))
    32
    """
    return hashlib.md5(f"{instant} {attempt}".encode(), usedforsecurity=False).hexdigest()


def make_output_id(seed: str, group: int, output: int) -> str:
    """Return the prefix of the file ids of a group's output, the same in every task.

    >>> make_output_id("0" * 32, 1, 2)
    '6cee07e1-2fa1-53e2-a5d7-62684920eb4c'
    """
    return str(uuid.uuid5(uuid.UUID(hex=seed), f"{group}/{output}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceToCompact:
    """A file slice of a compaction plan.

    ``number``: its index in the plan. ``bytes``: of base and log files, the unit of progress.
    ``values``: values of columns that only the folder name holds. ``is_always_written``: a slice
    without a base file and without log records becomes an empty file, as in Hudi 1.x.
    ``keeps_bloom``: the result has the text of the bloom filter, which is large.
    """

    number: int
    partition: str
    file_id: str
    files: SliceFiles
    bytes: int
    values: Mapping[str, Any] = field(default_factory=dict)
    is_always_written: bool = True
    keeps_bloom: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompactedSlice:
    """The result of one slice; ``file``: None if it has no rows and needs no file."""

    number: int
    file: WrittenFile | None
    counts: MergeCounts


class Rewriter(Protocol):
    """Rewrites groups, in this process or elsewhere."""

    def rewrite(
        self, ref: StorageRef, job: RewriteJob, groups: Sequence[RewriteGroup], *, progress: Advance
    ) -> list[RewrittenGroup]:
        """Write the new files of every group, each after its marker; results come in any order.

        ``progress`` gets bytes read. Files of failed or overtaken attempts may stay, each with its
        marker; the caller removes what is not in the results. Raises ReconcilerError.
        """

    def compact(
        self,
        ref: StorageRef,
        job: RewriteJob,
        slices: Sequence[SliceToCompact],
        *,
        progress: Advance,
    ) -> list[CompactedSlice]:
        """Write the new base file of every slice, each after its marker; as ``rewrite``.

        ``job`` is that of a rewrite that keeps the order of rows.
        """
