"""Build an index from footers on Spark executors; each task returns an encoded part of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from reconciler.index.build import (
    MIN_FILES_FOR_JOB,
    BuiltIndex,
    IndexRequest,
    Progress,
    ThreadedIndexBuilder,
    combine_parts,
    files_to_batch,
    read_share,
    split_batch,
)
from reconciler.index.codec import Provenance, decode_index, encode_index
from reconciler.index.model import FileKeys
from reconciler.spark.jobs import report_progress, run_job_group
from reconciler.spark.workers import READING_PACKAGES, set_up_workers
from reconciler.storage.api import StorageRef
from reconciler.storage.open import list_client_packages, open_storage
from reconciler.storage.redaction import redact_secrets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: the result of a task: an encoded index, the number of unread files, and the first problems
_Part = tuple[bytes, int, tuple[str, ...]]
_TASKS_PER_SLOT: Final = 4
#: threads of a task, which has one core: several, because reads wait for the store
_AT_ONCE: Final = 4
#: a part is never stored, so its provenance is empty
_PART: Final = Provenance(table="", instant="", tool="")


class SparkIndexBuilder:
    """Builds an index on a session's executors; every task opens its own storage.

    ``min_files``: fewer files are read on threads of this process.
    """

    def __init__(self, session: SparkSession, min_files: int | None = None) -> None:
        self._context = session.sparkContext
        self._min_files = MIN_FILES_FOR_JOB if min_files is None else min_files

    def build(
        self, ref: StorageRef, request: IndexRequest, files: FileKeys, *, progress: Progress
    ) -> BuiltIndex:
        if not len(files) or len(files) < self._min_files:
            return ThreadedIndexBuilder(open_storage).build(ref, request, files, progress=progress)
        set_up_workers(self._context, (*READING_PACKAGES, *list_client_packages(ref.location)))
        tasks = self._context.defaultParallelism * _TASKS_PER_SLOT
        rows = -(-len(files) // tasks)
        shares = [_pack_batch(share) for share in split_batch(files_to_batch(files), rows)]
        done = self._context.accumulator(0)
        described = f"reconciler: read footers of {len(files)} files of {ref.location}"
        with (
            run_job_group(self._context, described, lambda text: redact_secrets(text, ref.secrets)),
            report_progress(done, _limit_progress(len(files), progress)),
        ):
            work = self._context.parallelize(shares, len(shares))
            read = partial(_read_shares, ref, request, done)
            parts: list[_Part] = work.mapPartitions(read).collect()
        return combine_parts([_decode_part(*part) for part in parts], request)


def _decode_part(data: bytes, unread: int, problems: tuple[str, ...]) -> BuiltIndex:
    index, _ = decode_index(data, "a part of an index")
    return BuiltIndex(index=index, unread_count=unread, problems=problems)


def _limit_progress(total: int, progress: Progress) -> Progress:
    """Return ``progress`` limited to a total: Spark counts the files of a retried task again."""
    left = total

    def tell(count: int) -> None:
        nonlocal left
        count = min(count, left)
        left -= count
        if count:
            with suppress(KeyboardInterrupt):  # a running job is stopped by cancelling it
                progress(count)

    return tell


def _read_shares(
    ref: StorageRef, request: IndexRequest, done: Any, shares: Iterable[bytes]
) -> Iterator[_Part]:
    """Do the work of one task; ``done``: an accumulator of the files read."""
    storage = open_storage(ref)
    for share in shares:
        rows = _unpack_batch(share)
        built = read_share(storage, request, rows, at_once=_AT_ONCE, progress=done.add)
        yield encode_index(built.index, _PART).to_pybytes(), built.unread_count, built.problems


def _pack_batch(rows: Any) -> bytes:
    """Encode the rows of a record batch, which may be a slice, as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _unpack_batch(data: bytes) -> Any:
    with pa.ipc.open_stream(data) as stream:
        return stream.read_next_batch()
