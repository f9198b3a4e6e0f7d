"""File groups from short literals: ``make_groups({"p=1": {"a": 30, "b": (40, 10)}})``.

Keys are partitions and file ids.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from reconciler.layout.sizing.file_group_sizes import FileGroupSizes

MIB = 1024 * 1024


def make_groups(by_partition, *, compacting=(), clustering=(), replaced=(), begun=None):
    """Return file groups; a size is that of a base file, a tuple adds the sizes of log files.

    ``begun``: by file id, the instant that began the slice.
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
        base_name=pa.array(
            [None if sizes[0] is None else f"{i}.parquet" for _, i, sizes in rows], pa.string()
        ),
        logs=np.array([sum(sizes[1:]) for *_, sizes in rows], np.int64),
        log_files=np.array([len(sizes) - 1 for *_, sizes in rows], np.int64),
        slice_start=np.array([instants.index((begun or {}).get(i, "1")) for i in ids], np.int32),
        instants=instants,
        is_live=~np.isin(ids, list(replaced)),
        is_compacting=np.isin(ids, list(compacting)),
        is_clustering=np.isin(ids, list(clustering)),
    )


def file_ids(groups, at):
    """Return the file ids at these positions."""
    ids = groups.file_id.to_pylist()
    return [ids[place] for place in at.tolist()]
