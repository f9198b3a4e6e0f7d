"""The stages of a write, from rows to files, on any task runner.

Rows are sent by key, keys are looked up, all is counted and assigned, every bucket is written. Each
stage's counts are compared with the next one's, so no row is lost or duplicated unnoticed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from reconciler.errors import ReconcilerError, UnsupportedError
from reconciler.file_slices.merge.slice_reader import SliceFiles
from reconciler.layout.sizing.assign import BucketAssignment, assign_rows
from reconciler.layout.sizing.assignment_rules import AssignmentRule, SteadyRule
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.lazy_dataclass import dataclass
from reconciler.rewrite.model import Tally, make_output_id
from reconciler.spark.staged_rows import RowSource, StagedRows
from reconciler.writer.bucket import Bucket
from reconciler.writer.bucket_routes import BucketRoutes, count_bins, cut_bins, route_rows
from reconciler.writer.bucket_task import WrittenBucket, write_bucket
from reconciler.writer.index_bucket_assignment import assign_to_buckets, make_tagged_workload
from reconciler.writer.index_bucket_witness import BucketWitnesses
from reconciler.writer.index_lookup import (
    IndexLookup,
    check_moved_keys,
    look_up_keys,
    match_keys,
    send_keys_to_index,
    send_moved_keys,
)
from reconciler.writer.job import (
    Broadcast,
    RowCounts,
    RowOperation,
    TaskRunner,
    WriteAssignment,
    WriteJob,
    WrittenFiles,
)
from reconciler.writer.key_search import KeySearch, search_keys_in_files, send_keys_to_files
from reconciler.writer.key_stage import prepare_rows
from reconciler.writer.log_targets import LogTarget, make_new_target
from reconciler.writer.lookup_choice import choose_way, make_lookup
from reconciler.writer.lookup_costs import LookupChoice, LookupWay
from reconciler.writer.row_blocks import rows_changed_error
from reconciler.writer.row_counts import WriteCounts, choose_sample_size, count_changes, count_rows


def write_files(
    rows: RowSource,
    job: WriteJob,
    runner: TaskRunner,
    *,
    assigned: Callable[[WriteAssignment], None],
) -> WrittenFiles:
    """Write the new files of a write; contract and errors as of ``RowWriter``."""
    _check_supported(job)
    return _Stages(job, runner, runner.broadcast(job.row_job)).run(rows, assigned)


def _check_supported(job: WriteJob) -> None:
    """Raise UnsupportedError for what cannot be written here."""
    if job.row_job.operation.needs_lookup and not job.row_job.settings.form.has_keys:
        raise UnsupportedError(
            "the table's files hold no record keys (hoodie.populate.meta.fields is false), so that "
            f"there is no {job.row_job.operation.value}; insert into it, or write it with Hudi"
        )


@dataclass(frozen=True, slots=True)
class _Stages:
    """Runs the stages of one write."""

    job: WriteJob
    runner: TaskRunner
    row_job: Broadcast

    def run(self, rows: RowSource, assigned: Callable[[WriteAssignment], None]) -> WrittenFiles:
        job, runner = self.job, self.runner
        staged = rows.shuffle(
            partial(prepare_rows, self.row_job, runner.partitions), runner.partitions
        )
        choice: LookupChoice | None = None
        if job.row_job.operation.needs_lookup and job.row_job.index_buckets is None:
            rows_by_path = self._count_rows(staged)
            choice = choose_way(job, rows_by_path.total())
            staged = self._add_tags(staged, choice.way, rows_by_path)
        weighed = choose_sample_size(runner.partitions) if _needs_weight(job) else 0
        total = WriteCounts()
        for counts in staged.collect(partial(count_changes, self.row_job, weighed)):
            total.add(counts)
        self._check_moved_keys(staged, total)
        result = _assign_buckets(total, job)
        assigned(result)
        lookup = make_lookup(choice, total)
        if not len(result.assignment):
            return replace(_make_result([], total, result), lookup=lookup)
        routes = runner.broadcast(self._make_routes(staged, result.assignment))
        buckets = runner.broadcast(_make_buckets(result.assignment, job))
        by_bucket = staged.shuffle(
            partial(route_rows, self.row_job, routes), len(result.assignment)
        )
        written = by_bucket.collect(partial(write_bucket, self.row_job, buckets, runner.context))
        _check_written_rows(written, total, result.assignment)
        made = replace(_make_result(written, total, result), lookup=lookup)
        return _count_absent_deletes(made, total, job)

    def _count_rows(self, staged: StagedRows) -> Counter[str]:
        """Return the number of rows by partition."""
        rows: Counter[str] = Counter()
        for counts in staged.collect(count_rows):
            rows.update(counts)
        return rows

    def _add_tags(self, staged: StagedRows, way: LookupWay, rows: Counter[str]) -> StagedRows:
        """Return the rows with tags that say where their keys are."""
        job, runner, row_job = self.job, self.runner, self.row_job
        if job.index is not None and way is LookupWay.RECORD_INDEX:
            lookup = IndexLookup.from_index(job.index, job.groups, runner.search_tasks, job.logs)
            shared = runner.broadcast(lookup)
            keys = staged.shuffle(partial(send_keys_to_index, row_job, shared), lookup.index_tasks)
            located = keys.shuffle(partial(look_up_keys, shared, runner.context), lookup.file_tasks)
            match = partial(match_keys, row_job, shared, runner.context)
            return staged.union(located.shuffle(match, runner.partitions))
        search = KeySearch.from_groups(
            job.groups,
            rows,
            runner.search_tasks,
            job.logs,
            job.row_job.settings.reading,
            searches_logs=job.searches_logs,
        )
        if not search.files:
            return staged
        shared = runner.broadcast(search)
        keys = staged.shuffle(partial(send_keys_to_files, row_job, shared), len(search.files))
        find = partial(search_keys_in_files, shared, runner.context)
        return staged.union(keys.shuffle(find, runner.partitions))

    def _check_moved_keys(self, staged: StagedRows, total: WriteCounts) -> None:
        """Check that rows that move are not already in their new partition."""
        job = self.job
        search = KeySearch.from_groups(job.groups, total.moves, self.runner.search_tasks, job.logs)
        if search.files:
            shared = self.runner.broadcast(search)
            keys = staged.shuffle(partial(send_moved_keys, self.row_job, shared), len(search.files))
            keys.collect(partial(check_moved_keys, self.row_job, shared, self.runner.context))

    def _make_routes(self, staged: StagedRows, assignment: BucketAssignment) -> BucketRoutes:
        routes = BucketRoutes.from_assignment(assignment, len(self.job.groups))
        needs_cuts = isinstance(self.job.size_rule, SteadyRule) or self.job.is_stream_batch
        is_cut = needs_cuts and self.job.row_job.index_buckets is None
        if not routes.split_partitions or not is_cut:
            return routes
        shared = self.runner.broadcast(routes)
        tasks = min(self.runner.partitions, len(routes.split_partitions))
        bins = staged.shuffle(partial(count_bins, self.row_job, shared, tasks), tasks)
        return routes.add_cuts(bins.collect(partial(cut_bins, shared)))


def _assign_buckets(total: WriteCounts, job: WriteJob) -> WriteAssignment:
    index = job.row_job.index_buckets
    if index is not None:
        workload = total.make_workload(job.groups, 0.0)
        assignment = assign_to_buckets(job.groups, workload, job.kind, index, total.in_buckets)
        _check_no_pending_clustering(assignment.group[assignment.group >= 0].tolist(), job.groups)
        return WriteAssignment(workload=make_tagged_workload(assignment), assignment=assignment)
    rule = _choose_rule(total, job)
    _check_no_pending_clustering(total.changes, job.groups)
    per_row = rule.record_size.per_row if isinstance(rule, SteadyRule) else 0.0
    workload = total.make_workload(job.groups, per_row)
    fills = job.has_commits and job.row_job.operation is not RowOperation.BULK_INSERT
    assignment = assign_rows(
        job.groups, workload, job.kind, rule, has_commits=fills, streams=job.is_stream_batch
    )
    return WriteAssignment(workload=workload, assignment=assignment)


def _choose_rule(total: WriteCounts, job: WriteJob) -> AssignmentRule:
    """Return the size rule, with the new rows' weight if it is based on more rows."""
    match job.size_rule:
        case SteadyRule(record_size=known) as rule if total.weight.rows > known.rows:
            return replace(rule, record_size=total.weight.record_size)
        case rule:
            return rule


