"""Where what a table's writers did lately contradicts its spec; pure.

Only the timeline and the listing speak: what writers are told is written down nowhere. Each fact is
a note with a rule: ``writersFiles``, ``writersClean``, ``writersClustering``, ``writersIndex``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from reconciler.hudi.files import FileKind
from reconciler.hudi.view import View
from reconciler.plan.model import Note
from reconciler.sizing.history import Written
from reconciler.spec.model import FileSizes, Policy, Retention, TableSpec
from reconciler.state.model import PLAN_DIGEST, CompletedClean, TableState
from reconciler.units import format_duration, format_size

#: a file so many times the target was not meant to have it
_FAR_ABOVE: Final = 1.5
#: so many small files of one kind of write in one partition are no accident
_MANY: Final = 3
#: what fills files below hoodie.parquet.small.file.limit, and what never does
_FILLING: Final = frozenset({"insert", "upsert", "insert_prepped", "upsert_prepped"})
_NEVER_FILLING: Final = frozenset(
    {"bulk_insert", "bulk_insert_prepped", "insert_overwrite", "insert_overwrite_table"}
)
#: after so many commits without another one, a clean says nothing of the writers of today
_LATELY: Final = 10
_STAMP: Final = 14
_HOUR: Final = 3600


def writers_status(
    spec: TableSpec,
    state: TableState,
    view: View,
    written: Sequence[Written],
    *,
    missed_by_hudi: Sequence[str] = (),
) -> tuple[Note, ...]:
    """The facts, those about files first; empty where nothing contradicts the spec.

    ``written``: the newest completed writes, ours among them. ``missed_by_hudi``: declared columns
    without which Hudi's column_stats is kept.
    """
    found: list[Note] = []
    sizes = spec.files or (FileSizes() if spec.clustering is not None else None)
    if sizes is not None:
        found += _files(sizes, state, view, written)
    if spec.retention is not None:
        found += _clean(spec.retention, state)
    if spec.clustering is not None:
        found += _clustering(spec.clustering.columns, state)
    if missed_by_hudi:
        found.append(_index(missed_by_hudi))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Newest:
    """Base files that a snapshot reads, of writes that are known and not ours.

    ``operation``: int64 per file, index into ``operations``.
    """

    size: NDArray[np.int64]
    partition: NDArray[np.int32]
    operation: NDArray[np.int64]
    operations: tuple[str, ...]

    def made_by(self, operations: frozenset[str]) -> NDArray[np.bool_]:
        is_one = np.array([name in operations for name in self.operations], np.bool_)
        found: NDArray[np.bool_] = is_one[self.operation]
        return found

    def names(self, which: NDArray[np.bool_]) -> str:
        """The operations that made them, as people call them."""
        codes = np.flatnonzero(np.bincount(self.operation[which], minlength=1))
        return " and ".join(self.operations[code] for code in codes.tolist())


def _newest(state: TableState, view: View, written: Sequence[Written]) -> _Newest:
    files = state.files
    by_instant = {
        one.instant: (one.operation or "a write").lower() for one in written if not one.is_ours
    }
    operations = tuple(sorted(set(by_instant.values())))
    code = {name: nth for nth, name in enumerate(operations)}
    known = np.array(
        [code[by_instant[i]] if i in by_instant else -1 for i in files.instants], np.int64
    )
    is_read = (view.is_newest & view.is_live)[view.slice_of]
    rows = np.flatnonzero(is_read & (files.kind == FileKind.BASE))
    operation = known[files.instant[rows]] if len(known) else np.zeros(0, np.int64)
    rows, operation = rows[operation >= 0], operation[operation >= 0]
    return _Newest(files.size[rows], files.partition[rows], operation, operations)


def _files(
    sizes: FileSizes, state: TableState, view: View, written: Sequence[Written]
) -> Iterator[Note]:
    newest = _newest(state, view, written)
    is_big = newest.size > _FAR_ABOVE * sizes.target
    if is_big.any():
        greatest = format_size(_round(int(newest.size.max())))
        yield Note(
            "writersFiles",
            f"{_files_of(is_big)} made by {newest.names(is_big)} go far beyond files.target "
            f"({format_size(sizes.target)}), up to {greatest}: the writers have a larger "
            "hoodie.parquet.max.file.size, or take records for smaller than they are "
            "(files.recordSize)",
        )
    is_small = newest.size < sizes.small
    limit = f"files.small ({format_size(sizes.small)})"
    # of merge-on-read a write fills one file a partition, and none that has log files
    filling = frozenset() if state.is_merge_on_read else _FILLING
    is_many, where = _crowd(newest, is_small & newest.made_by(filling))
    if is_many.any():
        yield Note(
            "writersFiles",
            f"{_files_of(is_many)} below {limit} in {where} made by {newest.names(is_many)}, which "
            "fills such files first: the writers have another hoodie.parquet.small.file.limit, "
            "take records for larger than they are (files.recordSize), or are many tasks of Flink",
        )
    is_many, where = _crowd(newest, is_small & newest.made_by(_NEVER_FILLING))
    if is_many.any():
        yield Note(
            "writersFiles",
            f"{_files_of(is_many)} below {limit} in {where} made by {newest.names(is_many)}, which "
            "never fills files: insert instead, write fewer and larger batches, or let a "
            "clustering join them",
        )


def _crowd(newest: _Newest, which: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], str]:
    """Those of them that are many in their partition, and in how many partitions that is."""
    counts = np.bincount(newest.partition[which], minlength=1)
    is_many = which & (counts[np.minimum(newest.partition, len(counts) - 1)] >= _MANY)
    partitions = int((counts >= _MANY).sum())
    return is_many, f"{partitions} {'partition' if partitions == 1 else 'partitions'}"


def _clean(asked: Retention, state: TableState) -> Iterator[Note]:
    """What the newest clean by a writer says: it carries its policy and its boundary, no count."""
    theirs = [c for c in state.cleans if not c.is_blank and PLAN_DIGEST not in c.extra]
    if not theirs:
        return
    last = max(theirs, key=lambda clean: clean.instant)
    if sum(i.requested > last.instant for i in state.commits_timeline) >= _LATELY:
        return
    said = f"a writer's clean {last.instant}"
    if last.policy is not None and last.policy != asked.policy.value:
        yield Note("writersClean", f"{said} went by {last.policy}, and not by {asked.policy.value}")
        return
    narrow = _narrower(asked, last, state)
    if narrow is not None:
        off = "switch its cleaning off, or give it the spec's retention"
        yield Note("writersClean", f"{said} {narrow}: {off}")


def _narrower(asked: Retention, last: CompletedClean, state: TableState) -> str | None:
    """In what it kept less than is asked, as far as the active timeline can prove it."""
    start = last.earliest_instant_to_retain.strip()
    times = [i.requested for i in state.commits_timeline]
    if start not in times:
        return None
    if asked.policy is Policy.COMMITS:
        kept = sum(start <= time <= last.instant for time in times)
        if kept < asked.keep:
            return f"kept {kept} {'commit' if kept == 1 else 'commits'}, and not {asked.keep}"
    if asked.policy is Policy.HOURS:
        before = [time for time in times if time < start]
        old = _seconds(before[-1], last.instant) if before else None
        # an hour may be the clock's, in spring
        if old is not None and old + _HOUR < asked.keep * _HOUR:
            age = format_duration(max(60, old // 60 * 60))
            return f"gave up commit {before[-1]} at an age of {age}, and not of {asked.keep}h"
    return None


def _seconds(earlier: str, later: str) -> int | None:
    try:
        first, second = (datetime.fromisoformat(f"{t[:8]}T{t[8:_STAMP]}") for t in (earlier, later))
    except ValueError:
        return None
    return int((second - first).total_seconds())


def _clustering(columns: Sequence[str], state: TableState) -> Iterator[Note]:
    past = state.evidence.clusterings if state.evidence is not None else ()
    if not past or PLAN_DIGEST in past[-1].extra or past[-1].layout is None:
        return
    theirs = past[-1].layout.columns
    if theirs != tuple(columns):
        by = f"by {', '.join(theirs)}" if theirs else "without an order"
        wanted = ", ".join(columns) or "none"
        yield Note(
            "writersClustering",
            f"a writer's clustering {past[-1].instant} put rows {by}, and clustering.columns are "
            f"{wanted}: switch the writer's clustering off",
        )


def _index(missed: Sequence[str]) -> Note:
    return Note(
        "writersIndex",
        f"Hudi's column_stats is kept without {', '.join(missed)}: the writers name other columns, "
        "or none, in hoodie.metadata.index.column.stats.column.list",
    )


def _files_of(which: NDArray[np.bool_]) -> str:
    count = int(which.sum())
    return f"{count} of the newest base files" if count > 1 else "one of the newest base files"


def _round(size: int) -> int:
    """Whole MiB of what has some, whole KiB of the rest."""
    unit = 1024**2 if size >= 1024**2 else 1024
    return max(1, round(size / unit)) * unit
