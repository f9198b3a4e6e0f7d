"""Move instants from an active timeline to its archive; the table's lock is held.

An instant is archived before its files go, so no stop loses one. A stop leaves instants that are
both active and archived; the next archival removes these without archiving them again. Source:
TimelineArchiverV1 and V2 (archiveIfRequired).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import tzinfo
from typing import Protocol

from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.archivable_instant import ArchivableInstant
from reconciler.hudi.timeline.instant import Action, Instant
from reconciler.lazy_dataclass import dataclass
from reconciler.storage.api import Storage
from reconciler.transaction.archives.active_files import (
    InstantFiles,
    collect_files,
    cut_batches,
    read_instants,
    remove_files,
)
from reconciler.transaction.archives.history import History
from reconciler.transaction.archives.log_archive import LogArchive


class Archive(Protocol):
    """An archived timeline of either layout."""

    def find_archived(self, wanted: set[tuple[str, Action]]) -> set[tuple[str, Action]]:
        """Return which of these instants are archived already."""

    def append(self, instants: Sequence[ArchivableInstant]) -> None:
        """Archive instants; raises FormatError naming a file of theirs that is damaged."""

    def tidy(self) -> int:
        """Merge small files and remove what nothing needs any more; return how often it merged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivalCounts:
    """Instants that were archived now, those that had been before, and merges of small files."""

    archived: int = 0
    known: int = 0
    merges: int = 0


def archive_instants(
    storage: Storage,
    properties: TableProperties,
    timeline: Timeline,
    instants: Sequence[Instant],
    *,
    zone: tzinfo,
    confirm: Callable[[], None],
) -> ArchivalCounts:
    """Archive completed instants of a timeline, the oldest first, and remove their files.

    ``properties``: of the table whose timeline it is, with folders relative to the storage.
    ``confirm`` raises if the lock is lost. Raises NotFoundError if a file is gone, StorageError,
    and FormatError naming a damaged file.
    """
    if not instants:
        return ArchivalCounts()
    archive = open_archive(storage, properties, zone=zone, confirm=confirm)
    known = archive.find_archived({(one.requested, one.action) for one in instants})
    for batch in cut_batches(collect_files(timeline, instants)):
        new = [one for one in batch if _key(one) not in known]
        if new:
            archive.append(read_instants(storage, properties, new, zone))
        remove_files(storage, properties, batch, confirm)
    return ArchivalCounts(
        archived=len(instants) - len(known), known=len(known), merges=archive.tidy()
    )


def open_archive(
    storage: Storage,
    properties: TableProperties,
    *,
    zone: tzinfo,
    confirm: Callable[[], None] = lambda: None,
) -> Archive:
    """Return the archive of a table."""
    if properties.layout == 1:
        return LogArchive(storage=storage, properties=properties, zone=zone, confirm=confirm)
    return History(storage=storage, properties=properties, confirm=confirm)


def _key(one: InstantFiles) -> tuple[str, Action]:
    return one.instant.requested, one.instant.action
