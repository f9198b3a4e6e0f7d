"""Read the files of instants that are archived, and remove them once they are.

Pending files go first: of an instant without its completed file, others would think that it is
pending. Completed files go one by one, the oldest first, so that no reader finds a hole in the
timeline. Source: TimelineArchiverV1 and V2 (deleteArchivedActions).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Final

from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.active import Timeline, TimelineFile
from reconciler.hudi.timeline.archivable_instant import ArchivableInstant
from reconciler.hudi.timeline.instant import Instant, State
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.refusals import format_instant
from reconciler.storage.api import Storage
from reconciler.storage.parallel import run_parallel
from reconciler.transaction.paths import delete_paths

#: files that are read at a time
_PARALLELISM: Final = 8
#: an archival reads at most so many bytes and instants at once
_BATCH_BYTES: Final = 64 * 1024 * 1024
_BATCH_INSTANTS: Final = 1000
#: removals of completed files after which the lock is confirmed again
_CONFIRM_AFTER: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class InstantFiles:
    """The files of a completed instant on the active timeline."""

    instant: Instant
    files: tuple[TimelineFile, ...]

    def find(self, state: State) -> TimelineFile | None:
        """Return the file of a state; of a completed instant the one that the timeline shows."""
        if state is State.COMPLETED:
            return next(file for file in self.files if file.instant == self.instant)
        return next((file for file in self.files if file.instant.state is state), None)

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)


def collect_files(timeline: Timeline, instants: Iterable[Instant]) -> tuple[InstantFiles, ...]:
    """Return the files of completed instants, in their order."""
    by_key: dict[tuple[str, str], list[TimelineFile]] = {}
    for file in timeline.files:
        key = (file.instant.requested, file.instant.action.completes_as)
        by_key.setdefault(key, []).append(file)
    return tuple(
        InstantFiles(instant=one, files=tuple(by_key[one.requested, one.action]))
        for one in instants
    )


def cut_batches(instants: Sequence[InstantFiles]) -> Iterator[tuple[InstantFiles, ...]]:
    """Yield the instants in batches that fit into memory, in their order."""
    batch: list[InstantFiles] = []
    size = 0
    for one in instants:
        if batch and (size + one.bytes > _BATCH_BYTES or len(batch) == _BATCH_INSTANTS):
            yield tuple(batch)
            batch, size = [], 0
        batch.append(one)
        size += one.bytes
    if batch:
        yield tuple(batch)


def read_instants(
    storage: Storage, properties: TableProperties, batch: Sequence[InstantFiles], zone: tzinfo
) -> list[ArchivableInstant]:
    """Read the files of instants; raises NotFoundError if one is gone."""
    files = [file for one in batch for file in one.files]
    paths = {file.name: f"{properties.timeline_folder}/{file.name}" for file in files}
    contents = run_parallel(storage.read, paths.values(), parallelism=_PARALLELISM)
    read = dict(zip(paths, contents, strict=True))
    return [_build_instant(one, read, properties, zone) for one in batch]


def _build_instant(
    one: InstantFiles, read: dict[str, bytes], properties: TableProperties, zone: tzinfo
) -> ArchivableInstant:
    requested, inflight = one.find(State.REQUESTED), one.find(State.INFLIGHT)
    completed = one.find(State.COMPLETED)
    assert completed is not None, "it is completed"
    began = inflight if requested is None else requested
    moment = datetime.fromtimestamp(completed.modified_ms / 1000, UTC)
    return ArchivableInstant(
        requested=one.instant.requested,
        completion=one.instant.completed or format_instant(moment, zone),
        action=one.instant.action,
        requested_bytes=None if requested is None else read[requested.name],
        inflight_bytes=None if inflight is None else read[inflight.name],
        completed_bytes=read[completed.name],
        requested_ms=0 if requested is None else requested.modified_ms,
        inflight_ms=0 if inflight is None else inflight.modified_ms,
        completed_ms=completed.modified_ms,
        began_as=None if began is None else began.instant.action,
        folder=properties.timeline_folder,
    )


def remove_files(
    storage: Storage,
    properties: TableProperties,
    batch: Sequence[InstantFiles],
    confirm: Callable[[], None],
) -> None:
    """Remove the files of archived instants from the active timeline; raises StorageError.

    ``confirm`` raises if the lock is lost.
    """
    folder = properties.timeline_folder
    files = [file for one in batch for file in one.files]
    pending = [f"{folder}/{file.name}" for file in files if not file.instant.is_completed]
    confirm()
    for _done in delete_paths(storage, pending):
        pass
    completed = sorted(file for file in files if file.instant.is_completed)
    for number, file in enumerate(completed):
        if number % _CONFIRM_AFTER == 0:
            confirm()
        storage.delete(f"{folder}/{file.name}")
