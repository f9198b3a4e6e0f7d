"""The rules that assign rows to files: Hudi's, or the steady one of the reconciler.

A rule fills the small files of one partition with new rows, and splits the rest into new files.
Hudi's rule is UpsertPartitioner.assignInserts (0.15.0, 1.2.0), and for streams BucketAssigner and
WriteProfile of its Flink writer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Literal, assert_never

import numpy as np
from numpy.typing import NDArray

from reconciler.arrays import Integers, Mask
from reconciler.layout.sizing.record_size import (
    MIN_DATA_SHARE,
    FooterSizes,
    PastWrite,
    RecordSize,
    compute_average_size,
    estimate_record_size,
)
from reconciler.layout.sizing.tiers import MIB, FileTiers, TierChoice, TierFile, choose_tier
from reconciler.lazy_dataclass import dataclass

#: default bytes of a record (hoodie.copyonwrite.record.size.estimate)
DEFAULT_RECORD_SIZE: Final = 1024
#: a file may exceed the target by this factor to avoid two small files
MAX_OVERFILL: Final = 1.15
#: the share of the target from which on a file is big enough, however ``small`` is declared
_FULL_SHARE: Final = 5 / 6
#: the share of a batch's rows that stays in each file whose rows move, so that none is empty
_STAYING_SHARE: Final = 1 / 16
#: the most rows that one write moves to a file if a record index is told of each
_MAX_INDEXED_MOVES: Final = 1_000_000
#: with fewer rows, the overhead of each column is a large part of every row's size
_ENOUGH_ROWS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSizeLimits:
    """Bytes up to which a file is filled, and below which it is small (0: no file is small)."""

    target: int = 120 * MIB
    small: int = 100 * MIB

    def __post_init__(self) -> None:
        assert self.target > 0, "a file's target size is above 0"


@dataclass(frozen=True, slots=True)
class CopyOnWrite:
    """A file that takes rows is rewritten with the old and the new rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeOnRead:
    """New rows are appended as log files, or merged into base files, depending on the index.

    ``indexes_logs``: True if the table's index finds rows in log files (in-memory, HBase and
    consistent hashing indexes); otherwise new rows are merged into base files without log files.
    ``max_candidates``: number of those base files per partition that take rows by Hudi's rule
    (hoodie.merge.small.file.group.candidates.limit).
    """

    indexes_logs: bool = False
    max_candidates: int = 1


TableKind = CopyOnWrite | MergeOnRead


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SmallFiles:
    """The small files of a partition, an element a file, in the order of ``find_small_files``.

    ``size``: int64, bytes. ``growth``: int64, bytes that updates of the same write add.
    ``rewritten``: int64, bytes of old rows that are rewritten only if the file takes new rows.
    ``is_updated``: bool, the same write updates rows of the file. ``is_free``: bool, it takes rows
    without being rewritten for them.
    """

    size: Integers
    growth: Integers
    rewritten: Integers
    is_updated: Mask
    is_free: Mask


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilledFiles:
    """What becomes of small files, an element a file.

    ``takes``: int64, new rows. ``moves_to``: int64, the number of the file that takes its old rows,
    -1 if they stay.
    """

    takes: Integers
    moves_to: Integers

    @classmethod
    def without_moves(cls, takes: Integers) -> FilledFiles:
        """Return files that keep their rows."""
        return cls(takes=takes, moves_to=np.full(len(takes), -1, np.int64))


