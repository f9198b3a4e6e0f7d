"""Reading the footers of many files into an index, share by share; here, on threads.

A footer that cannot be read makes its file unknown, which every read keeps, and is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from reconciler import parallel
from reconciler.errors import FormatError, StorageError
from reconciler.hudi.arrow import integers, numbers
from reconciler.index.chunks import PAIRS
from reconciler.index.footers import index_of
from reconciler.index.keys import joined
from reconciler.index.merge import Keys
from reconciler.index.model import FileIndex
from reconciler.index.slim import Slim, Slimmer
from reconciler.index.tails import SlimTails, Tails, damaged
from reconciler.storage.api import Storage, StorageRef

#: files from which on a job on a cluster is worth its start: 10 000 take 3 CPU seconds here
WORTH_A_JOB: Final = 16_000
#: files at once: reading waits for the store
_AT_ONCE: Final = 16
#: on a local disk hardly anything waits; two threads that wait for Python's lock with every call of
#: the system take 1.5 times the CPU and the time of one
_AT_ONCE_HERE: Final = 1
#: files that a thread reads before it says so: more at once cost less, but end later
_LEAST_SHARE, _MOST_SHARE, _SHARES_EACH = 64, 256, 4
#: sentences about files that cannot be read; the rest are counted
MOST_SAID: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asked:
    """What is asked of footers; picklable.

    ``columns``: names, with dots into structs; ``schema``: the table's columns as an Arrow schema;
    ``supplied``: columns that readers fill with something else than null (``index_of``).
    """

    columns: tuple[str, ...]
    schema: Any
    supplied: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Built:
    """What footers told. ``unread``: how many could not be read; of the first few, ``said`` why."""

    index: FileIndex
    unread: int = 0
    said: tuple[str, ...] = ()


class IndexBuilder(Protocol):
    """Something that reads footers, here or elsewhere."""

    def build(
        self,
        ref: StorageRef,
        asked: Asked,
        files: Keys,
        *,
        progress: Callable[[int], None],
    ) -> Built:
        """The index of the files, every one of them; ``progress`` hears of files read.

        Raises UnsupportedError for a column that the schema has not, or of a type without bounds.
        """


@dataclass(frozen=True, slots=True)
class Threads:
    """Reads through the storage that ``open_storage`` gives, several files at a time."""

    open_storage: Callable[[StorageRef], Storage]
    at_once: int | None = None

    def build(
        self,
        ref: StorageRef,
        asked: Asked,
        files: Keys,
        *,
        progress: Callable[[int], None],
    ) -> Built:
        storage = self.open_storage(ref)
        return read_share(storage, asked, rows_of(files), at_once=self.at_once, progress=progress)


def read_share(
    storage: Storage,
    asked: Asked,
    rows: Any,
    *,
    at_once: int | None = None,
    progress: Callable[[int], None],
) -> Built:
    """The index of the files of ``rows_of``; memory: what it says, and a footer per thread.

    ``at_once``: threads, None for as many as the storage has use for.
    """
    if at_once is None:
        at_once = _AT_ONCE if "://" in storage.location else _AT_ONCE_HERE
    reading = _Reading(SlimTails(Tails(storage), Slimmer(PAIRS)), asked)
    parts = parallel.each(
        reading.read,
        cut(rows, min(max(_LEAST_SHARE, len(rows) // (at_once * _SHARES_EACH)), _MOST_SHARE)),
        at_once=at_once,
        on_done=lambda part: progress(len(part.index)),
    )
    return together(parts, asked)


def together(parts: Sequence[Built], asked: Asked) -> Built:
    """What parts told, as if it were one; parts in any order give the same."""
    said = sorted(sentence for part in parts for sentence in part.said)
    nothing = index_of((), asked.columns, asked.schema)
    return Built(
        index=joined([nothing, *(part.index for part in parts)]),
        unread=sum(part.unread for part in parts),
        said=tuple(said[:MOST_SAID]),
    )


def rows_of(files: Keys) -> Any:
    """Files as a record batch: partition and name (strings), size (int64)."""
    return pa.RecordBatch.from_arrays(
        [
            files.partition.dictionary.take(files.partition.indices).cast(pa.string()),
            files.name,
            integers(np.ascontiguousarray(files.size)),
        ],
        names=["partition", "name", "size"],
    )


def cut(rows: Any, most: int) -> list[Any]:
    """Slices of a record batch of at most so many rows, in their order."""
    return [rows.slice(start, most) for start in range(0, len(rows), most)]


@dataclass(frozen=True, slots=True)
class _Reading:
    """Reads shares of the files of one table."""

    tails: SlimTails
    asked: Asked

    def read(self, rows: Any) -> Built:
        problems: dict[str, str] = {}
        asked = self.asked
        index = index_of(
            self._footers(rows, problems), asked.columns, asked.schema, supplied=asked.supplied
        )
        for row in np.flatnonzero(index.rows < 0).tolist():
            path = path_of(index.partition[row].as_py(), index.name[row].as_py())
            if path not in problems:
                problems[path] = str(damaged(path, "its footer cannot be read"))
        said = tuple(problems[path] for path in sorted(problems)[:MOST_SAID])
        return Built(index=index, unread=len(problems), said=said)

    def _footers(
        self, rows: Any, problems: dict[str, str]
    ) -> Iterator[tuple[str, str, int, Slim | memoryview | None]]:
        """One footer at a time; None where there is none to be had."""
        partitions, names = (rows.column(column).to_pylist() for column in ("partition", "name"))
        sizes = numbers(rows.column("size")).tolist()
        for partition, name, size in zip(partitions, names, sizes, strict=True):
            path = path_of(partition, name)
            footer: Slim | memoryview | None = None
            try:
                footer = self.tails.read(path, size)
            except (FormatError, StorageError) as problem:
                problems[path] = str(problem)
            yield partition, name, size, footer


def path_of(partition: str, name: str) -> str:
    """The path of a file below the table."""
    return f"{partition}/{name}" if partition else name
