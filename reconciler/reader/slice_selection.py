"""Select the file slices that a read sees; columnar and pure.

Source: AbstractTableFileSystemView (getLatestMergedFileSlicesBeforeOrOn, getLatestBaseFiles). Files
of incomplete writes are removed first, so that no file of a failed write hides a slice. Time travel
sees the table as if only the writes up to the instant had been requested.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Codes, Integers, Mask, to_arrow, to_nullable
from reconciler.errors import BlockedError
from reconciler.hudi.files.names import LogName
from reconciler.hudi.files.table_files import FileKind, TableFiles
from reconciler.hudi.files.view import LOGS_BY_COMPLETION, FileView
from reconciler.hudi.timeline.active import Timeline
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.readable_instants import find_readable_writes
from reconciler.reader.model import SLICES
from reconciler.state.model import CompletedClean, TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimit:
    """The completed writes that a read sees: all, or those up to a time.

    ``requested``: those requested at that time or earlier; ``completed``: those completed by then.
    """

    requested: str | None = None
    completed: str | None = None

    def includes(self, requested: str, completed: str | None) -> bool:
        """True if a write is visible; one without completion time ended when it began."""
        if self.requested is not None and requested > self.requested:
            return False
        return self.completed is None or (completed or requested) <= self.completed


#: all writes that are completed now
NO_LIMIT = ReadLimit()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SliceSelection:
    """File slices as rows of ``files``, ordered by partition and file group.

    ``group``: int32 per slice, its group in ``files``. ``base``: int64 per slice, the row of its
    base file, -1 for none. ``logs``: int64, rows of all log files in merge order, slice after
    slice; ``ends``: int64, one more than slices: where each slice's log files begin.
    """

    files: TableFiles
    group: Codes
    base: Integers
    logs: Integers
    ends: Integers

    def __len__(self) -> int:
        return len(self.base)

    @property
    def has_logs(self) -> Mask:
        has: Mask = np.diff(self.ends) > 0
        return has

    def filter(self, mask: Mask) -> SliceSelection:
        """Return the marked slices."""
        count = np.diff(self.ends)
        return replace(
            self,
            group=self.group[mask],
            base=self.base[mask],
            logs=self.logs[np.repeat(mask, count)],
            ends=_sum_ends(count[mask]),
        )

    def has_marked_log(self, of_log: Mask) -> Mask:
        """Return a mask of slices with a marked log file; ``of_log``: per row of ``logs``."""
        seen = np.concatenate([[0], np.cumsum(of_log)])
        marked: Mask = seen[self.ends[1:]] > seen[self.ends[:-1]]
        return marked

    def get_base_instants(self) -> Codes:
        """Return per slice the code of its base file's instant in ``files.instants``, else -1."""
        if not len(self.files):
            return np.full(len(self), -1, np.int32)
        return np.where(self.base >= 0, self.files.instant[self.base], -1).astype(np.int32)

    def to_table(self, partition: Codes, evolves: Mask) -> pa.Table:
        """Return the columns of ``Scan.slices``; two of them are given."""
        paths = _make_paths(self.files)
        rows = np.concatenate([[0], np.cumsum(self.files.size[self.logs])])
        columns = [
            to_arrow(partition),
            paths.take(to_nullable(self.base, self.base >= 0)),
            to_arrow(_take_or_zero(self.files.size, self.base)),
            pa.ListArray.from_arrays(
                to_arrow(self.ends.astype(np.int32)),
                paths.take(to_arrow(self.logs)),
            ),
            to_arrow(rows[self.ends[1:]] - rows[self.ends[:-1]]),
            to_arrow(evolves),
        ]
        return pa.Table.from_arrays(columns, schema=SLICES)


def pick_slices(
    state: TableState, limit: ReadLimit = NO_LIMIT, *, only_base: bool = False
) -> SliceSelection:
    """Return the slices of a snapshot read, or of a read-optimised one (``only_base``)."""
    seen = limit_state(state, limit)
    if only_base:
        return _select_newest_bases(seen)
    return _select_merged_slices(seen.view)


def find_newest_write(state: TableState, limit: ReadLimit = NO_LIMIT) -> str | None:
    """Return the newest visible completed write by its requested time."""
    seen = (
        instant.requested
        for instant in state.timeline.commits
        if _is_included(state, limit, instant.requested)
    )
    return max(seen, default=None)


def check_readable(state: TableState, limit: ReadLimit) -> None:
    """Raise BlockedError if files of the table as of then were cleaned, naming readable times.

    Known removals are those of cleans on the active timeline, including pending ones.
    """
    pending = [
        CompletedClean(instant=clean.instant, is_blank=True, planned=clean.files)
        for clean in state.pending_cleans
    ]
    state = replace(state, cleans=(*state.cleans, *pending))
    writes, readable = find_readable_writes(state)
    seen = [at for at, write in enumerate(writes) if _is_included(state, limit, write)]
    if not writes or (seen and readable[seen[-1]]):
        return
    limit_time = limit.requested or limit.completed
    possible = [writes[at] for at in np.flatnonzero(readable).tolist()]
    problem = f"{state.location}: cannot read as of {limit_time}"
    if not possible:
        raise BlockedError(f"{problem}, nor any other write of its timeline: files were cleaned")
    later = next((write for write in possible if not _is_included(state, limit, write)), None)
    reason = "files were cleaned" if seen else f"the timeline starts at {writes[0]}"
    hint = f", the next is {later}" if later not in (None, possible[0]) else ""
    raise BlockedError(f"{problem}: {reason}; the earliest readable time is {possible[0]}{hint}")


