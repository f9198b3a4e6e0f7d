"""Describe a compaction that an apply executes: its slices, its jobs, its commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from reconciler.arrays import to_arrow
from reconciler.errors import ReconcilerError
from reconciler.executor.cluster.rewrite_job import get_partition_values, make_rewrite
from reconciler.executor.outcomes import ClusterOutcome
from reconciler.file_slices.base_file.write_stat import build_compacted_stat
from reconciler.file_slices.base_file.writer import WrittenFile
from reconciler.file_slices.merge.slice_reader import SliceFiles
from reconciler.hudi.files.table_files import find_sizes
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.hudi.metadata.sync_decisions import BLOOM_FILTERS
from reconciler.hudi.timeline.instant import Action
from reconciler.hudi.timeline.plans import CompactionOperation
from reconciler.hudi.timeline.write_commit import WriteCommit
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.recovery.resume_compaction import list_merged_logs
from reconciler.rewrite.facts import TableFacts
from reconciler.rewrite.model import CompactedSlice, RewriteJob, SliceToCompact
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
    ``sizes``: bytes of every input file by its path below the table, -1 for a missing one.
    ``seen``: what was completed when these slices were last compared with other writes; None: what
    the state shows.
    """

    instant: str
    operations: tuple[CompactionOperation, ...]
    facts: TableFacts
    state: TableState
    extra: Mapping[str, str]
    attempt: str
    sizes: Mapping[str, int]
    seen: CompletedWrites | None = None

    @property
    def action(self) -> Action:
        return Action.COMPACTION

    @property
    def known(self) -> CompletedWrites:
        """The writes and rollbacks that were completed when the work began."""
        return collect_completed_writes(self.state.timeline) if self.seen is None else self.seen

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


def measure_inputs(operations: Sequence[CompactionOperation], state: TableState) -> dict[str, int]:
    """Return the bytes of all input files by their paths below the table, -1 for a missing one."""
    paths = [path for operation in operations for path in list_input_files(operation)]
    keys = [path if "/" in path else f"/{path}" for path in paths]
    sizes = find_sizes(state.files, to_arrow(keys)).tolist()
    return dict(zip(paths, sizes, strict=True))


def make_slices(work: CompactionWork) -> tuple[SliceToCompact, ...]:
    """Return the slices as workers take them; every file is in the state."""
    state = work.state
    slices = []
    for number, operation in enumerate(work.operations):
        paths = list_input_files(operation)
        base = None if operation.base_file is None else paths[0]
        files = SliceFiles(
            base=base,
            base_size=0 if base is None else work.sizes[base],
            logs=paths if base is None else paths[1:],
        )
        slices.append(
            SliceToCompact(
                number=number,
                partition=operation.partition,
                file_id=operation.file_id,
                files=files,
                bytes=sum(work.sizes[path] for path in paths),
                values=get_partition_values(work.facts, operation.partition),
                is_always_written=state.table_version >= LOGS_BY_COMPLETION,
                keeps_bloom=BLOOM_FILTERS in state.metadata_partitions,
            )
        )
    return tuple(slices)


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
        sizes = [work.sizes[path] for path in logs]
        stat = build_compacted_stat(
            result.file,
            operation.partition,
            previous_file=operation.base_file,
            counts=result.counts,
            log_sizes=sizes,
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
    return ClusterOutcome(
        groups=len(work.operations),
        slices=len(work.operations),
        files_before=len(work.sizes),
        files_after=len(written),
        bytes_read=sum(work.sizes.values()),
        bytes_written=sum(file.size for file in written),
        rows=sum(file.rows for file in written),
    )


def _join_paths(operation: CompactionOperation, names: Sequence[str]) -> tuple[str, ...]:
    folder = f"{operation.partition}/" if operation.partition else ""
    return tuple(folder + name for name in names)
