"""We and real Hudi write to one table with a simple bucket index in turns.

After every turn both find the rows that a plain model has, each bucket has one file group, and each
key is in the bucket that Hudi's own class gives it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import pytest

import reconciler
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from tests.oracle.bundles import TABLE_VERSION, VERSIONS
from tests.oracle.hudi import COMPACT_METADATA
from tests.oracle.our_clustering import apply_here, assert_done
from tests.oracle.our_writer import make_spec, write
from tests.oracle.test_writes import (
    LATE,
    OURS,
    Both,
    hudi_cleans,
    hudi_deletes,
    hudi_inserts,
    hudi_upserts,
    hudi_writes_and_rolls_it_back,
    play,
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
        rows = sorted(self.model.values(), key=repr)
        assert rows == self.hudi.rows(self.table, metadata=False)
        state = observe(open_storage(str(self.table.path)), None, observed_ms=0)
        view, files = state.view, state.files
        ids = files.group_id.to_pylist()
        live = {int(view.group[at]) for at in (view.is_live & view.is_visible).nonzero()[0]}
        found = Counter((int(files.group_partition[one]), ids[one][:8]) for one in live)
        assert {1} >= set(found.values()), found
        placed = self.hudi.rows(self.table, metadata=True, columns=("id", "_hoodie_file_name"))
        keys = [key for key, _name in placed]
        wanted = self.hudi.ask("buckets", keys=keys, fields="id", count=BUCKETS)
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
