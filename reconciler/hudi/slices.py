"""File slices as objects, one partition at a time, as Hudi's file-system view answers for them.

For readers and for explaining; planners stay with the columns of ``view``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import numpy as np

from reconciler.hudi.files import FileKind
from reconciler.hudi.names import LogName
from reconciler.hudi.timeline import Timeline
from reconciler.hudi.view import LOGS_BY_COMPLETION, View


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSlice:
    """A base file, None for a log-only slice, and its log files in merge order (CDC logs are not).

    ``key`` is the instant that began the slice; ``is_phantom``: a pending compaction will fill it.
    """

    file_id: str
    key: str
    base: str | None
    logs: tuple[str, ...]
    is_phantom: bool = False

    @property
    def is_empty(self) -> bool:
        return self.base is None and not self.logs


def all_slices(
    view: View, timeline: Timeline, partition: str, *, table_version: int
) -> tuple[FileSlice, ...]:
    """Every visible slice of every group that isn't replaced, a group at a time, newest first.

    What no completed write made is dropped from them (log files of version 6 stay: what they hold is
    told apart by block).
    """
    if partition not in view.files.partitions:
        return ()
    files, code = view.files, view.files.partitions.index(partition)
    here = files.group_partition[view.group] == code
    slices = np.flatnonzero(here & view.is_visible & view.is_live)
    rows = np.flatnonzero(files.partition == code)
    rows = rows[np.argsort(view.slice_of[rows], kind="stable")]
    start = np.searchsorted(view.slice_of[rows], slices)
    end = np.searchsorted(view.slice_of[rows], slices, side="right")
    done = _Completed(timeline)
    found = [
        _slice(view, int(index), rows[first:last].tolist(), done, table_version=table_version)
        for index, first, last in zip(slices, start, end, strict=True)
    ]
    found.sort(key=lambda s: s.key, reverse=True)
    return tuple(sorted(found, key=lambda s: s.file_id))


def latest_slices(slices: tuple[FileSlice, ...]) -> tuple[FileSlice, ...]:
    """The newest of each group, of what ``all_slices`` found; empty ones left out."""
    newest = (next(group) for _, group in groupby(slices, key=lambda s: s.file_id))
    return tuple(found for found in newest if not found.is_empty)


def merged_slices(slices: tuple[FileSlice, ...]) -> tuple[FileSlice, ...]:
    """What a snapshot read opens: log files of a pending compaction's slice join the one before."""
    found = []
    for _, group in groupby(slices, key=lambda s: s.file_id):
        newest = next(group)
        before = next(group, None) if newest.is_phantom else None
        if before is not None:
            newest = FileSlice(
                file_id=before.file_id,
                key=before.key,
                base=before.base,
                logs=before.logs + newest.logs,
            )
        if not newest.is_empty:
            found.append(newest)
    return tuple(found)


class _Completed:
    """Whether a write is completed: on the active timeline, or older than it."""

    def __init__(self, timeline: Timeline) -> None:
        self.start = timeline.start or ""
        self.done = {i.requested for i in timeline.commits}

    def __call__(self, instant: str) -> bool:
        return instant in self.done or instant < self.start


def _slice(
    view: View, index: int, rows: list[int], is_completed: _Completed, *, table_version: int
) -> FileSlice:
    files = view.files
    key = view.times[view.key[index]]
    base = None
    logs: list[LogName] = []
    for row in rows:
        name = files.name[row].as_py()
        if files.kind[row] == FileKind.BASE:
            base = name if is_completed(key) else None
        elif files.kind[row] == FileKind.LOG:
            log = LogName.parse(name)
            assert log is not None, "files holds names of the grammar only"
            if table_version < LOGS_BY_COMPLETION or is_completed(log.instant):
                logs.append(log)
    return FileSlice(
        file_id=files.group_id[int(view.group[index])].as_py(),
        key=key,
        base=base,
        logs=tuple(log.text for log in sorted(logs, key=lambda log: log.order)),
        is_phantom=bool(view.is_phantom[index]),
    )
