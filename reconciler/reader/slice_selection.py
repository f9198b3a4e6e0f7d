"""The file slices that a read sees, as columns; pure.

Source: AbstractTableFileSystemView (getLatestMergedFileSlicesBeforeOrOn, getLatestBaseFiles).
What no completed write made is taken away first, so that no file of a failed write hides a slice.
Time travel sees the table as it was when only the writes up to the instant had been requested.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reconciler.arrays import to_boolean_array, to_integer_array, to_string_array
from reconciler.errors import BlockedError
from reconciler.hudi.files.names import LogName
from reconciler.hudi.files.table_files import FileKind, TableFiles
from reconciler.hudi.files.view import LOGS_BY_COMPLETION, FileView
from reconciler.hudi.timeline.active import Timeline
from reconciler.planners.protection import build_table_view
from reconciler.planners.readable_instants import find_readable_writes
from reconciler.reader.model import SLICES
from reconciler.state.model import CompletedClean, TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimit:
    """Which completed writes a read sees: all, or those up to a time.

    ``requested``: those that began then or earlier; ``completed``: those that had ended by then.
    """

    requested: str | None = None
    completed: str | None = None

    def includes(self, requested: str, completed: str | None) -> bool:
        """Whether a write is seen; one without a completion time ended when it began."""
        if self.requested is not None and requested > self.requested:
            return False
        return self.completed is None or (completed or requested) <= self.completed


#: everything that is completed now
NO_LIMIT = ReadLimit()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SliceSelection:
    """File slices as rows of ``files``, ordered by partition and file group.

    ``group``: int32 per slice, its group in ``files``. ``base``: int64 per slice, the row of its
    base file, -1 for none. ``logs``: int64, the rows of all log files in merge order, slice after
    slice; ``ends``: int64, one more than slices, where those of each begin.
    """

    files: TableFiles
    group: NDArray[np.int32]
    base: NDArray[np.int64]
    logs: NDArray[np.int64]
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.base)

    @property
    def has_logs(self) -> NDArray[np.bool_]:
        has: NDArray[np.bool_] = np.diff(self.ends) > 0
        return has

    def filter(self, mask: NDArray[np.bool_]) -> SliceSelection:
        """Some of the slices."""
        count = np.diff(self.ends)
        return replace(
            self,
            group=self.group[mask],
            base=self.base[mask],
            logs=self.logs[np.repeat(mask, count)],
            ends=_sum_ends(count[mask]),
        )

    def has_marked_log(self, of_log: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Per slice whether any of its log files is marked; ``of_log`` is per row of ``logs``."""
        seen = np.concatenate([[0], np.cumsum(of_log)])
        marked: NDArray[np.bool_] = seen[self.ends[1:]] > seen[self.ends[:-1]]
        return marked

    def get_base_instants(self) -> NDArray[np.int32]:
        """Per slice the instant of its base file as a code into ``files.instants``, else -1."""
        if not len(self.files):
            return np.full(len(self), -1, np.int32)
        return np.where(self.base >= 0, self.files.instant[self.base], -1).astype(np.int32)

    def to_table(self, partition: NDArray[np.int32], evolves: NDArray[np.bool_]) -> pa.Table:
        """The columns of ``Scan.slices``, of which two are given."""
        paths = _make_paths(self.files)
        rows = np.concatenate([[0], np.cumsum(self.files.size[self.logs])])
        columns = [
            to_integer_array(partition),
            paths.take(_take_or_null(self.base)),
            to_integer_array(_take_or_zero(self.files.size, self.base)),
            pa.ListArray.from_arrays(
                to_integer_array(self.ends.astype(np.int32)),
                paths.take(to_integer_array(self.logs)),
            ),
            to_integer_array(rows[self.ends[1:]] - rows[self.ends[:-1]]),
            to_boolean_array(evolves),
        ]
        return pa.Table.from_arrays(columns, schema=SLICES)


def pick_slices(
    state: TableState, until: ReadLimit = NO_LIMIT, *, only_base: bool = False
) -> SliceSelection:
    """The slices that a snapshot read sees, or a read-optimised one (``only_base``)."""
    seen = limit_state(state, until)
    if only_base:
        return _select_newest_bases(seen)
    return _select_merged_slices(build_table_view(seen))


def find_newest_write(state: TableState, until: ReadLimit = NO_LIMIT) -> str | None:
    """The newest completed write that is seen, by when it was requested."""
    seen = (i.requested for i in state.timeline.commits if _is_included(state, until, i.requested))
    return max(seen, default=None)


def check_readable(state: TableState, until: ReadLimit) -> None:
    """Raises BlockedError when files of the table as of then are gone, naming what can be read.

    Known are the removals of the cleans on the active timeline, half-done ones too.
    """
    state = replace(state, cleans=(*state.cleans, *_list_pending_removals(state)))
    writes, readable = find_readable_writes(state, build_table_view(state))
    seen = [at for at, write in enumerate(writes) if _is_included(state, until, write)]
    if not writes or (seen and readable[seen[-1]]):
        return
    asked = until.requested or until.completed
    possible = [writes[at] for at in np.flatnonzero(readable).tolist()]
    when = f"{state.location}: as of {asked} the table can no longer be read"
    if not possible:
        raise BlockedError(f"{when}, nor as of any write of its timeline: cleans removed the files")
    later = next((write for write in possible if not _is_included(state, until, write)), None)
    why = "cleans removed files of it" if seen else f"its timeline begins with {writes[0]}"
    hint = f", the next as of {later}" if later not in (None, possible[0]) else ""
    raise BlockedError(f"{when}: {why}; the earliest read possible is as of {possible[0]}{hint}")


