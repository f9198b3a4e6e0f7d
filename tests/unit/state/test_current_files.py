"""How files are grouped before their entries are looked for."""

from __future__ import annotations

import numpy as np

from reconciler.hudi.files.table_files import build_files
from reconciler.state.current_files import group_by_partition

FOLDERS = [
    ("a", ["2_0-0-0_1.parquet"], [1]),
    ("b", ["1_0-0-0_1.parquet", "3_0-0-0_1.parquet"], [1, 1]),
]


def test_files_come_by_partition():
    files = build_files(FOLDERS, ".parquet")

    found = list(group_by_partition(files, np.arange(3)))

    assert [(path, names) for path, names, _ in FOLDERS] == found


def test_no_files_have_no_partitions():
    files = build_files(FOLDERS, ".parquet")

    assert [] == list(group_by_partition(files, np.zeros(0, np.int64)))
