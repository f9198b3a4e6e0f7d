"""A rewrite spread over a Spark cluster: rows go from task to task as Arrow and unopened.

Map tasks are parts of slices, reduce tasks are new files. A task may be tried again or twice at
once: what Spark counts of it is one attempt's, and each attempt writes files of other names.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from reconciler.rewrite.layout_sample import fit_group_layout, read_sample, sample_part
from reconciler.rewrite.local import MemoryLimits, combine_outputs
from reconciler.rewrite.model import RewriteGroup, RewriteJob, RewrittenGroup
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
from reconciler.spark.jobs import report_progress, run_job_group, ship_package
from reconciler.spark.shuffle import Shuffle, ShuffleOpener, choose_shuffle
from reconciler.spark.staged_rows import BlockForPartition
from reconciler.spark.tasks import get_task_attempt, make_local_folder, use_one_core
from reconciler.storage.api import Storage, StorageRef
from reconciler.storage.redaction import redact_secrets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: the pool of Arrow's that does not give memory back after every batch, only to ask for it again:
#: a fifth less CPU
_POOL: Final = ("ARROW_DEFAULT_MEMORY_POOL", "system")
#: of what is rewritten in one turn: its rows lie on the executors' disks as long as it takes,
_BYTES: Final = 1 << 40
#: its layouts are in the driver, some hundred kilobytes each,
_GROUPS: Final = 64
#: and so are its results, each with a bloom filter; or more of them, for all cores to have some
_OUTPUTS: Final = 500
_OUTPUTS_PER_SLOT: Final = 4


class SparkRewriter:
    """Runs on a session's executors; every task opens its own storage."""

    def __init__(
        self,
        session: SparkSession,
        bounds: MemoryLimits | None = None,
        exchange: ShuffleOpener | None = None,
    ) -> None:
        self._context = session.sparkContext
        self._bounds = bounds or MemoryLimits()
        self._exchange = exchange or choose_shuffle(self._context)

    def rewrite(
        self,
        ref: StorageRef,
        work: RewriteJob,
        groups: Sequence[RewriteGroup],
        *,
        progress: Callable[[int], None],
    ) -> list[RewrittenGroup]:
        if not groups:
            return []
        ship_package(self._context)
        slots = self._context.defaultParallelism
        done = self._context.accumulator(0)
        told = _ReadProgress(progress, sum(group.bytes for group in groups))
        described = f"reconciler: cluster {len(groups)} groups of files of {ref.location}"
        found = []
        with (
            self._exchange(self._context) as through,  # ends when no task runs any more
            # the files of a group that is given up go by marker: none may come later
            run_job_group(
                self._context,
                described,
                lambda said: redact_secrets(said, ref.secrets),
                waits_for_all_attempts=True,
            ),
            report_progress(done, told),
            _use_system_memory_pool(self._context),
        ):
            for wave in split_into_waves(
                groups, _BYTES, _GROUPS, max(_OUTPUTS, _OUTPUTS_PER_SLOT * slots)
            ):
                found += _Wave(
                    self._context, ref, work, wave, self._bounds, done, through=through
                ).run()
        told.report_rest()
        return found


@contextmanager
def _use_system_memory_pool(context: Any) -> Iterator[None]:
    """Python workers that are started for this have it in their environment."""
    name, value = _POOL
    before = context.environment.get(name)
    context.environment[name] = before or value
    try:
        yield
    finally:
        if before is None:
            del context.environment[name]


class _ReadProgress:
    """Bytes read, never more than there are: Spark counts a stage that it runs again anew."""

    def __init__(self, progress: Callable[[int], None], total: int) -> None:
        self._progress, self._left = progress, total

    def __call__(self, count: int) -> None:
        count = min(count, self._left)
        self._left -= count
        if count:
            self._progress(count)

    def report_rest(self) -> None:
        self(self._left)


