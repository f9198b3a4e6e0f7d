"""The files of one attempt at a clustering, and of no other at the same instant.

Another writer that takes an instant over deletes our markers before our last file may be there, and
then writes files of the same instant with markers of its own. So markers alone say neither which
files are ours nor all that are.
"""

from __future__ import annotations

from collections.abc import Collection

from reconciler.errors import NotFoundError
from reconciler.executor.cluster.work import ClusterWork
from reconciler.hudi.files.names import BaseName
from reconciler.rewrite.file_ids import make_output_id, make_seed
from reconciler.storage.api import Storage
from reconciler.transaction.recovery.marked_files import remove_files


def remove_attempt_files(
    storage: Storage, work: ClusterWork, keep: Collection[tuple[str, str]] = ()
) -> None:
    """Delete what this attempt has written but what is to be kept. Raises StorageError.

    The partitions of the groups are listed.
    """
    ids = _list_output_ids(work)
    doomed = [
        (partition, name)
        for partition in sorted(set(work.groups.partition.to_pylist()))
        for name in _list_names(storage, partition)
        if _is_of_attempt(name, work.instant, ids) and (partition, name) not in keep
    ]
    remove_files(storage, doomed)


def _list_output_ids(work: ClusterWork) -> frozenset[str]:
    seed = make_seed(work.instant, work.attempt)
    return frozenset(
        make_output_id(seed, group, output)
        for group, outputs in enumerate(work.groups.outputs.tolist())
        for output in range(outputs)
    )


def _is_of_attempt(name: str, instant: str, ids: frozenset[str]) -> bool:
    found = BaseName.parse(name)
    if found is None or found.instant != instant:
        return False
    return found.file_id.rpartition("-")[0] in ids


def _list_names(storage: Storage, partition: str) -> list[str]:
    try:
        return [entry.name for entry in storage.list(partition) if not entry.is_folder]
    except NotFoundError:
        return []
