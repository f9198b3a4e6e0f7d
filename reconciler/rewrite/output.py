"""New files of ordered rows: named, written to the local disk, split, and brought to the table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconciler.errors import UnsupportedError
from reconciler.file_slices.base_file.local_file import (
    MAX_FACTOR,
    open_local_file,
    publish_local_file,
)
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.file_slices.base_file.writer import BaseFileWriter, WrittenFile
from reconciler.rewrite.file_ids import make_output_id
from reconciler.rewrite.group_columns import GroupColumns, tally_hashes
from reconciler.rewrite.model import RewriteGroup, RewriteJob, Tally
from reconciler.rewrite.sorting import RowSorter, SortedRows, choose_calendar
from reconciler.storage.api import Storage

#: a footer that takes more of a file than this does not get less by making more files
_MAX_FOOTER_SHARE: Final = 0.5
#: bytes of a file's end beside its bloom filter and schema
_FOOTER_BYTES: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupOutput:
    """What became of one output of a group: its file, or several where it grew too big.

    ``read``: the tallies that came with its runs, those of ``parts`` parts; those of all outputs
    together are the group's.
    """

    group: int
    file: int
    files: tuple[WrittenFile, ...] = ()
    read: Tally = Tally()  # noqa: RUF009 (frozen)
    written: Tally = Tally()  # noqa: RUF009 (frozen)
    splits: int = 0
    parts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OutputWriter:
    """How one output is written; ``attempt`` differs among all tries at it."""

    job: RewriteJob
    group: RewriteGroup
    file: int
    attempt: int
    folder: Path

    def write(self, gathering: RowSorter, storage: Storage) -> GroupOutput:
        """Write the rows that were gathered, and bring each file to the table after its marker.

        Raises as ``BaseFileWriter`` does, and what the storage raises.
        """
        ordered = gathering.finish()
        files, written = (
            self._write_files(ordered, self._choose_form(gathering)) if ordered.rows else ([], [])
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
            files=tuple(files),
            read=gathering.read,
            written=tally,
            splits=max(len(files) - 1, 0),
            parts=gathering.parts,
        )

    def make_file_name(self, nth: int) -> str:
        """Of a file: another for every attempt, so that those that were overtaken do no harm.

        The file's id does not change with the attempt.
        """
        work, group = self.job, self.group.number
        own = make_output_id(work.seed, group, self.file)
        return f"{own}-{nth}_{group}-{self.file}-{self.attempt}_{work.instant}.parquet"

    def _choose_form(self, gathering: RowSorter) -> BaseFileSettings:
        form = self.job.form
        calendar = choose_calendar(gathering.calendars, form.calendar)
        if calendar is None:
            raise UnsupportedError(
                f"partition {self.group.partition!r}: it has dates before 1582 or times before "
                "1900 in files that do not say how they count them, beside files that do; rewrite "
                "it with Spark and spark.sql.parquet.datetimeRebaseModeInRead set"
            )
        return replace(form, calendar=calendar)

    def _write_files(
        self, ordered: SortedRows, form: BaseFileSettings
    ) -> tuple[list[WrittenFile], list[Tally]]:
        """The finished files on the local disk: as many as it takes for none to be too big."""
        count, gives_up = 1, True
        while True:
            found: list[WrittenFile] = []
            tallies: list[Tally] = []
            needed = count
            for file, tally, is_whole in self._try_files(
                ordered, form, count, stops_when_too_big=gives_up
            ):
                found.append(file)
                tallies.append(tally)
                if not is_whole or file.size > MAX_FACTOR * self.job.target:
                    needed = self._count_needed_files(file, ordered.rows, count)
                if needed > count or not is_whole:
                    break
            if needed <= count and sum(file.rows for file in found) == ordered.rows:
                return found, tallies
            gives_up = needed > count  # more files would not be smaller ones: then take them big
            count = needed

    def _count_needed_files(self, file: WrittenFile, rows: int, count: int) -> int:
        """How many files it takes when one of so many is this big; as many, if more do not help."""
        footer = len(file.bloom or "") + len(self.job.schema.avro) + _FOOTER_BYTES
        target = self.job.target
        if footer > _MAX_FOOTER_SHARE * target or file.rows <= 1:
            return count
        of_rows = max(file.size - footer, 0) / file.rows * rows
        return min(max(count + 1, round(of_rows / (target - footer) + 0.45)), rows)

    def _try_files(
        self, ordered: SortedRows, form: BaseFileSettings, count: int, *, stops_when_too_big: bool
    ) -> Iterator[tuple[WrittenFile, Tally, bool]]:
        """So many files of the same number of rows, one after the other, and whether each is whole.

        ``stops_when_too_big``: a file that is seen to become too big ends there.
        """
        bounds = np.arange(count + 1) * ordered.rows // count
        starts = [
            first + ordered.row_group_starts(first, last, form)
            for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        ]
        ends = np.unique(np.concatenate(starts))
        batches = ordered.batches(ends)
        for nth in range(count):
            yield self._write_file(
                nth, batches, starts[nth], form, stops_when_too_big=stops_when_too_big
            )

    def _write_file(
        self,
        nth: int,
        batches: Iterator[pa.RecordBatch],
        starts: NDArray[np.int64],
        form: BaseFileSettings,
        *,
        stops_when_too_big: bool,
    ) -> tuple[WrittenFile, Tally, bool]:
        name, at, last = self.make_file_name(nth), int(starts[0]), int(starts[-1])
        ends = set(starts.tolist())
        columns = GroupColumns.from_job(self.job, self.group)
        tally = Tally()
        job = self.job
        with open_local_file(self.folder / name, job.schema, form, job.range_columns) as writer:
            while at < last:
                rows = next(batches)
                writer.write(rows)
                tally = tally.add(tally_hashes(columns.hash_keys(rows)))
                at += len(rows)
                if at in ends:
                    writer.end_row_group()
                    if stops_when_too_big and at < last and self._is_too_big(writer):
                        break
            return replace(writer.close(), footer=None), tally, at == last

    def _is_too_big(self, writer: BaseFileWriter) -> bool:
        return writer.estimated_bytes > MAX_FACTOR * self.job.target
