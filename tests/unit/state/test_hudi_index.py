"""How files are grouped before their entries are looked for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from reconciler.index.merge import Keys
from reconciler.state.hudi_index import folders_of


def keys(*files):
    paths, names = ([pair[at] for pair in files] for at in (0, 1))
    return Keys(
        partition=pa.array(paths, pa.string()).dictionary_encode(),
        name=pa.array(names, pa.string()),
        size=np.ones(len(files), np.int64),
    )


def test_files_come_by_partition():
    found = folders_of(keys(("b", "1"), ("a", "2"), ("b", "3")))

    assert (("b", ["1", "3"]), ("a", ["2"])) == found


def test_no_files_have_no_partitions():
    assert () == folders_of(keys())
