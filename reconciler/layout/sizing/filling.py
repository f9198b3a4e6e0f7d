"""Fill the small files of one partition with new rows, and split the rest into new files.

Hudi's rule is UpsertPartitioner.assignInserts (0.15.0, 1.2.0); the steady rule is the reconciler's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from reconciler.arrays import Integers
from reconciler.layout.sizing.assignment_rules import HudiRule, SteadyRule

Counts = Integers
#: a file may exceed the target by this factor to avoid two small files
MAX_OVERFILL: Final = 1.15
#: the rows of a full file take at least this share of the target, however many fixed bytes it has
_MIN_DATA_SHARE: Final = 0.15


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SmallFiles:
    """The small files of a partition, an element a file, in the order of ``find_small_files``.

    ``size``: int64, bytes. ``growth``: int64, bytes that updates of the same write add.
    ``rewritten``: int64, bytes of old rows that are rewritten only if the file takes new rows.
    """

    size: Counts
    growth: Counts
    rewritten: Counts


def fill_by_hudi(files: SmallFiles, rows: int, rule: HudiRule) -> Counts:
    """Return the rows that each file takes: as many average records as fit, file by file.

    Like Hudi, this ignores updates of the same write.
    """
    room = np.maximum((rule.sizes.target - files.size) // rule.average, 0)
    return _share_rows(room, rows)


def split_by_hudi(rows: int, rule: HudiRule, *, is_stream: bool = False) -> Counts:
    """Return the rows of each new file: all full except the last, by Hudi's rows per file.

    Hudi's writer for streams rounds the rows per file down, the others up.
    """
    if rows <= 0:
        return np.zeros(0, np.int64)
    target, average = rule.sizes.target, rule.average
    whole = max(target // average, 1) if is_stream else math.ceil(target / average)
    return _split_full_files(rows, rule.split_rows or whole)


def fill_steadily(files: SmallFiles, rows: int, rule: SteadyRule) -> Counts:
    """Return the rows that each file takes: files rewritten anyway first, then in their order.

    Each file is filled up to the target, including the growth by updates. Filling stops at the
    first file that would get too few rows to justify rewriting it.
    """
    order = np.argsort(files.rewritten > 0, kind="stable")
    size, growth, rewritten = files.size[order], files.growth[order], files.rewritten[order]
    left = np.maximum(rule.sizes.target - size - growth, 0)
    takes = _share_rows(np.floor(left / rule.record_size.per_row).astype(np.int64), rows)
    if rule.rewrite_cap is not None:
        inserted = takes * rule.record_size.per_row
        worth = rule.rewrite_cap.allows(rewritten, inserted)
        takes = np.where(np.logical_and.accumulate(worth | (takes == 0)), takes, 0)
    found = np.zeros(len(order), np.int64)
    found[order] = takes
    return found


def split_steadily(rows: int, rule: SteadyRule) -> Counts:
    """Return the rows of each new file: equal shares, with at most one small file.

    There are as many files as the target requires. If equal shares would be small files, there is
    one file fewer, provided that none exceeds the target by more than 15 %. Otherwise all files are
    full except the last.
    """
    if rows <= 0:
        return np.zeros(0, np.int64)
    target, small = rule.sizes.target, min(rule.sizes.small, rule.sizes.target)
    fixed, per_row = rule.record_size.fixed, rule.record_size.per_row
    per_file = rows_per_full_file(rule)
    most = max(int((MAX_OVERFILL * target - fixed) / per_row), per_file)
    enough = min(math.ceil(max(small - fixed, 0) / per_row), per_file)
    files = -(-rows // per_file)
    if rows // files >= enough:
        return _split_equally(rows, files)
    if files > 1 and -(-rows // (files - 1)) <= most:
        return _split_equally(rows, files - 1)
    return _split_full_files(rows, per_file)


def rows_per_full_file(rule: SteadyRule) -> int:
    """Return the rows, at least one, that fill a file to the target with its fixed bytes.

    If the fixed bytes take nearly the whole target, the file exceeds it by 15 %.
    """
    room = max(rule.sizes.target - rule.record_size.fixed, _MIN_DATA_SHARE * rule.sizes.target)
    return max(int(room / rule.record_size.per_row), 1)


def _share_rows(room: Counts, rows: int) -> Counts:
    """Distribute rows over files with the given room, one file after the other."""
    before = np.cumsum(room) - room
    found: Counts = np.clip(rows - before, 0, room)
    return found


def _split_full_files(rows: int, per_file: int) -> Counts:
    found = np.full(-(-rows // per_file), per_file, np.int64)
    found[-1] = rows - (len(found) - 1) * per_file
    return found


def _split_equally(rows: int, files: int) -> Counts:
    found = np.full(files, rows // files, np.int64)
    found[: rows % files] += 1
    return found
