"""Rebuild metadata partitions of tables that real Hudi wrote."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import reconciler
from reconciler.hudi.files.table_files import FileKind
from reconciler.state.current_files import find_newest_bases
from tests.crash.test_metadata_repair_stops import RepairDrill, make_drill
from tests.metadata_lies import MetadataLiar
from tests.selection import long
from tests.trees import unpack

TABLES = Path(__file__).parent


def find_base(it):
    return min(p for p in it.table.rglob("*.parquet") if ".hoodie" not in p.parts)


def test_an_index_that_cannot_be_rebuilt_is_a_warning_and_no_step(tmp_path):
    it = make_drill("0.15.0", tmp_path / "t", "ranges", repair="rebuild")

    (table,) = it.plan().tables

    assert () == table.steps
    (note,) = [note for note in table.warnings if note.rule == "metadata"]
    assert "d38 of type decimal128(38, 10)" in note.because
    assert note.because.endswith(
        "; declare metadata.repair: drop, and a Hudi writer that has the index switched on builds "
        "it anew"
    )


@pytest.mark.long
def test_a_record_index_that_hudi_does_not_keep_is_not_rebuilt(tmp_path):
    it = make_drill("1.2.0", tmp_path / "t", "both", repair="rebuild")
    file = it.table / ".hoodie/hoodie.properties"
    text = re.sub(r"(?m)^hoodie.populate.meta.fields=.*\n", "", file.read_text())
    file.write_text(f"{text}hoodie.populate.meta.fields=false\n")

    (table,) = it.plan().tables

    assert [("rebuild", ("bloom_filters",))] == [(s.change, s.partitions) for s in table.steps]
    assert "no Hudi keeps the record index of a table without meta columns" in (
        table.warnings[0].because
    )


@pytest.mark.long
def test_an_index_that_turns_out_to_be_too_large_stays_and_is_said(tmp_path, monkeypatch):
    it = make_drill("1.2.0", tmp_path / "t", "both", repair="rebuild")
    plan, live = it.plan(), it.live
    monkeypatch.setattr("reconciler.executor.metadata_records.MAX_RECORDS", 3)

    outcomes = it.apply(plan).tables[0].outcomes

    assert live == it.live
    assert ("bloom_filters",) == outcomes[0].repaired.rebuilt
    (left,) = outcomes[1].repaired.left
    assert ("record_index",) == left.partitions
    assert "the table has more than" in left.because
    assert "declare metadata.repair: drop" in left.because


@pytest.mark.parametrize("version", [long("0.15.0"), long("1.0.2"), long("1.2.0")])
def test_a_damaged_base_file_changes_nothing_and_is_named(version, tmp_path):
    it = make_drill(version, tmp_path / "t", "both", repair="rebuild")
    plan, live, base = it.plan(), it.live, find_base(it)
    base.write_bytes(base.read_bytes()[:-1] + b"?")

    result = it.apply(plan)

    assert live == it.live
    assert base.name in (result.tables[0].error or "")


def test_only_what_cannot_be_rebuilt_is_dropped_from_a_table_that_is_made_anew(tmp_path):
    it = make_drill("0.15.0", tmp_path / "t", "files", repair="rebuild")
    plan = it.plan()
    (step,) = plan.tables[0].steps
    assert "; column_stats is dropped: " in step.because

    result = it.apply(plan)

    outcome = result.tables[0].outcomes[0]
    assert ("column_stats",) == outcome.repaired.dropped
    assert ("bloom_filters", "files", "record_index") == outcome.repaired.rebuilt == it.live
    (note,) = outcome.warnings
    assert note.because.startswith("column_stats was dropped, because it cannot be rebuilt: ")
    assert "d38 of type decimal128(38, 10)" in note.because
    assert ((), ()) == (it.plan().tables[0].steps, it.plan().tables[0].warnings)


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


def open_table(name, folder):
    """Unpack a table that real Hudi wrote, and list a file that it does not have."""
    unpacked = unpack(TABLES / f"{name}.zip", folder / "unpacked")
    (inner,) = (p.parent for p in unpacked.rglob(".hoodie") if p.parent.name != "metadata")
    shutil.move(inner, folder / "table")
    it = RepairDrill(folder, {"repair": "rebuild"})
    partition = reconciler.observe(it.spec).partitions[0]
    MetadataLiar(it.table).list_file(partition, "x-0_0-0-0_20200101000000000.parquet", 10)
    return it


@pytest.mark.parametrize(
    "name",
    [
        "v9_index",  # old file slices
        "reading/clustered_logs_alone_0.15.0",  # replaced file groups, and slices without a base
        *map(
            long,
            (
                "v8_mor_overlap_done",  # a compaction beside writes
                "reading/clustered_logs_alone_1.2.0",
                "reading/clustered_logs_0.15.0",
                "reading/clustered_logs_1.2.0",
                "reading/clustered_0.15.0",
                "reading/clustered_1.2.0",
                "updated/1.0.2",
                "updated/1.2.0",
                "v8_cdc_mor",
                "v9_cdc_mor",
                "v9_mor_overlap_done",
                "lying/evolution_1.2.0",  # Hudi's own column_stats lacks entries
                "lying/statistics_1.2.0",  # Hudi's own column_stats is wrong
            ),
        ),
    ],
)
def test_tables_of_every_kind_are_rebuilt(name, tmp_path):
    it = open_table(name, tmp_path)
    live = it.live

    result = it.apply(it.plan())

    assert (0, None) == (result.exit_code, result.tables[0].error)
    assert live == it.live == result.tables[0].outcomes[0].repaired.rebuilt
    assert () == it.verify().differences
    assert () == it.plan().tables[0].steps


@pytest.mark.parametrize(
    "name",
    ["failed/v6_failed_mor", *map(long, ("v6_cow_part", "v8_mor_part", "v9_cow_part"))],
)
def test_tables_with_pending_writes_wait(name, tmp_path):
    it = open_table(name, tmp_path)

    (table,) = it.plan().tables

    assert () == table.steps
    (note,) = [note for note in table.warnings if note.rule == "metadata"]
    assert "is pending and may rely on it; plan again" in note.because


def test_old_files_with_damaged_footers_are_left_out_as_by_hudi(tmp_path):
    it = open_table("v9_index", tmp_path)
    state = reconciler.observe(it.spec)
    old = {*range(len(state.files))} - {*find_newest_bases(state.view).tolist()}
    row = next(r for r in sorted(old) if state.files.kind[r] == FileKind.BASE)
    (it.table / state.files.locate_file(row)[0]).write_bytes(b"PAR1" * 5)
    live = it.live

    result = it.apply(it.plan())

    assert (0, None) == (result.exit_code, result.tables[0].error)
    assert live == it.live
    assert () == it.verify().differences


def list_commits(it):
    folder = it.table / ".hoodie/metadata/.hoodie/timeline"
    return {p.name.split("_")[0] for p in folder.glob("*.deltacommit")}
