"""What reads of tables that real Hudi wrote touch, and the rows in it, without any JVM."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from reconciler.errors import BlockedError, UnsupportedError
from reconciler.reader.load import open_scan
from reconciler.reader.model import ReadRequest
from reconciler.reader.rows import RowReading, refuse_unreadable, slice_files
from reconciler.storage.open import open_storage

TABLES = Path(__file__).parent
EXPECTED = {
    path.name.removesuffix(".expected.json"): json.loads(path.read_text())
    for path in sorted(TABLES.glob("*.expected.json"))
}
KINDS = {"snapshot": "snapshot", "read_optimized": "readOptimized"}
READ = [
    (name, query)
    for name, expected in EXPECTED.items()
    for query in KINDS
    if expected.get(query) and name != "v8_mor_partial"
]


def opened(name, folder):
    subprocess.run(["unzip", "-qo", TABLES / f"{name}.zip", "-d", folder], check=True)
    return open_storage(str(folder / name))


def rows_of(scan, storage):
    """Every row of a scan as a list, sorted."""
    refuse_unreadable(scan)
    reading = RowReading.of(scan)
    found = []
    for row in range(len(scan.slices)):
        values = scan.values(scan.slices.column("partition")[row].as_py())
        for batch in reading.read(slice_files(scan, row), values, storage):
            assert batch.schema == scan.schema
            found += [list(row.values()) for row in batch.to_pylist()]
    return by_key(found)


def by_key(rows):
    return sorted(rows, key=lambda row: [str(value) for value in row])


@pytest.mark.parametrize(("name", "query"), READ)
def test_the_rows_and_columns_are_those_that_hudi_reads(name, query, tmp_path):
    storage = opened(name, tmp_path)
    scan = open_scan(storage, ReadRequest(kind=KINDS[query]))
    answer = EXPECTED[name][query]
    names = scan.schema.names
    if EXPECTED[name]["hudi"].startswith("0."):
        # it moves partition columns to the end where it reads base files only; Hudi 1 does not
        names = sorted(names, key=answer["cols"].index)
    order = [answer["cols"].index(column) for column in scan.schema.names]

    assert answer["cols"] == names
    assert by_key([[row[at] for at in order] for row in answer["rows"]]) == rows_of(scan, storage)
