"""What is known of the files of a table that no write of the active timeline made; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final

import numpy as np

from reconciler.arrays import Integers, Mask
from reconciler.hudi.files.table_files import FileKind, TableFiles
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.instant import Action
from reconciler.lazy_dataclass import dataclass

#: of the files that a bootstrap made, which is on no timeline for long
BOOTSTRAP_INSTANTS: Final = frozenset({"00000000000001", "00000000000002"})
#: modification times of a file that vanished, and of one whose store tells none
GONE: Final = -1
UNTOLD: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OrphanFacts:
    """Files whose write the timeline does not know, and what may own or show them.

    Arrays have one element per such file. ``rows``: int64, ascending rows of the table's files.
    ``modified_ms``: int64, or GONE or UNTOLD. ``is_listed``: the metadata table lists the file.
    ``strays``: row -> why the write of its name did not commit it; these rows are in ``rows`` too.

    ``undecided``: rows of files that are older than what the archive tells, so that most belong to
    forgotten writes. ``archive_oldest``: its oldest instant; None if it is empty.
    ``archive_problem``: why the archive cannot tell, or empty.

    ``rolled_back``: instant -> completed rollback that undid it; ``being_rolled_back``: those of
    pending ones. ``rollback_problem``: why a pending rollback cannot be read, or empty.
    ``beats_ms``: instant -> last heartbeat of a write that is not on the timeline.
    """

    rows: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    modified_ms: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    is_listed: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))
    strays: Mapping[int, str] = field(default_factory=dict)
    undecided: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    archive_oldest: str | None = None
    archive_problem: str = ""
    rolled_back: Mapping[str, str] = field(default_factory=dict)
    being_rolled_back: frozenset[str] = frozenset()
    rollback_problem: str = ""
    beats_ms: Mapping[str, int] = field(default_factory=dict)


def find_unknown_rows(files: TableFiles, timeline: Timeline) -> Integers:
    """Return the rows of files whose name has no instant of the active timeline."""
    known = BOOTSTRAP_INSTANTS.union(instant.requested for instant in timeline.instants)
    is_unknown = np.array([time not in known for time in files.instants], np.bool_)
    return np.flatnonzero(is_unknown[files.instant]) if len(files) else np.zeros(0, np.int64)


def find_doubled_rows(files: TableFiles) -> Integers:
    """Return the rows of base files of which their file group has two of one write."""
    rows = np.flatnonzero(files.kind == FileKind.BASE)
    width = len(files.instants) + 1
    keys = files.group[rows].astype(np.int64) * width + files.instant[rows]
    order = np.argsort(keys, kind="stable")
    is_same = np.diff(keys[order]) == 0
    is_doubled = np.zeros(len(rows), np.bool_)
    is_doubled[order[1:][is_same]] = True
    is_doubled[order[:-1][is_same]] = True
    return rows[is_doubled]


def find_visible_start(timeline: Timeline) -> str | None:
    """Return the first completed write that no savepoint pins; None without any.

    Readers take unknown files for committed if they are older than the start of the timeline, which
    is this write or an earlier one. Source: BaseHoodieTimeline.findFirstNonSavepointCommit.
    """
    pinned = {i.requested for i in timeline.instants if i.action is Action.SAVEPOINT}
    times = (i.requested for i in timeline.commits if i.requested not in pinned)
    return next(times, None)
