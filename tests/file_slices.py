"""File slices as objects, one partition at a time, to compare with Hudi's file-system view."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from reconciler.file_slices.merge.slice_reader import SliceFiles
from reconciler.hudi.files.names import LogName
from reconciler.hudi.files.table_files import FileKind
from reconciler.hudi.files.view import LOGS_BY_COMPLETION, FileView
from reconciler.hudi.timeline.active import Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSlice:
    """A base file, None for a log-only slice, and its log files in merge order, without CDC logs.

    ``key``: the instant that began the slice. ``is_phantom``: a pending compaction will fill it.
    """

    file_id: str
    key: str
    base: str | None
    logs: tuple[str, ...]
    is_phantom: bool = False

    @property
    def is_empty(self) -> bool:
        return self.base is None and not self.logs


def list_slices(view: FileView, partition: str) -> tuple[FileSlice, ...]:
    """Return every visible slice of every live group, group by group, newest first."""
    if partition not in view.files.partitions:
        return ()
    files, code = view.files, view.files.partitions.index(partition)
    in_partition = files.group_partition[view.group] == code
    slices = np.flatnonzero(in_partition & view.is_visible & view.is_live)
    rows = np.flatnonzero(files.partition == code)
    rows = rows[np.argsort(view.row_slice[rows], kind="stable")]
    start = np.searchsorted(view.row_slice[rows], slices)
    end = np.searchsorted(view.row_slice[rows], slices, side="right")
    listed = [
        _build_slice(view, int(index), rows[first:last].tolist())
        for index, first, last in zip(slices, start, end, strict=True)
    ]
    listed.sort(key=lambda s: s.key, reverse=True)
    return tuple(sorted(listed, key=lambda s: s.file_id))


def keep_completed_slices(
    slices: tuple[FileSlice, ...], timeline: Timeline, *, table_version: int
) -> tuple[FileSlice, ...]:
    """Return the slices without files that no completed write made.

    Log files of version 6 stay: they hold blocks of several writes, which the reader tells apart.
    """
    start = timeline.start or ""
    done = {i.requested for i in timeline.commits}

    def is_completed(instant: str) -> bool:
        return instant in done or instant < start

    def is_readable(log: str) -> bool:
        name = LogName.parse(log)
        return name is not None and is_completed(name.instant)

    by_name = table_version < LOGS_BY_COMPLETION
    return tuple(
        replace(
            file_slice,
            base=file_slice.base if is_completed(file_slice.key) else None,
            logs=tuple(log for log in file_slice.logs if by_name or is_readable(log)),
        )
        for file_slice in slices
    )


def select_latest_slices(slices: tuple[FileSlice, ...]) -> tuple[FileSlice, ...]:
    """Return the newest slice of each group, of slices from ``keep_completed_slices``."""
    newest = (next(group) for _, group in groupby(slices, key=lambda s: s.file_id))
    return tuple(file_slice for file_slice in newest if not file_slice.is_empty)


def select_merged_slices(slices: tuple[FileSlice, ...]) -> tuple[FileSlice, ...]:
    """Return what a snapshot read opens, of slices from ``keep_completed_slices``.

    Log files of a pending compaction's slice join the slice before it.
    """
    merged = []
    for _, group in groupby(slices, key=lambda s: s.file_id):
        newest, *older = group
        if newest.is_phantom and older:
            before = older[0]
            newest = FileSlice(
                file_id=before.file_id,
                key=before.key,
                base=before.base,
                logs=before.logs + newest.logs,
            )
        if not newest.is_empty:
            merged.append(newest)
    return tuple(merged)


def _build_slice(view: FileView, index: int, rows: list[int]) -> FileSlice:
    files = view.files
    base = None
    logs: list[LogName] = []
    for row in rows:
        name = files.name[row].as_py()
        if files.kind[row] == FileKind.BASE:
            base = name
        elif files.kind[row] == FileKind.LOG:
            log = LogName.parse(name)
            assert log is not None, "files holds names of the grammar only"
            logs.append(log)
    return FileSlice(
        file_id=files.group_id[int(view.group[index])].as_py(),
        key=view.times[view.key[index]],
        base=base,
        logs=tuple(log.text for log in sorted(logs, key=lambda log: log.order)),
        is_phantom=bool(view.is_phantom[index]),
    )


def list_slice_files(partition: str, file_slice: FileSlice, base_size: int) -> SliceFiles:
    """Return the files of a slice in a partition, "" where the table has none."""
    folder = f"{partition}/" if partition else ""
    return SliceFiles(
        base=file_slice.base and folder + file_slice.base,
        base_size=base_size,
        logs=tuple(folder + log for log in file_slice.logs),
    )
