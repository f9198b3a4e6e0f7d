"""Compact a file slice: merge its log files into a new base file of its file group.

Rows stream from the old base file past the merged log records into the new file, so memory holds
the log records and a row group. Meta columns keep their values except the file name. Source:
HoodieCompactor, HoodieMergeHandle and FileGroupReaderBasedMergeHandle with preserved metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Final

from reconciler.errors import FormatError, NotFoundError, ReconcilerError, StorageError
from reconciler.file_slices.base_file.local_file import open_local_file, publish_local_file
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.file_slices.base_file.writer import WrittenFile
from reconciler.file_slices.merge.calendar import Calendar
from reconciler.file_slices.merge.merge_counts import MergeCounts
from reconciler.file_slices.merge.slice_reader import read_slice
from reconciler.rewrite.group_columns import GroupColumns
from reconciler.rewrite.model import CompactedSlice, RewriteGroup, RewriteJob, SliceToCompact
from reconciler.rewrite.sorting import choose_calendar
from reconciler.storage.api import Storage

#: what is wrong with an input file that does not exist
MISSING: Final = "is missing, although a pending compaction names it"
#: digits of a seed that make up a part of a write token, which Hudi reads as an int
_TOKEN_DIGITS: Final = 7


def make_compacted_name(job: RewriteJob, file_id: str, number: int, attempt: int) -> str:
    """Return the name of a new base file; attempts at one slice differ in the write token.

    Its middle part is that of a run, so that no two runs write the same file.
    """
    return f"{file_id}_{number}-{make_token_part(job.seed)}-{attempt}_{job.instant}.parquet"


def make_token_part(seed: str) -> int:
    """Return the middle part of the write tokens of a run.

    >>> make_token_part("0000010" + "f" * 25)
    16
    """
    return int(seed[:_TOKEN_DIGITS], 16)


def compact_slice(
    job: RewriteJob, given: SliceToCompact, storage: Storage, *, attempt: int, folder: Path
) -> CompactedSlice:
    """Write the new base file of a slice, after its marker; ``folder``: an empty local folder.

    Raises as ``read_slice`` and ``BaseFileWriter`` do, StorageError for a missing input file, and
    ReconcilerError if rows were lost.
    """
    counts = MergeCounts()
    footers: list[Any] = []
    rows = _read_rows(job, given, storage, counts, footers)
    first = next(rows, None)  # the footer is read before the first row
    is_empty = first is None and given.files.base is None and not counts.keys
    if is_empty and not given.is_always_written:
        return CompactedSlice(number=given.number, file=None, counts=counts)
    form = _choose_form(job.form, footers)
    name = make_compacted_name(job, given.file_id, given.number, attempt)
    path = folder / name
    with (
        _naming_input(given, name),
        open_local_file(path, job.schema, form, job.range_columns) as writer,
    ):
        for batch in chain([] if first is None else [first], rows):
            writer.write(batch)
        written = replace(writer.close(), footer=None)
    if not given.keeps_bloom:
        written = replace(written, bloom=None)
    _check_rows(given, written, counts)
    publish_local_file(path, storage, job.instant, given.partition)
    return CompactedSlice(number=given.number, file=written, counts=counts)


def _read_rows(
    job: RewriteJob,
    given: SliceToCompact,
    storage: Storage,
    counts: MergeCounts,
    footers: list[Any],
) -> Iterator[Any]:
    """Yield the merged rows of a slice, in the order of the base file, then new ones."""
    group = RewriteGroup(
        number=given.number,
        partition=given.partition,
        slices=(),
        outputs=1,
        bytes=given.bytes,
        values=given.values,
    )
    reading = replace(GroupColumns.from_job(job, group).reading, compacts=True)

    def read_footer(footer: Any) -> None:
        counts.add_footer(footer)
        footers.append(footer)

    try:
        yield from read_slice(given.files, reading, storage, on_footer=read_footer, counts=counts)
    except NotFoundError as gone:
        raise StorageError(gone.path, f"{MISSING}; plan again") from None


@contextmanager
def _naming_input(given: SliceToCompact, written: str) -> Iterator[None]:
    """Let an error of the new file's rows name the input files: the new file is not there.

    Damage that still decodes shows only by rows that no file of the table may have.
    """
    try:
        yield
    except FormatError as error:
        if error.path != written:
            raise
        base = "" if given.files.base is None else f" to {given.files.base}"
        what = f"merging it{base} gives rows that cannot be written: {error.problem}"
        remedy = error.remedy or "if a file is damaged, restore it from a copy"
        raise FormatError(given.files.logs[-1], what, remedy) from None


def _choose_form(form: BaseFileSettings, footers: Iterable[Any]) -> BaseFileSettings:
    """Return the settings of the new file: dates stay in the calendar of the old one."""
    kinds = {Calendar.from_footer(footer.metadata).kind for footer in footers}
    calendars = {"unsaid" if kind == "unspecified" else "proleptic" for kind in kinds}
    calendar = choose_calendar(calendars, form.calendar)  # type: ignore[arg-type]
    assert calendar is not None, "a slice has one base file"
    return replace(form, calendar=calendar)


def _check_rows(given: SliceToCompact, written: WrittenFile, counts: MergeCounts) -> None:
    """Raise ReconcilerError unless the file has the rows that the footer and the logs declare."""
    if written.rows != counts.rows:
        raise ReconcilerError(
            f"partition {given.partition!r}, file group {given.file_id}: its base file and log "
            f"files have {counts.rows} rows, but {written.rows} were written; nothing was "
            "published. This is an error of this program or of the machine: report it"
        )
