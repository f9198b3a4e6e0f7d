"""Read the state of a table from storage.

It lists the timeline and the files once. Of the timeline's files it reads only those that planners
need: replacecommits, cleans, savepoints and pending plans.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, tzinfo
from time import sleep
from typing import TYPE_CHECKING, Final, Literal
from zoneinfo import ZoneInfo

import numpy as np

from reconciler.errors import (
    BlockedError,
    FormatError,
    NoTableError,
    NotFoundError,
    VanishingFilesError,
)
from reconciler.hudi.files.table_files import FileKind, TableFiles, build_files
from reconciler.hudi.load import (
    TableListing,
    load_archived_completion_times,
    load_listing,
    load_metadata_listing,
    load_properties,
    load_timeline,
)
from reconciler.hudi.metadata.listing import MetadataListing
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.active import Timeline
from reconciler.hudi.timeline.instant import COMMITS, Action, Instant
from reconciler.lazy_dataclass import dataclass
from reconciler.spec.model import TableSpec
from reconciler.state.failed_writes import FailedWritesReader
from reconciler.state.model import CompletedClean, ForeignWrite, PendingRollback, TableState
from reconciler.state.timeline_reader import (
    ProcessCheck,
    TimelineReader,
    is_being_written,
    list_clustering_slices,
    list_compaction_groups,
)
from reconciler.storage.api import Storage

if TYPE_CHECKING:
    from reconciler.hudi.metadata.listing import MetadataListing
    from reconciler.state.listing_memory import ListingCache

_ATTEMPTS: Final = 4
#: pause for writers to finish what they do; it grows with every attempt
_PAUSE_S: Final = 0.1
#: the first table version whose log files are attributed by completion time
_BY_COMPLETION: Final = 8
#: what to do about a damaged listing of the metadata table
_REPAIR: Final = (
    "declare metadata.repair: rebuild in the spec, or let a Hudi writer rebuild the metadata table"
)
ListingSource = Literal["storage", "metadata"]


def observe(  # noqa: PLR0913 (what is read of a table)
    storage: Storage,
    spec: TableSpec | None,
    *,
    observed_ms: int,
    listing: ListingSource = "storage",
    with_history: bool = True,
    check_process: ProcessCheck | None = None,
    with_orphans: bool = False,
    listing_cache: ListingCache | None = None,
) -> TableState:
    """Return the current state of a table. ``spec`` determines what is read (None: a full scan).

    ``listing``: where names and sizes of files come from. ``with_history``: False reads only what
    the newest slices need, without cleans, savepoints and pending clusterings.
    ``check_process``: returns whether the process of an owner runs; None: pending writes of ours
    are not read. ``with_orphans``: look for orphan files even if the spec does not declare them.
    ``listing_cache``: where listings of earlier runs are kept. What deletes files uses none.
    If the timeline changes while it is read, or a file is incomplete because it is
    being written, reading is repeated a few times.
    Raises FormatError, UnsupportedError, StorageError, VanishingFilesError if it changes at each of
    them, and BlockedError while a restore is pending, because the table is then inconsistent.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _Observation(
                storage,
                spec,
                observed_ms,
                listing,
                with_history,
                check_process,
                with_orphans=with_orphans or (spec is not None and spec.orphans is not None),
                is_last=attempt == _ATTEMPTS,
                listing_cache=listing_cache,
            ).read_state()
        except NotFoundError as moved:
            if attempt == _ATTEMPTS:
                raise VanishingFilesError(
                    moved.path,
                    "disappeared several times while the table was read, because its writers are "
                    "busy; run again",
                ) from None
            sleep(_PAUSE_S * attempt)
        except FormatError as damaged:
            if attempt == _ATTEMPTS or not is_being_written(storage, damaged.path, observed_ms):
                raise
            sleep(_PAUSE_S * attempt)
    raise AssertionError


