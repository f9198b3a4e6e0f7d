"""Add instants to the archived timeline of layout 1.

Every archival writes a new file, whole or not at all. Ten small files are merged into one: the plan
of the merge is written first, then the merged file, the files that it replaces go, and at last the
plan. Source: HoodieTimelineArchiver of Hudi 0.15.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import tzinfo

from reconciler.errors import FormatError
from reconciler.hudi.load import load_archived_keys
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.archivable_instant import ArchivableInstant
from reconciler.hudi.timeline.archive_merge import (
    MERGE_PLAN,
    ArchiveMerge,
    choose_archive_merge,
    choose_merge_removals,
    merge_archive_files,
    name_next_archive_file,
)
from reconciler.hudi.timeline.archive_writer_v1 import encode_archive_file
from reconciler.hudi.timeline.instant import Action
from reconciler.lazy_dataclass import dataclass
from reconciler.storage.api import Storage
from reconciler.storage.paths import join_path, list_if_exists


@dataclass(frozen=True, slots=True, kw_only=True)
class LogArchive:
    """The archived timeline of a table of layout 1; the table's lock is held.

    ``confirm`` raises if the lock is lost; it is called before something is published.
    """

    storage: Storage
    properties: TableProperties
    zone: tzinfo
    confirm: Callable[[], None]

    def find_archived(self, wanted: Collection[tuple[str, Action]]) -> set[tuple[str, Action]]:
        """Return which of these instants are archived already."""
        return load_archived_keys(self.storage, self.properties, wanted)

    def append(self, instants: Sequence[ArchivableInstant]) -> None:
        """Archive instants; raises FormatError naming a file of theirs that is damaged."""
        data = encode_archive_file(instants, zone=self.zone)
        self._end_merge()
        self.confirm()
        self.storage.create(self._path(name_next_archive_file(self._list_sizes())), data)

    def tidy(self) -> int:
        """Merge small files as Hudi does, and count merges."""
        self._end_merge()
        merge = choose_archive_merge(tuple(self._list_sizes().items()))
        if merge is None:
            return 0
        paths = map(self._path, merge.sources)
        data = merge_archive_files((path, self.storage.read(path)) for path in paths)
        self.confirm()
        folder = join_path(self.storage.location, self.properties.archive_folder)
        self.storage.replace(self._path(MERGE_PLAN), merge.encode(folder))
        self.storage.replace(self._path(merge.target), data)
        self._end_merge(merge)
        return 1

    def _end_merge(self, done: ArchiveMerge | None = None) -> None:
        """Finish or undo a merge whose plan is there; ``done``: one whose merged file is whole."""
        names = self._list_sizes()
        if MERGE_PLAN not in names:
            return
        if done is not None:
            removals: Sequence[str] = (*done.sources, MERGE_PLAN)
        else:
            removals = choose_merge_removals(names, self._read_merge())
        self.confirm()
        for name in removals:
            self.storage.delete(self._path(name))

    def _read_merge(self) -> ArchiveMerge | None:
        path = self._path(MERGE_PLAN)
        try:
            return ArchiveMerge.parse(self.storage.read(path), path)
        except FormatError:  # the merge stopped while it wrote its plan, and did nothing else
            return None

    def _path(self, name: str) -> str:
        return f"{self.properties.archive_folder}/{name}"

    def _list_sizes(self) -> dict[str, int]:
        entries = list_if_exists(self.storage, self.properties.archive_folder)
        return {entry.name: entry.size for entry in entries if not entry.is_folder}
