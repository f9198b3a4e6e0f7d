"""Rebuild metadata partitions of tables that real Hudi wrote."""

from __future__ import annotations

import pytest

from tests.crash.test_metadata_repair_stops import make_drill
from tests.metadata_lies import MetadataLiar
from tests.selection import long


def find_base(it):
    return min(p for p in it.table.rglob("*.parquet") if ".hoodie" not in p.parts)


@pytest.mark.long
def test_an_index_that_cannot_be_rebuilt_stays_and_is_said(tmp_path):
    it = make_drill("0.15.0", tmp_path / "t", "ranges", repair="rebuild")
    live = it.live

    result = it.apply(it.plan())

    assert live == it.live
    (left,) = result.tables[0].outcomes[0].repaired.left
    assert ("column_stats",) == left.partitions
    assert "d38 of type decimal128(38, 10)" in left.because


@pytest.mark.parametrize("version", [long("0.15.0"), long("1.0.2"), long("1.2.0")])
def test_a_damaged_base_file_changes_nothing_and_is_named(version, tmp_path):
    it = make_drill(version, tmp_path / "t", "ranges", repair="rebuild")
    plan, live, base = it.plan(), it.live, find_base(it)
    base.write_bytes(base.read_bytes()[:-1] + b"?")

    result = it.apply(plan)

    assert live == it.live
    assert base.name in (result.tables[0].error or "")


def test_only_what_cannot_be_rebuilt_is_dropped_from_a_table_that_is_made_anew(tmp_path):
    it = make_drill("0.15.0", tmp_path / "t", "files", repair="rebuild")

    result = it.apply(it.plan())

    outcome = result.tables[0].outcomes[0]
    assert ("column_stats",) == outcome.repaired.dropped
    assert ("bloom_filters", "files", "record_index") == outcome.repaired.rebuilt == it.live
    (note,) = outcome.warnings
    assert note.because.startswith("column_stats was dropped: column_stats cannot be rebuilt: ")
    assert "d38 of type decimal128(38, 10)" in note.because


@pytest.mark.long
def test_the_deltacommits_of_an_earlier_build_go_with_its_partitions(tmp_path):
    it = make_drill("1.2.0", tmp_path / "t", "both", repair="rebuild")
    it.apply(it.plan())
    before = list_commits(it)
    first = make_drill("1.2.0", tmp_path / "u", "both", repair="rebuild")
    assert len(before) == len(list_commits(first)) + 2

    base = find_base(it)
    MetadataLiar(it.table).remove_filter(base.parent.name, base.name)
    it.apply(it.plan())

    assert len(before) == len(list_commits(it))
    assert () == it.verify().differences


def list_commits(it):
    folder = it.table / ".hoodie/metadata/.hoodie/timeline"
    return {p.name.split("_")[0] for p in folder.glob("*.deltacommit")}
