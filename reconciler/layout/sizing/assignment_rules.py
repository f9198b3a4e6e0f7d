"""The rules that assign rows to files: Hudi's, or the steady one of this tool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from reconciler.arrays import Mask
from reconciler.layout.sizing.record_size import RecordSize

MIB: Final = 1024 * 1024
#: default bytes of a record (hoodie.copyonwrite.record.size.estimate)
DEFAULT_RECORD_SIZE: Final = 1024


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

    ``indexes_logs``: whether the table's index finds rows in log files (in-memory, HBase and
    consistent hashing indexes); otherwise new rows are merged into base files without log files.
    ``max_candidates``: how many of those base files per partition take rows by Hudi's rule
    (hoodie.merge.small.file.group.candidates.limit).
    """

    indexes_logs: bool = False
    max_candidates: int = 1


TableKind = CopyOnWrite | MergeOnRead


@dataclass(frozen=True, slots=True, kw_only=True)
class HudiRule:
    """Hudi's rule: fill the files in the order of Hudi's view by the average record size.

    ``average``: bytes of a record (``compute_average_size``). ``split_rows``: rows of a new file
    (hoodie.copyonwrite.insert.split.size), None if the average decides (auto.split).
    """

    sizes: FileSizeLimits
    average: int
    split_rows: int | None = None

    def __post_init__(self) -> None:
        assert self.average > 0, "a record has bytes"
        assert self.split_rows is None or self.split_rows > 0, "a file has rows"


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
    """The steady rule: fill files that are rewritten anyway, then the smallest first.

    A file's fixed bytes count. ``rewrite_cap``: None fills small files at any cost.
    ``needs_row_sizes``: too little is known of row sizes, so a write must measure its own rows
    before it assigns them.
    """

    sizes: FileSizeLimits
    record_size: RecordSize
    rewrite_cap: RewriteCap | None = RewriteCap()
    needs_row_sizes: bool = False

    def __post_init__(self) -> None:
        assert self.record_size.per_row > 0, "a row has bytes"


AssignmentRule = HudiRule | SteadyRule