class _Wave:
    """Groups that are rewritten together."""

    def __init__(  # noqa: PLR0913 (what a rewrite has at hand)
        self,
        context: Any,
        ref: StorageRef,
        work: RewriteJob,
        groups: Sequence[RewriteGroup],
        bounds: MemoryLimits,
        done: Any,
        *,
        through: Shuffle,
    ) -> None:
        self._context, self._ref, self._bounds, self._done = context, ref, bounds, done
        self._through = through
        # biggest first, so that no core waits for one at the end
        self._groups = sorted(groups, key=estimate_output_bytes, reverse=True)
        self._work = work
        parts = [
            part
            for group in self._groups
            for part in split_into_parts(group, part_bytes=bounds.part_bytes)
        ]
        self._parts = sorted(parts, key=lambda part: part.progress, reverse=True)

    def run(self) -> list[RewrittenGroup]:
        work = self._context.broadcast(self._work)
        table = _TaskInput(
            ref=self._ref, work=work, partitions=_ShufflePartitions.from_groups(self._groups)
        )
        layouts = self._context.broadcast(self._fit_layouts(table))
        try:
            route = _RunTask(
                table=table, layouts=layouts, done=self._done, gathered=self._bounds.run_bytes
            )
            bare = [replace(group, slices=()) for group in self._groups]
            reduce = _WriteTask(
                table=table, groups=bare, layouts=layouts, sorted=self._bounds.sort_bytes
            )
            count = table.partitions.outputs
            outputs: list[GroupOutput] = self._through(
                self._distribute_parts(), route, count, reduce
            )
        finally:
            layouts.unpersist()
            work.unpersist()
        counts = Counter(part.group.number for part in self._parts)
        return [
            combine_outputs(
                group,
                [one for one in outputs if one.group == group.number],
                counts[group.number],
            )
            for group in self._groups
        ]

    def _fit_layouts(self, table: _TaskInput) -> dict[int, bytes]:
        """The layout of each group that has rows, by its number, pickled."""
        if not self._work.ordering.columns:
            return {}
        bare = [replace(group, slices=()) for group in self._groups]
        count = len(self._groups)
        return dict(
            self._through(
                self._distribute_parts(), _SampleTask(table), count, _FitTask(table, bare)
            )
        )

    def _distribute_parts(self) -> Any:
        return self._context.parallelize(self._parts, len(self._parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class _ShufflePartitions:
    """Which partition a group, and one of its outputs, has in an exchange."""

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
            group={group.number: place for place, group in enumerate(groups)},
            first=first,
            outputs=at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _TaskInput:
    """What every task is told. Disks may hold ``work``, a broadcast; secrets are in ``ref``."""

    ref: StorageRef
    work: Any
    partitions: _ShufflePartitions

    def open_storage(self) -> Storage:
        from reconciler.storage.open import open_storage  # noqa: PLC0415 (on the worker)

        use_one_core()
        return open_storage(self.ref)


@dataclass(frozen=True, slots=True)
class _SampleTask:
    """The rows of parts that layouts are fitted to, sent to their groups."""

    table: _TaskInput

    def __call__(self, parts: Iterable[SlicePart]) -> Iterator[BlockForPartition]:
        storage, work = self.table.open_storage(), self.table.work.value
        for part in parts:
            sample = sample_part(part, work, storage)
            if sample is not None:
                yield self.table.partitions.group[part.group.number], sample


@dataclass(frozen=True, slots=True)
class _FitTask:
    """The layout of a group, by its number."""

    table: _TaskInput
    groups: Sequence[RewriteGroup]

    def __call__(self, index: int, samples: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
        found = [read_sample(sample) for sample in samples]
        if found:
            group = self.groups[index]
            layout = fit_group_layout(self.table.work.value, group, found)
            yield group.number, pickle.dumps(layout)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RunTask:
    """The rows of parts, sent to their new files."""

    table: _TaskInput
    layouts: Any
    done: Any
    gathered: int

    def __call__(self, parts: Iterable[SlicePart]) -> Iterator[BlockForPartition]:
        storage, work, places = (
            self.table.open_storage(),
            self.table.work.value,
            self.table.partitions,
        )
        for part in parts:
            number = part.group.number
            first = places.first[places.group[number]]
            layout = _load_layout(self.layouts, number)
            for run in build_runs(part, work, layout, storage, run_bytes=self.gathered):
                yield first + run.file, run
            self.done.add(part.progress)


@dataclass(frozen=True, slots=True, kw_only=True)
class _WriteTask:
    """The runs of one output, written."""

    table: _TaskInput
    groups: Sequence[RewriteGroup]
    layouts: Any
    sorted: int

    def __call__(self, index: int, runs: Iterable[Any]) -> Iterator[GroupOutput]:
        storage, places = self.table.open_storage(), self.table.partitions
        place = max(n for n, first in enumerate(places.first) if first <= index)
        group = self.groups[place]
        with make_local_folder() as folder:
            gathering = RowSorter(
                _load_layout(self.layouts, group.number), folder, sort_bytes=self.sorted
            )
            for run in runs:
                gathering.add(Run.from_bytes(run))
            yield OutputWriter(
                job=self.table.work.value,
                group=group,
                file=index - places.first[place],
                attempt=get_task_attempt(),
                folder=folder,
            ).write(gathering, storage)


def _load_layout(layouts: Any, number: int) -> Any:
    data = layouts.value.get(number)
    return None if data is None else pickle.loads(data)  # noqa: S301 (this module's own)