def _needs_weight(job: WriteJob) -> bool:
    """Return whether sizes of rows decide about files, and are not known yet."""
    if job.row_job.index_buckets is not None:
        return False
    return isinstance(job.size_rule, SteadyRule) and job.size_rule.needs_row_sizes


def _check_no_pending_clustering(changed: Iterable[int], groups: FileGroupSizes) -> None:
    """Raise ReconcilerError if a pending clustering would lose changes of some file groups.

    As Hudi's SparkRejectUpdateStrategy.
    """
    locked = [group for group in sorted(changed) if groups.is_clustering[group]]
    if locked:
        raise ReconcilerError(
            f"partition {groups.get_partition(locked[0])!r}, file group "
            f"{groups.get_file_id(locked[0])}: a pending clustering will rewrite it"
            + (f", and {len(locked) - 1} more groups of this write" if len(locked) > 1 else "")
            + "; let it be completed or rolled back, then write again"
        )


def _make_buckets(assignment: BucketAssignment, job: WriteJob) -> tuple[Bucket, ...]:
    targets = _find_log_targets(assignment, job)
    witnesses = BucketWitnesses(job.groups, job.row_job.index_buckets)
    buckets = []
    for number, group in enumerate(assignment.group.tolist()):
        path = assignment.partitions[assignment.partition[number]]
        bucket = Bucket(number=number, partition=path, prefix=make_output_id(job.seed, 0, number))
        if assignment.index_bucket is not None:
            index_bucket = int(assignment.index_bucket[number])
            bucket = replace(bucket, index_bucket=index_bucket, witness=witnesses.take(path, group))
        if assignment.appends[number]:
            new = make_new_target(bucket.make_file_id(0), job.row_job.instant)
            bucket = replace(bucket, log=new if group < 0 else targets[group])
        elif group >= 0:
            base, size = job.groups.get_base_path(group), int(job.groups.base[group])
            bucket = replace(bucket, base=SliceFiles(base=base, base_size=size))
        buckets.append(bucket)
    return _move_rows(buckets, assignment)


