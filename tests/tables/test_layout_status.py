"""What a status says of the layout of tables that real Hudi wrote and clustered."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.planners.compose import plan_table
from reconciler.render.prometheus import status_prometheus
from reconciler.render.status import status_text
from reconciler.render.terminal import Terminal
from reconciler.spec.model import Clustering, ClusteringTrigger, FileSizes, TableSpec
from reconciler.state.observe import observe
from reconciler.status.table import table_status
from reconciler.storage.open import open_storage
from tests.trees import unpack

HERE = Path(__file__).parent
CASES = HERE.parent / "cases/cluster"
NOW = datetime(2026, 11, 22, tzinfo=UTC)


def status_of(archive, folder, **asked):
    path = next(unpack(archive, folder).rglob("hoodie.properties")).parents[1]
    asked.setdefault("when", ClusteringTrigger(overlap_above=0.5))
    spec = TableSpec(
        name="t",
        path=str(path),
        timezone="UTC",
        files=FileSizes(target=2**20, small=2**19),
        clustering=Clustering(**asked),
    )
    state = observe(open_storage(str(path)), spec, observed_ms=int(NOW.timestamp() * 1000))
    return table_status(spec, state, plan_table(spec, state, NOW))


def text_of(status):
    return " ".join(status_text([status], Terminal()).split())


def metrics_of(status):
    lines = status_prometheus([status], observed_at=NOW).splitlines()
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


def test_a_pending_clustering_says_what_it_has_in_hand(tmp_path):
    archive = CASES / "s15_pending_then_new__1.2.0/table.zip"
    found = status_of(archive, tmp_path, columns=("id",), curve="linear")
    (pending,) = found.layout.pending

    assert ("20261121043517557", "REQUESTED") == (pending.instant, pending.state)
    assert (2, 1, True) == (pending.file_groups, pending.partitions, pending.is_stuck)
    assert (
        "! stuck clustering 20261121043517557 requested for 19.4 hours, of 2 file groups in 1 "
        "partition; longer than concurrency.staleAfter"
    ) in text_of(found)
    assert 1 == text_of(found).count("20261121043517557 requested for")
    assert found.layout.last_clustering is None
    assert "last clustering none on the active timeline" in text_of(found)
    assert "1" == metrics_of(found)['reconciler_pending_clusterings{table="t"}']


def test_files_are_counted_by_the_spec_s_own_sizes(tmp_path):
    archive = CASES / "s30_incremental_partitions__1.2.0/table.zip"
    found = status_of(archive, tmp_path, columns=())

    assert [(32768, 1), (131072, 0), (524288, 3), (1048576, 0), (2097152, 0), (None, 0)] == [
        (size.below, size.files) for size in found.layout.sizes
    ]
    assert [("b", 2, 2), ("a", 1, 1), ("c", 1, 1)] == [
        (one.partition, one.files, one.small_files) for one in found.layout.worst
    ]
    assert "below 32 KiB 1 █" in text_of(found)
    assert "small files in 3 of 3 partitions b: 2 of 2 files small" in text_of(found)
    assert ["1", "1", "4", "4"] == [
        metrics_of(found)[f'reconciler_base_files{{table="t",le="{end}"}}']
        for end in ("32768", "131072", "524288", "+Inf")
    ]


def test_the_last_clustering_is_set_beside_the_declared_layout(tmp_path):
    archive = CASES / "s30_incremental_partitions__1.2.0/table.zip"
    packed = status_of(archive, tmp_path, columns=())
    ordered = status_of(archive, tmp_path, columns=("id",), curve="kd-tree")
    last = ordered.layout.last_clustering

    assert packed.layout.last_clustering.is_as_declared
    assert ("20261121051148760", (), False, False) == (
        last.instant,
        last.columns,
        last.is_as_declared,
        last.is_ours,
    )
    assert 67692 == last.age_seconds
    assert "by a writer of the table, not as declared: row order unchanged" in text_of(ordered)
    assert "67692" == metrics_of(ordered)['reconciler_last_clustering_age_seconds{table="t"}']


def test_what_the_plan_would_make_of_it_is_said(tmp_path):
    archive = CASES / "s22_oversize_single__1.2.0/table.zip"
    found = status_of(archive, tmp_path, columns=())
    planned = found.layout.planned

    assert (894743, 2, 1) == (
        planned.bytes_rewritten,
        planned.files_after,
        planned.small_files_after,
    )
    assert "the plan would rewrite 873.8 KiB: 3 → 2 base files (predicted)" in text_of(found)


@pytest.mark.parametrize("version", ["0.15.0", "1.2.0"])
def test_statistics_tell_how_often_files_cover_a_row(version, tmp_path):
    archive = HERE / f"indexed/{version}.zip"
    found = status_of(archive, tmp_path, columns=("id", "i"), curve="kd-tree")

    assert 1.0 == found.layout.overlap
    assert [("p=b", 2, 1.0), ("p=a", 1, 1.0)] == [
        (one.partition, one.files, one.overlap) for one in found.layout.worst
    ]
    assert "1.0 files cover a row on average" in text_of(found)
    assert "p=b: 2 of 2 files small, 1.0 cover a row" in text_of(found)
    assert "1" == metrics_of(found)['reconciler_overlap{table="t"}']


def test_without_a_clustering_block_there_is_no_layout(tmp_path):
    path = unpack(HERE / "indexed/1.2.0.zip", tmp_path)
    spec = TableSpec(name="t", path=str(path), timezone="UTC")
    state = observe(open_storage(str(path)), spec, observed_ms=0)
    found = table_status(spec, state, plan_table(spec, state, NOW))

    assert found.layout is None
    assert "layout" not in status_text([found], Terminal())
    assert "reconciler_base_files" not in status_prometheus([found], observed_at=NOW)
