"""The table whose metadata table is rebuilt is wrong in every turn, and never lacks a file."""

from __future__ import annotations

from reconciler.hudi.files.names import BaseName
from tests.bench.metadata_rebuild_speed import rename_a_file


def test_a_file_has_two_names_in_turn_and_stays_in_its_file_group(tmp_path):
    for name in ("a-0_0-0-0_20260101000000000", "b-0_9-0-9_20260101000000000"):
        (tmp_path / "p000000").mkdir(exist_ok=True)
        (tmp_path / "p000000" / f"{name}.parquet").touch()
    found = []
    for _ in range(3):
        found.append(sorted(path.name for path in tmp_path.glob("p000000/*.parquet")))
        rename_a_file(tmp_path)

    assert found[0] != found[1]
    assert found[0] == found[2]
    groups = [[BaseName.parse(name).file_id for name in names] for names in found]
    assert [["a-0", "b-0"]] * 3 == groups
