"""We and real Hudi write to one table with a simple bucket index in turns.

After every turn both find the rows that a plain model has, each bucket has one file group, and each
key is in the bucket that Hudi's own class gives it.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import reconciler
from reconciler.hudi_engine.model import WriterEngine
from reconciler.hudi_engine.writer_options import make_writer_options
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from tests.oracle.bundles import TABLE_VERSION, VERSIONS
from tests.oracle.hudi import COMPACT_METADATA
from tests.oracle.our_clustering import apply_here, assert_done
from tests.oracle.our_writer import make_spec, write
from tests.oracle.test_writes import (
    ALL,
    LATE,
    OURS,
    Both,
    hudi_cleans,
    hudi_deletes,
    hudi_inserts,
    hudi_upserts,
    hudi_writes_and_rolls_it_back,
    play,
    we_delete,
    we_insert,
    we_upsert,
)
from tests.selection import long

pytestmark = pytest.mark.oracle

BUCKETS = 3
INDEX = {
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": str(BUCKETS),
    "hoodie.bucket.index.hash.field": "id",
}
REWRITE = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  timezone: UTC
  {block}
  concurrency: {{lock: {{provider: filesystem}}}}
"""


@dataclass
class BothByBuckets(Both):
    """A table with a bucket index of two writers."""

    def assert_right(self) -> None:
        super().assert_right()
        assert_in_buckets(self)


def assert_in_buckets(it: Both) -> None:
    """Check that each row is in the one file group of its bucket."""
    rows = sorted(it.model.values(), key=repr)
    assert rows == it.hudi.rows(it.table, metadata=False)
    state = observe(open_storage(str(it.table.path)), None, observed_ms=0)
    view, files = state.view, state.files
    ids = files.group_id.to_pylist()
    live = {int(view.group[at]) for at in (view.is_live & view.is_visible).nonzero()[0]}
    found = Counter((int(files.group_partition[one]), ids[one][:8]) for one in live)
    assert {1} >= set(found.values()), found
    placed = it.hudi.rows(it.table, columns=("id", "_hoodie_file_name"))
    keys = [key for key, _name in placed]
    wanted = it.hudi.ask("buckets", keys=keys, fields="id", count=BUCKETS)
    assert wanted == [int(name.lstrip(".")[:8]) for _key, name in placed]


def apply_block(it: Both, block: str) -> None:
    """Plan and apply one block of a spec."""
    file = it.table.path.parent / "rewrite.yaml"
    file.write_text(REWRITE.format(path=it.table.path, block=block))
    assert_done(apply_here(reconciler.plan(reconciler.load_specs(file))))


def we_cluster(it: Both) -> None:
    apply_block(it, "clustering: {columns: [ts], when: always}")


def we_compact(it: Both) -> None:
    apply_block(it, "compaction: {afterDeltaCommits: 1}")


def hudi_compacts(it: Both) -> None:
    if compaction := it.hudi.schedule(it.table, "COMPACT", it.options):
        it.hudi.compact(it.table, compaction)


def hudi_inserts_what_is_there(it: Both) -> None:
    """Merge-on-read tables alone: their readers merge rows of one key."""
    rows = [*it.old(2), *it.new(1)]
    it.hudi.write(it.table, rows, "insert", it.options | COMPACT_METADATA)
    it.put(rows)


HUDIS: list[Callable[[Both], None]] = [
    hudi_upserts("BUCKET"),
    hudi_deletes,
    hudi_inserts,
    hudi_cleans,
    hudi_writes_and_rolls_it_back,
]


