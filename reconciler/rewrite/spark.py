"""Rewrite file groups on a Spark cluster; rows travel between tasks as Arrow data, never decoded.

Map tasks read parts of file slices, reduce tasks write new files. A task may run again or twice at
once: Spark counts one attempt's results, and every attempt writes files with other names.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from reconciler.lazy_dataclass import dataclass
from reconciler.rewrite.compaction import compact_slice
from reconciler.rewrite.layout_sample import fit_group_layout, read_sample, sample_part
from reconciler.rewrite.local import MemoryLimits, combine_outputs
from reconciler.rewrite.model import (
    CompactedSlice,
    RewriteGroup,
    RewriteJob,
    RewrittenGroup,
    SliceToCompact,
)
from reconciler.rewrite.output import GroupOutput, OutputWriter
from reconciler.rewrite.run_builder import build_runs
from reconciler.rewrite.runs import Run
from reconciler.rewrite.slice_parts import (
    SlicePart,
    estimate_output_bytes,
    split_into_parts,
    split_into_waves,
)
from reconciler.rewrite.sorting import RowSorter
from reconciler.spark.jobs import report_progress, run_job_group
from reconciler.spark.staged_rows import BlockForPartition, Receive, RowSource, Send
from reconciler.spark.staging import StagingOpener, choose_staging
from reconciler.spark.tasks import get_task_attempt, make_local_folder, use_one_core
from reconciler.spark.workers import MERGING_PACKAGES, WRITING_PACKAGES, set_up_workers
from reconciler.storage.api import Advance, Storage, StorageRef
from reconciler.storage.open import list_client_packages
from reconciler.storage.redaction import redact_secrets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: the Arrow memory pool that keeps memory between batches, which saves a fifth of the CPU
_POOL: Final = ("ARROW_DEFAULT_MEMORY_POOL", "system")
#: limits of one wave: its rows stay on the executors' disks until it ends,
_BYTES: Final = 1 << 40
#: its layouts are in the driver, a few hundred kilobytes each,
_GROUPS: Final = 64
#: and so are its results, each with a bloom filter; the limit grows with the number of cores
_OUTPUTS: Final = 500
_OUTPUTS_PER_SLOT: Final = 4


class SparkRewriter:
    """Rewrites groups on a session's executors; every task opens its own storage."""

    def __init__(
        self,
        session: SparkSession,
        bounds: MemoryLimits | None = None,
        staging: StagingOpener | None = None,
    ) -> None:
        self._context = session.sparkContext
        self._bounds = bounds or MemoryLimits()
        self._staging = staging or choose_staging(self._context)

    def rewrite(
        self, ref: StorageRef, job: RewriteJob, groups: Sequence[RewriteGroup], *, progress: Advance
    ) -> list[RewrittenGroup]:
        if not groups:
            return []
        has_logs = any(files.logs for group in groups for files in group.slices)
        packages = (*WRITING_PACKAGES, *(MERGING_PACKAGES if has_logs else ()))
        set_up_workers(self._context, (*packages, *list_client_packages(ref.location)))
        slots = self._context.defaultParallelism
        done = self._context.accumulator(0)
        progress_counter = _ReadProgress(progress, sum(group.bytes for group in groups))
        description = f"reconciler: cluster {len(groups)} groups of files of {ref.location}"
        results = []
        with (
            self._staging(self._context) as stage,  # closed last, when no task runs any more
            # files of an abandoned group are removed by their markers, so none may appear later
            run_job_group(
                self._context,
                description,
                lambda text: redact_secrets(text, ref.secrets),
                waits_for_all_attempts=True,
            ),
            report_progress(done, progress_counter),
            _use_system_memory_pool(self._context),
        ):
            cluster = _Cluster(
                context=self._context, ref=ref, stage=stage, limits=self._bounds, done=done
            )
            for wave in split_into_waves(
                groups, _BYTES, _GROUPS, max(_OUTPUTS, _OUTPUTS_PER_SLOT * slots)
            ):
                results += _Wave(cluster, job, wave).run()
        progress_counter.report_rest()
        return results

    def compact(
        self,
        ref: StorageRef,
        job: RewriteJob,
        slices: Sequence[SliceToCompact],
        *,
        progress: Advance,
    ) -> list[CompactedSlice]:
        if not slices:
            return []
        packages = (*WRITING_PACKAGES, *MERGING_PACKAGES)
        set_up_workers(self._context, (*packages, *list_client_packages(ref.location)))
        done = self._context.accumulator(0)
        progress_counter = _ReadProgress(progress, sum(given.bytes for given in slices))
        with (
            run_job_group(
                self._context,
                f"reconciler: compact {len(slices)} file slices of {ref.location}",
                lambda text: redact_secrets(text, ref.secrets),
                waits_for_all_attempts=True,
            ),
            report_progress(done, progress_counter),
            _use_system_memory_pool(self._context),
        ):
            # largest first, so that no core waits for a late large one
            ordered = sorted(slices, key=lambda given: given.bytes, reverse=True)
            shared = self._context.broadcast(job)
            try:
                parts = self._context.parallelize(ordered, len(ordered))
                task = _CompactTask(ref=ref, job=shared, done=done)
                results: list[CompactedSlice] = parts.mapPartitions(task).collect()
            finally:
                shared.unpersist()
        progress_counter.report_rest()
        return results