@dataclass(frozen=True, slots=True)
class _Observation:
    """One attempt to read a table; ``is_last``: no other one follows."""

    storage: Storage
    spec: TableSpec | None
    observed_ms: int
    listing: ListingSource
    with_history: bool
    check_process: ProcessCheck | None
    with_orphans: bool
    is_last: bool
    listing_cache: ListingCache | None

    def _load_properties(self) -> TableProperties:
        try:
            return load_properties(self.storage)
        except NoTableError as nothing:
            if self.spec is None or self.spec.table is None:
                raise
            remedy = "the declared table does not exist yet; create it with reconciler write"
            raise NoTableError(nothing.path, nothing.problem, remedy) from None

    @property
    def _declares_pending(self) -> bool:
        """Return whether the spec says what becomes of table services that nobody finishes."""
        concurrency = self.spec.concurrency if self.spec else None
        is_declared = concurrency is not None and concurrency.pending is not None
        return is_declared and self.check_process is not None

    @property
    def _declares_failed_writes(self) -> bool:
        """Return whether the spec says what becomes of failed writes of other writers."""
        retention = self.spec.retention if self.spec else None
        is_declared = retention is not None and retention.failed_writes is not None
        return is_declared and self.check_process is not None

    def _load_metadata(
        self, properties: TableProperties, timeline: Timeline
    ) -> MetadataListing | None:
        """Return the listing of the metadata table, None without one.

        None too for a damaged one if the spec wants it repaired: then the folders are listed alone,
        and the verification of the metadata table names the damage.
        """
        try:
            return load_metadata_listing(self.storage, properties, timeline)
        except FormatError as damage:
            block = self.spec.metadata if self.spec else None
            is_repaired = block is not None and block.repair != "report"
            is_changing = not self.is_last and is_being_written(
                self.storage, damage.path, self.observed_ms
            )
            if is_changing or self.spec is None or self.listing == "metadata":
                raise
            if not is_repaired:
                raise FormatError(damage.path, damage.problem, _REPAIR) from None
            return None

    def _list_files(
        self,
        properties: TableProperties,
        metadata: MetadataListing | None,
        written: Collection[str],
        timeline: Timeline,
    ) -> TableListing:
        """List the files of the table, and those of ``written`` instants outside of partitions."""
        known = metadata.partitions if metadata else ()
        if self.listing == "metadata" and metadata is not None:
            files = build_files(metadata.read_folders(), properties.base_extension)
            return TableListing(files=files, metafile_partitions=frozenset(known))
        memory = None
        if self.listing_cache is not None:
            memory = self.listing_cache.open(self.storage, properties, timeline)
        return load_listing(self.storage, properties, known, written, memory)

    def _list_other_writes(
        self, failures: FailedWritesReader, clusterings: Collection[str]
    ) -> tuple[Instant, ...]:
        """List pending writes that may be failed, if the spec says what becomes of these."""
        return failures.list_writes(clusterings) if self._declares_failed_writes else ()

    def _read_foreign_compactions(self, failures: FailedWritesReader) -> tuple[ForeignWrite, ...]:
        """Read other writers' pending compactions if the spec says what becomes of these."""
        waiting = failures.list_compactions() if self._declares_pending else ()
        return failures.read_services(waiting, self.check_process)

    def _read_rollbacks(self, failures: FailedWritesReader) -> tuple[PendingRollback, ...]:
        """Read pending rollbacks if the spec says what becomes of what they undo."""
        if self.check_process is None or not (
            self._declares_failed_writes or self._declares_pending
        ):
            return ()
        return failures.read_rollbacks(self.check_process)

    def read_state(self) -> TableState:
        properties = self._load_properties()
        timeline = load_timeline(self.storage, properties)
        _refuse_restore(timeline)
        reader = TimelineReader(self.storage, properties, timeline)
        clusterings = reader.read_pending_clusterings() if self.with_history else ()
        pending: tuple[Instant, ...] = ()
        if self.check_process is not None:
            pending = reader.find_pending_writes({clustering.instant for clustering in clusterings})
        failures = FailedWritesReader(self.storage, properties, timeline)
        foreign = tuple(c.instant for c in clusterings if not c.is_ours)
        others = self._list_other_writes(failures, {one.instant for one in clusterings})
        stuck = failures.list_clusterings(foreign if self._declares_pending else ())
        compactions = reader.read_pending_compactions(self.check_process)
        metadata = self._load_metadata(properties, timeline)
        written = {write.requested for write in (*pending, *others, *stuck)}
        listed = self._list_files(properties, metadata, written, timeline)
        unlisted = listed.unlisted_files
        cleans = reader.read_completed_cleans() if self.with_history else ()
        zone = _find_zone(properties, self.spec)
        state = TableState(
            location=self.storage.location,
            table_name=properties.table_name,
            table_type=properties.table_type,
            table_version=properties.table_version,
            layout=properties.layout,
            timezone=properties.timezone,
            partition_fields=properties.partition_fields,
            metadata_partitions=properties.metadata_partitions,
            properties=properties.raw,
            timeline=timeline,
            files=listed.files,
            partitions=tuple(
                sorted(metadata.partitions if metadata else listed.metafile_partitions)
            ),
            metafile_partitions=listed.metafile_partitions,
            stray_partitions=listed.stray_partitions,
            savepoints=reader.read_savepoints() if self.with_history else (),
            compactions=list_compaction_groups(compactions),
            pending_compactions=compactions,
            foreign_compactions=self._read_foreign_compactions(failures),
            clusterings=list_clustering_slices(clusterings),
            replaced=reader.read_replaced(),
            cleans=cleans,
            pending_cleans=reader.read_pending_cleans() if self.with_history else (),
            pending_clusterings=clusterings,
            pending_writes=()
            if self.check_process is None
            else reader.read_pending_writes(pending, self.check_process, unlisted),
            failed_writes=failures.read_writes(others, unlisted),
            foreign_clusterings=failures.read_services(stuck, self.check_process, unlisted),
            pending_rollbacks=self._read_rollbacks(failures),
            touched_partitions=self._read_touched(reader, cleans),
            completions=self._find_completions(properties, timeline, listed.files, zone),
            v6_completions=_find_v6_completions(properties, timeline, zone),
            observed_ms=self.observed_ms,
            written_partitions=self._read_written(reader, properties),
        )
        if self.with_orphans and self.with_history and self.listing == "storage":
            state = self._add_orphan_facts(properties, state, metadata)
        return state if self.spec is None else self._add_spec_facts(self.spec, properties, state)

    def _add_spec_facts(
        self, spec: TableSpec, properties: TableProperties, state: TableState
    ) -> TableState:
        """Add what blocks of the spec need; few tables have these blocks."""
        if spec.rewriting is not None:
            state = self._add_clustering_facts(spec, properties, state)
        if spec.index is not None:
            from reconciler.state.index_state_reader import read_index_state  # noqa: PLC0415

            index_state = read_index_state(self.storage, properties, spec, state)
            state = state.with_facts(index_state=index_state)
        if spec.timeline is not None and self.with_history:
            from reconciler.state.archival_reader import read_archival_facts  # noqa: PLC0415

            archival = read_archival_facts(self.storage, properties, state)
            state = state.with_facts(archival=archival)
        return state

    def _add_orphan_facts(
        self, properties: TableProperties, state: TableState, metadata: MetadataListing | None
    ) -> TableState:
        from reconciler.state.orphan_reader import (  # noqa: PLC0415 (few specs declare it)
            UNDECLARED_ARCHIVE,
            read_orphan_facts,
        )

        is_declared = self.spec is not None and self.spec.orphans is not None
        limit = None if is_declared else UNDECLARED_ARCHIVE
        facts = read_orphan_facts(
            self.storage, properties, state, metadata, max_archive_bytes=limit
        )
        return state.with_facts(orphan_facts=facts)

    def _add_clustering_facts(
        self, spec: TableSpec, properties: TableProperties, state: TableState
    ) -> TableState:
        """Add the facts for a rewrite; for file sizes alone the error of a damaged past write.

        File sizes then make no step, but the table can be cleaned.
        """
        from reconciler.state.clustering_facts_reader import read_clustering_facts  # noqa: PLC0415

        try:
            facts = read_clustering_facts(self.storage, properties, spec, state)
        except FormatError as damaged:
            may_change = is_being_written(self.storage, damaged.path, self.observed_ms)
            if spec.clustering is not None or (may_change and not self.is_last):
                raise
            return state.with_facts(damaged_write=str(damaged))
        return state.with_facts(clustering_facts=facts)

    def _read_touched(
        self, reader: TimelineReader, cleans: tuple[CompletedClean, ...]
    ) -> Mapping[str, frozenset[str]] | None:
        """Read the partitions of commits since the last clean for an incremental scan."""
        retention = self.spec.retention if self.spec else None
        if retention is None or retention.scan != "incremental" or not cleans:
            return None
        since = cleans[-1].earliest_instant_to_retain
        return reader.read_touched(since) if since.strip() else None

    def _read_written(
        self, reader: TimelineReader, properties: TableProperties
    ) -> Mapping[str, frozenset[str]] | None:
        """Read the partitions of every write, if names of log files do not tell when they were."""
        needs = self.spec is not None and self.spec.partition_retention is not None
        is_merge_on_read = properties.table_type == "MERGE_ON_READ"
        if not needs or not is_merge_on_read or properties.table_version >= _BY_COMPLETION:
            return None
        return reader.read_written_partitions()

    def _find_completions(
        self, properties: TableProperties, timeline: Timeline, files: TableFiles, zone: tzinfo
    ) -> Mapping[str, str]:
        """Return completion times by requested time, with archived ones that log files need."""
        if properties.table_version < _BY_COMPLETION:
            return {}
        completions: dict[str, str] = {}
        for entry in timeline.completed_files(COMMITS):
            completed = entry.instant.completed or _format_instant(entry.modified_ms, zone)
            completions[entry.instant.requested] = completed
        # not np.unique: it imports numpy.ma
        codes = np.flatnonzero(np.bincount(files.instant[files.kind != FileKind.BASE]))
        of_logs = {files.instants[code] for code in codes.tolist()}
        active = {i.requested for i in timeline.writes}
        missing = of_logs - active
        return load_archived_completion_times(self.storage, properties, missing) | completions


