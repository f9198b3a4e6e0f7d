"""The last stage: write the rows of a bucket into its files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from reconciler.arrays import Integers, Mask, to_arrow, to_numpy
from reconciler.file_slices.base_file.meta_columns import RECORD_KEY
from reconciler.file_slices.log_file.log_file import LogChanges
from reconciler.file_slices.merge.log_records import (
    LogRecords,
    find_ordering_fields,
    is_default_ordering,
    read_ordering_values,
)
from reconciler.file_slices.merge.ordering import to_comparable_columns
from reconciler.file_slices.merge.slice_reader import SliceReadOptions
from reconciler.layout.sizing.key_routing import hash_record_keys
from reconciler.lazy_dataclass import dataclass
from reconciler.rewrite.model import Tally
from reconciler.writer.bucket import Bucket, BucketRows, BucketWriter, WrittenBaseFile
from reconciler.writer.bucket_routes import DELETION, FINAL, POSITION
from reconciler.writer.index_bucket_witness import check_witness
from reconciler.writer.job import Broadcast, RowJob, RowOperation, TaskContext
from reconciler.writer.log_bucket import LogBucketWriter, WrittenLog
from reconciler.writer.log_targets import LogTarget
from reconciler.writer.row_blocks import BlockKind, RowBlock, sort_blocks
from reconciler.writer.row_counts import tally_by_code


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WrittenBucket:
    """The result of a bucket: tallies of its new rows and changes, and its files."""

    bucket: int
    inserts: Tally
    changes: Tally
    files: tuple[WrittenBaseFile, ...] = ()
    log: WrittenLog | None = None


def write_bucket(
    row_job: Broadcast,
    buckets: Broadcast,
    context: TaskContext,
    partition: int,
    buffers: Iterator[Any],
) -> Iterator[WrittenBucket]:
    """Write the blocks of a bucket into its files. ``buckets`` are by shuffle partition.

    Raises as ``BucketWriter`` does.
    """
    job: RowJob = row_job.value
    bucket: Bucket = buckets.value[partition]
    with context.make_folder() as folder:
        blocks = [RowBlock.from_bytes(buffer) for buffer in map_blocks(buffers, folder)]
        if not blocks and not bucket.moves_rows:
            return
        if bucket.witness is not None and job.index_buckets is not None:
            check_witness(bucket.witness, job.index_buckets.rule, context.open_storage())
        new = sort_blocks(blocks, BlockKind.ROWS)
        changes = sort_blocks(blocks, BlockKind.CHANGES)
        result = WrittenBucket(
            bucket=bucket.number, inserts=_tally_blocks(new), changes=_tally_blocks(changes)
        )
        if bucket.log is not None:
            logged = _make_log_writer(bucket, bucket.log, job, context, folder).write(
                make_log_changes(changes, job),
                lambda: (block.read_batch() for block in new),
                context.open_storage(),
            )
            yield replace(result, log=logged)
            return
        rows = BucketRows(
            records=make_log_records(changes, job) if changes else None,
            inserts=lambda: (block.read_batch() for block in new),
        )
        writer = BucketWriter(
            settings=job.settings,
            instant=job.instant,
            bucket=bucket,
            attempt=context.get_attempt(),
            folder=folder,
        )
        files = writer.write(rows, context.open_storage())
        yield replace(result, files=files if job.needs_blooms else tuple(map(_drop_bloom, files)))


def _make_log_writer(
    bucket: Bucket, target: LogTarget, job: RowJob, context: TaskContext, folder: Path
) -> LogBucketWriter:
    """Return the writer of a bucket's log file."""
    assert job.settings.log is not None, "only merge-on-read tables have log files"
    return LogBucketWriter(
        settings=job.settings.log,
        columns=job.settings.reading.wanted.columns,
        instant=job.instant,
        number=bucket.number,
        partition=bucket.partition,
        target=target,
        token=f"{bucket.number}-{_number_write(bucket.prefix)}-{context.get_attempt()}",
        folder=folder,
    )


def _number_write(prefix: str) -> int:
    """Return a number of 28 bits for a write: names of log files may lack its instant.

    >>> _number_write("0000002a-ffff-4fff-8fff-ffffffffffff")
    2
    """
    return int(prefix[:7], 16)


