"""Read a few footers for record sizes if past writes do not show them."""

from __future__ import annotations

from typing import Final

import numpy as np

from reconciler.layout.sizing.file_group_sizes import FileGroupSizes
from reconciler.layout.sizing.record_size import FooterSizes
from reconciler.state.footers import choose_by_size, read_footers, sum_footers
from reconciler.storage.api import Storage

#: number of footers to read; each has a bloom filter of half a megabyte
_SAMPLE: Final = 4


def sample_footers(storage: Storage, groups: FileGroupSizes) -> FooterSizes | None:
    """Return footers of current base files of all sizes; None if none can be read.

    Files of different sizes are needed because the fixed bytes of a small file make its rows look
    big, and the next write would then start too many files. Damaged files are skipped. Raises
    StorageError.
    """
    live = np.flatnonzero(groups.is_live & (groups.base > 0))
    some = live[choose_by_size(groups.base[live], _SAMPLE)]
    files = [(groups.get_base_path(at), int(groups.base[at])) for at in some.tolist()]
    found = [one for one in read_footers(storage, files, ()) if one.problem is None and one.rows]
    return sum_footers(found)
