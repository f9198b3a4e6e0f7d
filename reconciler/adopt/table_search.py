"""Search for tables: folders with ``.hoodie/hoodie.properties``, found by listing folders.

Folders inside a table are not searched, so its data files are never listed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import field
from fnmatch import fnmatchcase
from functools import partial
from itertools import count
from typing import Final, Protocol

from reconciler.errors import NotFoundError, ReconcilerError, StorageError, UsageError
from reconciler.hudi.load import PROPERTIES
from reconciler.lazy_dataclass import dataclass
from reconciler.spec.model import CatalogTable
from reconciler.storage.api import Storage
from reconciler.storage.locations import LocationMap, normalise_location

#: files that make a folder a table; the second exists while a writer replaces the first
_TABLE_FILES: Final = (PROPERTIES, f"{PROPERTIES}.backup")
_WILDCARDS: Final = re.compile(r"[*?\[]")
#: the folder of a table's metadata table, which belongs to that table
_METADATA_TABLE: Final = "/.hoodie/metadata"

OpenStorage = Callable[[str], Storage]
#: takes the number of folders searched and of tables found
OnProgress = Callable[[int, int], None]


@dataclass(slots=True, kw_only=True)
class TableSearch:
    """The result of a search: sorted locations, and problems of folders that were skipped.

    ``is_one``: the only path given is itself a table. ``catalogs``: tables found in a catalog, by
    location.
    """

    tables: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    is_one: bool = False
    catalogs: LocationMap[CatalogTable] = field(default_factory=LocationMap)


def find_tables(
    places: Sequence[str],
    open_storage: OpenStorage,
    *,
    workers: Executor,
    depth: int | None = None,
    on_progress: OnProgress = lambda _folders, _tables: None,
) -> TableSearch:
    """Find the tables at and below paths: tables, folders, URLs, or globs of them.

    Hidden folders are skipped, and a folder is entered once, whatever links lead to it. ``depth``
    limits the levels of folders below a path. Raises UsageError for a path without a table, and
    StorageError for one that cannot be reached.
    """
    walk = _SearchRun(workers, depth, on_progress)
    for text in places:
        place = normalise_location(text)
        if place.endswith(_METADATA_TABLE):
            raise UsageError(f"--from {text}: is a metadata table; give the path of its table")
        folders, starts = _resolve_start(place, open_storage)
        if not walk.search_folders(folders, starts, is_named=starts == [place]):
            raise UsageError(f"--from {text}: no Hudi table at or below this path")
    search = walk.found
    search.tables.sort()
    search.is_one = len(places) == 1 and search.tables == [normalise_location(places[0])]
    return search


class _FolderTree(Protocol):
    """The folders of one store, by location."""

    def children(self, folder: str) -> list[str]:
        """Return the names of the folders in a folder, sorted."""

    def is_table(self, folder: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class _DiskFolders:
    """Folders on the disk. Links between folders are followed."""

    def children(self, folder: str) -> list[str]:
        try:
            with os.scandir(folder) as found:
                return sorted(entry.name for entry in found if _is_folder(entry))
        except FileNotFoundError:
            raise NotFoundError(folder, "does not exist") from None
        except OSError as error:
            raise StorageError(folder, error.strerror or str(error)) from None

    def is_table(self, folder: str) -> bool:
        return any(os.path.isfile(f"{folder}/{name}") for name in _TABLE_FILES)  # noqa: PTH113


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


@dataclass(frozen=True, slots=True)
class _StoreFolders:
    """Folders of a store; ``storage`` is that of the location to search."""

    storage: Storage

    def children(self, folder: str) -> list[str]:
        entries = self.storage.list(self._relative_folder(folder))
        return [entry.name for entry in entries if entry.is_folder]

    def is_table(self, folder: str) -> bool:
        start = f"{below}/" if (below := self._relative_folder(folder)) else ""
        return any(self.storage.stat(f"{start}{name}") is not None for name in _TABLE_FILES)

    def _relative_folder(self, folder: str) -> str:
        return folder[len(self.storage.location) + 1 :]


@dataclass(frozen=True, slots=True)
class _FolderContents:
    """The contents of a folder: a table, more folders to search, or a problem."""

    is_table: bool = False
    subfolders: tuple[str, ...] = ()
    problem: ReconcilerError | None = None


@dataclass(slots=True)
class _SearchRun:
    """A search over all paths."""

    workers: Executor
    depth: int | None
    tell: OnProgress
    found: TableSearch = field(default_factory=TableSearch)
    seen: LocationMap[str] = field(default_factory=LocationMap)
    looked: int = 0

    def search_folders(
        self, folders: _FolderTree, starts: Sequence[str], *, is_named: bool
    ) -> bool:
        """Search level by level; return whether a table or an already searched folder was found.

        ``has_named_keys``: the start was named, so it must exist.
        """
        level, is_known = list(starts), False
        before = len(self.found.tables) + len(self.found.problems)
        for distance in count():
            entered = [at for at in level if self._is_new_folder(at)]
            is_known |= len(entered) < len(level)
            inspect = partial(_inspect_folder, folders, is_last=distance == self.depth)
            looks = self.workers.map(inspect, entered)
            level = []
            for at, look in zip(entered, looks, strict=True):
                if look.problem is not None and is_named and not distance:
                    raise look.problem
                self._record(at, look)
                level += look.subfolders
            if not level:
                break
        return is_known or len(self.found.tables) + len(self.found.problems) > before

    def _is_new_folder(self, at: str) -> bool:
        return self.seen.add(at, at) is None

    def _record(self, at: str, look: _FolderContents) -> None:
        if look.is_table:
            self.found.tables.append(at)
        elif look.problem is not None and not isinstance(look.problem, NotFoundError):
            self.found.problems.append(str(look.problem))
        self.looked += 1
        self.tell(self.looked, len(self.found.tables))


def _inspect_folder(folders: _FolderTree, at: str, *, is_last: bool) -> _FolderContents:
    try:
        if folders.is_table(at):
            return _FolderContents(is_table=True)
        if is_last:
            return _FolderContents()
        names = [name for name in folders.children(at) if not name.startswith(".")]
    except ReconcilerError as problem:
        return _FolderContents(problem=problem)
    return _FolderContents(subfolders=tuple(f"{at.rstrip('/')}/{name}" for name in names))


def _resolve_start(place: str, open_storage: OpenStorage) -> tuple[_FolderTree, list[str]]:
    """Return the store of a path, and the path itself or what it matches as a glob."""
    is_local = "://" not in place
    head, wild = (place, []) if is_local and os.path.exists(place) else _split_at_wildcard(place)  # noqa: PTH110
    folders: _FolderTree = _DiskFolders() if is_local else _StoreFolders(open_storage(head))
    starts = [head]
    for part in wild:
        inner = (
            (at.rstrip("/"), name) for at in starts for name in _match_folders(folders, at, part)
        )
        starts = [f"{at}/{name}" for at, name in inner]
    return folders, starts


def _split_at_wildcard(place: str) -> tuple[str, list[str]]:
    """Split a path before its first folder with a wildcard.

    >>> _split_at_wildcard("s3://lake/*/orders"), _split_at_wildcard("/lake/a")
    (('s3://lake', ['*', 'orders']), ('/lake/a', []))
    """
    scheme, separator, rest = place.rpartition("://")
    parts = rest.split("/")
    at = next((n for n, part in enumerate(parts) if _WILDCARDS.search(part)), len(parts))
    if any("**" in part for part in parts):
        raise UsageError(f"--from {place}: ** is not supported; folders are searched to any depth")
    if not at:
        raise UsageError(f"--from {place}: wildcards are not possible in the bucket; name it")
    return f"{scheme}{separator}{'/'.join(parts[:at]) or '/'}", parts[at:]


def _match_folders(folders: _FolderTree, at: str, part: str) -> Iterable[str]:
    if not _WILDCARDS.search(part):
        return [part]
    try:
        names = folders.children(at)
    except NotFoundError:
        return []
    shown = [name for name in names if part.startswith(".") or not name.startswith(".")]
    return [name for name in shown if fnmatchcase(name, part)]
