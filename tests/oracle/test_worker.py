"""The harness itself: real Hudi answers, and fails aloud."""

from __future__ import annotations

import pytest

from tests.oracle.bundles import TABLE_VERSION
from tests.oracle.hudi import (
    COMPACT_METADATA,
    INDEXES,
    HudiFailedError,
    data_files,
    directory_listing,
    keep_commits,
)
from tests.selection import long

pytestmark = pytest.mark.oracle
VERSIONS = ("0.15.0", "1.0.2", "1.2.0")


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        (version, kind) if (version, kind) == ("1.2.0", "mor") else long(version, kind)
        for version in VERSIONS
        for kind in ("mor", "cow")
    ],
)
def test_real_hudi_makes_serves_and_reads_a_table(real_hudi, tmp_path, version, kind):
    hudi = real_hudi(version)
    table = hudi.table(tmp_path / "t", merge_on_read=kind == "mor", options=INDEXES)
    first = hudi.write(table, [("a1", "a", 1), ("b1", "b", 1), ("b2", "b", 1)])
    hudi.write(table, [("a1", "a", 2)])
    hudi.savepoint(table, first)
    hudi.delete_savepoint(table, first)
    if kind == "mor":
        compaction = hudi.schedule(table, "COMPACT")
        assert compaction
        hudi.compact(table, compaction)
    hudi.write(table, [("b2", "b", 0)], "delete")
    clustering = hudi.schedule(table, "CLUSTER")
    assert clustering
    hudi.cluster(table, clustering)
    hudi.write(table, [("a1", "a", 3)], options=COMPACT_METADATA)
    before = hudi.rows(table)
    planned = hudi.planner(table, keep_commits(1))
    cleaned = hudi.clean(table, keep_commits(1))

    assert cleaned is not None
    assert sum(len(p["files"]) for p in planned["partitions"].values()) == cleaned["deleted"] > 0
    assert [["a1", "a", 3, "v3", 3.0], ["b1", "b", 1, "v1", 1.0]] == before
    assert before == hudi.rows(table) == hudi.rows(table, metadata=True)
    assert directory_listing(table.path) == hudi.listing(table)
    assert any(name.endswith(".clean") for name in table.instants())
    assert (
        f"hoodie.table.version={TABLE_VERSION[version]}"
        in (table.path / ".hoodie" / "hoodie.properties").read_text()
    )
    assert {"record_index", "bloom_filters", "files"} <= set(table.metadata_partitions())
    assert data_files(table.path)


def test_an_error_of_hudi_comes_with_its_causes(real_hudi, tmp_path):
    hudi = real_hudi("1.2.0")

    with pytest.raises(HudiFailedError, match=r"Exception"):
        hudi.rows(hudi.table(tmp_path / "nothing"))