@contextmanager
def _use_system_memory_pool(context: Any) -> Iterator[None]:
    """Start Python workers of the block with Arrow's system memory pool."""
    name, value = _POOL
    before = context.environment.get(name)
    context.environment[name] = before or value
    try:
        yield
    finally:
        if before is None:
            del context.environment[name]


class _ReadProgress:
    """Reports bytes read, at most ``total``: Spark counts a stage that runs again anew."""

    def __init__(self, progress: Advance, total: int) -> None:
        self._progress, self._left = progress, total

    def __call__(self, count: int) -> None:
        count = min(count, self._left)
        self._left -= count
        if count:
            self._progress(count)

    def report_rest(self) -> None:
        self(self._left)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cluster:
    """The cluster on which waves run. ``stage``: makes an RDD the source of a shuffle.

    ``done``: an accumulator of the bytes that tasks have read.
    """

    context: Any
    ref: StorageRef
    stage: Callable[[Any], RowSource]
    limits: MemoryLimits
    done: Any


class _Wave:
    """Groups that are rewritten together."""

    def __init__(self, cluster: _Cluster, job: RewriteJob, groups: Sequence[RewriteGroup]) -> None:
        self._cluster, self._job = cluster, job
        # largest first, so that no core waits for a late large one
        self._groups = sorted(groups, key=estimate_output_bytes, reverse=True)
        parts = [
            part
            for group in self._groups
            for part in split_into_parts(group, part_bytes=cluster.limits.part_bytes)
        ]
        self._parts = sorted(parts, key=lambda part: part.progress, reverse=True)

    def run(self) -> list[RewrittenGroup]:
        """Rewrite the groups: fit their layouts, then shuffle their rows to the new files."""
        cluster = self._cluster
        job = cluster.context.broadcast(self._job)
        table = _TaskInput(
            ref=cluster.ref, job=job, partitions=_ShufflePartitions.from_groups(self._groups)
        )
        layouts = cluster.context.broadcast(self._fit_layouts(table))
        limits = cluster.limits
        try:
            send = _RunTask(
                table=table, layouts=layouts, done=cluster.done, run_bytes=limits.run_bytes
            )
            receive = _WriteTask(
                table=table,
                groups=self._outline_groups(),
                layouts=layouts,
                sort_bytes=limits.sort_bytes,
            )
            outputs: list[GroupOutput] = self._shuffle(send, table.partitions.outputs, receive)
        finally:
            layouts.unpersist()
            job.unpersist()
        counts = Counter(part.group.number for part in self._parts)
        return [
            combine_outputs(
                group,
                [output for output in outputs if output.group == group.number],
                counts[group.number],
            )
            for group in self._groups
        ]

    def _fit_layouts(self, table: _TaskInput) -> dict[int, bytes]:
        """Fit the layout of each group that has rows; by group number, pickled."""
        if not self._job.ordering.columns:
            return {}
        receive = _FitTask(table, self._outline_groups())
        return dict(self._shuffle(_SampleTask(table), len(self._groups), receive))

    def _outline_groups(self) -> list[RewriteGroup]:
        """The groups without their slices, which reduce tasks do not need."""
        return [replace(group, slices=()) for group in self._groups]

    def _shuffle(self, send: Send, count: int, receive: Receive) -> list[Any]:
        parts = self._cluster.context.parallelize(self._parts, len(self._parts))
        staged = self._cluster.stage(parts).shuffle(send, count)
        results = staged.collect(receive)
        staged.discard()
        return results