def map_blocks(buffers: Iterable[Any], folder: Path) -> Iterator[Any]:
    """Yield blocks as buffers of mapped memory; blocks that are bytes go to a file first."""
    ends = [0]
    path = folder / "arrived"
    with path.open("wb") as file:
        for buffer in buffers:
            if isinstance(buffer, bytes):
                file.write(buffer)
                ends.append(ends[-1] + len(buffer))
            else:
                yield buffer
    if len(ends) > 1:
        with pa.memory_map(str(path)) as mapped:
            data = mapped.read_buffer()
        for start, end in pairwise(ends):
            yield data.slice(start, end - start)
    path.unlink()


def _tally_blocks(blocks: Iterable[RowBlock]) -> Tally:
    total = Tally()
    for block in blocks:
        hashes = hash_record_keys(block.read_batch().column(RECORD_KEY))
        (tally,) = tally_by_code(np.zeros(len(hashes), np.int64), hashes, 1)
        total = total.add(tally)
    return total


def _drop_bloom(written: WrittenBaseFile) -> WrittenBaseFile:
    return replace(written, file=replace(written.file, bloom=None))


def make_log_records(changes: list[RowBlock], row_job: RowJob) -> LogRecords:
    """Return changes and deletions as records for ``BaseFileMerge``; one per key.

    A deletion without event time is final, as in log files. So are all deletions of a delete, which
    has no event times, and those of rows that move to another partition.
    """
    batch = pa.concat_batches([block.read_batch() for block in changes])
    reading = row_job.settings.reading
    fields = find_ordering_fields(reading.rules, reading.schema)
    ordering = read_ordering_values(batch, fields, "the rows")
    is_deletion = to_numpy(batch.column(DELETION))
    if row_job.operation is RowOperation.DELETE:
        is_final = np.ones(len(batch), np.bool_)
        table = reading.wanted.columns.empty_table()
    else:
        has_no_time = is_deletion & _has_no_event_time(ordering, reading)
        is_final = to_numpy(batch.column(FINAL)) | has_no_time
        table = pa.Table.from_batches([batch.filter(to_arrow(~is_deletion))])
    return LogRecords(
        keys=batch.column(RECORD_KEY),
        row=np.where(is_deletion, -1, np.cumsum(~is_deletion) - 1),
        is_final=is_final,
        ordering=to_comparable_columns(ordering, fields),
        table=table,
    )


def make_log_changes(changes: Sequence[RowBlock], row_job: RowJob) -> LogChanges:
    """Return changes and deletions as a log file holds them; see ``make_log_records``."""
    columns = row_job.settings.reading.wanted.columns
    if not changes:
        return LogChanges(
            rows=columns.empty_table(),
            deleted_keys=pa.array([], pa.string()),
            is_final=np.zeros(0, np.bool_),
        )
    batch = pa.concat_batches([block.read_batch() for block in changes])
    is_deletion = to_numpy(batch.column(DELETION))
    deletions, rows = batch.filter(batch.column(DELETION)), batch.filter(to_arrow(~is_deletion))
    reading = row_job.settings.reading
    times: tuple[Any, ...] = ()
    is_final = np.ones(len(deletions), np.bool_)
    if row_job.operation is not RowOperation.DELETE:
        fields = find_ordering_fields(reading.rules, reading.schema)
        times = read_ordering_values(deletions, fields, "the rows")
        is_final = to_numpy(deletions.column(FINAL)) | _has_no_event_time(times, reading)
    return LogChanges(
        rows=pa.Table.from_batches([rows]) if len(rows) else columns.empty_table(),
        deleted_keys=deletions.column(RECORD_KEY),
        is_final=is_final,
        event_times=times,
        row_positions=_read_positions(rows),
        deleted_positions=_read_positions(deletions),
    )


def _read_positions(batch: Any) -> Integers | None:
    """Return the row numbers of the base file; None if some are not known."""
    positions = to_numpy(batch.column(POSITION))
    return None if (positions < 0).any() else positions


def _has_no_event_time(ordering: tuple[Any, ...], reading: SliceReadOptions) -> Mask | bool:
    """Return whether each row lacks an event time, as Hudi 1.x sees it; 0.x always compares."""
    if not ordering:
        return True
    if len(ordering) > 1 or reading.rules.precombines:
        return False
    return is_default_ordering(ordering[0])
