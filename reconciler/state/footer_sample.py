"""Read a few footers for record sizes if past writes do not show them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow.compute as pc

from reconciler.arrays import to_numpy_bools
from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.layout.sizing.write_history import FooterSizes
from reconciler.state.footers import read_footers
from reconciler.storage.api import Storage

#: number of footers to read; each has a bloom filter of half a megabyte
_SAMPLE: Final = 4


def sample_footers(storage: Storage, groups: FileGroupSizes, bases: Any) -> FooterSizes | None:
    """Return footers of current base files of all sizes; None if none can be read.

    ``bases``: per group the name of its newest base file. Files of different sizes are needed
    because the fixed bytes of a small file make its rows look big, and the next write would then
    start too many files. Damaged files are skipped. Raises StorageError.
    """
    live = np.flatnonzero(groups.is_live & (groups.base > 0) & to_numpy_bools(pc.is_valid(bases)))
    by_size = live[np.argsort(groups.base[live], kind="stable")]
    some = by_size
    if len(by_size) > _SAMPLE:
        some = by_size[np.arange(_SAMPLE) * (len(by_size) - 1) // (_SAMPLE - 1)]
    files = []
    for at in some.tolist():
        partition, name = groups.partitions[groups.partition[at]], bases[at].as_py()
        files.append((f"{partition}/{name}" if partition else name, int(groups.base[at])))
    found = [one for one in read_footers(storage, files, ()) if one.problem is None and one.rows]
    if not found:
        return None
    return FooterSizes(
        rows=np.array([one.rows for one in found], np.int64),
        bytes=np.array([one.bytes for one in found], np.int64),
        data=np.array([one.row_bytes for one in found], np.int64),
    )
