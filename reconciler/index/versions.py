"""The versions of a table's index as a listing shows them: which counts, and what may go; pure.

A version is a folder ``.hoodie/.zindex/<instant>_<n>`` with one file, ``index-<bytes>.parquet``,
that is as long as its name says. Nothing of the timeline is needed to believe it: rows are known by
their files, which never change, so an index of any age is right about the files that it names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

FOLDER: Final = ".hoodie/.zindex"
_NAME: Final = re.compile(r"(\d{14,17})_(0|[1-9]\d{0,8})")
_FILE: Final = re.compile(r"index-([1-9]\d*)\.parquet")


@dataclass(frozen=True, slots=True, order=True)
class VersionName:
    """``instant``: the newest completed one that the version covers; ``number``: from 0.

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
        """The version that a folder is named for; None for a folder that is none of ours."""
        found = _NAME.fullmatch(name)
        return cls(found[1], int(found[2])) if found else None

    def __str__(self) -> str:
        return f"{self.instant}_{self.number}"

    @property
    def folder(self) -> str:
        """Its path below the table."""
        return f"{FOLDER}/{self}"

    def file(self, size: int) -> str:
        """The path of its file below the table; ``size`` in bytes."""
        return f"{self.folder}/index-{size}.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexVersion:
    """A complete version: its file's path below the table, and its bytes."""

    name: VersionName
    path: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRemoval:
    """Files to be removed, then the folders that are empty then; paths below the table."""

    files: tuple[str, ...]
    folders: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.files or self.folders)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexVersions:
    """All versions, oldest first, and every file of every folder of ours.

    ``taken_names``: names that somebody's files have, in place of folders of ours. ``nested_folders``: paths of
    folders within folders of ours, where we have files alone.
    """

    valid: tuple[IndexVersion, ...]
    found: tuple[tuple[VersionName, tuple[str, ...]], ...]
    taken_names: tuple[VersionName, ...] = ()
    nested_folders: tuple[str, ...] = ()

    @property
    def last(self) -> IndexVersion | None:
        """The one that counts; where its file turns out to be damaged, the one before it does."""
        return self.valid[-1] if self.valid else None

    def next_name(self, instant: str) -> VersionName:
        """The name of the next version, which covers the ``instant`` and whatever is older.

        It comes after all that are there, half-written ones and ones of instants that a restore
        has taken back since.
        """
        newest = max((*(name for name, _ in self.found), *self.taken_names), default=None)
        if newest is None or newest.instant < instant:
            return VersionName(instant, 0)
        return VersionName(newest.instant, newest.number + 1)

    def plan_removal(
        self, keep: IndexVersion | None, spared: Collection[VersionName] = ()
    ) -> VersionRemoval:
        """What may go once ``keep`` is published: all that it supersedes, and residue.

        None where no version is valid: residue alone goes. What is newer and valid stays, and what
        is ``spared``. What is nested in a folder goes before it.
        """
        stays = {version.name for version in self.valid if keep is None or version.name > keep.name}
        stays |= set(spared)
        gone = [
            (name, files)
            for name, files in self.found
            if name not in stays and (keep is None or name != keep.name)
        ]
        extra = [path for name, files in self.found if keep and name == keep.name for path in files]
        strays = tuple(path for path in extra if keep and path != keep.path)
        folders = [name.folder for name, _ in gone]
        tidied = {*folders, *([keep.name.folder] if keep else [])}
        nested = [path for path in self.nested_folders if path.rpartition("/")[0] in tidied]
        return VersionRemoval(
            files=(*(path for _, files in gone for path in files), *strays),
            folders=(*nested, *folders),
        )


def read_versions(
    folders: Iterable[tuple[str, Sequence[tuple[str, int]]]],
    file_names: Iterable[str] = (),
    nested: Iterable[str] = (),
) -> IndexVersions:
    """The versions among folders of ``.hoodie/.zindex``, given by name with their files and bytes.

    Folders that are not named as ours (Hudi's own of 0.10) are none of our business.
    ``file_names``: the names of files among the folders; ``nested_folders``: folders within them, by their
    paths from there.
    """
    found = []
    valid = []
    for folder, files in folders:
        name = VersionName.parse(folder)
        if name is None:
            continue
        found.append((name, tuple(sorted(f"{name.folder}/{file}" for file, _ in files))))
        whole = sorted(file for file, size in files if _is_complete(file, size))
        if whole:
            size = next(size for file, size in files if file == whole[-1])
            valid.append(IndexVersion(name=name, path=f"{name.folder}/{whole[-1]}", size=size))
    taken = (VersionName.parse(name) for name in file_names)
    ours = (path for path in nested if VersionName.parse(path.partition("/")[0]))
    return IndexVersions(
        valid=tuple(sorted(valid, key=lambda version: version.name)),
        found=tuple(sorted(found)),
        taken_names=tuple(name for name in taken if name is not None),
        nested_folders=tuple(sorted(f"{FOLDER}/{path}" for path in ours)),
    )


def describe_nested(path: str) -> str:
    """What to do about a folder that is nested in one of ours and has something in it."""
    return f"{path}: is a folder among the files of the index; remove it with what is in it"


def _is_complete(file: str, size: int) -> bool:
    found = _FILE.fullmatch(file)
    return bool(found) and int(found[1]) == size if found else False
