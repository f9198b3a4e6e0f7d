"""Our plan of a compaction is the one that real Hudi made of the same table, field by field."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from reconciler.executor.compact.request import list_operations, make_plan
from reconciler.executor.compact.work import measure_inputs
from reconciler.planners.compact.planner import plan_compaction
from reconciler.planners.picture import TablePicture
from reconciler.spec.compaction import Compaction
from reconciler.spec.model import Concurrency, Lock, TableSpec
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from tests.scheduled_compactions import ARCHIVES, TESTS, find_schedules, read_plan, rewind
from tests.selection import long

#: each version once, beside a pending compaction, clustering, log compaction or write
USUAL = (
    "mor_pending_compaction__0.15.0/table",
    "tables/v8_mor_overlap",
    "compacting/1.2.0",
    "mor_pending_logcompaction__1.2.0/table",
    "pending_compaction_and_clustering_1.2.0",
)
#: of these Hudi cleaned what it had compacted, or planned beside a write in version 6
CLEANED = ("tables/v8_mor_part", "tables/v9_mor_part")
BESIDE_A_WRITE = ("tables/v6_mor_overlap", "tables/v6_mor_overlap_done")
SPEC = TableSpec(
    name="t",
    path="/t",
    timezone="UTC",
    compaction=Compaction(after_delta_commits=1),
    concurrency=Concurrency(lock=Lock(provider="filesystem")),
)
HUDIS_TARGET = 120 * 1024 * 1024


def name_of(archive):
    return str(archive.relative_to(TESTS).with_suffix(""))


def choose(archive):
    name = name_of(archive)
    return pytest.param(archive, id=name) if name.endswith(USUAL) else long(archive)


def unpack_tables(archive: Path, folder: Path) -> list[Path]:
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(folder)
    found = (file.parent.parent for file in folder.rglob(".hoodie/hoodie.properties"))
    return sorted(table for table in found if table.parent.name != ".hoodie")


def list_cases(archive, folder):
    """Yield each table as it was before Hudi scheduled a compaction, with what Hudi planned."""
    for table in unpack_tables(archive, folder / "unpacked"):
        for instant in find_schedules(table):
            yield rewind(table, instant, folder)


def sort_operations(operations):
    return sorted(operations, key=lambda one: (one["partitionPath"], one["fileId"]))


@pytest.mark.parametrize(
    "archive", [choose(a) for a in ARCHIVES if not name_of(a).endswith(CLEANED + BESIDE_A_WRITE)]
)
def test_our_compaction_plan_is_hudis_field_by_field(archive, tmp_path):
    cases = list(list_cases(archive, tmp_path))
    assert cases
    for case in cases:
        assert case.is_complete
        state = observe(open_storage(str(case.table)), None, observed_ms=0)

        step = plan_compaction(TablePicture(SPEC, state)).step

        operations = list_operations(step.groups)
        sizes = measure_inputs(operations, state)
        extra = case.plan["extraMetadata"]
        made = make_plan(operations, sizes, state, step.order, extra or {})
        data = made.encode(version=state.table_version, target_bytes=HUDIS_TARGET)
        ours = read_plan(data)
        hudis = dict(case.plan, extraMetadata=extra or {})
        assert sort_operations(hudis.pop("operations")) == sort_operations(ours.pop("operations"))
        assert hudis == ours


@pytest.mark.parametrize("name", BESIDE_A_WRITE[:1])
def test_in_version_6_no_compaction_is_planned_beside_a_pending_write(name, tmp_path):
    """Hudi refuses it too, unless its writers are told that others write beside them."""
    (case,) = list_cases(TESTS / f"{name}.zip", tmp_path)
    state = observe(open_storage(str(case.table)), None, observed_ms=0)
    (write,) = state.foreign_writes

    part = plan_compaction(TablePicture(SPEC, state))

    (note,) = part.warnings
    assert (None, "pendingWrite", 1) == (part.step, note.rule, len(part.findings))
    assert f"{write.action} {write.requested} is pending" in note.because
