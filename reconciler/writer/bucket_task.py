"""The last stage: write the rows of a bucket into its files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from reconciler.arrays import Mask, to_arrow, to_numpy
from reconciler.file_slices.base_file.meta_columns import RECORD_KEY
from reconciler.file_slices.merge.log_records import (
    LogRecords,
    find_ordering_fields,
    is_default_ordering,
    read_ordering_values,
)
from reconciler.file_slices.merge.ordering import to_comparable_columns
from reconciler.file_slices.merge.slice_reader import SliceReadOptions
from reconciler.layout.sizing.key_routing import hash_record_keys
from reconciler.rewrite.model import Tally
from reconciler.writer.bucket import Bucket, BucketRows, BucketWriter, WrittenBaseFile
from reconciler.writer.bucket_routes import DELETION, FINAL
from reconciler.writer.job import Broadcast, RowJob, RowOperation, TaskContext
from reconciler.writer.row_blocks import BlockKind, RowBlock, sort_blocks
from reconciler.writer.row_counts import tally_by_code


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WrittenBucket:
    """The result of a bucket: tallies of its new rows and changes, and its files."""

    bucket: int
    inserts: Tally
    changes: Tally
    files: tuple[WrittenBaseFile, ...]


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
        if not blocks:
            return
        new = sort_blocks(blocks, BlockKind.ROWS)
        changes = sort_blocks(blocks, BlockKind.CHANGES)
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
        yield WrittenBucket(
            bucket=bucket.number,
            inserts=_tally_blocks(new),
            changes=_tally_blocks(changes),
            files=files if job.needs_blooms else tuple(map(_drop_bloom, files)),
        )


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


def _has_no_event_time(ordering: tuple[Any, ...], reading: SliceReadOptions) -> Mask | bool:
    """Return whether each row lacks an event time, as Hudi 1.x sees it; 0.x always compares."""
    if not ordering:
        return True
    if len(ordering) > 1 or reading.rules.precombines:
        return False
    return is_default_ordering(ordering[0])
