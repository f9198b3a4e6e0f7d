"""File groups in short: ``pile({"p=1": {"a": 30, "b": (40, 10)}})`` by partition and file id."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from reconciler.layout.sizing.file_group_sizes import FileGroupSizes

MIB = 1024 * 1024


def make_groups(by_partition, *, compacting=(), clustering=(), replaced=(), begun=None):
    """A size in bytes is a base file's; a tuple has the log files' sizes after it.

    ``begun`` by file id, where it matters when the slice began.
    """
    rows = [
        (partition, file_id, size if isinstance(size, tuple) else (size,))
        for partition in sorted(by_partition)
        for file_id, size in by_partition[partition].items()
    ]
    partitions = tuple(sorted(by_partition))
    ids = [file_id for _, file_id, _ in rows]
    instants = tuple(sorted({"1", *(begun or {}).values()}))
    return FileGroupSizes(
        partitions=partitions,
        partition=np.array([partitions.index(p) for p, _, _ in rows], np.int32),
        file_id=pa.array(ids, pa.string()),
        base=np.array([-1 if sizes[0] is None else sizes[0] for *_, sizes in rows], np.int64),
        logs=np.array([sum(sizes[1:]) for *_, sizes in rows], np.int64),
        log_files=np.array([len(sizes) - 1 for *_, sizes in rows], np.int64),
        slice_start=np.array([instants.index((begun or {}).get(i, "1")) for i in ids], np.int32),
        instants=instants,
        is_live=~np.isin(ids, list(replaced)),
        is_compacting=np.isin(ids, list(compacting)),
        is_clustering=np.isin(ids, list(clustering)),
    )


def file_ids(groups, at):
    """The file ids of indexes."""
    ids = groups.file_id.to_pylist()
    return [ids[place] for place in at.tolist()]
