"""Rewrite groups in this process, step by step: for tests, crash drills and small tables."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from reconciler.errors import ReconcilerError
from reconciler.layout.curves.row_layout import RowLayout
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
from reconciler.rewrite.slice_parts import PART_BYTES, SlicePart, split_into_parts
from reconciler.rewrite.sorting import SORT_BYTES, RowSorter
from reconciler.spark.spill_files import SpillFile, SpillWriter, read_blocks
from reconciler.storage.api import Advance, Storage, StorageRef


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
    """Reads and writes storage that ``open_storage`` opens; runs are local spill files."""

    open_storage: Callable[[StorageRef], Storage]
    limits: MemoryLimits = MemoryLimits()

    def rewrite(
        self, ref: StorageRef, job: RewriteJob, groups: Sequence[RewriteGroup], *, progress: Advance
    ) -> list[RewrittenGroup]:
        storage = self.open_storage(ref)
        results = []
        for group in groups:
            with tempfile.TemporaryDirectory(prefix="reconciler-") as folder:
                results.append(self._rewrite_group(storage, job, group, Path(folder), progress))
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
        results = []
        for given in slices:
            with tempfile.TemporaryDirectory(prefix="reconciler-") as folder:
                results.append(compact_slice(job, given, storage, attempt=0, folder=Path(folder)))
            progress(given.bytes)
        return results

    def _rewrite_group(
        self,
        storage: Storage,
        job: RewriteJob,
        group: RewriteGroup,
        folder: Path,
        progress: Advance,
    ) -> RewrittenGroup:
        parts = split_into_parts(group, part_bytes=self.limits.part_bytes)
        layout = _fit_group_layout(job, group, parts, storage)
        files = []
        for part in parts:
            with SpillWriter(str(folder)) as writer:
                for run in build_runs(part, job, layout, storage, run_bytes=self.limits.run_bytes):
                    writer.write(run.file, run)
                files.append(writer.finish())
            progress(part.progress)
        outputs = [
            self._write_output(storage, job, group, layout, file, (folder, files))
            for file in range(group.outputs)
        ]
        return combine_outputs(group, outputs, len(parts))

    def _write_output(
        self,
        storage: Storage,
        job: RewriteJob,
        group: RewriteGroup,
        layout: RowLayout | None,
        file: int,
        spilled: tuple[Path, Sequence[SpillFile]],
    ) -> GroupOutput:
        folder, files = spilled
        with tempfile.TemporaryDirectory(dir=folder) as folder_of_file:
            sorter = RowSorter(layout, Path(folder_of_file), sort_bytes=self.limits.sort_bytes)
            for data in read_blocks(files, file):
                sorter.add(Run.from_bytes(data))
            output = OutputWriter(
                job=job, group=group, file=file, attempt=0, folder=Path(folder_of_file)
            )
            return output.write(sorter, storage)


def _fit_group_layout(
    job: RewriteJob, group: RewriteGroup, parts: Sequence[SlicePart], storage: Storage
) -> RowLayout | None:
    if not job.ordering.columns:
        return None
    samples = [sample for part in parts if (sample := sample_part(part, job, storage))]
    return fit_group_layout(job, group, samples) if samples else None


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
