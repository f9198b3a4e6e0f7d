"""Describe a compaction that an apply executes: its slices, its jobs, its commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from reconciler.arrays import to_arrow
from reconciler.errors import ReconcilerError
from reconciler.executor.cluster.rewrite_job import get_partition_values, make_rewrite
from reconciler.executor.outcomes import ClusterOutcome
from reconciler.file_slices.base_file.write_stat import build_compacted_stat
from reconciler.file_slices.base_file.writer import WrittenFile
from reconciler.file_slices.merge.slice_reader import SliceFiles
from reconciler.hudi.files.table_files import find_sizes
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.hudi.timeline.instant import Action
from reconciler.hudi.timeline.plans import CompactionOperation
from reconciler.hudi.timeline.write_commit import WriteCommit
from reconciler.planners.recovery.resume_compaction import list_merged_logs
from reconciler.rewrite.compaction import CompactedSlice, SliceToCompact
from reconciler.rewrite.facts import TableFacts
from reconciler.rewrite.model import RewriteJob
from reconciler.spec.model import TableSpec
from reconciler.state.clustering_layout import ClusteringLayout
from reconciler.state.model import TableState
from reconciler.transaction.footprints import CompletedWrites, collect_completed_writes

#: Hudi's own key, of every commit
_SCHEMA: Final = "schema"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompactionWork:
    """A pending compaction, whose whole plan is executed.

    ``extra``: extra metadata of the completed file. ``attempt``: a text that no other attempt has.
    ``earlier_files``: partition and name of the files that earlier attempts left.
    """

    instant: str
    operations: tuple[CompactionOperation, ...]
    facts: TableFacts
    state: TableState
    extra: Mapping[str, str]
    attempt: str
    earlier_files: tuple[tuple[str, str], ...] = field(default=())

    @property
    def action(self) -> Action:
        return Action.COMPACTION

    @property
    def known(self) -> CompletedWrites:
        """The writes and rollbacks that were completed when the work began."""
        return collect_completed_writes(self.state.timeline)

    @property
    def partitions(self) -> list[str]:
        """The partitions of the plan, sorted."""
        return sorted({operation.partition for operation in self.operations})


def make_job(work: CompactionWork, spec: TableSpec) -> RewriteJob:
    """Return what all slices of a compaction have in common."""
    keeps_order = ClusteringLayout()
    return make_rewrite(work.facts, spec, keeps_order, instant=work.instant, attempt=work.attempt)


def list_input_files(operation: CompactionOperation) -> tuple[str, ...]:
    """Return the paths of an operation's base file and log files, below the table."""
    base = [] if operation.base_file is None else [operation.base_file]
    return _join_paths(operation, [*base, *list_merged_logs(operation)])


def make_slices(work: CompactionWork) -> tuple[SliceToCompact, ...]:
    """Return the slices as workers take them; every file is in the state."""
    state = work.state
    slices = []
    for number, operation in enumerate(work.operations):
        logs = _join_paths(operation, list_merged_logs(operation))
        sizes = _measure(state, list_input_files(operation))
        base = None if operation.base_file is None else list_input_files(operation)[0]
        slices.append(
            SliceToCompact(
                number=number,
                partition=operation.partition,
                file_id=operation.file_id,
                files=SliceFiles(base=base, base_size=sizes[0] if base else 0, logs=logs),
                bytes=sum(sizes),
                values=get_partition_values(work.facts, operation.partition),
                is_always_written=state.table_version >= LOGS_BY_COMPLETION,
            )
        )
    return tuple(slices)


def find_missing_files(work: CompactionWork) -> tuple[str, ...]:
    """Return the paths of input files that the table does not have."""
    paths = [path for operation in work.operations for path in list_input_files(operation)]
    sizes = _measure(work.state, paths)
    return tuple(path for path, size in zip(paths, sizes, strict=True) if size < 0)


def find_earlier_files(state: TableState, instant: str) -> tuple[tuple[str, str], ...]:
    """Return partition and name of the base files that attempts at a compaction have written."""
    files = state.files
    if instant not in files.instants:
        return ()
    rows = np.flatnonzero(files.instant == files.instants.index(instant))
    names = files.name.take(to_arrow(rows)).to_pylist()
    paths = [files.partitions[code] for code in files.partition[rows]]
    return tuple(
        (path, name) for path, name in zip(paths, names, strict=True) if not name.startswith(".")
    )


def check_results(
    work: CompactionWork, results: Sequence[CompactedSlice]
) -> tuple[CompactedSlice, ...]:
    """Return the results in the order of the slices; ReconcilerError unless there is one for each.

    Twice the same slice would be two base files of one file group.
    """
    by_number = {result.number: result for result in results}
    count = len(work.operations)
    if sorted(by_number) != list(range(count)) or len(results) != count:
        raise ReconcilerError(
            f"of the {count} file slices of compaction {work.instant} the workers have told of "
            f"{len(results)}; nothing was published, run apply again"
        )
    return tuple(by_number[number] for number in range(count))


def group_written_files(
    work: CompactionWork, results: Sequence[CompactedSlice]
) -> dict[str, list[WrittenFile]]:
    """Return the new files by partition."""
    added: dict[str, list[WrittenFile]] = {}
    for operation, result in zip(work.operations, results, strict=True):
        if result.file is not None:
            added.setdefault(operation.partition, []).append(result.file)
    return added


def make_completed_commit(work: CompactionWork, results: Sequence[CompactedSlice]) -> WriteCommit:
    """Return the commit of a compaction, as Hudi's compactor leaves it."""
    stats: dict[str, list[Mapping[str, str | int]]] = {}
    for operation, result in zip(work.operations, results, strict=True):
        if result.file is None:
            continue
        logs = _join_paths(operation, list_merged_logs(operation))
        stat = build_compacted_stat(
            result.file,
            operation.partition,
            previous_file=operation.base_file,
            counts=result.counts,
            log_sizes=_measure(work.state, logs),
            version=work.state.table_version,
        )
        stats.setdefault(operation.partition, []).append(stat)
    return WriteCommit(
        operation="COMPACT",
        stats_by_partition=stats,
        extra={**work.extra, _SCHEMA: work.facts.avro},
        is_compaction=True,
    )


def summarize(work: CompactionWork, results: Sequence[CompactedSlice]) -> ClusterOutcome:
    """Return what a compaction did."""
    written = [result.file for result in results if result.file is not None]
    paths = [path for operation in work.operations for path in list_input_files(operation)]
    return ClusterOutcome(
        groups=len(work.operations),
        slices=len(work.operations),
        files_before=len(paths),
        files_after=len(written),
        bytes_read=sum(_measure(work.state, paths)),
        bytes_written=sum(file.size for file in written),
        rows=sum(file.rows for file in written),
    )


def _join_paths(operation: CompactionOperation, names: Sequence[str]) -> tuple[str, ...]:
    folder = f"{operation.partition}/" if operation.partition else ""
    return tuple(folder + name for name in names)


def _measure(state: TableState, paths: Sequence[str]) -> list[int]:
    """Return the bytes of files, -1 for a missing one."""
    keys = [path if "/" in path else f"/{path}" for path in paths]
    return [int(size) for size in find_sizes(state.files, to_arrow(keys))]
