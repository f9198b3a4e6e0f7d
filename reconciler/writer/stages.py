"""Run the stages of a write, from rows to files, on any task runner.

Rows are sent by key, keys are looked up, all is counted and assigned, every bucket is written. Each
stage's counts are compared with the next one's, so no row is lost or duplicated unnoticed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from reconciler.errors import ReconcilerError, UnsupportedError
from reconciler.file_slices.merge.slice_reader import SliceFiles
from reconciler.hudi.files.names import make_file_path
from reconciler.layout.sizing.assign import assign_rows
from reconciler.layout.sizing.assignment_rules import AssignmentRule, CopyOnWrite, SteadyRule
from reconciler.layout.sizing.buckets import BucketAssignment
from reconciler.rewrite.file_ids import make_output_id
from reconciler.rewrite.model import Tally
from reconciler.spark.staged_rows import RowSource, StagedRows
from reconciler.writer.bucket import Bucket
from reconciler.writer.bucket_routes import BucketRoutes, CountBinsTask, CutBinsTask, RouteRowsTask
from reconciler.writer.bucket_task import WriteBucketTask, WrittenBucket
from reconciler.writer.index_lookup import IndexLookup, LookUpKeysTask, SendKeysToIndexTask
from reconciler.writer.index_matching import DuplicateKeyCheck, MatchKeysTask, SendMovedKeysTask
from reconciler.writer.job import (
    RowCounts,
    RowOperation,
    TableGroups,
    TaskRunner,
    WriteAssignment,
    WriteJob,
    WrittenFiles,
)
from reconciler.writer.key_search import KeySearch, SearchFilesTask, SendKeysToFilesTask
from reconciler.writer.key_stage import PrepareTask
from reconciler.writer.row_chunks import rows_changed_error
from reconciler.writer.row_counts import CountChangesTask, CountRowsTask, WriteCounts
from reconciler.writer.row_weight import choose_sample_size


def write_files(
    rows: RowSource,
    job: WriteJob,
    engine: TaskRunner,
    *,
    assigned: Callable[[WriteAssignment], None],
) -> WrittenFiles:
    """Write the new files of a write; contract and errors as of ``RowWriter``."""
    _check_supported(job)
    row_job = engine.broadcast(job.row_job)
    staged = rows.shuffle(PrepareTask(row_job, engine.partitions), engine.partitions)
    if job.row_job.operation.needs_lookup:
        staged = _match_keys(staged, job, engine, row_job)
    weighed = choose_sample_size(engine.partitions) if _needs_weight(job.size_rule) else 0
    total = WriteCounts.from_chunks(staged.collect(CountChangesTask(row_job, weighed)))
    _check_moved_keys(staged, total, job, engine, row_job)
    result = _assign_buckets(total, job)
    assigned(result)
    if not len(result.assignment):
        return _make_result([], total, result)
    routes = _make_routes(staged, result.assignment, job, engine, row_job)
    buckets = engine.broadcast(_make_buckets(result.assignment, job))
    filled = staged.shuffle(
        RouteRowsTask(row_job, engine.broadcast(routes)), len(result.assignment)
    ).collect(WriteBucketTask(row_job, buckets, engine.context, job.needs_blooms))
    _check_written_rows(filled, total, result.assignment)
    return _make_result(filled, total, result)


def _check_supported(job: WriteJob) -> None:
    """Raise UnsupportedError for what cannot be written here."""
    groups = job.table_groups.groups
    if (groups.is_live & (groups.log_files > 0)).any():
        raise UnsupportedError(
            "the table has log files: only COPY_ON_WRITE tables can be written here"
        )
    if job.row_job.operation.needs_lookup and not job.row_job.settings.form.has_keys:
        raise UnsupportedError(
            "the table's files hold no record keys (hoodie.populate.meta.fields is false), so that "
            f"there is no {job.row_job.operation.value}; insert into it, or write it with Hudi"
        )


def _match_keys(staged: StagedRows, job: WriteJob, engine: TaskRunner, row_job: Any) -> StagedRows:
    """Return the rows with tags that say where their keys are."""
    if job.index is not None:
        lookup = IndexLookup.from_index(job.index, job.table_groups, engine.search_tasks)
        shared = engine.broadcast(lookup)
        keys_sent = staged.shuffle(SendKeysToIndexTask(row_job, shared), lookup.index_tasks)
        located = keys_sent.shuffle(LookUpKeysTask(shared, engine.context), lookup.file_tasks)
        return staged.union(
            located.shuffle(MatchKeysTask(row_job, shared, engine.context), engine.partitions)
        )
    rows: Counter[str] = Counter()
    for result in staged.collect(CountRowsTask()):
        rows.update(result)
    search = KeySearch.from_groups(job.table_groups, rows, engine.search_tasks)
    if not search.files:
        return staged
    shared = engine.broadcast(search)
    keys_sent = staged.shuffle(SendKeysToFilesTask(row_job, shared), len(search.files))
    return staged.union(
        keys_sent.shuffle(SearchFilesTask(shared, engine.context), engine.partitions)
    )


def _check_moved_keys(
    staged: StagedRows, total: WriteCounts, job: WriteJob, engine: TaskRunner, row_job: Any
) -> None:
    """Check that rows that move are not already in their new partition."""
    search = KeySearch.from_groups(job.table_groups, total.moves, engine.search_tasks)
    if search.files:
        shared = engine.broadcast(search)
        keys_sent = staged.shuffle(SendMovedKeysTask(row_job, shared), len(search.files))
        keys_sent.collect(DuplicateKeyCheck(shared, engine.context))


def _assign_buckets(total: WriteCounts, job: WriteJob) -> WriteAssignment:
    groups, rule = job.table_groups.groups, _choose_rule(total, job)
    _check_no_pending_clustering(total, job.table_groups)
    per_row = rule.record_size.per_row if isinstance(rule, SteadyRule) else 0.0
    codes = groups.partition.tolist() if total.changes else []
    workload = total.make_workload([groups.partitions[code] for code in codes], per_row)
    fills = job.has_commits and job.row_job.operation is not RowOperation.BULK_INSERT
    assignment = assign_rows(
        groups, workload, CopyOnWrite(), rule, has_commits=fills, streams=job.is_stream_batch
    )
    return WriteAssignment(workload=workload, assignment=assignment)


def _choose_rule(total: WriteCounts, job: WriteJob) -> AssignmentRule:
    """Return the size rule, with the new rows' weight where it is based on more rows."""
    match job.size_rule:
        case SteadyRule(record_size=known) as rule if total.weight.rows > known.rows:
            return replace(rule, record_size=total.weight.record_size)
        case rule:
            return rule


