"""Interpret a listing of a table's index versions: which are valid, which to remove. No I/O.

A version is a folder ``.hoodie/.zindex/<instant>_<n>`` with one file, ``index-<bytes>.parquet``,
whose size must match its name. A version is valid without looking at the timeline: base files never
change, so an index of any age is right about the files that it names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from reconciler.lazy_dataclass import dataclass

FOLDER: Final = ".hoodie/.zindex"
_NAME: Final = re.compile(r"(\d{14,17})_(0|[1-9]\d{0,8})")
_FILE: Final = re.compile(r"index-([1-9]\d*)\.parquet")


@dataclass(frozen=True, slots=True, order=True)
class VersionName:
    """The name of a version.

    ``instant``: the newest completed instant that the version covers. ``number``: counted from 0.

    >>> VersionName.parse("20260101120000000_2")
    VersionName(instant='20260101120000000', number=2)
    >>> str(VersionName("20260101120000000", 2))
    '20260101120000000_2'
    >>> VersionName.parse("20220202225600359") is None
    True
    """

    instant: str
    number: int

    @classmethod
    def parse(cls, name: str) -> VersionName | None:
        """Return the name that a folder stands for; None for any other folder."""
        match = _NAME.fullmatch(name)
        return cls(match[1], int(match[2])) if match else None

    def __str__(self) -> str:
        return f"{self.instant}_{self.number}"

    @property
    def folder(self) -> str:
        """The path of the version's folder, relative to the table."""
        return f"{FOLDER}/{self}"

    def file(self, size: int) -> str:
        """Return the path of the version's file of ``size`` bytes, relative to the table."""
        return f"{self.folder}/index-{size}.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexVersion:
    """A complete version. ``path``: its file, relative to the table. ``size``: its bytes."""

    name: VersionName
    path: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRemoval:
    """Files to remove, and then the folders that are empty; paths relative to the table."""

    files: tuple[str, ...]
    folders: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.files or self.folders)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexVersions:
    """All versions of an index, oldest first.

    ``valid``: complete versions. ``version_files``: the paths of the files in each version folder.
    ``taken_names``: version names that other files have taken. ``nested_folders``: paths of folders
    inside version folders, which hold only files.
    """

    valid: tuple[IndexVersion, ...]
    version_files: tuple[tuple[VersionName, tuple[str, ...]], ...]
    taken_names: tuple[VersionName, ...] = ()
    nested_folders: tuple[str, ...] = ()

    @property
    def last(self) -> IndexVersion | None:
        """The newest valid version; readers fall back to the one before if it is damaged."""
        return self.valid[-1] if self.valid else None

    def next_name(self, instant: str) -> VersionName:
        """Return the name of the next version, which covers ``instant`` and everything older.

        The name sorts after all existing ones, including incomplete versions and versions of
        instants that a restore has removed.
        """
        newest = max((*(name for name, _ in self.version_files), *self.taken_names), default=None)
        if newest is None or newest.instant < instant:
            return VersionName(instant, 0)
        return VersionName(newest.instant, newest.number + 1)

    def plan_removal(
        self, keep: IndexVersion | None, spared: Collection[VersionName] = ()
    ) -> VersionRemoval:
        """Return what may be removed once ``keep`` is published: older versions and left-overs.

        ``keep`` None: no version is readable, and only left-overs are removed. Newer valid versions
        and ``spared`` ones stay. Nested folders are removed before the folders that hold them.
        """
        stays = {version.name for version in self.valid if keep is None or version.name > keep.name}
        stays |= set(spared)
        files: list[str] = []
        folders: list[str] = []
        strays: list[str] = []
        for name, paths in self.version_files:
            if keep is not None and name == keep.name:
                strays = [path for path in paths if path != keep.path]
            elif name not in stays:
                files += paths
                folders.append(name.folder)
        cleaned = {*folders, *([keep.name.folder] if keep else [])}
        nested = [path for path in self.nested_folders if path.rpartition("/")[0] in cleaned]
        return VersionRemoval(files=(*files, *strays), folders=(*nested, *folders))


def read_versions(
    folders: Iterable[tuple[str, Sequence[tuple[str, int]]]],
    file_names: Iterable[str] = (),
    nested: Iterable[str] = (),
) -> IndexVersions:
    """Return the versions in a listing of ``.hoodie/.zindex``.

    ``folders``: name, and the names and sizes of the files inside. Folders with other names (those
    of Hudi 0.10) are ignored. ``file_names``: names of files next to the folders. ``nested``: paths
    of folders inside the folders, relative to ``.hoodie/.zindex``.
    """
    version_files = []
    valid = []
    for folder, files in folders:
        name = VersionName.parse(folder)
        if name is None:
            continue
        version_files.append((name, tuple(sorted(f"{name.folder}/{file}" for file, _ in files))))
        whole = sorted(entry for entry in files if _is_complete(*entry))
        if whole:
            file, size = whole[-1]
            valid.append(IndexVersion(name=name, path=f"{name.folder}/{file}", size=size))
    taken = (VersionName.parse(name) for name in file_names)
    inside = (path for path in nested if VersionName.parse(path.partition("/")[0]))
    return IndexVersions(
        valid=tuple(sorted(valid, key=lambda version: version.name)),
        version_files=tuple(sorted(version_files)),
        taken_names=tuple(name for name in taken if name is not None),
        nested_folders=tuple(sorted(f"{FOLDER}/{path}" for path in inside)),
    )


def describe_nested(path: str) -> str:
    """Return the problem text for a nested folder that is not empty."""
    return f"{path}: is a folder inside an index version; remove it and its contents"


def _is_complete(file: str, size: int) -> bool:
    match = _FILE.fullmatch(file)
    return match is not None and int(match[1]) == size
