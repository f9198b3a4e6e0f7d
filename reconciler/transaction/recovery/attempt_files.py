"""Remove the files of one attempt at a clustering, and of no other attempt at the same instant.

Another writer that takes an instant over may delete our markers before our last file is there, and
then writes files of the same instant with markers of its own. So markers tell neither which files
are ours nor all that are; the ids of our files do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from reconciler.hudi.files.names import BaseName
from reconciler.storage.api import Storage
from reconciler.transaction.paths import list_names
from reconciler.transaction.recovery.marked_files import remove_files


def remove_attempt_files(
    storage: Storage,
    instant: str,
    partitions: Iterable[str],
    ids: Collection[str],
    *,
    keep: Collection[tuple[str, str]] = (),
) -> None:
    """Delete the base files of an attempt in some partitions, which are listed.

    ``ids``: what the file ids of the attempt begin with, all before the last hyphen; ``keep``:
    files that stay, by partition and name. Raises StorageError.
    """
    doomed = [
        (partition, name)
        for partition in sorted(set(partitions))
        for name in sorted(list_names(storage, partition))
        if _is_of_attempt(name, instant, ids) and (partition, name) not in keep
    ]
    remove_files(storage, doomed)


def _is_of_attempt(name: str, instant: str, ids: Collection[str]) -> bool:
    found = BaseName.parse(name)
    if found is None or found.instant != instant:
        return False
    return found.file_id.rpartition("-")[0] in ids
