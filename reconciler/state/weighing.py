"""How big rows are where past writes do not tell: by the footers of a few files."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow.compute as pc

from reconciler.hudi.arrow import flags
from reconciler.sizing.groups import Groups
from reconciler.sizing.history import Footers
from reconciler.state.footers import read_footers
from reconciler.storage.api import Storage

#: files whose footers are read: each has a bloom filter, half a megabyte
_SAMPLE: Final = 4


def few_footers(storage: Storage, groups: Groups, bases: Any) -> Footers | None:
    """Footers of newest base files of all sizes; None where none can be read.

    ``bases``: per group the name of its newest base file. Divided among few rows, what a file costs
    without any makes every row look big, and the next write would begin many files that stay small.
    What is damaged is left out: it is said where rows are read. Raises StorageError.
    """
    live = np.flatnonzero(groups.is_live & (groups.base > 0) & flags(pc.is_valid(bases)))
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
    return Footers(
        rows=np.array([one.rows for one in found], np.int64),
        bytes=np.array([one.bytes for one in found], np.int64),
        data=np.array([one.data for one in found], np.int64),
    )
