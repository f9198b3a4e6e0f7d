"""How files are grouped before their entries are looked for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from reconciler.index.merge import FileKeys
from reconciler.state.hudi_column_stats import group_by_folder


def keys(*files):
    paths, names = ([pair[at] for pair in files] for at in (0, 1))
    return FileKeys(
        partition=pa.array(paths, pa.string()).dictionary_encode(),
        name=pa.array(names, pa.string()),
        size=np.ones(len(files), np.int64),
    )


def test_files_come_by_partition():
    found = group_by_folder(keys(("b", "1"), ("a", "2"), ("b", "3")))

    assert (("b", ["1", "3"]), ("a", ["2"])) == found


def test_no_files_have_no_partitions():
    assert () == group_by_folder(keys())
