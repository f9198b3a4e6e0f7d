"""Sort the folders of one walk over a table into partitions and others."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any, Protocol

import numpy as np

from reconciler.errors import FormatError
from reconciler.hudi.files.names import PARTITION_METAFILE, BaseName
from reconciler.hudi.files.table_files import TableFiles
from reconciler.lazy_dataclass import dataclass


class ListedFolder(Protocol):
    """A folder with names and sizes of its files, as a storage lists it."""

    @property
    def path(self) -> str:
        """The path below the table."""

    @property
    def names(self) -> list[str]:
        """The names of its files in any order."""

    @property
    def sizes(self) -> list[int]:
        """Their sizes in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KnownFolder:
    """A folder as an earlier walk saw it.

    ``rows``: those of its data files among all files of that walk, sorted by name. ``is_marked``:
    it holds a metafile. ``has_strays``: it holds files with other names too.
    """

    path: str
    rows: range
    is_marked: bool
    has_strays: bool


def _check_utf8(partition: str) -> None:
    """Raise FormatError for a folder name that is not UTF-8; Hudi writes only UTF-8 names."""
    shown = partition.encode(errors="backslashreplace").decode()
    if shown != partition:
        raise FormatError(shown, "this partition's name is not UTF-8", "rename the folder")


@dataclass(frozen=True, slots=True)
class PartitionScan:
    """Sorts the folders of one walk into partitions and others.

    ``marked``: folders that hold a metafile. ``with_metafile``: those that are partitions.
    ``file_counts``: partition -> number of its files without metafiles. ``unlisted``: base files
    of ``instants`` in other folders.
    ``sorted_known``: the known partitions, sorted.
    """

    known: set[str]
    instants: frozenset[str] = frozenset()
    unlisted: list[tuple[str, str, int]] = field(default_factory=list)
    marked: set[str] = field(default_factory=set)
    with_metafile: set[str] = field(default_factory=set)
    file_counts: dict[str, int] = field(default_factory=dict)
    with_folders: set[str] = field(default_factory=set)
    sorted_known: list[str] = field(default_factory=list)

    def list_partitions(
        self, folders: Iterable[ListedFolder | KnownFolder]
    ) -> Iterator[tuple[str, Any, Any]]:
        """Yield path, names and sizes of every partition; the rows twice for a known folder."""
        for folder in folders:
            names: Any
            sizes: Any
            if isinstance(folder, KnownFolder):
                names, sizes, is_marked = folder.rows, folder.rows, folder.is_marked
            else:
                names, sizes, is_marked = _select_data_files(folder)
            if is_marked:
                self.marked.add(folder.path)
            is_known = folder.path in self.known
            if is_marked and (is_known or not _is_below(folder.path, self.with_metafile)):
                _check_utf8(folder.path)
                self.with_metafile.add(folder.path)
            elif not is_known:
                self.unlisted.extend(_find_base_files(self.instants, folder.path, names, sizes))
                continue
            is_stray = isinstance(folder, KnownFolder) and folder.has_strays
            self.file_counts[folder.path] = len(names) + is_stray
            yield folder.path, names, sizes
        for path in self.known - self.file_counts.keys():
            yield path, [], []

    def find_stray_partitions(self, files: TableFiles) -> set[str]:
        """Return partitions that hold a folder, or files that have no row."""
        rows = np.bincount(files.partition, minlength=len(files.partitions)).tolist()
        counted = zip(files.partitions, rows, strict=True)
        return self.with_folders | {
            path for path, n in counted if self.file_counts.get(path, 0) > n
        }

    def should_descend(self, path: str) -> bool:
        if path == ".hoodie":
            return False
        parent = path.rpartition("/")[0]
        if parent in self.file_counts:
            self.with_folders.add(parent)
        return parent not in self.with_metafile or bool(self.instants) or self._leads_to_known(path)

    def _leads_to_known(self, path: str) -> bool:
        """Return whether a folder inside a partition is or holds a known one, which is rare."""
        if not self.sorted_known:
            self.sorted_known.extend(sorted(f"{known}/" for known in self.known))
        at = bisect_left(self.sorted_known, f"{path}/")
        return at < len(self.sorted_known) and self.sorted_known[at].startswith(f"{path}/")


def _select_data_files(folder: ListedFolder) -> tuple[list[str], list[int], bool]:
    """Return sorted names and sizes without metafiles, and whether there is a metafile."""
    names, sizes = folder.names, folder.sizes
    if names != sorted(names):  # quicker than comparing neighbours
        order = sorted(range(len(names)), key=names.__getitem__)
        names = [names[index] for index in order]
        sizes = [sizes[index] for index in order]
    start = end = bisect_left(names, PARTITION_METAFILE)
    while end < len(names) and names[end].startswith(PARTITION_METAFILE):
        end += 1
    if start == end:
        return names, sizes, False
    return names[:start] + names[end:], sizes[:start] + sizes[end:], True


def _find_base_files(
    instants: Collection[str], folder: str, names: Sequence[str], sizes: Sequence[int]
) -> Iterator[tuple[str, str, int]]:
    """Yield folder, name and size of the base files of some instants."""
    for name, size in zip(names, sizes, strict=True) if instants else ():
        base_name = BaseName.parse(name)
        if base_name is not None and base_name.instant in instants:
            yield folder, name, size


def _is_below(path: str, marked: set[str]) -> bool:
    """Return whether a folder lies inside another partition."""
    while path:
        path = path.rpartition("/")[0]
        if path in marked:
            return True
    return False