@dataclass(frozen=True, slots=True, kw_only=True)
class _ShufflePartitions:
    """The numbers of shuffle partitions: by group, and of each group's first output."""

    group: dict[int, int]
    first: list[int]
    outputs: int

    @classmethod
    def from_groups(cls, groups: Sequence[RewriteGroup]) -> _ShufflePartitions:
        first, at = [], 0
        for group in groups:
            first.append(at)
            at += group.outputs
        return cls(
            group={group.number: position for position, group in enumerate(groups)},
            first=first,
            outputs=at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _TaskInput:
    """Every task's input. ``job``: a broadcast, which disks may hold; secrets are in ``ref``."""

    ref: StorageRef
    job: Any
    partitions: _ShufflePartitions

    def open_storage(self) -> Storage:
        from reconciler.storage.open import open_storage  # noqa: PLC0415 (on the worker)

        use_one_core()
        return open_storage(self.ref)


@dataclass(frozen=True, slots=True, kw_only=True)
class _CompactTask:
    """Compacts slices; ``job``: a broadcast."""

    ref: StorageRef
    job: Any
    done: Any

    def __call__(self, slices: Iterable[SliceToCompact]) -> Iterator[CompactedSlice]:
        from reconciler.storage.open import open_storage  # noqa: PLC0415 (on the worker)

        use_one_core()
        storage = open_storage(self.ref)
        for given in slices:
            with make_local_folder() as folder:
                yield compact_slice(
                    self.job.value, given, storage, attempt=get_task_attempt(), folder=folder
                )
            self.done.add(given.bytes)


@dataclass(frozen=True, slots=True)
class _SampleTask:
    """Samples rows of parts for the layouts of their groups."""

    table: _TaskInput

    def __call__(self, _number: int, parts: Iterable[SlicePart]) -> Iterator[BlockForPartition]:
        storage, job = self.table.open_storage(), self.table.job.value
        for part in parts:
            sample = sample_part(part, job, storage)
            if sample is not None:
                yield self.table.partitions.group[part.group.number], sample


@dataclass(frozen=True, slots=True)
class _FitTask:
    """Fits the layout of a group to its samples; yields it with the group's number."""

    table: _TaskInput
    groups: Sequence[RewriteGroup]

    def __call__(self, index: int, samples: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
        results = [read_sample(sample) for sample in samples]
        if results:
            group = self.groups[index]
            layout = fit_group_layout(self.table.job.value, group, results)
            yield group.number, pickle.dumps(layout)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RunTask:
    """Sends the rows of parts to their new files."""

    table: _TaskInput
    layouts: Any
    done: Any
    run_bytes: int

    def __call__(self, _number: int, parts: Iterable[SlicePart]) -> Iterator[BlockForPartition]:
        storage, job, partitions = (
            self.table.open_storage(),
            self.table.job.value,
            self.table.partitions,
        )
        for part in parts:
            number = part.group.number
            first = partitions.first[partitions.group[number]]
            layout = _load_layout(self.layouts, number)
            for run in build_runs(part, job, layout, storage, run_bytes=self.run_bytes):
                yield first + run.file, run
            self.done.add(part.progress)


@dataclass(frozen=True, slots=True, kw_only=True)
class _WriteTask:
    """Writes the runs of one output."""

    table: _TaskInput
    groups: Sequence[RewriteGroup]
    layouts: Any
    sort_bytes: int

    def __call__(self, index: int, runs: Iterable[Any]) -> Iterator[GroupOutput]:
        storage, partitions = self.table.open_storage(), self.table.partitions
        position = max(n for n, first in enumerate(partitions.first) if first <= index)
        group = self.groups[position]
        with make_local_folder() as folder:
            sorter = RowSorter(
                _load_layout(self.layouts, group.number), folder, sort_bytes=self.sort_bytes
            )
            for run in runs:
                sorter.add(Run.from_bytes(run))
            yield OutputWriter(
                job=self.table.job.value,
                group=group,
                file=index - partitions.first[position],
                attempt=get_task_attempt(),
                folder=folder,
            ).write(sorter, storage)


def _load_layout(layouts: Any, number: int) -> Any:
    data = layouts.value.get(number)
    return None if data is None else pickle.loads(data)  # noqa: S301 (this module's own)
