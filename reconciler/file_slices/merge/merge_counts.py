"""Count what merging the log files of a slice reads and does, as write statistics record it.

Source: HoodieReadStats and BaseHoodieLogRecordReader (1.x), HoodieMergedLogRecordScanner (0.15).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reconciler.arrays import Integers
from reconciler.lazy_dataclass import dataclass


@dataclass(slots=True, kw_only=True)
class MergeCounts:
    """The counts of one slice; whoever reads the slice adds to them.

    ``blocks``: log blocks of every kind; ``corrupt_blocks`` and ``rollback_blocks`` are among them.
    ``records``: records of data blocks that count, ``deletions``: keys of delete blocks. ``keys``:
    distinct keys of both. ``base_rows``: rows of the base file. Of these, ``updates`` were replaced
    by a log record and ``deletes`` removed; ``inserts`` are records that it did not have.
    """

    blocks: int = 0
    corrupt_blocks: int = 0
    rollback_blocks: int = 0
    records: int = 0
    deletions: int = 0
    keys: int = 0
    base_rows: int = 0
    updates: int = 0
    deletes: int = 0
    inserts: int = 0

    @property
    def rows(self) -> int:
        """The rows that the merged slice has."""
        return self.base_rows - self.deletes + self.inserts

    def add_outcome(self, row: Integers, outcome: NDArray[np.int8], wins: Integers) -> None:
        """Add what became of every key of the logs, once the whole slice was read.

        ``row``: -1 for a deletion. ``outcome``: -1 if the base file does not have the key, 1 if the
        log record won, 0 if the base row won. ``wins``: over how many base rows it won.
        """
        is_record, is_new = row >= 0, outcome < 0
        self.keys = len(row)
        self.updates = int(wins[is_record].sum())
        self.deletes = int(wins[~is_record].sum())
        self.inserts = int((is_new & is_record).sum())

    def add_footer(self, footer: Any) -> None:
        """Add the rows that a base file's footer declares."""
        self.base_rows = int(footer.num_rows)
