"""After a clean the metadata table is compared with the disk, whatever went wrong in writing it."""

from __future__ import annotations

import pytest

from reconciler.transaction.metadata import clean_sync
from tests.crash.drill import CASES, list_newest_files, make_drill

TABLES = ("cow_mdt_incremental__0.15.0", "cow_mdt_incremental__1.2.0", "mor_mdt__1.2.0")


def make(name, tmp_path):
    return make_drill(CASES / name / "table.zip", tmp_path / "t", retention="commits: 1")


@pytest.mark.parametrize("name", TABLES)
def test_a_removed_file_that_is_still_listed_is_a_difference(name, tmp_path, monkeypatch):
    it = make(name, tmp_path)
    plan = it.plan()
    files = plan.tables[0].steps[0].files
    partition, listed = files.partition[0].as_py(), files.name[0].as_py()
    real = clean_sync.plan_clean_sync

    def without_one(*arguments, removed_files, **others):
        kept = {path: set(names) - {listed} for path, names in removed_files.items()}
        return real(*arguments, removed_files=kept, **others)

    monkeypatch.setattr(clean_sync, "plan_clean_sync", without_one)
    result = it.apply(plan)

    (outcome,) = result.tables[0].outcomes
    (note,) = outcome.differences
    assert (5, "metadataListing") == (result.exit_code, note.rule)
    assert f"lists 1 files of partition {partition!r}" in note.because
    assert note.because.endswith(f"for example {listed}")


def test_a_file_that_another_program_lost_is_a_warning(tmp_path):
    it = make("mor_mdt__1.2.0", tmp_path)
    plan = it.plan()
    partitions = set(plan.tables[0].steps[0].files.partition.to_pylist())
    newest = sorted(list_newest_files(it.state()))
    lost = next(path for path in newest if path.rpartition("/")[0] in partitions)
    (it.table / lost).unlink()

    result = it.apply(plan)

    (outcome,) = result.tables[0].outcomes
    assert () == outcome.differences
    assert ["metadataListing"] == [note.rule for note in outcome.warnings]
    assert outcome.warnings[0].because.endswith(f"for example {lost.rpartition('/')[2]}")