@pytest.mark.parametrize(
    ("version", "merge_on_read", "is_made_by_hudi"),
    [
        ("0.15.0", False, True),
        ("1.2.0", True, False),
        *(
            long(version, merge_on_read, is_made_by_hudi)
            for version in VERSIONS
            for merge_on_read in (False, True)
            for is_made_by_hudi in (False, True)
            if (version, merge_on_read, is_made_by_hudi)
            not in {("0.15.0", False, True), ("1.2.0", True, False)}
        ),
    ],
)
def test_hudi_and_we_write_in_turns_by_buckets(
    real_hudi, tmp_path, version, merge_on_read, is_made_by_hudi
):
    hudi, seed = real_hudi(version), int(os.environ.get("SEED", "1"))
    table = hudi.table(tmp_path / "t", merge_on_read=merge_on_read, options=LATE | INDEX)
    spec = make_spec(table, TABLE_VERSION[version], merge_on_read=merge_on_read, buckets=BUCKETS)
    it = BothByBuckets(
        hudi=hudi, table=table, spec=spec, random=Random(f"{version} {seed} {merge_on_read}")
    )
    it.options = INDEX
    printed = make_writer_options(spec, WriterEngine.SPARK).options
    assert INDEX == {one.key: one.value for one in printed if one.field.startswith("table.index")}
    rows = it.new(6)
    if is_made_by_hudi:
        hudi.write(table, rows, options=COMPACT_METADATA)
    else:
        write(spec, rows)
    it.put(rows)
    it.assert_right()

    logs = [hudi_compacts, hudi_inserts_what_is_there] if merge_on_read else []
    ours = [*OURS, we_cluster, *([we_compact] if merge_on_read else [])]
    play(it, ours, [*HUDIS, *logs])


@pytest.mark.parametrize(
    ("version", "merge_on_read"),
    [long(version, merge_on_read) for version in VERSIONS for merge_on_read in (False, True)],
)
def test_hudi_and_we_write_in_turns_by_buckets_with_every_index(
    real_hudi, tmp_path, version, merge_on_read
):
    """A record index is dropped by our log files, and built again by Hudi's next write."""
    hudi = real_hudi(version)
    table = hudi.table(tmp_path / "t", merge_on_read=merge_on_read, options=LATE | INDEX | ALL)
    spec = make_spec(table, TABLE_VERSION[version], merge_on_read=merge_on_read, buckets=BUCKETS)
    it = BothByBuckets(hudi=hudi, table=table, spec=spec, random=Random(f"{version} all"))
    it.options = INDEX | ALL
    rows = it.new(6)
    hudi.write(table, rows, options=COMPACT_METADATA)
    it.put(rows)
    live = table.metadata_partitions()

    play(it, OURS, HUDIS)

    assert {"bloom_filters", "column_stats", "files"} <= set(table.metadata_partitions())
    assert merge_on_read or live == table.metadata_partitions()


@pytest.mark.parametrize(
    ("version", "merge_on_read"),
    [long(version, merge_on_read) for version in VERSIONS for merge_on_read in (False, True)],
)
def test_hudi_and_we_write_in_turns_without_a_metadata_table(
    real_hudi, tmp_path, version, merge_on_read
):
    hudi, off = real_hudi(version), {"hoodie.metadata.enable": "false"}
    table = hudi.table(tmp_path / "t", merge_on_read=merge_on_read, options=INDEX | off)
    spec = make_spec(table, TABLE_VERSION[version], merge_on_read=merge_on_read, buckets=BUCKETS)
    it = Both(hudi=hudi, table=table, spec=spec, random=Random(version), options=INDEX | off)
    rows = it.new(6)
    hudi.write(table, rows)
    it.put(rows)
    for ours, theirs in (
        (we_upsert, hudi_upserts("BUCKET")),
        (we_insert, hudi_deletes),
        (we_delete, hudi_inserts),
        (we_upsert, hudi_compacts if merge_on_read else hudi_cleans),
    ):
        for turn in (ours, theirs):
            turn(it)
            assert_in_buckets(it)
    assert [] == table.metadata_partitions()


#: columns of a record key in every type that keys may have
KEYS = pa.schema(
    [
        ("name", pa.string()),
        ("day", pa.date32()),
        ("price", pa.decimal128(12, 2)),
        ("at", pa.timestamp("us", tz="UTC")),
        ("number", pa.int64()),
        ("ok", pa.bool_()),
        ("p", pa.string()),
        ("ts", pa.int64()),
    ]
)
TYPED = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  timezone: UTC
  concurrency: {{lock: {{provider: filesystem}}}}
  table:
    type: {type}
    version: {version}
    recordKey: [name, day, price, at, number, ok]
    partitionBy: [p]
    ordering: [ts]
    hiveStyle: false
    index: {{type: bucket, buckets: 5, keys: [{keys}]}}
