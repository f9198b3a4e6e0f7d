"""Writes to tables with a simple bucket index: one file group a bucket, and each key in its own."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconciler
from reconciler.errors import BusyError, ReconcilerError, SpecError, UnsupportedError
from reconciler.hudi.files.key_buckets import BucketRule
from reconciler.writer.request import WriteMode
from tests.selection import long
from tests.write_runs import SCHEMA, WriteRuns, make_rows

SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  timezone: UTC
  files: {{target: 1MiB, small: 1MiB}}
  concurrency: {{lock: {{provider: filesystem}}}}
  table:
    type: {type}
    version: {version}
    recordKey: [id]
    partitionBy: [p]
    ordering: [ts]
    hiveStyle: false
    {index}
"""
INDEX = "index: {{type: bucket, buckets: {}}}"
KINDS = [
    (9, "COPY_ON_WRITE"),
    (6, "MERGE_ON_READ"),
    (8, "MERGE_ON_READ"),
    long(6, "COPY_ON_WRITE"),
    long(8, "COPY_ON_WRITE"),
    long(9, "MERGE_ON_READ"),
]


def make_runs(folder, version=9, type_="COPY_ON_WRITE", index=INDEX.format(4)):
    """Return runs that write to a table in a folder; the first makes it."""
    file = Path(folder) / "spec.yaml"
    file.write_text(SPEC.format(path=Path(folder) / "t", version=version, type=type_, index=index))
    (spec,) = reconciler.load_specs(file)
    return WriteRuns(spec)


def rows(keys, ts=1, p=None):
    return make_rows(*((key, p or "ab"[key % 2], ts, f"v{ts}") for key in keys))


def list_groups(runs):
    """Return (partition, file id) of each file group with files."""
    found = set()
    for path in Path(runs.spec.path).rglob("*"):
        name = path.name.lstrip(".")
        if ".hoodie" in path.parts or not re.match(r"[0-9a-f]{8}-", name):
            continue
        found.add((path.parent.name, name.partition("_")[0]))
    return sorted(found)


def list_buckets(runs):
    return [(partition, int(file_id[:8])) for partition, file_id in list_groups(runs)]


def find_bucket(runs, keys):
    """Return the buckets of keys, by partition."""
    index = runs.spec.table.index
    rule = BucketRule(
        buckets=index.buckets,
        fields=("id",),
        record_key=("id",),
        table_version=runs.spec.table.version,
    )
    numbers = rule.find_buckets(pa.array([str(key) for key in keys])).tolist()
    return sorted({("ab"[key % 2], number) for key, number in zip(keys, numbers, strict=True)})


@pytest.mark.parametrize(("version", "type_"), KINDS)
def test_every_operation_keeps_one_file_group_a_bucket(tmp_path, version, type_):
    it = make_runs(tmp_path, version, type_)
    model = {}

    def put(keys, ts, way=WriteMode.UPSERT):
        done = it.write(rows(keys, ts), way)
        model.update({key: (key, "ab"[key % 2], ts, f"v{ts}") for key in keys})
        return done

    put(range(20), 1, WriteMode.INSERT)
    assert list_buckets(it) == find_bucket(it, range(20))
    first = list_groups(it)
    put([3, 4, 30, 31], 2)
    put(range(40, 60), 3, WriteMode.BULK_INSERT)
    put(range(60, 70), 4, WriteMode.INSERT)
    gone = [4, 40, 5, 999]
    it.write(rows(gone).select(["id", "p"]), WriteMode.DELETE)
    for key in gone:
        model.pop(key, None)
    put([4, 60], 6)

    assert it.read_rows() == sorted(model.values(), key=str)
    assert list_groups(it) == first  # every bucket had rows from the first write on

    over = [key for key in range(100, 110) if key % 2 == 0]
    it.write(rows(over, 7), WriteMode.INSERT_OVERWRITE)
    model = {key: row for key, row in model.items() if key % 2}
    model.update({key: (key, "a", 7, "v7") for key in over})
    put([100, 1], 8)
    assert it.read_rows() == sorted(model.values(), key=str)
    it.write(rows([]), WriteMode.DELETE_PARTITION, partitions=["b"])
    put([1, 3], 9)
    model = {key: row for key, row in model.items() if key % 2 == 0 or key in (1, 3)}
    assert it.read_rows() == sorted(model.values(), key=str)
