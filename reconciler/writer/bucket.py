"""One file group of a write: its rows with what is new, in a new base file, or in several new ones.

Source: HoodieMergeHandle for a group that there is, HoodieCreateHandle for one that begins; a group
that would grow too big leaves the rest of its new rows to groups of their own, as the writers of
Hudi roll over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from reconciler.basefile.form import FileForm
from reconciler.basefile.parquet import rows_bytes
from reconciler.basefile.schema import FileSchema
from reconciler.basefile.stamp import Stamp
from reconciler.basefile.stat import created_stat, merged_stat
from reconciler.basefile.writer import BaseFileWriter, WrittenFile
from reconciler.hudi.markers import create_marker
from reconciler.hudi.names import BaseName
from reconciler.merge.logs import LogRecords
from reconciler.merge.slice import FileSliceRef, SliceReading, read_slice
from reconciler.storage.api import Storage
from reconciler.writer.incoming import FULL, MOST, Incoming
from reconciler.writer.merging import Counts, Merging

#: what a file is filled to is no less of the target than this when an estimate was wrong
_LEAST: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Work:
    """What all buckets of one write have in common; picklable.

    ``instant``: of the pending write, whose markers are written. ``reading``: gives every column
    that files hold. ``schema``, ``form``: of the new files. ``target``: bytes of a file.
    ``ranges``: columns whose ranges are told for every new file.
    """

    instant: str
    reading: SliceReading
    schema: FileSchema
    form: FileForm
    target: int
    ranges: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """One file group that one task writes.

    ``number``: of the bucket in its write. ``base``: the newest base file of a group that there is,
    None where one begins. ``prefix``: a uuid that the ids of groups that begin here start with.
    """

    number: int
    partition: str
    prefix: str
    base: FileSliceRef | None = None

    @property
    def before(self) -> str | None:
        """The name of the base file that the new one follows."""
        path = self.base.base if self.base is not None else None
        return None if path is None else path.rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NewBase:
    """A base file that a bucket has written. ``before``: the name of the one that it follows."""

    file: WrittenFile
    partition: str
    before: str | None = None
    counts: Counts = Counts()  # noqa: RUF009 (frozen)

    @property
    def stat(self) -> dict[str, str | int]:
        """Its write statistic."""
        if self.before is None:
            return created_stat(self.file, self.partition)
        return merged_stat(
            self.file,
            self.partition,
            before=self.before,
            inserts=self.counts.inserts,
            updates=self.counts.updates,
            deletes=self.counts.deletes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What is new in a bucket, with record keys and partition paths among its columns.

    ``records``: what takes the place of rows of the base file, or is added to them where it does
    not have the key; one a key, none where a group begins. ``inserts``: gives batches of rows that
    are added as they are, the same ones at every call.
    """

    records: LogRecords | None = None
    inserts: Callable[[], Iterable[Any]] = tuple


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketWriting:
    """How one bucket is written; ``attempt`` differs among all tries at it.

    ``folder``: of this machine's disk, for files until they are whole.
    """

    work: Work
    bucket: Bucket
    attempt: int
    folder: Path

    def write(self, rows: Rows, storage: Storage) -> tuple[NewBase, ...]:
        """Write the bucket's files, and bring each to the table after its marker.

        Memory: the records, one row group, a batch. Raises FormatError for damage of the base file,
        UnsupportedError as ``BaseFileWriter`` does, and what the storage raises.
        """
        found = self._files(rows, storage)
        for one in found:
            self._publish(one.file, storage)
        return tuple(found)

    def name(self, nth: int) -> str:
        """Of the nth file: another for every attempt, while its file id stays the same."""
        bucket = self.bucket
        own = BaseName.parse(bucket.before) if bucket.before is not None and nth == 0 else None
        file_id = own.file_id if own is not None else f"{bucket.prefix}-{nth}"
        return f"{file_id}_{bucket.number}-0-{self.attempt}_{self.work.instant}.parquet"

    def _files(self, rows: Rows, storage: Storage) -> list[NewBase]:
        """The finished files on the local disk; filled less where one turned out too big."""
        full = FULL * self.work.target
        while True:
            found = [*self._filled(rows, storage, full)]
            rest = [one.file.size for one in found if one.counts.inserts and one.file.rows > 1]
            too_big = max(rest, default=0) / self.work.target
            if too_big <= MOST or full < _LEAST * self.work.target:
                return found
            full /= too_big
            for one in found:
                (self.folder / one.file.name).unlink()

    def _filled(self, rows: Rows, storage: Storage, full: float) -> Iterator[NewBase]:
        """Files that take new rows up to about ``full`` bytes, the last one what is left."""
        new = Incoming(
            rows.inserts(),
            stamp=Stamp(instant=self.work.instant, task=self.bucket.number),
            columns=self.work.reading.wanted.columns,
            target=self.work.target,
        )
        if self.bucket.base is not None:
            yield self._merged(rows.records, new, storage, full)
        nth = int(self.bucket.base is not None)
        while new.has_more:
            with self._open(nth) as file:
                count = new.into(file, full)
                written = replace(file.close(), footer=None)
            yield NewBase(
                file=written, partition=self.bucket.partition, counts=Counts(inserts=count)
            )
            nth += 1

    def _merged(
        self, records: LogRecords | None, new: Incoming, storage: Storage, full: float
    ) -> NewBase:
        """The next base file of a group that there is."""
        bucket, work, reading = self.bucket, self.work, self.work.reading
        assert bucket.base is not None, "there is one"
        footers: list[Any] = []
        old = read_slice(bucket.base, reading, storage, on_footer=footers.append)
        counts = Counts()
        with self._open(0) as file:
            if records is None:
                for batch in old:
                    file.write(batch)
            else:
                stamped = replace(records, table=new.stamped_table(records.table))
                merging = Merging(stamped, reading.rules, reading.wanted.columns)
                for batch in merging.over(old, bucket.base.base or ""):
                    file.write(batch)
                for batch in merging.rest():
                    file.write(batch)
                counts = merging.counts
            if (width := _row_bytes(footers, work.form)) is not None:
                file.expect(int(width * file.rows))
            added = new.into(file, full)
            written = replace(file.close(), footer=None)
        return NewBase(
            file=written,
            partition=bucket.partition,
            before=bucket.before,
            counts=replace(counts, inserts=counts.inserts + added),
        )

    @contextmanager
    def _open(self, nth: int) -> Iterator[BaseFileWriter]:
        work, name = self.work, self.name(nth)
        with pa.OSFile(str(self.folder / name), "wb") as sink:
            writer = BaseFileWriter(sink, name, work.schema, work.form, ranges=work.ranges)
            try:
                yield writer
            except BaseException:
                writer.abandon()
                raise

    def _publish(self, file: WrittenFile, storage: Storage) -> None:
        partition = self.bucket.partition
        storage.create(create_marker(self.work.instant, partition, file.name), b"")
        local = self.folder / file.name
        storage.create_from(f"{partition}/{file.name}" if partition else file.name, str(local))
        local.unlink()


def _row_bytes(footers: Sequence[Any], form: FileForm) -> float | None:
    """What a row takes in a file, by a footer; None where it was written in another way."""
    for footer in footers:
        if not footer.num_rows:
            continue
        if form.is_of(footer.row_group(0).column(0).compression, footer.created_by):
            return float(rows_bytes(footer) / footer.num_rows)
    return None
