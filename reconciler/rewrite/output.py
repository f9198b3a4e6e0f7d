"""Write the new files of an output: name them, write them locally, split them, publish them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from reconciler.arrays import Integers
from reconciler.errors import UnsupportedError
from reconciler.file_slices.base_file.local_file import (
    open_local_file,
    publish_local_file,
)
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.file_slices.base_file.writer import BaseFileWriter, WrittenFile
from reconciler.hudi.files.bucket_ids import keep_bucket_number
from reconciler.layout.sizing.split_rule import FOOTER_BYTES
from reconciler.lazy_dataclass import dataclass
from reconciler.rewrite.group_columns import GroupColumns, tally_hashes
from reconciler.rewrite.model import RewriteGroup, RewriteJob, Tally, make_output_id
from reconciler.rewrite.sorting import RowSorter, SortedRows, choose_calendar
from reconciler.storage.api import Storage


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupOutput:
    """The result of one output of a group: one file, or several if it grew too large.

    ``read``: the tallies of ``parts`` parts that came with its runs; those of all outputs together
    are the group's.
    """

    group: int
    file: int
    files: tuple[WrittenFile, ...] = ()
    read: Tally = Tally()
    written: Tally = Tally()
    splits: int = 0
    parts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OutputWriter:
    """Writes one output; ``attempt`` differs among all attempts at it.

    ``check_stop`` is called before each batch of rows, and ends the work by raising.
    """

    job: RewriteJob
    group: RewriteGroup
    file: int
    attempt: int
    folder: Path
    check_stop: Callable[[], None] = lambda: None

    def write(self, sorter: RowSorter, storage: Storage) -> GroupOutput:
        """Write the collected rows, and move each file into the table after its marker.

        Raises as ``BaseFileWriter`` does, and what the storage raises.
        """
        sorted_rows = sorter.finish()
        files, written = (
            self._write_files(sorted_rows, self._choose_form(sorter))
            if sorted_rows.rows
            else ([], [])
        )
        for file in files:
            publish_local_file(
                self.folder / file.name, storage, self.job.instant, self.group.partition
            )
        tally = Tally()
        for one in written:
            tally = tally.add(one)
        return GroupOutput(
            group=self.group.number,
            file=self.file,
            files=tuple(map(self._report, files)),
            read=sorter.read,
            written=tally,
            splits=max(len(files) - 1, 0),
            parts=sorter.parts,
        )

    def _report(self, file: WrittenFile) -> WrittenFile:
        """Return what the driver needs to know of a file."""
        return file if self.job.keeps_bloom else replace(file, bloom=None)

    def make_file_name(self, index: int) -> str:
        """Return the name of a file; all attempts share its file id, but not its write token."""
        work, group = self.job, self.group.number
        prefix = make_output_id(work.seed, group, self.file)
        if self.group.bucket:
            prefix = keep_bucket_number(self.group.bucket, prefix)
        return f"{prefix}-{index}_{group}-{self.file}-{self.attempt}_{work.instant}.parquet"

    def _choose_form(self, sorter: RowSorter) -> BaseFileSettings:
        form = self.job.form
        calendar = choose_calendar(sorter.calendars, form.calendar)
        if calendar is None:
            raise UnsupportedError(
                f"partition {self.group.partition!r}: some files with dates before 1582 or times "
                "before 1900 do not declare their calendar, others do; rewrite the partition with "
                "Spark and spark.sql.parquet.datetimeRebaseModeInRead set"
            )
        return replace(form, calendar=calendar)

    def _write_files(
        self, sorted_rows: SortedRows, form: BaseFileSettings
    ) -> tuple[list[WrittenFile], list[Tally]]:
        """Write local files until none is too large, with more files in each round."""
        count, gives_up = 1, not self.group.bucket
        while True:
            files: list[WrittenFile] = []
            tallies: list[Tally] = []
            needed = count
            for file, tally, is_whole in self._try_files(
                sorted_rows, form, count, stops_when_too_big=gives_up
            ):
                files.append(file)
                tallies.append(tally)
                if self.group.bucket:
                    continue
                if not is_whole or file.size > self.job.split.max_bytes:
                    needed = self._count_needed_files(file, sorted_rows.rows, count)
                if needed > count or not is_whole:
                    break
            if needed <= count and sum(file.rows for file in files) == sorted_rows.rows:
                return files, tallies
            gives_up = needed > count  # if more files do not help, accept large ones
            count = needed

    def _count_needed_files(self, file: WrittenFile, rows: int, count: int) -> int:
        """Return how many files are needed after one of ``count`` was too large."""
        footer = len(file.bloom or "") + len(self.job.schema.avro) + FOOTER_BYTES
        if not self.job.split.can_split(footer) or file.rows <= 1:
            return count
        data_bytes = max(file.size - footer, 0) / file.rows * rows
        return min(max(count + 1, int(self.job.split.count_parts(data_bytes, footer))), rows)

    def _try_files(
        self,
        sorted_rows: SortedRows,
        form: BaseFileSettings,
        count: int,
        *,
        stops_when_too_big: bool,
    ) -> Iterator[tuple[WrittenFile, Tally, bool]]:
        """Write ``count`` files with equal numbers of rows; yields whether each is complete.

        ``stops_when_too_big``: a file ends as soon as it is known to become too large.
        """
        bounds = np.arange(count + 1) * sorted_rows.rows // count
        starts = [
            first + sorted_rows.row_group_starts(first, last, form)
            for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        ]
        ends = np.unique(np.concatenate(starts))
        batches = sorted_rows.batches(ends)
        for index in range(count):
            yield self._write_file(
                index, batches, starts[index], form, stops_when_too_big=stops_when_too_big
            )

    def _write_file(
        self,
        index: int,
        batches: Iterator[pa.RecordBatch],
        starts: Integers,
        form: BaseFileSettings,
        *,
        stops_when_too_big: bool,
    ) -> tuple[WrittenFile, Tally, bool]:
        name, position, last = self.make_file_name(index), int(starts[0]), int(starts[-1])
        ends = set(starts.tolist())
        columns = GroupColumns.from_job(self.job, self.group)
        tally = Tally()
        job = self.job
        with open_local_file(self.folder / name, job.schema, form, job.range_columns) as writer:
            while position < last:
                self.check_stop()
                rows = next(batches)
                writer.write(rows)
                tally = tally.add(tally_hashes(columns.hash_keys(rows)))
                position += len(rows)
                if position in ends:
                    writer.end_row_group()
                    if stops_when_too_big and position < last and self._is_too_big(writer):
                        break
            return replace(writer.close(), footer=None), tally, position == last

    def _is_too_big(self, writer: BaseFileWriter) -> bool:
        return writer.estimated_bytes > self.job.split.max_bytes
