"""A column_stats index that the properties list and nobody can read stops no plan and no read."""

from __future__ import annotations

import shutil

import pytest

import reconciler
from tests.crash.drill import NOW
from tests.rewrite_jobs import unpack_table

FOLDER = ".hoodie/metadata/column_stats"
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  timezone: UTC
  clustering: {{columns: [name], when: {{overlapAbove: 1}}}}
  index: {{columns: [id], hudi: build}}
  queries: [{{name: one, where: "id = 3"}}]
  concurrency: {{lock: {{provider: filesystem}}}}
"""


def gone(folder):
    shutil.rmtree(folder)
    return "the properties list this metadata partition, but it has no file group"


def a_folder_for_a_log(folder):
    log = max(path for path in folder.iterdir() if ".log." in path.name and path.stat().st_size)
    log.unlink()
    log.mkdir()
    return f"{FOLDER}/{log.name}: is a folder, expected a file"


def planned(path, folder):
    spec = folder / "spec.yaml"
    spec.write_text(SPEC.format(path=path))
    (found,) = reconciler.plan(reconciler.load_specs(spec), now=NOW).tables
    return found


@pytest.mark.parametrize("damage", [gone, a_folder_for_a_log])
def test_a_plan_goes_on_by_footers_where_column_stats_is_damaged(damage, tmp_path):
    path = unpack_table("v9_index", tmp_path)
    well = planned(path, tmp_path)
    says = damage(path / FOLDER)
    found = planned(path, tmp_path)

    assert found.error is None
    assert len(well.predictions) == 1
    assert well.predictions == found.predictions
    notes = [note.because for note in found.warnings if note.rule == "columnStats"]
    assert any("is ignored" in note and "queries" in note for note in notes)
    assert all(says in note for note in notes)
    assert all("let a Hudi writer rebuild the metadata table" in note for note in notes)


def test_a_folder_in_the_place_of_the_listing_is_one_error_with_a_remedy(tmp_path):
    path = unpack_table("v9_index", tmp_path)
    a_folder_for_a_log(path / ".hoodie/metadata/files")
    found = planned(path, tmp_path)

    assert "is a folder, expected a file; " in found.error
    assert ".hoodie/metadata/files/" in found.error
    assert "let a Hudi writer rebuild the metadata table" in found.error
