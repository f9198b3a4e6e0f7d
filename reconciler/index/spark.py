"""Reading footers spread over a Spark cluster: what comes back of a task is an index, as bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from reconciler.cluster.spark import job, reporting, ship
from reconciler.index.build import (
    WORTH_A_JOB,
    Asked,
    Built,
    Threads,
    cut,
    read_share,
    rows_of,
    together,
)
from reconciler.index.codec import Provenance, decode, encode
from reconciler.index.merge import Keys
from reconciler.storage.api import StorageRef
from reconciler.storage.open import open_storage
from reconciler.storage.redaction import redacted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TASKS_PER_SLOT: Final = 4
#: of a task, which has a core: more than one, because reading waits for the store
_AT_ONCE: Final = 4
#: what is known of a part: it is never kept
_PART: Final = Provenance(table="", instant="", tool="")


class SparkBuilder:
    """Runs on a session's executors; every task opens its own storage. A few files: on threads.

    ``few``: fewer files than these are read here; by default what is worth a job.
    """

    def __init__(self, session: SparkSession, few: int | None = None) -> None:
        self._context = session.sparkContext
        self._few = WORTH_A_JOB if few is None else few

    def build(
        self,
        ref: StorageRef,
        asked: Asked,
        files: Keys,
        *,
        progress: Callable[[int], None],
    ) -> Built:
        if not len(files) or len(files) < self._few:
            return Threads(open_storage).build(ref, asked, files, progress=progress)
        ship(self._context)
        tasks = self._context.defaultParallelism * _TASKS_PER_SLOT
        shares = [_packed(share) for share in cut(rows_of(files), -(-len(files) // tasks))]
        done = self._context.accumulator(0)
        described = f"reconciler: read footers of {len(files)} files of {ref.location}"
        with (
            job(self._context, described, lambda said: redacted(said, ref.secrets)),
            reporting(done, _at_most(len(files), progress)),
        ):
            told: list[tuple[bytes, int, tuple[str, ...]]] = (
                self._context.parallelize(shares, len(shares))
                .mapPartitions(_Task(ref, asked, done))
                .collect()
            )
        parts = [
            Built(index=decode(data, "a part of an index")[0], unread=unread, said=said)
            for data, unread, said in told
        ]
        return together(parts, asked)


def _at_most(total: int, progress: Callable[[int], None]) -> Callable[[int], None]:
    """Spark counts the files of a task that it tries again once more."""
    left = total

    def tell(count: int) -> None:
        nonlocal left
        count = min(count, left)
        left -= count
        if count:
            with suppress(KeyboardInterrupt):  # a job is stopped by cancelling it
                progress(count)

    return tell


class _Task:
    """What one task does; picklable."""

    def __init__(self, ref: StorageRef, asked: Asked, done: Any) -> None:
        self._ref, self._asked, self._done = ref, asked, done

    def __call__(self, work: Iterable[bytes]) -> Iterator[tuple[bytes, int, tuple[str, ...]]]:
        storage = open_storage(self._ref)
        for share in work:
            built = read_share(
                storage, self._asked, _unpacked(share), at_once=_AT_ONCE, progress=self._done.add
            )
            yield encode(built.index, _PART).to_pybytes(), built.unread, built.said


def _packed(rows: Any) -> bytes:
    """A record batch as bytes, of its rows alone."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _unpacked(data: bytes) -> Any:
    with pa.ipc.open_stream(data) as stream:
        return stream.read_next_batch()
