"""Read what tells orphan files from files of writes: archive, modification times, rollbacks.

Nothing is read of a table whose files all have an instant of the active timeline.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from reconciler.arrays import Integers, Mask, to_arrow
from reconciler.errors import FormatError, UnsupportedError
from reconciler.hudi.files.names import make_file_path
from reconciler.hudi.load import find_archived_writes, read_instant_file
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.archived_writes import ArchivedWrites
from reconciler.hudi.timeline.commit import WriteFootprint
from reconciler.hudi.timeline.heartbeat import HEARTBEAT_FOLDER
from reconciler.hudi.timeline.instant import COMMITS, Action, State
from reconciler.hudi.timeline.plans import parse_rolled_back_time
from reconciler.lazy_dataclass import dataclass
from reconciler.state.model import TableState
from reconciler.state.orphan_facts import (
    GONE,
    OrphanFacts,
    find_doubled_rows,
    find_unknown_rows,
    find_visible_start,
)
from reconciler.storage.api import Storage
from reconciler.storage.parallel import run_parallel
from reconciler.storage.paths import list_if_exists

if TYPE_CHECKING:
    from reconciler.hudi.metadata.listing import MetadataListing
    from reconciler.hudi.timeline.active import TimelineFile

#: most bytes of an archive that are read for a spec that declares nothing about orphan files
UNDECLARED_ARCHIVE: Final = 256 * 1024**2
#: requests at a time
_AT_ONCE: Final = 8
#: so many files of a partition are looked at one by one; for more the partition is listed
_FEW_FILES: Final = 4


def read_orphan_facts(
    storage: Storage,
    properties: TableProperties,
    state: TableState,
    metadata: MetadataListing | None,
    *,
    max_archive_bytes: int | None = None,
) -> OrphanFacts:
    """Return the files of a table that may be orphans, and what tells whether they are.

    ``metadata``: the listing of a live metadata table. ``max_archive_bytes``: a larger archive is
    not read; None: it is read in any case. That, and damage of the archive, are facts. Raises
    StorageError, NotFoundError if the timeline changes, FormatError for a damaged metadata table.
    """
    return _OrphanReader(storage, properties, state, max_archive_bytes).read(metadata)


def refresh_orphan_facts(
    storage: Storage, properties: TableProperties, state: TableState, rows: Integers
) -> OrphanFacts:
    """Return the facts about some rows by the state's timeline and the files as they are now.

    Files that the timeline knows by now are left out. The archive is not read again: it could only
    know an instant that was active since the state was read, and such a write is young. Raises
    StorageError, NotFoundError if the timeline changes.
    """
    facts = state.orphan_facts or OrphanFacts()
    unknown = find_unknown_rows(state.files, state.timeline)
    chosen = np.isin(facts.rows, rows) & np.isin(facts.rows, unknown)
    reader = _OrphanReader(storage, properties, state)
    return replace(
        reader.add_owners(facts, facts.rows[chosen], {}, None), is_listed=facts.is_listed[chosen]
    )


def read_modified_times(storage: Storage, files: Iterable[tuple[str, str]]) -> list[int]:
    """Return the modification time of each file, given as partition and name, or GONE.

    Epoch milliseconds; 0 if the store does not tell it. Raises StorageError.
    """
    listed = list(files)
    by_partition: dict[str, list[str]] = {}
    for partition, name in listed:
        by_partition.setdefault(partition, []).append(name)

    def read(partition: str) -> dict[str, int]:
        names = by_partition[partition]
        if len(names) > _FEW_FILES:
            return {entry.name: entry.modified_ms for entry in list_if_exists(storage, partition)}
        entries = ((name, storage.stat(make_file_path(partition, name))) for name in names)
        return {name: entry.modified_ms for name, entry in entries if entry is not None}

    times = dict(
        zip(by_partition, run_parallel(read, by_partition, parallelism=_AT_ONCE), strict=True)
    )
    return [times[partition].get(name, GONE) for partition, name in listed]


@dataclass(frozen=True, slots=True)
class _OrphanReader:
    storage: Storage
    properties: TableProperties
    state: TableState
    max_archive_bytes: int | None = None

    def read(self, metadata: MetadataListing | None) -> OrphanFacts:
        files, timeline = self.state.files, self.state.timeline
        unknown = find_unknown_rows(files, timeline)
        strays = self._read_strays(find_doubled_rows(files))
        start = find_visible_start(timeline) or ""
        archived, problem = self._read_archive(unknown, start)
        # an archive tells nothing of instants before its oldest; a damaged one of none
        reach = start if problem else min(start, archived.oldest or start)
        codes, instants = files.instant[unknown], files.instants
        is_known = np.array([time in archived.known for time in instants], np.bool_)[codes]
        is_undecided = ~is_known & np.array([time < reach for time in instants], np.bool_)[codes]
        rest = unknown[~is_known & ~is_undecided]
        rows = np.union1d(rest, np.fromiter(strays, np.int64, len(strays))).astype(np.int64)
        facts = OrphanFacts(
            undecided=unknown[is_undecided],
            archive_oldest=archived.oldest,
            archive_problem=problem,
        )
        return self.add_owners(facts, rows, strays, metadata) if len(rows) else facts

    def add_owners(
        self,
        facts: OrphanFacts,
        rows: Integers,
        strays: Mapping[int, str],
        metadata: MetadataListing | None,
    ) -> OrphanFacts:
        """Add the files with what may own them."""
        done, pending, problem = self._read_rollbacks()
        return OrphanFacts(
            rows=rows,
            modified_ms=np.array(read_modified_times(self.storage, self._name(rows)), np.int64),
            is_listed=self._find_listed(rows, metadata),
            strays=strays,
            undecided=facts.undecided,
            archive_oldest=facts.archive_oldest,
            archive_problem=facts.archive_problem,
            rolled_back=done,
            being_rolled_back=pending,
            rollback_problem=problem,
            beats_ms=self._read_heartbeats({self._time(row) for row in rows.tolist()}),
        )

    def _name(self, rows: Integers) -> list[tuple[str, str]]:
        """Return partition and name of each row."""
        files = self.state.files
        names = files.name.take(to_arrow(rows)).to_pylist()
        paths = (files.partitions[code] for code in files.partition[rows].tolist())
        return list(zip(paths, names, strict=True))

    def _time(self, row: int) -> str:
        files = self.state.files
        return files.instants[int(files.instant[row])]

    def _read_archive(self, unknown: Integers, start: str) -> tuple[ArchivedWrites, str]:
        """Return what the archive tells of unknown files, and why it cannot tell, or an empty text.

        ``start``: the first write that readers see for certain; older files were written before it.
        """
        if not len(unknown):
            return ArchivedWrites(), ""
        if (large := self._explain_large_archive()) is not None:
            return ArchivedWrites(), large
        codes = np.unique(self.state.files.instant[unknown]).tolist()
        wanted = {self.state.files.instants[code] for code in codes}
        try:
            archived = find_archived_writes(self.storage, self.properties, wanted)
        except (FormatError, UnsupportedError) as damaged:
            return ArchivedWrites(), f"the archived timeline cannot be read: {damaged}"
        if archived.oldest is None and any(time < start for time in wanted):
            folder = self.properties.archive_folder
            return archived, (
                f"{folder} holds no instant, although the table has files from before its active "
                "timeline"
            )
        return archived, ""

    def _explain_large_archive(self) -> str | None:
        """Return why an archive is too large to be read; None if it is not."""
        if self.max_archive_bytes is None:
            return None
        entries = list_if_exists(self.storage, self.properties.archive_folder)
        size = sum(entry.size for entry in entries if not entry.is_folder)
        if size <= self.max_archive_bytes:
            return None
        return (
            f"the archived timeline has {size // 1024**2} MiB, and is read only for a spec with an "
            "orphans block"
        )

    def _read_strays(self, doubled: Integers) -> dict[int, str]:
        """Return which of two base files of one write and file group its commit does not name."""
        by_time: dict[str, list[int]] = {}
        for row in doubled.tolist():
            by_time.setdefault(self._time(row), []).append(row)
        strays: dict[int, str] = {}
        for entry in self.state.timeline.completed_files(COMMITS) if by_time else ():
            rows = by_time.get(entry.instant.requested)
            if rows:
                strays |= self._find_unnamed(entry, rows)
        return strays

    def _find_unnamed(self, entry: TimelineFile, rows: list[int]) -> dict[int, str]:
        what = f"{entry.instant.action} {entry.instant.requested}"
        try:
            data, path = read_instant_file(self.storage, self.properties, entry)
            named = WriteFootprint.parse(data, path).files
        except FormatError as damaged:
            return dict.fromkeys(rows, f"its file group has two files of {what}, and {damaged}")
        files = self._name(np.array(rows, np.int64))
        return {
            row: "its commit does not name it: an attempt that was repeated left it, and readers "
            "that list the folder may take it instead of the file that the commit names"
            for row, file in zip(rows, files, strict=True)
            if file not in named
        }

    def _find_listed(self, rows: Integers, metadata: MetadataListing | None) -> Mask:
        if metadata is None:
            return np.zeros(len(rows), np.bool_)
        files = self._name(rows)
        folders = metadata.read_folders({partition for partition, _name in files})
        names = {partition: frozenset(listed) for partition, listed, _sizes in folders}
        listed = (name in names.get(partition, ()) for partition, name in files)
        return np.fromiter(listed, np.bool_, len(files))

    def _read_heartbeats(self, times: Collection[str]) -> dict[str, int]:
        entries = list_if_exists(self.storage, HEARTBEAT_FOLDER)
        return {entry.name: entry.modified_ms for entry in entries if entry.name in times}

    def _read_rollbacks(self) -> tuple[dict[str, str], frozenset[str], str]:
        """Return the instants that rollbacks have undone and are undoing, and a problem.

        A pending rollback whose plan is empty undoes nothing: nobody can execute it.
        """
        timeline = self.state.timeline
        rollbacks = [i for i in timeline.instants if i.action is Action.ROLLBACK]
        plans = [timeline.find_file(i.requested, i.action, State.REQUESTED) for i in rollbacks]
        targets = run_parallel(self._read_target, plans, parallelism=_AT_ONCE)
        done: dict[str, str] = {}
        pending, problem = set[str](), ""
        for rollback, target in zip(rollbacks, targets, strict=True):
            if isinstance(target, FormatError):
                if not rollback.is_completed:
                    problem = str(target)
            elif rollback.is_completed:
                done[target] = rollback.requested
            else:
                pending.add(target)
        return done, frozenset(pending), problem

    def _read_target(self, plan: TimelineFile | None) -> str | FormatError:
        if plan is None or not plan.size:
            return ""
        try:
            return parse_rolled_back_time(*read_instant_file(self.storage, self.properties, plan))
        except FormatError as damaged:
            return damaged