@dataclass(frozen=True, slots=True, kw_only=True)
class HudiRule:
    """Hudi's rule: fill the files in the order of Hudi's view by the average record size.

    ``average``: bytes of a record (``compute_average_size``). ``split_rows``: rows of a new file
    (hoodie.copyonwrite.insert.split.size), None if the average decides (auto.split). ``is_stream``:
    empty files take no rows, and the rows of a new file are rounded down, not up.
    """

    sizes: FileSizeLimits
    average: int
    split_rows: int | None = None
    is_stream: bool = False

    def __post_init__(self) -> None:
        assert self.average > 0, "a record has bytes"
        assert self.split_rows is None or self.split_rows > 0, "a file has rows"

    @property
    def record_size(self) -> RecordSize:
        return RecordSize(fixed=0, per_row=float(self.average), because="the average record")

    def fill(self, files: SmallFiles, rows: int) -> FilledFiles:
        """Return the rows that each file takes: as many average records as fit, file by file.

        Like Hudi, this ignores updates of the same write.
        """
        room = np.maximum((self.sizes.target - files.size) // self.average, 0)
        room = np.where(files.size > 0, room, 0) if self.is_stream else room
        return FilledFiles.without_moves(_share_rows(room, rows))

    def split(self, rows: int) -> Integers:
        """Return the rows of each new file: all full except the last, by Hudi's rows per file."""
        target, average = self.sizes.target, self.average
        per_file = max(target // average, 1) if self.is_stream else math.ceil(target / average)
        return _split_full_files(rows, self.split_rows or per_file)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteCap:
    """A limit on the bytes rewritten to fill a file.

    A file is filled if its old rows have at most ``free_bytes``, or at most ``max_ratio`` times the
    bytes of the rows that it gets. ``docs/writing.md`` explains the defaults.

    >>> cap = RewriteCap(max_ratio=32, free_bytes=8 * MIB)
    >>> cap.allows(np.array([90, 90, 8]) * MIB, np.array([3.0, 2.0, 0.0]) * MIB).tolist()
    [True, False, True]
    """

    max_ratio: float = 32.0
    free_bytes: int = 8 * MIB

    def allows(self, rewritten: NDArray[Any], inserted: NDArray[Any]) -> Mask:
        """Return a mask of the files for which to rewrite so many bytes for so many new ones."""
        return rewritten <= np.maximum(self.max_ratio * inserted, self.free_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyRule:
    """The steady rule: fill files that are rewritten anyway, then collect small batches in tiers.

    A file's fixed bytes count. ``tiers``: None fills small files one after the other, smallest
    first, as far as ``rewrite_cap`` allows; None there fills them at any cost. ``needs_row_sizes``:
    too little is known of row sizes, so a write must measure its own rows before it assigns them.
    """

    sizes: FileSizeLimits
    record_size: RecordSize
    tiers: FileTiers | None = None
    rewrite_cap: RewriteCap | None = RewriteCap()
    needs_row_sizes: bool = False

    def __post_init__(self) -> None:
        assert self.record_size.per_row > 0, "a row has bytes"

    def fill(self, files: SmallFiles, rows: int) -> FilledFiles:
        """Return what becomes of small files.

        Files that take rows at no cost are filled first. Then, with ``tiers``, a batch that would
        itself be a small file goes where ``choose_tier`` tells. Any other fills small files.
        """
        if self.tiers is None:
            return FilledFiles.without_moves(self._fill_in_order(files, rows, self.rewrite_cap))
        room = np.where(files.is_free, self._find_room(files), 0)
        takes = _share_rows(room, rows)
        left = rows - int(takes.sum())
        batch = left * self.record_size.per_row
        if not left:
            return FilledFiles.without_moves(takes)
        if batch + self.record_size.fixed >= self._full_bytes:
            return FilledFiles.without_moves(self._fill_in_order(files, rows, None))
        open_files = np.flatnonzero(~files.is_free & (files.size < self._full_bytes))
        tier_files = [self._describe_file(files, number) for number in open_files.tolist()]
        choice = choose_tier(
            self.tiers,
            tier_files,
            batch,
            target=self.sizes.target,
            per_row=self.record_size.per_row,
        )
        return self._fill_tier(files, FilledFiles.without_moves(takes), open_files, choice, left)

    @property
    def _full_bytes(self) -> float:
        """Bytes from which on a file takes no small batches."""
        return min(self.sizes.small, _FULL_SHARE * self.sizes.target)

    def _describe_file(self, files: SmallFiles, number: int) -> TierFile:
        size = int(files.size[number])
        fixed = min(self.record_size.fixed, size)
        return TierFile(
            data=size - fixed, fixed=fixed, is_movable=not bool(files.is_updated[number])
        )

    def _fill_tier(
        self,
        files: SmallFiles,
        filled: FilledFiles,
        open_files: Integers,
        choice: TierChoice,
        rows: int,
    ) -> FilledFiles:
        """Give the rows to the chosen file; a share of them stays in files whose rows move."""
        if choice.into is None:
            return filled
        into, sources = int(open_files[choice.into]), open_files[list(choice.sources)][-rows:]
        if not len(sources):
            filled.takes[into] += min(int(self._find_room(files)[into]), rows)
            return filled
        staying = max(int(rows * _STAYING_SHARE), 1)
        filled.takes[sources] += staying
        filled.takes[into] += rows - staying * len(sources)
        filled.moves_to[sources] = into
        return filled

    def _find_room(self, files: SmallFiles) -> Integers:
        """Return the rows for which each file has room."""
        left = np.maximum(self.sizes.target - files.size - files.growth, 0)
        room: Integers = np.floor(left / self.record_size.per_row).astype(np.int64)
        return room

    def _fill_in_order(self, files: SmallFiles, rows: int, cap: RewriteCap | None) -> Integers:
        """Return the rows that each file takes: files rewritten anyway first, then in their order.

        Each file is filled up to the target, including the growth by updates. Filling stops at the
        first file that would get too few rows to justify rewriting it.
        """
        order = np.argsort(files.rewritten > 0, kind="stable")
        rewritten = files.rewritten[order]
        takes = _share_rows(self._find_room(files)[order], rows)
        if cap is not None:
            worth = cap.allows(rewritten, takes * self.record_size.per_row)
            takes = np.where(np.logical_and.accumulate(worth | (takes == 0)), takes, 0)
        ordered = np.zeros(len(order), np.int64)
        ordered[order] = takes
        return ordered

    def split(self, rows: int) -> Integers:
        """Return the rows of each new file: equal shares, with at most one small file.

        There are as many files as the target requires. If equal shares would be small files, there
        is one file fewer, provided that none exceeds the target by more than 15 %. Otherwise all
        files are full except the last.
        """
        target, small = self.sizes.target, min(self.sizes.small, self.sizes.target)
        fixed, per_row = self.record_size.fixed, self.record_size.per_row
        per_file = self.rows_per_full_file
        most = max(int((MAX_OVERFILL * target - fixed) / per_row), per_file)
        enough = min(math.ceil(max(small - fixed, 0) / per_row), per_file)
        files = -(-rows // per_file)
        if not files or rows // files >= enough:
            return _split_equally(rows, files)
        if files > 1 and -(-rows // (files - 1)) <= most:
            return _split_equally(rows, files - 1)
        return _split_full_files(rows, per_file)

    @property
    def rows_per_full_file(self) -> int:
        """The rows, at least one, that fill a file to the target with its fixed bytes.

        If the fixed bytes take nearly the whole target, the file exceeds it by 15 %.
        """
        room = max(self.sizes.target - self.record_size.fixed, MIN_DATA_SHARE * self.sizes.target)
        return max(int(room / self.record_size.per_row), 1)


AssignmentRule = HudiRule | SteadyRule


def choose_rule(
    mode: Literal["steady", "hudi"],
    sizes: FileSizeLimits,
    history: Sequence[PastWrite],
    *,
    footers: FooterSizes | None = None,
    declared: int = DEFAULT_RECORD_SIZE,
    version: Literal["1.x", "0.15"] = "1.x",
) -> AssignmentRule:
    """Return the assignment rule for ``files.assign`` with the best known record size.

    ``mode``: the value of ``files.assign``. ``history``: completed writes in the order of requested
    times. ``footers``: sizes of small files, used if history is not enough. ``declared``: bytes of
    a record if nothing is known. ``version``: the Hudi version to imitate. With fewer than a
    thousand known rows and Hudi's default as declared size, the steady rule measures the rows of
    the write itself.
    """
    match mode:
        case "hudi":
            size = compute_average_size(history, small=sizes.small, fallback=declared, rule=version)
            return HudiRule(sizes=sizes, average=size)
        case "steady":
            record = estimate_record_size(history, footers, fallback=declared)
            if record.per_row <= 0:
                because = "declared: footers report no bytes"
                record = RecordSize(fixed=record.fixed, per_row=float(declared), because=because)
            weighs = record.rows < _ENOUGH_ROWS and declared == DEFAULT_RECORD_SIZE
            return SteadyRule(
                sizes=sizes, record_size=record, tiers=FileTiers(), needs_row_sizes=weighs
            )
        case _:
            assert_never(mode)


def restrict_moves(
    rule: AssignmentRule, *, has_flink_writers: bool, has_record_index: bool
) -> AssignmentRule:
    """Return the rule for a table in whose file groups others rely on finding rows again.

    ``has_flink_writers``: their state says where each key is, so rows must not move.
    ``has_record_index``: it says so too, and is told of each row that moves.
    """
    if not isinstance(rule, SteadyRule) or rule.tiers is None:
        return rule
    if has_flink_writers:
        return replace(rule, tiers=None)
    if has_record_index:
        return replace(rule, tiers=replace(rule.tiers, max_moved=_MAX_INDEXED_MOVES))
    return rule


def _share_rows(room: Integers, rows: int) -> Integers:
    """Distribute rows over files with the given room, one file after the other."""
    before = np.cumsum(room) - room
    shares: Integers = np.clip(rows - before, 0, room)
    return shares


def _split_full_files(rows: int, per_file: int) -> Integers:
    """Return as many full files as there are, and last the rest; none for no rows."""
    return np.minimum(rows - np.arange(0, rows, per_file), per_file)


def _split_equally(rows: int, files: int) -> Integers:
    return (rows + np.arange(files)[::-1]) // max(files, 1)