"""
NAMES = ["a", "é😀", None, "", "__x__", "polygenelubricants", "a b/c=d", "x" * 300]


def make_typed_rows(ts: int) -> list[list[Any]]:
    """Return rows whose keys have null, empty and strange values, and numbers below zero."""
    return [
        [
            name,
            date(1969 + nth, 2, 3),
            Decimal(nth * 997 - 2000) / 100,
            datetime(1969 + nth, 12, 31, 23, 59, 59, nth, UTC),
            (nth - 3) * 10**11,
            None if nth % 3 == 0 else nth % 2 == 0,
            "a",
            ts,
        ]
        for nth, name in enumerate(NAMES)
    ]


def query_typed_rows(ts: int) -> str:
    """Return the same rows as a query of Spark."""
    told = []
    for name, day, price, at, number, ok, p, _ts in make_typed_rows(ts):
        text = "null" if name is None else f"'{name}'"
        micros = round(at.timestamp()) * 10**6 + at.microsecond
        flag = "cast(null as boolean)" if ok is None else str(ok).lower()
        told.append(
            f"({text}, date'{day}', cast({price} as decimal(12, 2)), timestamp_micros({micros}), "
            f"{number}L, {flag}, '{p}', {ts}L)"
        )
    return f"select * from values {', '.join(told)} as t({', '.join(KEYS.names)})"


@pytest.mark.parametrize(
    ("version", "merge_on_read", "keys"),
    [
        long(version, merge_on_read, keys)
        for version in VERSIONS
        for merge_on_read, keys in (
            (False, "day, price, at"),
            (False, "name"),
            (True, "name, number, ok"),
            (True, "name, day, price, at, number, ok"),
        )
    ],
)
def test_keys_of_every_type_are_in_the_same_bucket(
    real_hudi, tmp_path, version, merge_on_read, keys
):
    hudi, fields = real_hudi(version), keys.replace(" ", "")
    options = INDEX | {
        "hoodie.bucket.index.num.buckets": "5",
        "hoodie.bucket.index.hash.field": fields,
        "hoodie.datasource.write.recordkey.field": ",".join(KEYS.names[:6]),
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
        "hoodie.datasource.write.operation": "upsert",
    }
    table = hudi.table(tmp_path / "t", merge_on_read=merge_on_read, options=options)
    file = tmp_path / "typed.yaml"
    kind = "MERGE_ON_READ" if merge_on_read else "COPY_ON_WRITE"
    file.write_text(
        TYPED.format(path=table.path, type=kind, version=TABLE_VERSION[version], keys=keys)
    )
    (spec,) = reconciler.load_specs(file)

    def let_hudi_write(ts: int) -> None:
        query = query_typed_rows(ts)
        hudi.ask("write_query", table=table, query=query, options=dict(table.options))

    let_hudi_write(1)
    write(spec, make_typed_rows(2), schema=KEYS)
    found = hudi.rows(table, columns=("_hoodie_record_key", "_hoodie_file_name", "ts"))
    assert [2] * len(NAMES) == [row[2] for row in found]
    wanted = hudi.ask("buckets", keys=[row[0] for row in found], fields=fields, count=5)
    assert wanted == [int(row[1].lstrip(".")[:8]) for row in found]
    let_hudi_write(3)
    assert [3] * len(NAMES) == [row[0] for row in hudi.rows(table, columns=("ts",))]


@pytest.mark.parametrize("version", ["0.15.0", *map(long, VERSIONS[1:])])
def test_hudi_gives_the_recorded_keys_the_recorded_buckets(real_hudi, version):
    file = Path(__file__).parents[1] / "cases" / "index_buckets" / "hashes.json"
    hudi = real_hudi(version)
    for case in json.loads(file.read_text()):
        keys, old, new = zip(*case["keys"], strict=True)
        fields = ",".join(case["fields"])
        found = hudi.ask("buckets", keys=list(keys), fields=fields, count=case["buckets"])
        assert found == list(old if version == "0.15.0" else new)
