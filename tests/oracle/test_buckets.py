"""Tables with a bucket index that real Hudi writes, and that we clean and cluster in between.

Hudi keeps no trace of a simple bucket index but the names of file groups. It clusters no such table
itself (HoodieSimpleBucketLayout), so its writers and readers are the judge.
"""

from __future__ import annotations

import re

import pytest

import reconciler
from tests.oracle.hudi import COMPACT_METADATA, data_files, directory_listing
from tests.oracle.our_clustering import apply_here, assert_done
from tests.selection import long

pytestmark = pytest.mark.oracle

BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}
CONSISTENT = BUCKETS | {
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.min.num.buckets": "2",
    "hoodie.bucket.index.max.num.buckets": "8",
}
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  timezone: UTC
  retention: {{fileVersions: 1}}
  files: {{target: 1MiB, small: 1MiB}}
  {block}
  concurrency: {{lock: {{provider: filesystem}}}}
"""
KEYS = [f"{partition}{number:03d}" for partition in "ab" for number in range(60)]
_FILE = re.compile(r"(?P<partition>[ab])/\.?(?P<id>(?P<bucket>\d{8})-[^_]*)_.*")


def rows(time, keys=KEYS):
    return [(key, key[0], time + int(key[1:]) * 7 % 60) for key in keys]


def make(hudi, folder, options, *, merge_on_read):
    """Return a table with two writes: all keys, then every second one."""
    table = hudi.table(folder / "t", merge_on_read=merge_on_read, options=options)
    hudi.write(table, rows(0), "insert")
    hudi.write(table, rows(1000, KEYS[::2]))
    return table


def plan(table, when="always", block="clustering: {{columns: [ts], when: {}}}"):
    file = table.path.parent / "spec.yaml"
    file.write_text(SPEC.format(path=table.path, block=block.format(when)))
    return reconciler.plan(reconciler.load_specs(file))


def file_groups(table, instant=None):
    """Return partition and bucket of each file group, with its id; those of an instant's files."""
    names = [name for name in data_files(table.path) if instant is None or instant in name]
    found = [match for name in names if (match := _FILE.fullmatch(name))]
    assert len(names) == len(found), names
    return {(m["partition"], m["bucket"], m["id"]) for m in found}


def buckets(groups):
    return sorted((partition, bucket) for partition, bucket, _ in groups)


@pytest.mark.parametrize(
    ("version", "merge_on_read"),
    [
        ("0.15.0", True),
        ("1.0.2", False),
        ("1.2.0", True),
        long("0.15.0", False),
        long("1.0.2", True),
        long("1.2.0", False),
    ],
)
def test_buckets_are_clustered_and_cleaned_and_writers_find_their_rows(
    real_hudi, tmp_path, version, merge_on_read
):
    hudi = real_hudi(version)
    table = make(hudi, tmp_path, BUCKETS, merge_on_read=merge_on_read)
    before, old = hudi.rows(table), file_groups(table)
    reviewed = plan(table)
    assert () == reviewed.tables[0].refusals
    result = apply_here(reviewed)
    assert_done(result)
    clustered = next(o.instant for o in result.tables[0].outcomes if o.kind == "cluster")
    new = file_groups(table, clustered)

    # one file a bucket, under the bucket's number and another name
    assert 6 == len(old)
    assert buckets(old) == buckets(new)
    assert set() == new & old
    assert before == hudi.rows(table) == hudi.rows(table, metadata=True)
    assert ["clean"] == [step.kind for step in plan(table).tables[0].steps]

    again = hudi.write(table, rows(2000, KEYS[1::3]), options=COMPACT_METADATA)
    hudi.write(table, [("a900", "a", 5), ("b900", "b", 5)])
    assert file_groups(table, again) <= new
    assert new | old >= file_groups(table)
    written = [*rows(0), *rows(1000, KEYS[::2]), *rows(2000, KEYS[1::3])]
    expected = {row[0]: row[2] for row in written}
    expected |= {"a900": 5, "b900": 5}
    now = hudi.rows(table)
    assert expected == {row[0]: row[2] for row in now}
    assert len(now) == len(expected)

    if merge_on_read:
        instant = hudi.schedule(table, "COMPACT")
        hudi.compact(table, instant)
    assert_done(apply_here(plan(table, "{smallFileShareAbove: 0.3}")))
    assert now == hudi.rows(table) == hudi.rows(table, metadata=True)
    hudi.write(table, rows(3000, KEYS[2::5]))
    assert_done(apply_here(plan(table)))
    assert_done(apply_here(plan(table)))
    assert () == plan(table).tables[0].steps
    assert buckets(old) == buckets(file_groups(table))  # the clean left one file group a bucket
    assert len(expected) == len(hudi.rows(table))
    assert hudi.listing(table) == directory_listing(table.path)


@pytest.mark.parametrize(
    ("version", "merge_on_read"),
    [
        ("1.2.0", True),
        long("0.15.0", True),
        long("1.0.2", True),
    ],
)
def test_consistent_hashing_is_cleaned_and_only_its_clustering_refused(
    real_hudi, tmp_path, version, merge_on_read
):
    hudi = real_hudi(version)
    table = make(hudi, tmp_path, CONSISTENT, merge_on_read=merge_on_read)
    hudi.compact(table, hudi.schedule(table, "COMPACT"))
    before, reviewed = hudi.rows(table), plan(table)
    [described] = reviewed.tables
    [sized] = plan(table, block="").tables
    result = apply_here(reviewed)
    [done] = result.tables

    assert [("bucketIndex", "cluster")] == [(n.rule, n.step) for n in described.refusals]
    assert described.refusals == sized.refusals  # of declared file sizes alone
    assert ["clean"] == [step.kind for step in described.steps]
    assert (3, "blockedInPart", None) == (result.exit_code, done.status, done.error)
    assert done.removed == described.impact.files_removed > 0
    assert before == hudi.rows(table) == hudi.rows(table, metadata=True)
    hudi.write(table, rows(2000, KEYS[1::3]))
    assert len(KEYS) == len(hudi.rows(table))
