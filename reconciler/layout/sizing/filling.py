"""How many new rows each small file of one partition takes, and how many new files the rest makes.

Hudi's rule is UpsertPartitioner.assignInserts (0.15.0, 1.2.0); the steady one is ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from reconciler.layout.sizing.assignment_rules import HudiRule, SteadyRule

Counts = NDArray[np.int64]
#: a file may be this much bigger than the target where two small ones would be made otherwise
MAX_OVERFILL: Final = 1.15
#: the share of the target that rows get, however big a file's fixed cost is
_MIN_DATA_SHARE: Final = 0.15


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SmallFiles:
    """The small files of a partition, one element a file, in the order of ``find_small_files``.

    ``size``: int64, bytes; ``growth``: int64, more bytes by the updates of the same write;
    ``rewritten``: int64, bytes of rows that are written again only if it takes new ones.
    """

    size: Counts
    growth: Counts
    rewritten: Counts


def fill_by_hudi(files: SmallFiles, rows: int, rule: HudiRule) -> Counts:
    """Rows that each file takes: as many average records as fit, one file after the other.

    Updates of the same write are not counted in, as Hudi does not.
    """
    room = np.maximum((rule.sizes.target - files.size) // rule.average, 0)
    return _share_rows(room, rows)


def split_by_hudi(rows: int, rule: HudiRule) -> Counts:
    """Rows of each new file: all full but the last one, by Hudi's count of rows."""
    if rows <= 0:
        return np.zeros(0, np.int64)
    per_file = rule.split_rows or math.ceil(rule.sizes.target / rule.average)
    return _split_full_files(rows, per_file)


def fill_steadily(files: SmallFiles, rows: int, rule: SteadyRule) -> Counts:
    """Rows that each file takes: those that are written anyway first, then in their order.

    Each up to the target, with the growth by updates; from the first file on that is not worth
    writing again for what it would get, none.
    """
    order = np.argsort(files.rewritten > 0, kind="stable")
    size, growth, rewritten = files.size[order], files.growth[order], files.rewritten[order]
    left = np.maximum(rule.sizes.target - size - growth, 0)
    takes = _share_rows(np.floor(left / rule.record_size.per_row).astype(np.int64), rows)
    if rule.rewrite_cap is not None:
        brought = takes * rule.record_size.per_row
        worth = rewritten <= np.maximum(
            rule.rewrite_cap.max_ratio * brought, rule.rewrite_cap.free_bytes
        )
        takes = np.where(np.logical_and.accumulate(worth | (takes == 0)), takes, 0)
    found = np.zeros(len(order), np.int64)
    found[order] = takes
    return found


def split_steadily(rows: int, rule: SteadyRule) -> Counts:
    """Rows of each new file: equal shares, unless those would all be small.

    As many files as reach the target, each with its fixed cost; one fewer where the shares would be
    small and the others hold them within 15 % of the target; else all full but the last one. So at
    most one of them is small.
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
    """Rows that make a file of the target size with its fixed cost, at least one.

    Where the fixed cost leaves next to nothing of the target, files grow 15 % beyond it.
    """
    room = max(rule.sizes.target - rule.record_size.fixed, _MIN_DATA_SHARE * rule.sizes.target)
    return max(int(room / rule.record_size.per_row), 1)


def _share_rows(room: Counts, rows: int) -> Counts:
    """So many rows, put one file after the other into files with so much room."""
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