def _move_rows(buckets: Sequence[Bucket], assignment: BucketAssignment) -> tuple[Bucket, ...]:
    """Return the buckets, with the base files whose rows come from other buckets."""
    moved = list(buckets)
    for source, into in assignment.list_moves():
        base = buckets[source].base
        assert base is not None, "rows of a base file move"
        assert moved[into].base is not None, "rows move to a file group with a base file"
        moved[source] = replace(moved[source], is_emptied=True)
        moved[into] = replace(moved[into], joining=(*moved[into].joining, base))
    return tuple(moved)


def _find_log_targets(assignment: BucketAssignment, job: WriteJob) -> dict[int, LogTarget]:
    """Return the log file of each group that gets one."""
    groups = assignment.group[assignment.appends & ~assignment.is_new].tolist()
    if not groups or job.log_targets is None:
        return {}
    return job.log_targets.find(groups, job.row_job.instant)


def _check_written_rows(
    written: Sequence[WrittenBucket], total: WriteCounts, assignment: BucketAssignment
) -> None:
    """Raise ReconcilerError unless exactly the counted rows have come to files."""
    inserts: dict[str, Tally] = {}
    changes: dict[int, Tally] = {}
    _check_moves(written, assignment)
    for result in written:
        path = assignment.partitions[assignment.partition[result.bucket]]
        inserts[path] = inserts.get(path, Tally()).add(result.inserts)
        if result.changes.rows:
            changes[int(assignment.group[result.bucket])] = result.changes
        if result.log is not None:
            if result.log.inserts != result.inserts.rows:
                raise _misplaced_rows_error(path, result.inserts.rows, result.log.inserts)
            continue
        # a change may become a new row, if its key was deleted since the lookup
        count = sum(file.counts.inserts for file in result.files)
        misplaced = sum(
            file.file.rows - file.counts.inserts for file in result.files if file.previous is None
        )
        if misplaced or not 0 <= count - result.inserts.rows <= result.changes.rows:
            raise _misplaced_rows_error(path, result.inserts.rows, count)
    expected = {path: tally for path, tally in total.inserts.items() if tally.rows}
    if changes != total.changes or expected != {
        path: tally for path, tally in inserts.items() if tally.rows
    }:
        raise rows_changed_error()


def _check_moves(written: Sequence[WrittenBucket], assignment: BucketAssignment) -> None:
    """Raise ReconcilerError unless the rows that leave a file have come to another one."""
    sources = {
        result.bucket: {source.base for file in result.files for source in file.sources}
        for result in written
    }
    previous = {
        result.bucket: {file.previous.base for file in result.files if file.previous is not None}
        for result in written
    }
    for source, into in assignment.list_moves():
        leaving = previous.get(source, set())
        if not leaving or sources[source] or not leaving <= sources.get(into, set()):
            path = assignment.partitions[assignment.partition[source]]
            raise ReconcilerError(
                f"partition {path!r}: the rows of {min(map(str, leaving), default='a file')} have "
                "not come to the file that was to take them; nothing is published"
            )


def _misplaced_rows_error(path: str, sent: int, count: int) -> ReconcilerError:
    return ReconcilerError(
        f"partition {path!r}: {sent} new rows were sent to files, but the files have {count}; "
        "nothing is published"
    )


def _count_absent_deletes(done: WrittenFiles, total: WriteCounts, job: WriteJob) -> WrittenFiles:
    """Return the result with the deletions of keys that rewritten files of buckets lacked.

    A bucket index looks for no key, and log files do not tell either.
    """
    if job.row_job.index_buckets is None or job.row_job.operation is not RowOperation.DELETE:
        return done
    absent = sum(total.deletes.values()) - done.counts.deletes
    counts = replace(done.counts, absent_deletes=done.counts.absent_deletes + absent)
    return replace(done, counts=counts)


def _make_result(
    written: Sequence[WrittenBucket], total: WriteCounts, result: WriteAssignment
) -> WrittenFiles:
    in_order = sorted(written, key=lambda bucket: bucket.bucket)
    files = tuple(file for bucket in in_order for file in bucket.files)
    logs = tuple(bucket.log for bucket in in_order if bucket.log is not None)
    return WrittenFiles(
        files=files,
        logs=logs,
        counts=RowCounts(
            incoming=total.incoming,
            dropped=total.dropped,
            absent_deletes=total.absent_deletes,
            inserts=sum(file.counts.inserts for file in files) + sum(log.inserts for log in logs),
            updates=sum(file.counts.updates for file in files)
            + sum(log.file.rows - log.inserts for log in logs),
            deletes=sum(file.counts.deletes for file in files)
            + sum(log.file.deletes for log in logs),
        ),
        assignment=result,
    )
