"""Rewrite groups in this process: what is small, and all of it in tests and crash drills.

The work is that of ``rewrite.spark``, on threads: Arrow does most of it, which holds no lock of
Python's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Final, TypeVar

from reconciler.errors import ReconcilerError
from reconciler.layout.curves.row_layout import RowLayout
from reconciler.lazy_dataclass import dataclass
from reconciler.rewrite.compaction import compact_slice
from reconciler.rewrite.layout_sample import fit_group_layout, sample_part
from reconciler.rewrite.model import (
    CompactedSlice,
    RewriteGroup,
    RewriteJob,
    RewrittenGroup,
    SliceToCompact,
    Tally,
)
from reconciler.rewrite.output import GroupOutput, OutputWriter
from reconciler.rewrite.run_builder import RUN_BYTES, build_runs
from reconciler.rewrite.runs import Run
from reconciler.rewrite.slice_parts import (
    PART_BYTES,
    SlicePart,
    split_into_parts,
    split_into_waves,
)
from reconciler.rewrite.sorting import SORT_BYTES, RowSorter
from reconciler.spark.spill_files import SpillFile, SpillWriter, read_blocks
from reconciler.spark.temporary_folders import make_temporary_folder
from reconciler.storage.api import Advance, Storage, StorageRef
from reconciler.storage.parallel import StopRequest, run_parallel

#: limits of one wave, whose rows are on the disk for temporary files until it ends
_WAVE_BYTES: Final = 1 << 30
_WAVE_GROUPS: Final = 64
_WAVE_OUTPUTS: Final = 500

_Item = TypeVar("_Item")
_Done = TypeVar("_Done")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLimits:
    """Bytes that are handled at a time.

    ``part_bytes``: bytes of a base file in one part. ``run_bytes``: bytes of rows in Arrow's memory
    that are split into runs. ``sort_bytes``: bytes of rows that are sorted together.
    """

    part_bytes: int = PART_BYTES
    run_bytes: int = RUN_BYTES
    sort_bytes: int = SORT_BYTES


@dataclass(frozen=True, slots=True)
class LocalRewriter:
    """Reads and writes storage that ``open_storage`` opens; runs are local spill files.

    ``threads``: tasks at a time; with one, calls of the storage have an order. ``check_stop`` is
    called between the steps of a task, and ends it by raising.
    """

    open_storage: Callable[[StorageRef], Storage]
    limits: MemoryLimits = MemoryLimits()
    threads: int = 1
    check_stop: Callable[[], None] = lambda: None

    def rewrite(
        self, ref: StorageRef, job: RewriteJob, groups: Sequence[RewriteGroup], *, progress: Advance
    ) -> list[RewrittenGroup]:
        storage, results = self.open_storage(ref), []
        for wave in split_into_waves(groups, _WAVE_BYTES, _WAVE_GROUPS, _WAVE_OUTPUTS):
            with make_temporary_folder() as folder:
                tasks = _Tasks(self.threads, self.check_stop)
                run = _LocalWave(storage, job, folder, self.limits, tasks)
                results += run.rewrite(wave, progress)
        return results

    def compact(
        self,
        ref: StorageRef,
        job: RewriteJob,
        slices: Sequence[SliceToCompact],
        *,
        progress: Advance,
    ) -> list[CompactedSlice]:
        storage = self.open_storage(ref)
        sizes = {given.number: given.bytes for given in slices}
        tasks = _Tasks(self.threads, self.check_stop)

        def compact(given: SliceToCompact) -> CompactedSlice:
            tasks.check()
            with make_temporary_folder() as folder:
                return compact_slice(job, given, storage, attempt=0, folder=folder)

        def report(done: CompactedSlice) -> None:
            progress(sizes[done.number])

        # largest first, so that no core waits for a late large one
        ordered = sorted(slices, key=lambda given: given.bytes, reverse=self.threads > 1)
        return tasks.run(compact, ordered if self.threads > 1 else slices, report)


@dataclass(frozen=True, slots=True)
class _Tasks:
    """Runs tasks on threads: those under way end at their next step when one fails."""

    threads: int
    check_outer: Callable[[], None]
    stop: StopRequest = field(default_factory=StopRequest)

    def run(
        self,
        task: Callable[[_Item], _Done],
        items: Sequence[_Item],
        on_done: Callable[[_Done], None] | None = None,
    ) -> list[_Done]:
        """Return the results in the order of the items."""
        return run_parallel(
            task,
            items,
            parallelism=self.threads,
            on_done=on_done,
            on_stop=lambda _count: self.stop.request(),
        )

    def check(self) -> None:
        """Raise what ends a task that is to stop."""
        self.stop.check()
        self.check_outer()


@dataclass(frozen=True, slots=True)
class _LocalWave:
    """Groups that are rewritten together; ``folder`` takes their rows on the way."""

    storage: Storage
    job: RewriteJob
    folder: Path
    limits: MemoryLimits
    tasks: _Tasks

    def rewrite(self, groups: Sequence[RewriteGroup], progress: Advance) -> list[RewrittenGroup]:
        """Rewrite the groups, each of its parts and then each of its new files as a task."""
        parts = {
            group.number: split_into_parts(group, part_bytes=self.limits.part_bytes)
            for group in groups
        }
        layouts = self._fit_layouts(groups, parts)

        def spill(part: SlicePart) -> tuple[SlicePart, SpillFile]:
            return part, self._spill_part(part, layouts[part.group.number])

        spilled = self.tasks.run(
            spill,
            [part for group in groups for part in parts[group.number]],
            lambda done: progress(done[0].progress),
        )
        files: dict[int, list[SpillFile]] = {group.number: [] for group in groups}
        for part, file in spilled:
            files[part.group.number].append(file)

        def write(task: tuple[RewriteGroup, int]) -> GroupOutput:
            group, file = task
            return self._write_output(group, layouts[group.number], file, files[group.number])

        outputs = self.tasks.run(
            write, [(group, file) for group in groups for file in range(group.outputs)]
        )
        return [
            combine_outputs(
                group,
                [output for output in outputs if output.group == group.number],
                len(parts[group.number]),
            )
            for group in groups
        ]

    def _fit_layouts(
        self, groups: Sequence[RewriteGroup], parts: Mapping[int, Sequence[SlicePart]]
    ) -> dict[int, RowLayout | None]:
        """Return the layout of each group by its number, None where rows keep their order."""

        def fit(group: RewriteGroup) -> RowLayout | None:
            samples = []
            for part in parts[group.number]:
                self.tasks.check()
                if sample := sample_part(part, self.job, self.storage):
                    samples.append(sample)
            return fit_group_layout(self.job, group, samples) if samples else None

        if not self.job.ordering.columns:
            return {group.number: None for group in groups}
        numbers = [group.number for group in groups]
        return dict(zip(numbers, self.tasks.run(fit, groups), strict=True))

    def _spill_part(self, part: SlicePart, layout: RowLayout | None) -> SpillFile:
        most = self.limits.run_bytes
        with SpillWriter(str(self.folder)) as writer:
            for run in build_runs(part, self.job, layout, self.storage, run_bytes=most):
                self.tasks.check()
                writer.write(run.file, run)
            return writer.finish()

    def _write_output(
        self,
        group: RewriteGroup,
        layout: RowLayout | None,
        file: int,
        spilled: Sequence[SpillFile],
    ) -> GroupOutput:
        with make_temporary_folder(self.folder) as folder:
            sorter = RowSorter(layout, folder, sort_bytes=self.limits.sort_bytes)
            for data in read_blocks(spilled, file):
                self.tasks.check()
                sorter.add(Run.from_bytes(data))
            output = OutputWriter(
                job=self.job,
                group=group,
                file=file,
                attempt=0,
                folder=folder,
                check_stop=self.tasks.check,
            )
            return output.write(sorter, self.storage)


def combine_outputs(
    group: RewriteGroup, outputs: Sequence[GroupOutput], parts: int
) -> RewrittenGroup:
    """Combine a group's outputs in the order of their rows.

    Raises ReconcilerError unless rows of all ``parts`` parts have arrived.
    """
    arrived = sum(output.parts for output in outputs)
    if arrived != parts:
        raise ReconcilerError(
            f"partition {group.partition!r}: {parts} parts were read, but {arrived} arrived where "
            "files are written; run apply again"
        )
    read, written = Tally(), Tally()
    for output in outputs:
        read, written = read.add(output.read), written.add(output.written)
    in_order = sorted(outputs, key=lambda output: output.file)
    return RewrittenGroup(
        number=group.number,
        files=tuple(file for output in in_order for file in output.files),
        read=read,
        written=written,
        splits=sum(output.splits for output in outputs),
    )
