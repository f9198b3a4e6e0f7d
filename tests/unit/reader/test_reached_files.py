"""The files that predicates reach: by an index, by footers, by folder names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from reconciler.index.model import ColumnStats
from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.reader.reached_files import find_reached_files, make_keys, read_statistics
from reconciler.storage.open import open_storage
from tests.plain_tables import make_orders, write_table
from tests.storage_wrappers import RecordingStorage

WHERES = ["customer < 100", "id = 7", "dt = '2026-01-02'", "dt = '2026-01-02' and id = 7", "f(id)"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Make two partitions of three files with forty orders each."""
    root = tmp_path_factory.mktemp("reach") / "t"
    parts = {}
    for day in ("2026-01-01", "2026-01-02"):
        files = make_orders(120, 3, seed=int(day[-1]))
        parts[f"dt={day}"] = [
            file.append_column("dt", pa.array([day] * len(file))) for file in files
        ]
    write_table(root, parts, by="dt")
    storage = RecordingStorage(open_storage(str(root)))
    scan = open_scan(storage, ReadRequest())
    rows = scan.slices.to_pylist()
    paths = scan.partitions[0].to_pylist()
    files = make_keys(
        [paths[row["partition"]] for row in rows],
        [row["base"].rpartition("/")[2] for row in rows],
        np.array([row["base_size"] for row in rows], np.int64),
    )
    return storage, scan, files


def reads(storage):
    return storage.counts["read_range"]


def test_a_file_is_left_out_where_its_footer_or_its_folder_rules_it_out(table):
    storage, scan, files = table
    found = find_reached_files(storage, scan, files, WHERES, zone="UTC")

    assert [6, 2, 3, 1, 6] == found.sum(axis=1).tolist()
    assert (5, 6) == found.shape


def test_what_an_index_knows_is_read_nowhere(table):
    storage, scan, files = table
    known = read_statistics(storage, scan, files, WHERES)
    before = reads(storage)
    found = find_reached_files(storage, scan, files, WHERES, zone="UTC", known=known)

    assert before == reads(storage)
    assert (find_reached_files(storage, scan, files, WHERES, zone="UTC") == found).all()
    assert before + 6 == reads(storage)


def test_an_index_of_another_type_is_left_aside(table):
    storage, scan, files = table
    known = read_statistics(storage, scan, files, WHERES)
    older = {**known.columns, "id": ColumnStats.unknown(pa.int32(), len(known))}
    found = find_reached_files(
        storage, scan, files, WHERES, zone="UTC", known=replace(known, columns=older)
    )

    assert [6, 2, 3, 1, 6] == found.sum(axis=1).tolist()


def test_a_file_that_is_gone_is_reached_by_all_that_its_folder_lets(table):
    storage, scan, files = table
    gone = replace(files, name=pa.array([f"gone-{name}" for name in files.name.to_pylist()]))
    found = find_reached_files(storage, scan, gone, WHERES, zone="UTC")

    assert [6, 6, 3, 3, 6] == found.sum(axis=1).tolist()


def test_nobody_asks_for_nothing(table):
    storage, scan, files = table

    assert (0, 6) == find_reached_files(storage, scan, files, [], zone="UTC").shape
