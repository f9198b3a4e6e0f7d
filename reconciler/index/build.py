"""Reading the footers of many files into an index, share by share; here, on threads.

A footer that cannot be read makes its file unknown, which every read keeps, and is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from reconciler.arrays import to_integer_array, to_numpy_numbers
from reconciler.errors import FormatError, StorageError
from reconciler.index.column_chunks import STATISTICS_KEYS
from reconciler.index.file_keys import join_indexes
from reconciler.index.footer_tails import FooterTails, SlimFooterTails, damaged_file_error
from reconciler.index.footers import index_footers
from reconciler.index.merge import FileKeys
from reconciler.index.model import FileIndex
from reconciler.index.slim_footers import FooterSlimmer, SlimFooter
from reconciler.storage import parallel
from reconciler.storage.api import Storage, StorageRef

#: files from which on a job on a cluster is worth its start: 10 000 take 3 CPU seconds here
MIN_FILES_FOR_JOB: Final = 16_000
#: files at once: reading waits for the store
_REMOTE_THREADS: Final = 16
#: on a local disk hardly anything waits; two threads that wait for Python's lock with every call of
#: the system take 1.5 times the CPU and the time of one
_LOCAL_THREADS: Final = 1
#: files that a thread reads before it says so: more at once cost less, but end later
_LEAST_SHARE, _MOST_SHARE, _SHARES_EACH = 64, 256, 4
#: sentences about files that cannot be read; the rest are counted
MAX_PROBLEMS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IndexRequest:
    """What is asked of footers; picklable.

    ``columns``: names, with dots into structs; ``schema``: the table's columns as an Arrow schema;
    ``supplied``: columns that readers fill with something else than null (``index_of``).
    """

    columns: tuple[str, ...]
    schema: Any
    supplied: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BuiltIndex:
    """What footers told. ``unread_count``: how many could not be read; of the first few, ``problems`` why."""

    index: FileIndex
    unread_count: int = 0
    problems: tuple[str, ...] = ()


class IndexBuilder(Protocol):
    """Something that reads footers, here or elsewhere."""

    def build(
        self,
        ref: StorageRef,
        request: IndexRequest,
        files: FileKeys,
        *,
        progress: Callable[[int], None],
    ) -> BuiltIndex:
        """The index of the files, every one of them; ``progress`` hears of files read.

        Raises UnsupportedError for a column that the schema has not, or of a type without bounds.
        """


@dataclass(frozen=True, slots=True)
class ThreadedIndexBuilder:
    """Reads through the storage that ``open_storage`` gives, several files at a time."""

    open_storage: Callable[[StorageRef], Storage]
    at_once: int | None = None

    def build(
        self,
        ref: StorageRef,
        request: IndexRequest,
        files: FileKeys,
        *,
        progress: Callable[[int], None],
    ) -> BuiltIndex:
        storage = self.open_storage(ref)
        return read_share(
            storage, request, files_to_batch(files), at_once=self.at_once, progress=progress
        )


def read_share(
    storage: Storage,
    request: IndexRequest,
    rows: Any,
    *,
    at_once: int | None = None,
    progress: Callable[[int], None],
) -> BuiltIndex:
    """The index of the files of ``files_to_batch``; memory: what it says, and a footer per thread.

    ``parallelism``: threads, None for as many as the storage has use for.
    """
    if at_once is None:
        at_once = _REMOTE_THREADS if "://" in storage.location else _LOCAL_THREADS
    reading = _ShareReader(
        SlimFooterTails(FooterTails(storage), FooterSlimmer(STATISTICS_KEYS)), request
    )
    parts = parallel.run_parallel(
        reading.read,
        split_batch(
            rows, min(max(_LEAST_SHARE, len(rows) // (at_once * _SHARES_EACH)), _MOST_SHARE)
        ),
        parallelism=at_once,
        on_done=lambda part: progress(len(part.index)),
    )
    return combine_parts(parts, request)


def combine_parts(parts: Sequence[BuiltIndex], request: IndexRequest) -> BuiltIndex:
    """What parts told, as if it were one; parts in any order give the same."""
    said = sorted(sentence for part in parts for sentence in part.problems)
    nothing = index_footers((), request.columns, request.schema)
    return BuiltIndex(
        index=join_indexes([nothing, *(part.index for part in parts)]),
        unread_count=sum(part.unread_count for part in parts),
        problems=tuple(said[:MAX_PROBLEMS]),
    )


def files_to_batch(files: FileKeys) -> Any:
    """Files as a record batch: partition and name (strings), size (int64)."""
    return pa.RecordBatch.from_arrays(
        [
            files.partition.dictionary.take(files.partition.indices).cast(pa.string()),
            files.name,
            to_integer_array(np.ascontiguousarray(files.size)),
        ],
        names=["partition", "name", "size"],
    )


def split_batch(rows: Any, max_rows: int) -> list[Any]:
    """Slices of a record batch of at most so many rows, in their order."""
    return [rows.slice(start, max_rows) for start in range(0, len(rows), max_rows)]


@dataclass(frozen=True, slots=True)
class _ShareReader:
    """Reads shares of the files of one table."""

    tails: SlimFooterTails
    request: IndexRequest

    def read(self, rows: Any) -> BuiltIndex:
        problems: dict[str, str] = {}
        asked = self.request
        index = index_footers(
            self._footers(rows, problems), asked.columns, asked.schema, supplied=asked.supplied
        )
        for row in np.flatnonzero(index.rows < 0).tolist():
            path = join_path(index.partition[row].as_py(), index.name[row].as_py())
            if path not in problems:
                problems[path] = str(damaged_file_error(path, "its footer cannot be read"))
        said = tuple(problems[path] for path in sorted(problems)[:MAX_PROBLEMS])
        return BuiltIndex(index=index, unread_count=len(problems), problems=said)

    def _footers(
        self, rows: Any, problems: dict[str, str]
    ) -> Iterator[tuple[str, str, int, SlimFooter | memoryview | None]]:
        """One footer at a time; None where there is none to be had."""
        partitions, names = (rows.column(column).to_pylist() for column in ("partition", "name"))
        sizes = to_numpy_numbers(rows.column("size")).tolist()
        for partition, name, size in zip(partitions, names, sizes, strict=True):
            path = join_path(partition, name)
            footer: SlimFooter | memoryview | None = None
            try:
                footer = self.tails.read(path, size)
            except (FormatError, StorageError) as problem:
                problems[path] = str(problem)
            yield partition, name, size, footer


def join_path(partition: str, name: str) -> str:
    """The path of a file below the table."""
    return f"{partition}/{name}" if partition else name