def limit_state(state: TableState, until: ReadLimit) -> TableState:
    """The table as if only the completed writes that are seen had happened.

    Its files are those of such writes: without those of failed or pending ones, without CDC files.
    Log files of version 6 hold blocks of several writes: those stay that the slice's own instant
    does not rule out.
    """
    by_name = state.table_version < LOGS_BY_COMPLETION
    start = state.timeline.start or ""
    done = {i.requested for i in state.timeline.commits}
    files = state.files
    seen = np.array([_is_included(state, until, i) for i in files.instants], np.bool_)
    made = np.array([i in done or i < start for i in files.instants], np.bool_)
    is_log = files.kind == FileKind.LOG
    kept = (files.kind == FileKind.BASE) | is_log
    if len(files.instants):
        kept &= seen[files.instant] & (made[files.instant] | (is_log & by_name))
    return replace(
        state,
        files=_filter_files(files, kept),
        timeline=Timeline.from_files(
            file
            for file in state.timeline.files
            if _is_included(state, until, file.instant.requested)
        ),
        compactions=tuple(c for c in state.compactions if _is_included(state, until, c.instant)),
        replaced={
            g: time for g, time in state.replaced.items() if _is_included(state, until, time)
        },
    )


def _is_included(state: TableState, until: ReadLimit, requested: str) -> bool:
    return until.includes(requested, state.completions.get(requested))


def _list_pending_removals(state: TableState) -> list[CompletedClean]:
    """What pending cleans have removed so far: the files they plan to that are not there."""
    return [
        CompletedClean(
            instant=clean.instant,
            is_blank=True,
            policy=None,
            earliest_instant_to_retain="",
            last_completed_commit="",
            savepointed=(),
            removed={},
            extra={},
            planned=clean.files,
        )
        for clean in state.pending_cleans
    ]


def _filter_files(files: TableFiles, mask: NDArray[np.bool_]) -> TableFiles:
    """Some rows of the files; groups, partitions and instants keep their codes."""
    if mask.all():
        return files
    return replace(
        files,
        partition=files.partition[mask],
        name=files.name.filter(to_boolean_array(mask)),
        size=files.size[mask],
        kind=files.kind[mask],
        group=files.group[mask],
        instant=files.instant[mask],
        version=files.version[mask],
    )


def _select_newest_bases(seen: TableState) -> SliceSelection:
    """The newest base file of every group that isn't replaced; what is pending made none."""
    files = seen.files
    view = build_table_view(seen)
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
    """The newest slice of every live group, on top of the one before where a compaction pends."""
    files = view.files
    rows = np.flatnonzero(view.is_visible & view.is_live)
    is_last = _is_last(view.group[rows])
    newest = rows[is_last]
    place = np.full(len(view), -1, np.int64)
    place[newest] = np.arange(len(newest))
    at = np.flatnonzero(is_last)
    under = at - 1
    waits = view.is_phantom[newest] & (under >= 0)
    waits[waits] = view.group[rows[under[waits]]] == view.group[newest[waits]]
    place[rows[under[waits]]] = np.flatnonzero(waits)

    target = place[view.row_slice]
    base = np.full(len(newest), -1, np.int64)
    bases = np.flatnonzero((files.kind == FileKind.BASE) & (target >= 0))
    base[target[bases]] = bases  # of two files of one task the last, as Hudi
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


def _sort_logs(
    files: TableFiles, logs: NDArray[np.int64], of: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Sorts log files as Hudi's LogFileComparator, slices one after the other."""
    keys = (files.version[logs], files.instant[logs], of)
    order = np.lexsort(keys)
    alike = np.zeros(len(logs), np.bool_)
    same = np.ones(max(len(logs) - 1, 0), np.bool_)
    for key in keys:
        same &= key[order][1:] == key[order][:-1]
    alike[1:] |= same
    alike[:-1] |= same
    if not alike.any():
        return order
    # tokens decide between attempts at one file, which are few
    tied = order[alike]
    names = files.name.take(to_integer_array(logs[tied])).to_pylist()
    tokens = [_parse_write_token(name) for name in names]
    rank = np.zeros(len(logs), np.int64)
    rank[tied[sorted(range(len(tied)), key=tokens.__getitem__)]] = np.arange(len(tied))
    return np.lexsort((rank, *keys))


def _parse_write_token(name: str) -> tuple[int, ...]:
    log = LogName.parse(name)
    assert log is not None, "files holds names of the grammar only"
    return log.order[2]


def _is_last(group: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Per element of an ascending array whether the next is another."""
    return np.append(np.diff(group) != 0, True)[: len(group)]


def _sum_ends(count: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(count)]).astype(np.int64)


def _make_paths(files: TableFiles) -> pa.Array:
    """The paths of all files below the table's root."""
    folders = to_string_array([f"{path}/" if path else "" for path in files.partitions])
    return pc.binary_join_element_wise(
        folders.take(to_integer_array(files.partition)), files.name, ""
    )


def _take_or_null(rows: NDArray[np.int64]) -> pa.Array:
    return pc.if_else(to_boolean_array(rows >= 0), to_integer_array(rows), None)


def _take_or_zero(values: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    found = np.zeros(len(rows), np.int64)
    there = rows >= 0
    found[there] = values[rows[there]]
    return found
