"""Build an index from the footers of many files, on threads of this process.

A file with an unreadable footer is indexed as unknown, so every read keeps it; the problem is
reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from reconciler.arrays import to_arrow, to_numpy
from reconciler.errors import FormatError, StorageError
from reconciler.hudi.files.names import make_file_path
from reconciler.index.column_chunks import STATISTICS_KEYS
from reconciler.index.file_keys import join_indexes
from reconciler.index.footer_tails import FooterTails, SlimFooterTails, damaged_file_error
from reconciler.index.footers import index_footers
from reconciler.index.model import FileIndex, FileKeys
from reconciler.index.slim_footers import FooterSlimmer, SlimFooter
from reconciler.lazy_dataclass import dataclass
from reconciler.storage import parallel
from reconciler.storage.api import Storage, StorageRef

#: the fewest files that justify starting a Spark job: 10 000 files take 3 CPU seconds on threads
MIN_FILES_FOR_JOB: Final = 16_000
#: threads that read from a remote store, where each read waits for the network
_REMOTE_THREADS: Final = 16
#: threads that read from a local disk, where hardly anything waits: two threads compete for
#: Python's global lock at every system call and take 1.5 times the CPU and the time of one
_LOCAL_THREADS: Final = 1
#: files that a thread reads before it reports progress: larger shares cost less, but end later
_MIN_SHARE, _MAX_SHARE, _THREAD_SHARES = 64, 256, 4
#: called with the number of files read since the last call
Progress = Callable[[int], None]
#: problems that are reported in words; further ones are only counted
MAX_PROBLEMS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IndexRequest:
    """The columns to index; picklable.

    ``columns``: names, with dots into structs. ``schema``: the table's columns as an Arrow schema.
    ``supplied``: columns that readers fill with other values than null (see ``index_footers``).
    """

    columns: tuple[str, ...]
    schema: Any
    supplied: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BuiltIndex:
    """An index and the problems met while building it.

    ``unread_count``: files with unreadable footers. ``problems``: why, for the first few of them.
    """

    index: FileIndex
    unread_count: int = 0
    problems: tuple[str, ...] = ()


class IndexBuilder(Protocol):
    """Builds an index from footers, in this process or on executors."""

    def build(
        self, ref: StorageRef, request: IndexRequest, files: FileKeys, *, progress: Progress
    ) -> BuiltIndex:
        """Return an index with an element for every file; call ``progress`` with files read.

        Raises UnsupportedError for a column that the schema lacks or whose type has no bounds.
        """


@dataclass(frozen=True, slots=True)
class ThreadedIndexBuilder:
    """Builds the index on threads, each reading through its own ``open_storage`` result."""

    open_storage: Callable[[StorageRef], Storage]
    at_once: int | None = None

    def build(
        self, ref: StorageRef, request: IndexRequest, files: FileKeys, *, progress: Progress
    ) -> BuiltIndex:
        storage, rows = self.open_storage(ref), files_to_batch(files)
        return read_share(storage, request, rows, at_once=self.at_once, progress=progress)


def read_share(
    storage: Storage,
    request: IndexRequest,
    rows: Any,
    *,
    at_once: int | None = None,
    progress: Progress,
) -> BuiltIndex:
    """Return the index of the files in ``rows``, a batch made by ``files_to_batch``.

    Memory: the index, and one footer per thread. ``at_once``: number of threads; None chooses one
    that suits the storage.
    """
    if at_once is None:
        at_once = _REMOTE_THREADS if "://" in storage.location else _LOCAL_THREADS
    tails = SlimFooterTails(FooterTails(storage), FooterSlimmer(STATISTICS_KEYS))
    share = min(max(_MIN_SHARE, len(rows) // (at_once * _THREAD_SHARES)), _MAX_SHARE)
    parts = parallel.run_parallel(
        partial(_read_batch, tails, request),
        split_batch(rows, share),
        parallelism=at_once,
        on_done=lambda part: progress(len(part.index)),
    )
    return combine_parts(parts, request)


def combine_parts(parts: Sequence[BuiltIndex], request: IndexRequest) -> BuiltIndex:
    """Combine parts of an index into one; the order of the parts does not matter."""
    problems = sorted(sentence for part in parts for sentence in part.problems)
    nothing = index_footers((), request.columns, request.schema)
    return BuiltIndex(
        index=join_indexes([nothing, *(part.index for part in parts)]),
        unread_count=sum(part.unread_count for part in parts),
        problems=tuple(problems[:MAX_PROBLEMS]),
    )


def files_to_batch(files: FileKeys) -> Any:
    """Return files as a record batch: partition and name (strings), size (int64)."""
    partition = files.partition.dictionary.take(files.partition.indices).cast(pa.string())
    columns = [partition, files.name, to_arrow(files.size)]
    return pa.RecordBatch.from_arrays(columns, names=["partition", "name", "size"])


def split_batch(rows: Any, max_rows: int) -> list[Any]:
    """Split a record batch into slices with at most ``max_rows`` rows each, in order."""
    return [rows.slice(start, max_rows) for start in range(0, len(rows), max_rows)]


def _read_batch(tails: SlimFooterTails, request: IndexRequest, rows: Any) -> BuiltIndex:
    """Return the index of a batch of one table's files."""
    problems: dict[str, str] = {}
    footers = _read_footers(tails, rows, problems)
    index = index_footers(footers, request.columns, request.schema, supplied=request.supplied)
    for row in np.flatnonzero(index.rows < 0).tolist():
        path = make_file_path(index.partition[row].as_py(), index.name[row].as_py())
        if path not in problems:
            problems[path] = str(damaged_file_error(path, "its footer cannot be read"))
    reported = tuple(problems[path] for path in sorted(problems)[:MAX_PROBLEMS])
    return BuiltIndex(index=index, unread_count=len(problems), problems=reported)


def _read_footers(
    tails: SlimFooterTails, rows: Any, problems: dict[str, str]
) -> Iterator[tuple[str, str, int, SlimFooter | memoryview | None]]:
    """Yield the files with their footers, None for an unreadable footer."""
    partitions, names = (rows.column(column).to_pylist() for column in ("partition", "name"))
    sizes = to_numpy(rows.column("size")).tolist()
    for partition, name, size in zip(partitions, names, sizes, strict=True):
        path = make_file_path(partition, name)
        footer: SlimFooter | memoryview | None = None
        try:
            footer = tails.read(path, size)
        except (FormatError, StorageError) as problem:
            problems[path] = str(problem)
        yield partition, name, size, footer
