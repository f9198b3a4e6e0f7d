"""Write one file group of a write: its base file with new rows, or several new base files.

Source: HoodieMergeHandle for an existing group, HoodieCreateHandle for a new one. A group that
would grow too large leaves its remaining new rows to groups of their own, as Hudi's writers roll
over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final

from reconciler.errors import ReconcilerError
from reconciler.file_slices.base_file.key_footer import StaleFilterError
from reconciler.file_slices.base_file.local_file import (
    MAX_FACTOR,
    open_local_file,
    publish_local_file,
)
from reconciler.file_slices.base_file.meta_columns import FILE_NAME, CommitStamp
from reconciler.file_slices.base_file.parquet import count_row_bytes
from reconciler.file_slices.base_file.schema import FileSchema
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.file_slices.base_file.write_stat import build_created_stat, build_merged_stat
from reconciler.file_slices.base_file.writer import BaseFileWriter, WrittenFile
from reconciler.file_slices.log_file.log_file import LogFileSettings
from reconciler.file_slices.merge.log_records import LogRecords
from reconciler.file_slices.merge.slice_reader import SliceFiles, SliceReadOptions, read_slice
from reconciler.hudi.files.bucket_ids import make_bucket_id
from reconciler.hudi.files.names import BaseName
from reconciler.lazy_dataclass import dataclass
from reconciler.storage.api import Storage
from reconciler.writer.base_file_merge import BaseFileMerge, FileCounts
from reconciler.writer.index_bucket_witness import BucketWitness
from reconciler.writer.log_targets import LogTarget
from reconciler.writer.new_rows import FILL_FACTOR, NewRows

#: the smallest share of the target to which files are filled after wrong estimates
_MIN_FACTOR: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BucketSettings:
    """The settings that all base files of one write share; picklable.

    ``reading``: reads every column that files hold. ``schema``, ``form``: those of the new files.
    ``target``: bytes of a file. ``range_columns``: columns whose ranges are collected for every new
    file. ``log``: the settings of log files, None for a copy-on-write table.
    """

    reading: SliceReadOptions
    schema: FileSchema
    form: BaseFileSettings
    target: int
    range_columns: tuple[str, ...] = ()
    log: LogFileSettings | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """One file group that one task writes.

    ``number``: the bucket's index in its write. ``base``: the newest base file of an existing
    group, None for a new one. ``joining``: base files of other groups whose rows come to this one;
    ``is_emptied``: the old rows of ``base`` go to another group. ``prefix``: a uuid with which the
    ids of new groups start. ``log``: the log file that takes its rows; then no base file is
    written. ``index_bucket``: its number in the table's bucket index; ``witness``: a base file
    that shows whether the index is declared as it is.
    """

    number: int
    partition: str
    prefix: str
    base: SliceFiles | None = None
    joining: tuple[SliceFiles, ...] = ()
    is_emptied: bool = False
    log: LogTarget | None = None
    index_bucket: int | None = None
    witness: BucketWitness | None = None

    @property
    def moves_rows(self) -> bool:
        """True if old rows of a base file come or go, even if no new row comes."""
        return self.is_emptied or bool(self.joining)

    @property
    def sources(self) -> tuple[SliceFiles, ...]:
        """The base files whose rows its next base file has."""
        own = () if self.base is None or self.is_emptied else (self.base,)
        return (*own, *self.joining)

    def make_file_id(self, index: int) -> str:
        """Return the id of a new file group; ``index``: among those of this bucket."""
        prefix = self.prefix
        if self.index_bucket is not None:
            prefix = make_bucket_id(self.index_bucket, prefix)
        return f"{prefix}-{index}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WrittenBaseFile:
    """A base file that a bucket wrote.

    ``previous``: the file that it follows in its group; ``sources``: the files whose rows it has,
    which are others if rows move between groups.
    """

    file: WrittenFile
    partition: str
    previous: SliceFiles | None = None
    sources: tuple[SliceFiles, ...] = ()
    counts: FileCounts = FileCounts()

    @property
    def previous_name(self) -> str | None:
        """The name of the file that it follows."""
        return None if self.previous is None else _get_name(self.previous)

    @property
    def stat(self) -> dict[str, str | int]:
        """The file's write statistic."""
        if self.previous_name is None:
            return build_created_stat(self.file, self.partition)
        return build_merged_stat(
            self.file,
            self.partition,
            previous_file=self.previous_name,
            inserts=self.counts.inserts,
            updates=self.counts.updates,
            deletes=self.counts.deletes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketRows:
    """The changes of a bucket, with record keys and partition paths among their columns.

    ``records``: one per key; they replace rows of the base file, or are added if it lacks the
    key; none for a new group. ``inserts``: yields batches of rows to add, the same ones at every
    call.
    """

    records: LogRecords | None = None
    inserts: Callable[[], Iterable[Any]] = tuple


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketWriter:
    """Writes one bucket; ``attempt`` differs among all attempts at it.

    ``instant``: the pending write's, for markers. ``folder``: a local folder for unfinished files.
    """

    settings: BucketSettings
    instant: str
    bucket: Bucket
    attempt: int
    folder: Path

    def write(self, rows: BucketRows, storage: Storage) -> tuple[WrittenBaseFile, ...]:
        """Write the bucket's files, and move each into the table after its marker.

        Memory: the records, one row group, a batch. Raises FormatError for damage of the base file,
        UnsupportedError as ``BaseFileWriter`` does, and what the storage raises.
        """
        files = self._write_files(rows, storage)
        for written in files:
            path = self.folder / written.file.name
            publish_local_file(path, storage, self.instant, self.bucket.partition)
        return tuple(files)

    def make_file_name(self, index: int) -> str:
        """Return the name of a file: the file id is the same in all attempts, the token is not."""
        bucket = self.bucket
        file_id = bucket.make_file_id(index)
        if bucket.base is not None and index == 0:
            previous = BaseName.parse(_get_name(bucket.base))
            file_id = file_id if previous is None else previous.file_id
        return f"{file_id}_{bucket.number}-0-{self.attempt}_{self.instant}.parquet"

    def _write_files(self, rows: BucketRows, storage: Storage) -> list[WrittenBaseFile]:
        """Write the local files; again with fewer rows each if one became too large."""
        full, continues = FILL_FACTOR * self.settings.target, True
        while True:
            try:
                written = [*self._fill_files(rows, storage, full, continues=continues)]
            except StaleFilterError:  # the older file's bloom filter is damaged: build a new one
                continues = False
                continue
            sizes = [
                made.file.size for made in written if made.counts.inserts and made.file.rows > 1
            ]
            too_big = max(sizes, default=0) / self.settings.target
            if too_big <= MAX_FACTOR or full < _MIN_FACTOR * self.settings.target:
                return written
            full /= too_big
            for made in written:
                (self.folder / made.file.name).unlink()

    def _fill_files(
        self, rows: BucketRows, storage: Storage, full: float, *, continues: bool
    ) -> Iterator[WrittenBaseFile]:
        """Write files that take new rows up to about ``full`` bytes; the last takes the rest.

        ``continues``: the bloom filter of an older file with the same keys is taken over.
        """
        new = NewRows(
            rows.inserts(),
            stamp=CommitStamp(instant=self.instant, task=self.bucket.number),
            columns=self.settings.reading.wanted.columns,
            target=self.settings.target,
        )
        if self.bucket.base is not None:
            continues = continues and self._keeps_keys(rows.records)
            yield self._merge_base_file(rows.records, new, storage, full, continues=continues)
        nth = int(self.bucket.base is not None)
        while new.has_more:
            with self._open_file(nth) as file:
                count = new.write_into(file, full)
                written = replace(file.close(), footer=None)
            yield WrittenBaseFile(
                file=written, partition=self.bucket.partition, counts=FileCounts(inserts=count)
            )
            nth += 1

    def _keeps_keys(self, records: LogRecords | None) -> bool:
        """True if the next base file begins with all keys of the older one, in its order."""
        deletes = records is not None and bool((records.row < 0).any())
        return not deletes and not self.bucket.moves_rows

    def _merge_base_file(
        self,
        records: LogRecords | None,
        new: NewRows,
        storage: Storage,
        full: float,
        *,
        continues: bool,
    ) -> WrittenBaseFile:
        """Write the next base file of an existing group."""
        bucket, settings = self.bucket, self.settings
        reading = _leave_out_file_names(settings.reading)
        assert bucket.base is not None, "an existing group has a base file"
        footers: list[Any] = []
        read_part = partial(read_slice, options=reading, source=storage, on_footer=footers.append)
        old = chain.from_iterable(read_part(source) for source in bucket.sources)
        merging: BaseFileMerge | None = None
        if records is not None:
            stamped = replace(records, table=new.stamp_table(records.table))
            merging = BaseFileMerge(stamped, reading.rules, reading.wanted.columns)
            old = chain(merging.merge(old, bucket.base.base or ""), merging.remaining())
        with self._open_file(0) as file:
            for number, batch in enumerate(old):
                if continues and not number:
                    file.continue_filter(footers[0], bucket.base.base or "")
                file.write(batch)
            if bucket.moves_rows:
                _check_moved_rows(bucket, footers, file.rows)
            if (width := _estimate_row_bytes(footers, settings.form)) is not None:
                file.expect_encoded(int(width * file.rows))
            added = new.write_into(file, full)
            written = replace(file.close(), footer=None)
        counts = FileCounts() if merging is None else merging.counts
        return WrittenBaseFile(
            file=written,
            partition=bucket.partition,
            previous=bucket.base,
            sources=bucket.sources,
            counts=replace(counts, inserts=counts.inserts + added),
        )

    def _open_file(self, nth: int) -> AbstractContextManager[BaseFileWriter]:
        settings, path = self.settings, self.folder / self.make_file_name(nth)
        return open_local_file(path, settings.schema, settings.form, settings.range_columns)


def _leave_out_file_names(reading: SliceReadOptions) -> SliceReadOptions:
    """Return options that read all columns but the name of the file, which is another one now."""
    names = (name for name in reading.wanted.columns.names if name != FILE_NAME)
    return replace(reading, columns=tuple(names))


def _get_name(file: SliceFiles) -> str:
    return (file.base or "").rpartition("/")[2]


def _check_moved_rows(bucket: Bucket, footers: Sequence[Any], rows: int) -> None:
    """Raise ReconcilerError unless a file has all rows that its sources have by their footers."""
    expected = sum(footer.num_rows for footer in footers)
    if len(footers) != len(bucket.sources) or rows != expected:
        raise ReconcilerError(
            f"partition {bucket.partition!r}: {expected} rows of {len(bucket.sources)} files were "
            f"to become one file, which has {rows}; nothing is published"
        )


def _estimate_row_bytes(footers: Sequence[Any], form: BaseFileSettings) -> float | None:
    """Return a row's bytes by a footer; None if the file was written in another way."""
    for footer in footers:
        if not footer.num_rows:
            continue
        if form.matches_encoding(footer.row_group(0).column(0).compression, footer.created_by):
            return float(count_row_bytes(footer) / footer.num_rows)
    return None
