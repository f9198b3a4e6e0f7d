"""The files of one attempt at a clustering, and of no other at the same instant.

Another writer that takes an instant over deletes our markers before our last file may be there, and
then writes files of the same instant with markers of its own. So markers alone say neither which
files are ours nor all that are.
"""

from __future__ import annotations

from collections.abc import Collection

from reconciler.apply.cluster_work import ClusterWork
from reconciler.errors import NotFoundError
from reconciler.hudi.names import BaseName
from reconciler.rewrite.names import output_id, seed_of
from reconciler.storage.api import Storage
from reconciler.transaction.marked import remove_files


def remove_own(storage: Storage, work: ClusterWork, keep: Collection[tuple[str, str]] = ()) -> None:
    """Delete what this attempt has written but what is to be kept. Raises StorageError.

    The partitions of the groups are listed.
    """
    ids = _ids(work)
    doomed = [
        (partition, name)
        for partition in sorted(set(work.groups.partition.to_pylist()))
        for name in _names(storage, partition)
        if _is_own(name, work.instant, ids) and (partition, name) not in keep
    ]
    remove_files(storage, doomed)


def _ids(work: ClusterWork) -> frozenset[str]:
    seed = seed_of(work.instant, work.attempt)
    return frozenset(
        output_id(seed, group, output)
        for group, outputs in enumerate(work.groups.outputs.tolist())
        for output in range(outputs)
    )


def _is_own(name: str, instant: str, ids: frozenset[str]) -> bool:
    found = BaseName.parse(name)
    if found is None or found.instant != instant:
        return False
    return found.file_id.rpartition("-")[0] in ids


def _names(storage: Storage, partition: str) -> list[str]:
    try:
        return [entry.name for entry in storage.list(partition) if not entry.is_folder]
    except NotFoundError:
        return []
