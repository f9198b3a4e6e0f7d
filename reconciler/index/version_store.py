"""List, publish and remove versions of an index on a storage.

A process may stop at any point: a new version is created whole under its final name, and only then
are older ones removed. Until it is created the last version is in use, afterwards the new one.
"""

from __future__ import annotations

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
from reconciler.lazy_dataclass import dataclass
from reconciler.storage.api import Storage
from reconciler.storage.paths import list_if_exists


def list_versions(storage: Storage) -> IndexVersions:
    """Return the versions of a table's index, none if it has no index. Raises StorageError."""
    try:
        entries = list_if_exists(storage, FOLDER)
    except StorageError:
        if not _is_blocked_by_file(storage):
            raise
        return read_versions(())  # a file has the folder's name, so there are no versions
    folders: dict[str, list[tuple[str, int]]] = {}
    nested: list[str] = []
    for folder in (entry.name for entry in entries if entry.is_folder):
        inside = list_if_exists(storage, f"{FOLDER}/{folder}")
        folders[folder] = [(entry.name, entry.size) for entry in inside if not entry.is_folder]
        nested += [f"{folder}/{entry.name}" for entry in inside if entry.is_folder]
    names = [entry.name for entry in entries if not entry.is_folder]
    return read_versions(folders.items(), names, nested)


def _is_blocked_by_file(storage: Storage) -> bool:
    """Return whether a file has the name of the index folder."""
    entry = storage.stat(FOLDER)
    return entry is not None and not entry.is_folder


def read_newest(
    storage: Storage, versions: IndexVersions, columns: tuple[str, ...] | None = None
) -> tuple[IndexVersion, FileIndex, Provenance] | None:
    """Return the newest readable version with its index and provenance; None if there is none.

    ``columns``: the columns whose statistics to read, by default all. Versions that are damaged, or
    removed while they are read, are skipped. Raises StorageError if the storage fails.
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
    """Create a new version from the bytes of ``encode_index``; older versions stay.

    ``instant``: the newest completed instant that the index covers. Raises AlreadyExistsError if
    another process publishes at the same time, and StorageError.
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
        problem = "is a file, but must be the folder of the index; remove it and apply again"
        raise StorageError(f"{storage.location}/{FOLDER}", problem) from None
    return version


@dataclass(frozen=True, slots=True, kw_only=True)
class TidyResult:
    """The result of removing older versions.

    ``removed_folders``: their number. ``problems``: one sentence per path that was not removed.
    """

    removed_folders: int = 0
    problems: tuple[str, ...] = ()


def remove_superseded(
    storage: Storage, versions: IndexVersions, keep: IndexVersion | None
) -> TidyResult:
    """Remove the versions that ``keep`` supersedes, and files that stopped runs left behind.

    ``versions``: listed after ``keep`` was published; if ``keep`` is not among them, nothing is
    removed. ``keep`` None: no version is readable, and only left-over files are removed. Paths that
    cannot be removed are left for the next run. Raises nothing.
    """
    if keep is not None and keep not in versions.valid:
        problem = f"{keep.path}: the published index is missing; older versions are kept"
        return TidyResult(problems=(problem,))
    removal = versions.plan_removal(keep)
    if not removal:
        return TidyResult()
    removal = versions.plan_removal(keep, _find_newer_formats(storage, versions, removal))
    try:
        deletions = storage.delete_many(removal.files)
    except StorageError as error:
        return TidyResult(problems=(str(error),))
    problems = [f"{done.path}: {done.error}" for done in deletions if done.error is not None]
    removed = 0
    for folder in removal.folders:
        is_nested = folder in versions.nested_folders
        try:
            is_removed = storage.remove_folder(folder)
        except StorageError as error:
            problems.append(str(error))
            continue
        removed += is_removed and not is_nested
        if is_nested and not is_removed:
            problems.append(describe_nested(folder))
    return TidyResult(removed_folders=removed, problems=tuple(problems))


def _find_newer_formats(
    storage: Storage, versions: IndexVersions, removal: VersionRemoval
) -> tuple[VersionName, ...]:
    """Return the versions to be removed that a later version of reconciler wrote."""
    newer = []
    for version in versions.valid:
        if version.name.folder in removal.folders:
            try:
                check_format(FooterTails(storage).read(version.path, version.size), version.path)
            except NewerFormatError:
                newer.append(version.name)
            except (FormatError, StorageError):
                continue
    return tuple(newer)