def limit_state(state: TableState, limit: ReadLimit) -> TableState:
    """Return the table's state as if only the visible completed writes had happened.

    Files of failed or pending writes and CDC files are removed. Log files of version 6 hold blocks
    of several writes; they stay unless the slice's own instant is excluded.
    """
    by_name = state.table_version < LOGS_BY_COMPLETION
    start = state.timeline.start or ""
    done = {instant.requested for instant in state.timeline.commits}
    files = state.files
    seen = np.array([_is_included(state, limit, instant) for instant in files.instants], np.bool_)
    is_completed = np.array(
        [instant in done or instant < start for instant in files.instants], np.bool_
    )
    is_log = files.kind == FileKind.LOG
    kept = (files.kind == FileKind.BASE) | is_log
    if len(files.instants):
        kept &= seen[files.instant] & (is_completed[files.instant] | (is_log & by_name))
    return replace(
        state,
        files=_filter_files(files, kept),
        timeline=Timeline.from_files(
            file
            for file in state.timeline.files
            if _is_included(state, limit, file.instant.requested)
        ),
        compactions=tuple(
            compaction
            for compaction in state.compactions
            if _is_included(state, limit, compaction.instant)
        ),
        replaced={
            group: time
            for group, time in state.replaced.items()
            if _is_included(state, limit, time)
        },
    )


def _is_included(state: TableState, limit: ReadLimit, requested: str) -> bool:
    return limit.includes(requested, state.completions.get(requested))


def _filter_files(files: TableFiles, mask: Mask) -> TableFiles:
    """Return some rows of the files; groups, partitions and instants keep their codes."""
    if mask.all():
        return files
    return replace(
        files,
        partition=files.partition[mask],
        name=files.name.filter(to_arrow(mask)),
        size=files.size[mask],
        kind=files.kind[mask],
        group=files.group[mask],
        instant=files.instant[mask],
        version=files.version[mask],
    )


def _select_newest_bases(state: TableState) -> SliceSelection:
    """Return the newest base file of every group that is not replaced."""
    files, view = state.files, state.view
    is_base = files.kind == FileKind.BASE
    is_base &= (view.replaced == view.never_code)[files.group] if len(files) else is_base
    rows = np.flatnonzero(is_base)
    rows = rows[np.lexsort((rows, files.instant[rows], files.group[rows]))]
    newest = rows[_is_last(files.group[rows])]
    return SliceSelection(
        files=files,
        group=files.group[newest],
        base=newest,
        logs=np.zeros(0, np.int64),
        ends=np.zeros(len(newest) + 1, np.int64),
    )


def _select_merged_slices(view: FileView) -> SliceSelection:
    """Return every live group's newest slice, with the previous one if compaction pends."""
    files = view.files
    read = np.flatnonzero(view.is_current)
    is_last = _is_last(view.group[read])
    newest = read[is_last]
    position = np.full(len(view), -1, np.int64)
    position[read] = np.cumsum(is_last) - is_last

    target = position[view.row_slice]
    base = np.full(len(newest), -1, np.int64)
    bases = np.flatnonzero((files.kind == FileKind.BASE) & (target >= 0))
    base[target[bases]] = bases  # of two files of one task the last one counts, as in Hudi
    logs = np.flatnonzero((files.kind == FileKind.LOG) & (target >= 0))
    logs = logs[_sort_logs(files, logs, view.row_slice[logs])]
    logs = logs[np.argsort(target[logs], kind="stable")]
    picked = SliceSelection(
        files=files,
        group=view.group[newest],
        base=base,
        logs=logs,
        ends=_sum_ends(np.bincount(target[logs], minlength=len(newest))),
    )
    return picked.filter((base >= 0) | picked.has_logs)


def _sort_logs(files: TableFiles, logs: Integers, slice_of: Codes) -> Integers:
    """Sort log files like Hudi's LogFileComparator; slices follow each other."""
    keys = (files.version[logs], files.instant[logs], slice_of)
    order = np.lexsort(keys)
    is_tied = np.zeros(len(logs), np.bool_)
    same = np.ones(max(len(logs) - 1, 0), np.bool_)
    for key in keys:
        same &= key[order][1:] == key[order][:-1]
    is_tied[1:] |= same
    is_tied[:-1] |= same
    if not is_tied.any():
        return order
    # write tokens order the few files with equal keys: attempts at one file
    tied = order[is_tied]
    names = files.name.take(to_arrow(logs[tied])).to_pylist()
    tokens = [_parse_write_token(name) for name in names]
    rank = np.zeros(len(logs), np.int64)
    rank[tied[sorted(range(len(tied)), key=tokens.__getitem__)]] = np.arange(len(tied))
    return np.lexsort((rank, *keys))


def _parse_write_token(name: str) -> tuple[int, ...]:
    log = LogName.parse(name)
    assert log is not None, "files holds names of the grammar only"
    return log.order[2]


def _is_last(group: Codes) -> Mask:
    """Return a mask of elements in an ascending array that are followed by another value."""
    return np.append(np.diff(group) != 0, True)[: len(group)]


def _sum_ends(count: Integers) -> Integers:
    return np.concatenate([[0], np.cumsum(count)]).astype(np.int64)


def _make_paths(files: TableFiles) -> pa.Array:
    """Return the paths of all files below the table's root."""
    folders = to_arrow([f"{path}/" if path else "" for path in files.partitions])
    return pc.binary_join_element_wise(folders.take(to_arrow(files.partition)), files.name, "")


def _take_or_zero(values: Integers, rows: Integers) -> Integers:
    taken = np.zeros(len(rows), np.int64)
    exists = rows >= 0
    taken[exists] = values[rows[exists]]
    return taken
