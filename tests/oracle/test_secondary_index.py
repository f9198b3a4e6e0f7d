"""Tables with a secondary and an expression index of real Hudi, packed and split by us."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

import reconciler
from tests.oracle.hudi import (
    COMPACT_METADATA,
    FEW_GROUPS,
    INDEXES,
    directory_listing,
    keep_versions,
)
from tests.oracle.our_clustering import apply_here, assert_done, get_step
from tests.selection import long

pytestmark = pytest.mark.oracle

SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: "{path}"
  timezone: UTC
  retention: {{fileVersions: 1}}
  files: {{target: 60KiB, small: 40KiB, when: {{smallFileShareAbove: 0, largeFiles: true}}}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""
#: Hudi 1.2.0 updates a secondary index only with a timeline server
OPTIONS = INDEXES | FEW_GROUPS | {"hoodie.embed.timeline.server": "true"}
#: of a writer in SQL; Hudi 1.2.0 creates an index only under a lock
SETTINGS = OPTIONS | {
    "hoodie.write.lock.provider": ("org.apache.hudi.client.transaction.lock.InProcessLockProvider")
}
DAY = 86_400
#: rows of about 120 bytes, too many for one file of the declared size
WIDE = [f"a{number:04d}" for number in range(4000)]
#: keys in files of every kind, one of a row that comes late and one of a row that goes
SOME = ("a0001", "a3999", "b049", "b149", "b001", "c001", "a9999")


def text(key, day):
    """Return a text that does not compress, and that only one row has."""
    return hashlib.sha256(f"{key}{day}".encode()).hexdigest()


def rows(day, keys):
    return [(key, key[0], day * DAY, text(key, day), float(day)) for key in keys]


class Indexed:
    """A table with a large file in one partition and small ones in another; and its rows."""

    def __init__(self, hudi, folder, *, merge_on_read):
        self.hudi, self.table = (
            hudi,
            hudi.table(folder / "t", merge_on_read=merge_on_read, options=OPTIONS),
        )
        self.values = {}
        self.spec = folder / "t.yaml"
        self.spec.write_text(SPEC.format(path=self.table.path))
        self.write(rows(0, WIDE), "bulk_insert")
        self.write(rows(1, [f"b0{number:02d}" for number in range(50)]), "insert")
        self.create_indexes()
        self.write(rows(2, [f"b1{number:02d}" for number in range(50)]), "insert")
        self.write(rows(3, ["a0001", "b001"]))

    def create_indexes(self):
        self.hudi.sql("drop table if exists t")
        self.hudi.sql(f"create table t using hudi location '{self.table.path}'")
        for name, value in SETTINGS.items():
            self.hudi.sql(f"set {name}={value}")
        self.hudi.sql("create index by_x on t (x)")
        self.hudi.sql(
            "create index by_day on t using column_stats(ts) "
            "options(expr='from_unixtime', format='yyyy-MM-dd')"
        )
        assert {"expr_index_by_day", "record_index", "secondary_index_by_x"} <= set(
            self.table.metadata_partitions()
        )

    def write(self, written, operation="upsert", options=None):
        self.hudi.write(self.table, written, operation, options)
        for key, _partition, _time, x, _n in written:
            if operation == "delete":
                self.values.pop(key)
            else:
                self.values[key] = x

    def plan(self):
        return reconciler.plan(reconciler.load_specs(self.spec))

    def assert_right(self):
        """Check all rows, and that each index finds what a reader without indexes finds."""
        everything = self.hudi.rows(self.table)
        assert self.values == {row[0]: row[3] for row in everything}
        assert len(self.values) == len(everything)
        assert everything == self.hudi.rows(self.table, metadata=True)
        texts = tuple(self.values[key] for key in SOME if key in self.values)
        conditions = {
            f"x in {texts}": lambda row: row[3] in texts,
            f"id in {SOME}": lambda row: row[0] in SOME,
            "from_unixtime(ts, 'yyyy-MM-dd') >= '1970-01-02'": lambda row: row[2] >= DAY,
        }
        for where, is_wanted in conditions.items():
            wanted = [row for row in everything if is_wanted(row)]
            assert wanted
            assert wanted == self.hudi.rows(self.table, metadata=True, where=where), where
        # within the bounds of the large file, so only the secondary index knows that none has it
        assert (0, []) == self.hudi.files_opened(self.table, f"x = '8{text('gone', 0)}'")
        assert self.hudi.listing(self.table) == directory_listing(self.table.path)


@pytest.mark.parametrize(
    ("version", "merge_on_read"),
    [("1.0.2", True), long("1.0.2", False), long("1.2.0", False), long("1.2.0", True)],
)
def test_a_secondary_index_finds_packed_and_split_rows_and_is_written_on(
    real_hudi, tmp_path, version, merge_on_read
):
    it = Indexed(real_hudi(version), tmp_path, merge_on_read=merge_on_read)

    # the expression index lacks entries of new files, so that only the rewrite is refused
    [refused] = it.plan().tables
    assert [("metadata", "cluster")] == [(note.rule, note.step) for note in refused.refusals]
    assert "has the expression index by_day, which would miss" in refused.refusals[0].because
    assert not [step for step in refused.steps if step.kind == "cluster"]
    it.hudi.sql("drop index by_day on t")

    made = set()
    for _ in range(3):
        planned = it.plan()
        if not any(step.kind == "cluster" for step in planned.tables[0].steps):
            break
        step = get_step(planned)
        assert "sizes" == step.purpose
        slices = np.diff(step.groups.starts)
        made |= set(np.sign(step.groups.outputs - slices).tolist())
        assert_done(apply_here(planned))
    it.assert_right()
    assert {-1, 1} <= made  # packed, and split
    assert "secondary_index_by_x" in it.table.metadata_partitions()

    it.write(rows(20, ["a0001", "a3999", "b049", "a9999", "c001"]), options=COMPACT_METADATA)
    it.write(rows(20, ["a0002", "b149"]), "delete")
    it.write(rows(21, ["a9998", "b998"]), "insert")
    it.assert_right()
    if merge_on_read:
        it.hudi.compact(it.table, it.hudi.schedule(it.table, "COMPACT"))
    it.hudi.clean(it.table, keep_versions(1))
    it.assert_right()
