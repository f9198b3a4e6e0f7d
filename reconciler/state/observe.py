"""Look at a table and write down what is there: the only reader of the world.

One listing of the timeline, one of the files, and of the timeline's files only those that a planner
needs: replacecommits, cleans, savepoints, pending plans.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from time import sleep
from typing import Final, Literal
from zoneinfo import ZoneInfo

import numpy as np

from reconciler.errors import (
    BlockedError,
    FormatError,
    NoTableError,
    NotFoundError,
    StorageError,
)
from reconciler.hudi.files import FileKind, Files
from reconciler.hudi.instant import COMMITS, Action, Instant
from reconciler.hudi.load import (
    Listing,
    archived_completions,
    files_of_listing,
    load_listing,
    load_metadata_listing,
    load_properties,
    load_timeline,
)
from reconciler.hudi.properties import TableProperties
from reconciler.hudi.timeline import Timeline
from reconciler.spec.model import TableSpec
from reconciler.state.model import CompletedClean, PendingWrite, TableState
from reconciler.state.pending_writes import Lives, candidates, pending_writes
from reconciler.state.reading import Reader, clustering_inputs
from reconciler.storage.api import Storage

_ATTEMPTS: Final = 4
#: a file that was changed so long ago is not being written any more
_WRITING_MS: Final = 10_000
#: what a writer gets for the rest of it, longer each time
_PAUSE_S: Final = 0.1
#: the first table version whose log files are attributed by completion time
_BY_COMPLETION: Final = 8
ListingSource = Literal["storage", "metadata"]


def observe(
    storage: Storage,
    spec: TableSpec | None,
    *,
    observed_ms: int,
    listing: ListingSource = "storage",
    history: bool = True,
    lives: Lives | None = None,
) -> TableState:
    """The table as it is now. ``spec`` says how much has to be read (None: a full scan's share).

    ``listing``: where names and sizes of files come from. ``history``: False for those who want
    the newest slices only: nothing is read of what says which old ones were removed or must stay,
    the cleans, the savepoints, and what pending clusterings read. ``lives``: whether the process
    of an owner runs, as far as that is known here; None for those who do not ask whose the pending
    writes are. A timeline that moves while it is read is read again, a few times, and so is a file
    that is not whole and was just written.
    Raises FormatError, UnsupportedError, StorageError; BlockedError while a restore is pending: the
    table is in pieces then.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _Look(storage, spec, observed_ms, listing, history, lives).state()
        except NotFoundError as moved:
            if attempt == _ATTEMPTS:
                raise StorageError(
                    moved.path,
                    "went away again and again while the table was read; its writers are busy: "
                    "run again",
                ) from None
        except FormatError as damaged:
            if attempt == _ATTEMPTS or not is_being_written(storage, damaged.path, observed_ms):
                raise
            sleep(_PAUSE_S * attempt)
    raise AssertionError


def is_being_written(storage: Storage, path: str, observed_ms: int) -> bool:
    """Whether what is damaged may only be half there: Hudi writes local files where they are read.

    Source: HoodieStorage.createImmutableFileInPath, which takes another name first on HDFS alone.
    """
    if not path.startswith(".hoodie/"):
        return False
    entry = storage.stat(path)
    return entry is None or entry.modified_ms > observed_ms - _WRITING_MS


@dataclass(frozen=True, slots=True)
class _Look:
    """One attempt to read a table."""

    storage: Storage
    spec: TableSpec | None
    observed_ms: int
    listing: ListingSource
    history: bool
    lives: Lives | None

    def _properties(self) -> TableProperties:
        try:
            return load_properties(self.storage)
        except NoTableError as nothing:
            if self.spec is None or self.spec.table is None:
                raise
            remedy = "nobody has made the table that is declared; reconciler write makes it"
            raise NoTableError(nothing.path, nothing.problem, remedy) from None

    def state(self) -> TableState:
        properties = self._properties()
        timeline = load_timeline(self.storage, properties)
        _refuse_restore(timeline)
        reader = Reader(self.storage, properties, timeline)
        clusterings = reader.pending_clusterings() if self.history else ()
        pending: tuple[Instant, ...] = ()
        if self.lives is not None:
            pending = candidates(timeline, {one.instant for one in clusterings})
        metadata = load_metadata_listing(self.storage, properties, timeline)
        known = metadata.partitions if metadata else ()
        if self.listing == "metadata" and metadata is not None:
            listed = Listing(
                files=files_of_listing(metadata, properties), metafile_partitions=frozenset(known)
            )
        else:
            instants = {one.requested for one in pending}
            listed = load_listing(self.storage, properties, known, instants)
        cleans = reader.completed_cleans() if self.history else ()
        zone = _zone(properties, self.spec)
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
            partitions=tuple(sorted(known if metadata else listed.metafile_partitions)),
            metafile_partitions=listed.metafile_partitions,
            stray_partitions=listed.stray_partitions,
            savepoints=reader.savepoints() if self.history else (),
            compactions=reader.compactions(),
            clusterings=clustering_inputs(clusterings),
            replaced=reader.replaced(),
            cleans=cleans,
            pending_cleans=reader.pending_cleans() if self.history else (),
            pending_clusterings=clusterings,
            pending_writes=self._pending_writes(reader, pending, listed),
            touched=self._touched(reader, cleans),
            completions=self._completions(properties, timeline, listed.files, zone),
            v6_completions=_v6_completions(properties, timeline, zone),
            observed_ms=self.observed_ms,
        )
        return state if self.spec is None else self._asked(self.spec, properties, state)

    def _pending_writes(
        self, reader: Reader, pending: tuple[Instant, ...], listed: Listing
    ) -> tuple[PendingWrite, ...]:
        """Those of ours, where somebody asks for them."""
        if self.lives is None:
            return ()
        return pending_writes(
            self.storage, pending, self.lives, listed.unlisted, reader.rolled_back
        )

    def _asked(self, spec: TableSpec, properties: TableProperties, state: TableState) -> TableState:
        """The state with what only blocks of the spec ask for; few tables need it."""
        if spec.clustering is not None:
            from reconciler.state.gather import gather  # noqa: PLC0415

            state = replace(state, evidence=gather(self.storage, properties, spec, state))
        if spec.index is not None:
            from reconciler.state.known_index import known_index  # noqa: PLC0415

            state = replace(state, index=known_index(self.storage, properties, spec, state))
        return state

    def _touched(
        self, reader: Reader, cleans: tuple[CompletedClean, ...]
    ) -> Mapping[str, frozenset[str]] | None:
        """What an incremental scan wants: the partitions of commits since the last clean."""
        retention = self.spec.retention if self.spec else None
        if retention is None or retention.scan != "incremental" or not cleans:
            return None
        since = cleans[-1].earliest_instant_to_retain
        return reader.touched(since) if since.strip() else None

    def _completions(
        self, properties: TableProperties, timeline: Timeline, files: Files, zone: tzinfo
    ) -> Mapping[str, str]:
        """Completion times by requested time, archived ones too where a log file needs them."""
        if properties.table_version < _BY_COMPLETION:
            return {}
        found: dict[str, str] = {}
        for entry in timeline.entries:
            instant = entry.instant
            if instant.is_completed and instant.action in COMMITS:
                found[instant.requested] = instant.completed or _stamp(entry.modified_ms, zone)
        # not np.unique: it imports numpy.ma
        codes = np.flatnonzero(np.bincount(files.instant[files.kind != FileKind.BASE]))
        of_logs = {files.instants[code] for code in codes.tolist()}
        active = {i.requested for i in timeline.writes}
        missing = of_logs - active
        return archived_completions(self.storage, properties, missing) | found


