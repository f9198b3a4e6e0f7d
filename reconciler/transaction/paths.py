"""Resolve paths of data files: never outside the table, never in Hudi's own folder."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from reconciler.errors import NotFoundError, PlanError, StorageError
from reconciler.storage.api import DeletionResult, Storage

#: most paths in one call of ``Storage.delete_many``: what one request to an object store takes
LARGEST_CALL: Final = 1000
#: so many folders are always listed one by one
_MAX_LISTINGS: Final = 16


def resolve_path(partition: str, name: str) -> str:
    """Return the path of a file of a partition, relative to the table.

    Raises PlanError for anything that could lead out of the partition's folder or into Hudi's own.

    >>> resolve_path("p=1", "a.parquet"), resolve_path("", "a.parquet")
    ('p=1/a.parquet', 'a.parquet')
    """
    if name in ("", ".", "..") or any(char in name for char in "/\\\0"):
        raise PlanError(f"{name!r} is not a file name; nothing is deleted by it")
    if not partition:
        return name
    return f"{resolve_folder(partition)}/{name}"


def resolve_folder(partition: str) -> str:
    """Return the folder of a partition, relative to the table; raises as ``resolve_path``."""
    parts = partition.split("/")
    if any(part in ("", ".", "..") or "\0" in part or "\\" in part for part in parts):
        raise PlanError(f"{partition!r} is not a partition path; nothing is deleted by it")
    if parts[0] == ".hoodie":
        raise PlanError(f"{partition!r} is Hudi's own folder; nothing is deleted in it")
    return partition


def delete_paths(storage: Storage, paths: Sequence[str]) -> Iterator[DeletionResult]:
    """Delete files in calls that a store takes, and yield the result of each, in order.

    Raises StorageError for the first that stays.
    """
    for start in range(0, len(paths), LARGEST_CALL):
        for done in storage.delete_many(paths[start : start + LARGEST_CALL]):
            if done.error is not None:
                raise StorageError(done.path, done.error)
            yield done


def list_names(storage: Storage, partition: str) -> set[str]:
    """Return the names of all files in a partition's folder; none if there is no folder."""
    try:
        entries = storage.list(resolve_folder(partition) if partition else "")
    except NotFoundError:
        return set()
    return {entry.name for entry in entries if not entry.is_folder}


def is_present(storage: Storage, partition: str, name: str, size: int) -> bool:
    """Return whether a file of this size is in a partition."""
    try:
        entry = storage.stat(resolve_path(partition, name))
    except NotFoundError:
        return False
    return entry is not None and entry.size == size


def list_names_of_partitions(
    storage: Storage, partitions: Collection[str], *, files: int = 0
) -> dict[str, set[str]]:
    """Return the names of all files in each partition's folder; none if there is no folder.

    Few partitions are listed one by one, many in one pass over the table. ``files``: about how many
    the table has, from which the number of requests of that pass follows.
    """
    wanted = set(partitions)
    if len(wanted) <= max(_MAX_LISTINGS, files // LARGEST_CALL):
        return {path: list_names(storage, path) for path in sorted(wanted)}
    above = {""}
    for path in wanted:
        parts = path.split("/")
        above.update("/".join(parts[: end + 1]) for end in range(len(parts)))
    names: dict[str, set[str]] = {path: set() for path in wanted}
    for folder in storage.walk(above.__contains__):
        if folder.path in wanted:
            names[folder.path] = set(folder.names)
    return names
