"""Versions of an index on a storage: listed, published, tidied up.

The order is what makes it safe to stop anywhere: the new version is created whole under its final
name, and only then do older ones go. Until that moment the last one counts, from then on the new.
"""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.errors import AlreadyExistsError, FormatError, NotFoundError, StorageError
from reconciler.index.codec import NewerFormatError, Provenance, check_format, decode_index
from reconciler.index.footer_tails import FooterTails
from reconciler.index.model import FileIndex
from reconciler.index.versions import (
    FOLDER,
    IndexVersion,
    IndexVersions,
    VersionName,
    VersionRemoval,
    describe_nested,
    read_versions,
)
from reconciler.storage.api import Storage, StorageEntry


def list_versions(storage: Storage) -> IndexVersions:
    """The versions of a table's index; none where it has no index. Raises StorageError."""
    try:
        entries = storage.list(FOLDER)
    except NotFoundError:
        return read_versions(())
    except StorageError:
        if not _is_blocked_by_file(storage):
            raise
        return read_versions(())  # somebody's file in its place: no version is below it
    found = {entry.name: _list_folder(storage, entry.name) for entry in entries if entry.is_folder}
    return read_versions(
        (
            (folder, [(entry.name, entry.size) for entry in inside if not entry.is_folder])
            for folder, inside in found.items()
        ),
        [entry.name for entry in entries if not entry.is_folder],
        [
            f"{folder}/{entry.name}"
            for folder, inside in found.items()
            for entry in inside
            if entry.is_folder
        ],
    )


def _is_blocked_by_file(storage: Storage) -> bool:
    """Whether a file is where the folder of the index belongs."""
    entry = storage.stat(FOLDER)
    return entry is not None and not entry.is_folder


def _list_folder(storage: Storage, folder: str) -> list[StorageEntry]:
    try:
        return list(storage.list(f"{FOLDER}/{folder}"))
    except NotFoundError:  # removed since
        return []


def read_newest(
    storage: Storage, versions: IndexVersions, columns: tuple[str, ...] | None = None
) -> tuple[IndexVersion, FileIndex, Provenance] | None:
    """The newest version that can be read, with the statistics of the columns that it has.

    None where none can: damaged ones, and those that go while they are read, are passed over.
    Raises StorageError where the storage itself fails.
    """
    for version in reversed(versions.valid):
        try:
            index, provenance = decode_index(storage.read(version.path), version.path, columns)
        except (FormatError, NotFoundError):
            continue
        return version, index, provenance
    return None


def publish_version(
    storage: Storage, versions: IndexVersions, instant: str, data: bytes
) -> IndexVersion:
    """A new version with the file's bytes (``codec.encode``), and no older one is touched.

    ``instant``: the newest completed one that it covers. Raises AlreadyExistsError where another
    process publishes at the same time, and StorageError.
    """
    name = versions.next_name(instant)
    version = IndexVersion(name=name, path=name.file(len(data)), size=len(data))
    try:
        storage.create(version.path, data)
    except (AlreadyExistsError, NotFoundError):
        raise
    except StorageError:
        if not _is_blocked_by_file(storage):
            raise
        said = "is a file where the folder of the index belongs; remove it and apply again"
        raise StorageError(f"{storage.location}/{FOLDER}", said) from None
    return version


@dataclass(frozen=True, slots=True, kw_only=True)
class TidyResult:
    """What became of older versions.

    ``removed_folders``: how many are gone; ``problems``: what could not be removed, a sentence each.
    """

    removed_folders: int = 0
    problems: tuple[str, ...] = ()


def remove_superseded(
    storage: Storage, versions: IndexVersions, keep: IndexVersion | None
) -> TidyResult:
    """Remove what ``keep`` supersedes, and residue of runs that were stopped.

    ``versions``: listed after ``keep`` was published: without it there, nothing goes. None: no
    version can be read, and residue alone goes. What cannot be removed is left to the next run.
    Raises nothing.
    """
    if keep is not None and keep not in versions.valid:
        said = f"{keep.path}: the index that was published is not there; older ones stay"
        return TidyResult(problems=(said,))
    removal = versions.plan_removal(keep)
    if not removal:
        return TidyResult()
    removal = versions.plan_removal(keep, _find_newer_formats(storage, versions, removal))
    problems = [
        f"{done.path}: {done.error}"
        for done in storage.delete_many(removal.files)
        if done.error is not None
    ]
    gone = 0
    for folder in removal.folders:
        is_nested = folder in versions.nested_folders
        try:
            is_gone = storage.remove_folder(folder)
        except StorageError as error:
            problems.append(str(error))
            continue
        gone += is_gone and not is_nested
        if is_nested and not is_gone:
            problems.append(describe_nested(folder))
    return TidyResult(removed_folders=gone, problems=tuple(problems))


def _find_newer_formats(
    storage: Storage, versions: IndexVersions, removal: VersionRemoval
) -> tuple[VersionName, ...]:
    """Of the versions to be removed those that a later version of reconciler wrote."""
    found = []
    for version in versions.valid:
        if version.name.folder in removal.folders:
            try:
                check_format(FooterTails(storage).read(version.path, version.size), version.path)
            except NewerFormatError:
                found.append(version.name)
            except (FormatError, StorageError):
                continue
    return tuple(found)
