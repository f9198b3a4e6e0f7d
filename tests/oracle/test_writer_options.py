"""Real Hudi that writes with the options that we print makes a table as its spec declares it."""

from __future__ import annotations

import shutil

import pytest

import reconciler
from reconciler import api
from reconciler.hudi_engine.model import HudiRelease, WriterEngine
from reconciler.hudi_engine.writer_options import make_writer_options
from tests.oracle.bundles import TABLE_VERSION
from tests.oracle.hudi import HudiTable, data_files
from tests.selection import EVERY_CASE

pytestmark = pytest.mark.oracle
#: one is enough every day: that each release has the names is tested without it
VERSIONS = ("1.2.0", *(("0.15.0", "1.0.2", "1.1.1") if EVERY_CASE else ()))
#: files of this Hudi begin at 430 kB, of their bloom filter
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: lake.orders}}
spec:
  path: orders
  timezone: UTC
  table:
    {{type: COPY_ON_WRITE, version: {version}, recordKey: [id], partitionBy: [p], ordering: [ts]}}
  files: {{target: 470kB, small: 460kB, recordSize: 100}}
  retention: {{commits: 1}}
  clustering: {{columns: [id, n], when: {{smallFileShareAbove: 1}}}}
  index: {{columns: [id, n], hudi: build}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""
#: that tests run in one process, with little of everything; none is about what is declared
HERE = {"hoodie.embed.timeline.server": "false", "hoodie.upsert.shuffle.parallelism": "1"}


@pytest.mark.parametrize("version", VERSIONS)
def test_who_writes_with_the_printed_options_keeps_to_the_spec(version, real_hudi, tmp_path):
    hudi = real_hudi(version)
    file = tmp_path / "orders.yaml"
    file.write_text(SPEC.format(version=TABLE_VERSION[version]))
    (spec,) = reconciler.load_specs(file)
    found = make_writer_options(spec, WriterEngine.SPARK, HudiRelease(version.rpartition(".")[0]))
    printed = {option.key: option.value for option in found.options}
    table = HudiTable(path=tmp_path / "orders", options={**printed, **HERE})

    hudi.write(table, [(f"a{n}", "a", 2) for n in range(40)])
    hudi.write(table, [("a1", "a", 1), ("b1", "b", 1)])
    _leave_a_failed_write(table)
    hudi.write(table, [("a2", "a", 3)])

    rows = {row[0]: row[2] for row in hudi.rows(table)}
    assert (2, 3, 1) == (rows["a1"], rows["a2"], rows["b1"]), "the greater ts wins"
    assert 4 == len(data_files(table.path)), "inserts filled one file, and nobody cleaned"
    assert all(name.startswith(("p=a/", "p=b/")) for name in data_files(table.path))
    assert [] == [name for name in table.instants() if "clean" in name or "replace" in name]
    assert (version == "1.2.0") == any("rollback" in name for name in table.instants())
    assert "column_stats" in table.metadata_partitions()

    (status,) = api.status(spec)
    assert TABLE_VERSION[version] == status.table_version
    assert ("id", "n") == tuple(c for c in status.index.hudi_columns or () if c[0] != "_")
    assert () == status.writers


def _leave_a_failed_write(table: HudiTable) -> None:
    """What a writer leaves that dies at once: no heartbeat, no files."""
    (asked, *_), (begun, *_) = table.instants(".requested"), table.instants(".inflight")
    time, _, rest = asked.partition(".")
    failed = str(int(table.last_instant()) + 1)
    shutil.copy(table.timeline / asked, table.timeline / f"{failed}.{rest}")
    shutil.copy(table.timeline / begun, table.timeline / begun.replace(time, failed))