def _needs_weight(rule: AssignmentRule) -> bool:
    return isinstance(rule, SteadyRule) and rule.needs_row_sizes


def _check_no_pending_clustering(total: WriteCounts, table_groups: TableGroups) -> None:
    """Raise ReconcilerError where a pending clustering would lose updates.

    As Hudi's SparkRejectUpdateStrategy.
    """
    groups = table_groups.groups
    locked = [file for file in sorted(total.changes) if groups.is_clustering[file]]
    if locked:
        at = locked[0]
        raise ReconcilerError(
            f"partition {groups.partitions[groups.partition[at]]!r}, file group "
            f"{groups.file_id[at].as_py()}: a pending clustering will rewrite it"
            + (f", and {len(locked) - 1} more groups of this write" if len(locked) > 1 else "")
            + "; let it be completed or rolled back, then write again"
        )


def _make_routes(
    staged: StagedRows,
    assignment: BucketAssignment,
    job: WriteJob,
    engine: TaskRunner,
    row_job: Any,
) -> BucketRoutes:
    routes = BucketRoutes.from_assignment(assignment, len(job.table_groups.groups))
    if not routes.split_partitions or not (
        isinstance(job.size_rule, SteadyRule) or job.is_stream_batch
    ):
        return routes
    shared = engine.broadcast(routes)
    bin_tasks = min(engine.partitions, len(routes.split_partitions))
    return routes.add_cuts(
        staged.shuffle(CountBinsTask(row_job, shared, bin_tasks), bin_tasks).collect(
            CutBinsTask(shared)
        )
    )


def _make_buckets(assignment: BucketAssignment, job: WriteJob) -> tuple[Bucket, ...]:
    groups = job.table_groups.groups
    buckets = []
    for number, group in enumerate(assignment.group.tolist()):
        partition = assignment.partitions[assignment.partition[number]]
        base = None
        if group >= 0:
            name = job.table_groups.bases[group].as_py()
            path = make_file_path(partition, name)
            base = SliceFiles(base=path, base_size=int(groups.base[group]))
        prefix = make_output_id(job.seed, 0, number)
        buckets.append(Bucket(number=number, partition=partition, prefix=prefix, base=base))
    return tuple(buckets)


def _check_written_rows(
    filled: Sequence[WrittenBucket], total: WriteCounts, assignment: BucketAssignment
) -> None:
    """Raise ReconcilerError unless exactly the counted rows have come to files."""
    inserts: dict[str, Tally] = {}
    changes: dict[int, Tally] = {}
    for result in filled:
        path = assignment.partitions[assignment.partition[result.bucket]]
        inserts[path] = inserts.get(path, Tally()).add(result.inserts)
        if result.changes.rows:
            changes[int(assignment.group[result.bucket])] = result.changes
        # a change may become a new row, where its key was deleted since the lookup
        own = sum(written.counts.inserts for written in result.files)
        misplaced = sum(
            written.file.rows - written.counts.inserts
            for written in result.files
            if not written.previous_name
        )
        if misplaced or not 0 <= own - result.inserts.rows <= result.changes.rows:
            raise ReconcilerError(
                f"partition {path!r}: {result.inserts.rows} new rows were sent to files, but the "
                f"files have {own}; nothing is published"
            )
    expected = {path: tally for path, tally in total.inserts.items() if tally.rows}
    if {p: tally for p, tally in inserts.items() if tally.rows} != expected:
        raise rows_changed_error()
    if changes != total.changes:
        raise rows_changed_error()


def _make_result(
    filled: Sequence[WrittenBucket], total: WriteCounts, result: WriteAssignment
) -> WrittenFiles:
    in_order = sorted(filled, key=lambda one: one.bucket)
    files = tuple(file for one in in_order for file in one.files)
    return WrittenFiles(
        files=files,
        counts=RowCounts(
            incoming=total.incoming,
            dropped=total.dropped,
            absent_deletes=total.absent_deletes,
            inserts=sum(file.counts.inserts for file in files),
            updates=sum(file.counts.updates for file in files),
            deletes=sum(file.counts.deletes for file in files),
        ),
        assignment=result,
    )
