"""Delete files: what a deleter has to do, and the part that runs on its workers.

Spark workers import this module: it needs nothing but the storage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Protocol

from reconciler.lazy_dataclass import dataclass
from reconciler.storage.api import Advance, Storage, StorageRef
from reconciler.storage.open import find_bulk_size
from reconciler.storage.parallel import StopRequest, run_parallel
from reconciler.transaction.paths import LARGEST_CALL, resolve_path

#: most orphan files that are deleted without the workers of a cluster
DELETED_HERE: Final = LARGEST_CALL
#: fewest files of a share of several that are deleted at a time
_SHARE: Final = 64
#: requests to a remote store at a time, each of which waits for the network
_REMOTE_THREADS: Final = 16


@dataclass(frozen=True, slots=True)
class DeletionBatch:
    """Files of one partition to delete; ``names`` are file names."""

    partition: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeletionOutcome:
    """The outcome of a batch: number deleted, names that were absent, and failures with reasons."""

    partition: str
    deleted: int
    gone: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()


class FileDeleter(Protocol):
    """Deletes files, here or on other hosts."""

    def delete_files(
        self, ref: StorageRef, batches: Sequence[DeletionBatch], *, progress: Advance
    ) -> list[DeletionOutcome]:
        """Delete every file of every batch; a file that is absent already is a success.

        ``progress`` gets the number of files of every share that is done. Outcomes come in any
        order.
        """


@dataclass(frozen=True, slots=True)
class LocalDeleter:
    """Deletes in this process.

    ``at_once``: requests at a time; with one they have an order, None chooses what suits the store.
    ``check_stop`` is called before each share of the files, and ends the work by raising.
    """

    open_storage: Callable[[StorageRef], Storage]
    at_once: int | None = 1
    check_stop: Callable[[], None] = lambda: None

    def delete_files(
        self, ref: StorageRef, batches: Sequence[DeletionBatch], *, progress: Advance
    ) -> list[DeletionOutcome]:
        storage, stop = self.open_storage(ref), StopRequest()

        def delete(share: Sequence[DeletionBatch]) -> list[DeletionOutcome]:
            stop.check()
            self.check_stop()
            return list(delete_share(storage, share))

        def report(done: Sequence[DeletionOutcome]) -> None:
            progress(sum(one.deleted + len(one.gone) + len(one.failed) for one in done))

        files = sum(len(batch.names) for batch in batches)
        at_once = self.at_once or (_REMOTE_THREADS if "://" in ref.location else 1)
        # a share is one request, or as many files as a thread may delete before progress is seen
        share = LARGEST_CALL if at_once == 1 else find_bulk_size(ref.location)
        shares = split_shares(batches, -(-files // max(share, _SHARE)), call=share)
        outcomes = run_parallel(
            delete,
            shares,
            parallelism=at_once,
            on_done=report,
            on_stop=lambda _count: stop.request(),
        )
        return [one for done in outcomes for one in done]


def delete_share(storage: Storage, batches: Iterable[DeletionBatch]) -> Iterator[DeletionOutcome]:
    """Delete one worker's share in calls of a thousand paths, across partitions.

    A batch that two calls share has two outcomes.
    """
    waiting: list[DeletionBatch] = []
    size = 0
    for batch in batches:
        names = batch.names
        while names:
            taken = names[: LARGEST_CALL - size]
            waiting.append(DeletionBatch(batch.partition, taken))
            names, size = names[len(taken) :], size + len(taken)
            if size == LARGEST_CALL:
                yield from _delete(storage, waiting)
                waiting, size = [], 0
    if waiting:
        yield from _delete(storage, waiting)


def _delete(storage: Storage, batches: Sequence[DeletionBatch]) -> Iterator[DeletionOutcome]:
    paths = [resolve_path(batch.partition, name) for batch in batches for name in batch.names]
    deletions = iter(storage.delete_many(paths))
    for batch in batches:
        missing: list[str] = []
        failed: list[tuple[str, str]] = []
        for name in batch.names:
            deletion = next(deletions)
            if deletion.error is not None:
                failed.append((name, deletion.error))
            elif not deletion.existed:
                missing.append(name)
        deleted = len(batch.names) - len(missing) - len(failed)
        yield DeletionOutcome(batch.partition, deleted, tuple(missing), tuple(failed))


def split_shares(
    batches: Sequence[DeletionBatch], slots: int, *, call: int = 1
) -> list[list[DeletionBatch]]:
    """Return the batches in about as many shares as there are slots, of about equal size.

    ``call``: how many files one request deletes. A share is as many full requests, so that there
    are no more of them than one worker would need.

    >>> batches = [DeletionBatch("a", ("1", "2", "3")), DeletionBatch("b", ("4",))]
    >>> [[batch.names for batch in share] for share in split_shares(batches, 2)]
    [[('1', '2')], [('3',), ('4',)]]
    >>> [[batch.names for batch in share] for share in split_shares(batches, 2, call=3)]
    [[('1', '2', '3')], [('4',)]]
    """
    total = sum(len(batch.names) for batch in batches)
    each = -(-max(1, -(-total // max(1, slots))) // call) * call
    shares: list[list[DeletionBatch]] = []
    room = 0
    for batch in batches:
        names = batch.names
        while names:
            if room == 0:
                shares.append([])
                room = each
            shares[-1].append(DeletionBatch(batch.partition, names[:room]))
            taken = min(room, len(names))
            names, room = names[taken:], room - taken
    return shares
