"""Recent work of a table's writers that contradicts its spec; pure.

The timeline and the listing are the evidence, because writers' options are not stored anywhere.
Each fact is a note with a rule: ``writersFiles``, ``writersClean``, ``writersClustering``,
``writersIndex``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from reconciler.arrays import Codes, Integers, Mask
from reconciler.hudi.files.table_files import FileKind
from reconciler.hudi.timeline.instant import parse_instant
from reconciler.layout.sizing.record_size import PastWrite
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.model import Note
from reconciler.spec.model import FileSizes, Policy, Retention, TableSpec
from reconciler.state.current_files import mark_read_files
from reconciler.state.extra_metadata import PLAN_DIGEST
from reconciler.state.model import CompletedClean, TableState
from reconciler.units import format_duration, format_size

#: a file this many times the target was written with another target
_OVERSIZE_FACTOR: Final = 1.5
#: number of small files in one partition that is no accident
_MIN_SMALL_FILES: Final = 3
#: operations that fill files below hoodie.parquet.small.file.limit, and that never do
_FILLING_OPERATIONS: Final = frozenset({"insert", "upsert", "insert_prepped", "upsert_prepped"})
_NON_FILLING_OPERATIONS: Final = frozenset(
    {"bulk_insert", "bulk_insert_prepped", "insert_overwrite", "insert_overwrite_table"}
)
_WHY_UNFILLED: Final = (
    "which fills such files first: the writers have another hoodie.parquet.small.file.limit, "
    "estimate records too large (files.recordSize), or are many tasks of Flink"
)
_WHY_NEVER_FILLED: Final = (
    "which never fills files: use insert, write fewer and larger batches, or let a clustering "
    "join them"
)
#: an older clean says nothing about the writers of today
_RECENT_COMMITS: Final = 10
_HOUR: Final = 3600


def writers_status(
    spec: TableSpec,
    state: TableState,
    writes: Sequence[PastWrite],
    *,
    missed_by_hudi: Sequence[str] = (),
) -> tuple[Note, ...]:
    """Return the facts, those about files first; empty if nothing contradicts the spec.

    ``writes``: the newest completed writes, by this program too. ``missed_by_hudi``: declared
    columns that Hudi's column_stats lacks.
    """
    notes: list[Note] = []
    sizes = spec.files or (FileSizes() if spec.clustering is not None else None)
    if sizes is not None:
        notes += _file_notes(sizes, state, writes)
    if spec.retention is not None:
        notes += _clean_notes(spec.retention, state)
    if spec.clustering is not None:
        notes += _clustering_notes(spec.clustering.columns, state)
    if missed_by_hudi:
        notes.append(_index_note(missed_by_hudi))
    return tuple(notes)


@dataclass(frozen=True, slots=True)
class _NewestFiles:
    """Base files that a snapshot reads, of known writes by other writers.

    ``operation``: int64 per file, index into ``operations``.
    """

    size: Integers
    partition: Codes
    operation: Integers
    operations: tuple[str, ...]

    def is_made_by(self, operations: frozenset[str]) -> Mask:
        is_one = np.array([name in operations for name in self.operations], np.bool_)
        return is_one[self.operation]

    def operation_names(self, selected: Mask) -> str:
        """The operations that wrote the files, as text."""
        codes = np.flatnonzero(np.bincount(self.operation[selected], minlength=1))
        return " and ".join(self.operations[code] for code in codes.tolist())


def _newest_files(state: TableState, writes: Sequence[PastWrite]) -> _NewestFiles:
    files = state.files
    by_instant = {
        past.instant: (past.operation or "a write").lower() for past in writes if not past.is_ours
    }
    operations = tuple(sorted(set(by_instant.values())))
    code = {name: nth for nth, name in enumerate(operations)}
    known = np.array(
        [code[by_instant[i]] if i in by_instant else -1 for i in files.instants], np.int64
    )
    is_read = mark_read_files(state.view)
    rows = np.flatnonzero(is_read & (files.kind == FileKind.BASE))
    operation = known[files.instant[rows]] if len(known) else np.zeros(0, np.int64)
    rows, operation = rows[operation >= 0], operation[operation >= 0]
    return _NewestFiles(files.size[rows], files.partition[rows], operation, operations)


def _file_notes(sizes: FileSizes, state: TableState, writes: Sequence[PastWrite]) -> Iterator[Note]:
    newest = _newest_files(state, writes)
    is_big = newest.size > _OVERSIZE_FACTOR * sizes.target
    if is_big.any():
        files, writers = _count_files(is_big), newest.operation_names(is_big)
        greatest = format_size(_round_size(int(newest.size.max())))
        yield Note(
            "writersFiles",
            f"{files} written by {writers} are far above files.target "
            f"({format_size(sizes.target)}), up to {greatest}: the writers have a larger "
            "hoodie.parquet.max.file.size, or estimate records too small (files.recordSize)",
        )
    is_small = newest.size < sizes.small
    limit = f"files.small ({format_size(sizes.small)})"
    # in merge-on-read tables a write fills one file per partition, and none with log files
    filling = frozenset() if state.is_merge_on_read else _FILLING_OPERATIONS
    for operations, why in ((filling, _WHY_UNFILLED), (_NON_FILLING_OPERATIONS, _WHY_NEVER_FILLED)):
        is_many, where = _find_crowded(newest, is_small & newest.is_made_by(operations))
        if is_many.any():
            files, writers = _count_files(is_many), newest.operation_names(is_many)
            text = f"{files} below {limit} in {where} written by {writers}, {why}"
            yield Note("writersFiles", text)


def _find_crowded(newest: _NewestFiles, selected: Mask) -> tuple[Mask, str]:
    """The files that are many in their partition, and the number of these partitions."""
    counts = np.bincount(newest.partition[selected], minlength=1)
    is_many = selected & (counts[np.minimum(newest.partition, len(counts) - 1)] >= _MIN_SMALL_FILES)
    partitions = int((counts >= _MIN_SMALL_FILES).sum())
    return is_many, f"{partitions} {'partition' if partitions == 1 else 'partitions'}"


def _clean_notes(declared: Retention, state: TableState) -> Iterator[Note]:
    """Compare the newest clean by a writer; it stores its policy and boundary, but no count."""
    theirs = [c for c in state.cleans if not c.is_blank and PLAN_DIGEST not in c.extra]
    if not theirs:
        return
    last = max(theirs, key=lambda clean: clean.instant)
    if sum(i.requested > last.instant for i in state.commits_timeline) >= _RECENT_COMMITS:
        return
    clean = f"a writer's clean {last.instant}"
    if last.policy is not None and last.policy != declared.policy.value:
        yield Note("writersClean", f"{clean} used {last.policy} instead of {declared.policy.value}")
        return
    narrow = _describe_narrower_clean(declared, last, state)
    if narrow is not None:
        remedy = "switch its cleaning off, or give it the spec's retention"
        yield Note("writersClean", f"{clean} {narrow}: {remedy}")


def _describe_narrower_clean(
    declared: Retention, last: CompletedClean, state: TableState
) -> str | None:
    """Return what a clean kept less than the spec asks, as far as the active timeline proves it."""
    start = last.earliest_instant_to_retain.strip()
    times = [i.requested for i in state.commits_timeline]
    if start not in times:
        return None
    if declared.policy is Policy.COMMITS:
        kept = sum(start <= time <= last.instant for time in times)
        if kept < declared.keep:
            return f"kept {kept} {'commit' if kept == 1 else 'commits'} instead of {declared.keep}"
    if declared.policy is Policy.HOURS:
        before = [time for time in times if time < start]
        old = _seconds_between(before[-1], last.instant) if before else None
        # one hour may be due to summer time
        if old is not None and old + _HOUR < declared.keep * _HOUR:
            age = format_duration(max(60, old // 60 * 60))
            return f"removed commit {before[-1]} at an age of {age} instead of {declared.keep}h"
    return None


def _seconds_between(earlier: str, later: str) -> int | None:
    first, second = parse_instant(earlier), parse_instant(later)
    return None if first is None or second is None else int((second - first).total_seconds())


def _clustering_notes(columns: Sequence[str], state: TableState) -> Iterator[Note]:
    past = state.clustering_facts.clusterings if state.clustering_facts is not None else ()
    if not past or PLAN_DIGEST in past[-1].extra or past[-1].layout is None:
        return
    theirs = past[-1].layout.columns
    if theirs != tuple(columns):
        by = f"by {', '.join(theirs)}" if theirs else "by no column"
        wanted = ", ".join(columns) or "none"
        yield Note(
            "writersClustering",
            f"a writer's clustering {past[-1].instant} ordered rows {by}, but clustering.columns "
            f"are {wanted}: switch the writer's clustering off",
        )


def _index_note(missed: Sequence[str]) -> Note:
    return Note(
        "writersIndex",
        f"Hudi's column_stats lacks {', '.join(missed)}: the writers name other columns, or "
        "none, in hoodie.metadata.index.column.stats.column.list",
    )


def _count_files(selected: Mask) -> str:
    count = int(selected.sum())
    return f"{count} of the newest base files" if count > 1 else "one of the newest base files"


def _round_size(size: int) -> int:
    """Round to whole MiB, or to whole KiB below that."""
    unit = 1024**2 if size >= 1024**2 else 1024
    return max(1, round(size / unit)) * unit
