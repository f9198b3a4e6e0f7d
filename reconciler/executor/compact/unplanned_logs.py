"""Log files of the compacted slices that a compaction's plan does not name.

After the compaction no reader opens them. In version 6 two kinds come after the plan was made: a
rollback's, with a block that cancels a write of the planned files, and those of a write that began
before the compaction was requested and did not see it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace

import numpy as np
import pyarrow.compute as pc

from reconciler.arrays import to_arrow, to_numpy
from reconciler.executor.compact.work import CompactionWork
from reconciler.file_slices.merge.committed_blocks import CommittedInstants
from reconciler.hudi.codecs.log_blocks import BlockType, HeaderKey, LogBlock, read_blocks
from reconciler.hudi.files.table_files import FileKind
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.lazy_dataclass import dataclass
from reconciler.rewrite.facts import TableFacts
from reconciler.storage.api import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class UnplannedLogs:
    """``cancelled``: the writes whose blocks no longer count. ``problem``: rows that would be lost.

    ``problem`` is None if there are none.
    """

    cancelled: frozenset[str] = field(default=frozenset())
    problem: str | None = None

    def drop_cancelled(self, facts: TableFacts) -> TableFacts:
        """Return facts by which blocks of cancelled writes do not count.

        The timeline no longer has such a write, so it would count once older ones are archived.
        """
        if not self.cancelled:
            return facts
        committed = facts.scan.committed
        committed = replace(committed, pending=committed.pending | self.cancelled)
        return replace(facts, scan=replace(facts.scan, committed=committed))


def read_unplanned_logs(storage: Storage, work: CompactionWork) -> UnplannedLogs:
    """Read the other log files of the slices of a plan; raises as ``read_blocks``, StorageError.

    From version 8 on, log files that complete after the request belong to the next slices.
    """
    if work.state.table_version >= LOGS_BY_COMPLETION:
        return UnplannedLogs()
    committed: CommittedInstants = work.facts.scan.committed
    cancelled: set[str] = set()
    writes: dict[str, str] = {}
    for path in _list_unplanned(work):
        for block in read_blocks(storage.read(path), path):
            if block.type is BlockType.COMMAND:
                cancelled.add(block.header.get(HeaderKey.TARGET_INSTANT_TIME, ""))
            elif (instant := _find_write(block)) is not None:
                writes.setdefault(instant, path)
    lost = [write for write in sorted(writes) if write in committed and write not in cancelled]
    if not lost:
        return UnplannedLogs(cancelled=frozenset(cancelled))
    return UnplannedLogs(
        problem=f"{writes[lost[0]]}: holds rows of write {lost[0]}, which began before the "
        "compaction was requested and is not in its plan, so they would be lost; roll the "
        "compaction back with Hudi"
    )


def _find_write(block: LogBlock) -> str | None:
    """Return the write of a block with rows or deletions, None for other blocks."""
    is_of_rows = block.type not in (BlockType.CORRUPT, BlockType.CDC_DATA)
    return block.require_instant() if is_of_rows else None


def _list_unplanned(work: CompactionWork) -> Iterator[str]:
    """Yield the paths of log files of the slices, without those of the plan."""
    files, slices = work.state.files, work.state.view.row_slice
    names = [path.rpartition("/")[2] for path in work.sizes]
    is_named = to_numpy(pc.is_in(files.name, value_set=to_arrow(names)))
    is_of_slice = np.isin(slices, slices[is_named])
    for row in np.flatnonzero(is_of_slice & ~is_named & (files.kind == FileKind.LOG)).tolist():
        yield files.locate_file(row)[0]