def _refuse_restore(timeline: Timeline) -> None:
    for instant in timeline.pending({Action.RESTORE}):
        raise BlockedError(
            f"restore {instant.requested} is {instant.state.lower()}, so the table is "
            "inconsistent; finish it with Hudi (run the restore to the savepoint again), then "
            "plan again"
        )


def _find_zone(properties: TableProperties, spec: TableSpec | None) -> tzinfo:
    """Return the zone of the timeline; UTC if it is unknown."""
    if properties.timezone == "UTC" or spec is None or spec.timezone is None:
        return UTC
    return ZoneInfo(spec.timezone)


def _find_v6_completions(
    properties: TableProperties, timeline: Timeline, zone: tzinfo
) -> Mapping[str, str]:
    """Return completion times as Hudi 1.x reads version 6: when the completed file was written."""
    if properties.table_version >= _BY_COMPLETION:
        return {}
    return {
        entry.instant.requested: _format_instant(entry.modified_ms, zone)
        for entry in timeline.completed_files(COMMITS)
    }


def _format_instant(epoch_ms: int, zone: tzinfo) -> str:
    moment = datetime.fromtimestamp(epoch_ms // 1000, UTC).astimezone(zone)
    return f"{moment:%Y%m%d%H%M%S}{epoch_ms % 1000:03d}"