def _refuse_restore(timeline: Timeline) -> None:
    for instant in timeline.pending({Action.RESTORE}):
        raise BlockedError(
            f"restore {instant.requested} is {instant.state.lower()}: the table is between two "
            "states until it is finished; finish it with Hudi (run the restore to the savepoint "
            "again), then plan anew"
        )


def _zone(properties: TableProperties, spec: TableSpec | None) -> tzinfo:
    """The zone of the timeline; UTC where only its writers know."""
    if properties.timezone == "UTC" or spec is None or spec.timezone is None:
        return UTC
    return ZoneInfo(spec.timezone)


def _v6_completions(
    properties: TableProperties, timeline: Timeline, zone: tzinfo
) -> Mapping[str, str]:
    """Completion times as Hudi 1.x reads version 6: when the completed file was written."""
    if properties.table_version >= _BY_COMPLETION:
        return {}
    return {
        entry.instant.requested: _stamp(entry.modified_ms, zone)
        for entry in timeline.entries
        if entry.instant.is_completed and entry.instant.action in COMMITS
    }


def _stamp(epoch_ms: int, zone: tzinfo) -> str:
    moment = datetime.fromtimestamp(epoch_ms // 1000, UTC).astimezone(zone)
    return f"{moment:%Y%m%d%H%M%S}{epoch_ms % 1000:03d}"
