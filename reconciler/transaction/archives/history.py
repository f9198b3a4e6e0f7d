"""Add instants to the archived timeline of layout 2.

The file of a new version is written first, then its manifest, and at last the version file. A stop
before the manifest leaves a file that nobody reads and that the next archival replaces. Source:
LSMTimelineWriter (write, updateManifest, compactAndClean).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from reconciler.errors import FormatError
from reconciler.hudi.load import load_archived_keys
from reconciler.hudi.table.properties import TableProperties
from reconciler.hudi.timeline.archivable_instant import ArchivableInstant
from reconciler.hudi.timeline.archive_writer_v2 import (
    encode_lsm_file,
    merge_lsm_files,
    name_lsm_file,
)
from reconciler.hudi.timeline.history_manifest import (
    VERSION_FILE,
    HistoryFile,
    HistoryManifest,
    choose_history_removals,
    choose_kept_versions,
    find_current_version,
    list_versions,
    make_manifest_name,
)
from reconciler.hudi.timeline.instant import Action
from reconciler.lazy_dataclass import dataclass
from reconciler.storage.api import Storage
from reconciler.storage.paths import list_if_exists
from reconciler.transaction.paths import delete_paths


@dataclass(frozen=True, slots=True, kw_only=True)
class _Version:
    """A version of the history, with the names of all files in its folder."""

    number: int
    manifest: HistoryManifest
    names: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The archived timeline of a table of layout 2; the table's lock is held.

    ``confirm`` raises if the lock is lost; it is called before something is published.
    """

    storage: Storage
    properties: TableProperties
    confirm: Callable[[], None]

    def find_archived(self, wanted: Collection[tuple[str, Action]]) -> set[tuple[str, Action]]:
        """Return which of these instants are archived already."""
        return load_archived_keys(self.storage, self.properties, wanted)

    def append(self, instants: Sequence[ArchivableInstant]) -> None:
        """Archive instants; raises FormatError naming a file of theirs that is damaged."""
        current, name = self._read_current(), name_lsm_file(instants)
        data = encode_lsm_file(instants)
        if any(file.name == name for file in current.manifest.files):  # of another archiver
            known = self._path(name), self.storage.read(self._path(name))
            data = merge_lsm_files([known, (self._path(name), data)])
        self._publish(current, HistoryFile(name=name, size=len(data)), data, ())

    def tidy(self) -> int:
        """Merge small files as Hudi does, remove what no kept version needs, and count merges."""
        merges = 0
        while (
            merge := (current := self._read_current()).manifest.choose_merge(merges)
        ) is not None:
            data = merge_lsm_files(self._read_files(merge.sources))
            file = HistoryFile(name=merge.target, size=len(data))
            self._publish(current, file, data, merge.sources)
            merges += 1
        self._remove_old(current.names, merges)
        return merges

    def _read_files(self, files: Sequence[HistoryFile]) -> Iterator[tuple[str, bytes]]:
        return ((self._path(f.name), self.storage.read(self._path(f.name))) for f in files)

    def _path(self, name: str) -> str:
        return f"{self.properties.archive_folder}/{name}"

    def _read_current(self) -> _Version:
        entries = list_if_exists(self.storage, self.properties.archive_folder)
        names = frozenset(entry.name for entry in entries if not entry.is_folder)
        has_version = VERSION_FILE in names
        written = self.storage.read(self._path(VERSION_FILE)) if has_version else None
        number = find_current_version(names, written)
        manifest = self._read_manifest(number)
        for file in manifest.files:  # a damaged manifest would let the real file go
            if file.name not in names:
                raise FormatError(
                    self._path(file.name),
                    f"is missing, although {make_manifest_name(number)} lists it",
                    "restore it, or the manifest, from a copy",
                )
        return _Version(number=number, manifest=manifest, names=names)

    def _read_manifest(self, number: int) -> HistoryManifest:
        if not number:
            return HistoryManifest()
        path = self._path(make_manifest_name(number))
        return HistoryManifest.parse(self.storage.read(path), path)

    def _publish(
        self, current: _Version, file: HistoryFile, data: bytes, removed: Sequence[HistoryFile]
    ) -> None:
        """Write a file and the version that has it; a reader finds a whole history at any time."""
        self.confirm()
        self.storage.replace(self._path(file.name), data)
        self.confirm()
        for number in list_versions(current.names):
            if number > current.number:  # of an archival that stopped
                self.storage.delete(self._path(make_manifest_name(number)))
        if VERSION_FILE in current.names:
            self.storage.delete(self._path(VERSION_FILE))
        number = current.number + 1
        manifest = current.manifest.add(file, removed)
        self.storage.replace(self._path(make_manifest_name(number)), manifest.encode())
        self.storage.replace(self._path(VERSION_FILE), str(number).encode())

    def _remove_old(self, names: frozenset[str], merges: int) -> None:
        kept = choose_kept_versions(list_versions(names), merges)
        if len(kept) == len(list_versions(names)):
            return
        manifests = {number: self._read_manifest(number) for number in kept}
        removals = choose_history_removals(names, manifests)
        self.confirm()
        for stale in (removals.manifests, removals.files):
            for _done in delete_paths(self.storage, list(map(self._path, stale))):
                pass
