"""Compare file slices of real tables with Hudi's own file-system view."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from tests.file_slices import (
    keep_completed_slices,
    list_slices,
    select_latest_slices,
    select_merged_slices,
)
from tests.trees import unpack

TABLES = Path(__file__).parent
WITH_VIEW = sorted(
    path.name.removesuffix(".expected.json")
    for path in TABLES.glob("*.expected.json")
    if (json.loads(path.read_text()).get("fsview") or {}).get("partitions")
)


def by_hudi(slices, *, with_key):
    """Return Hudi's slices without CDC logs and without empty slices."""
    found = set()
    for file_id, key, base, logs in slices:
        names = tuple(sorted(log for log in logs if not log.endswith(".cdc")))
        if base or names:
            found.add((file_id, key if with_key else None, base, names))
    return found


def by_us(slices, *, with_key):
    return {(s.file_id, s.key if with_key else None, s.base, tuple(sorted(s.logs))) for s in slices}


@pytest.mark.parametrize("table", WITH_VIEW)
def test_the_slices_equal_those_of_hudis_view(table, tmp_path):
    unpack(TABLES / f"{table}.zip", tmp_path, hollow=True)
    expected = json.loads((TABLES / f"{table}.expected.json").read_text())
    view_by_hudi = expected["fsview"]
    state = observe(open_storage(str(tmp_path / table)), None, observed_ms=0)
    view = state.view

    assert set(view_by_hudi["partitions"]) == set(state.partitions)
    for path, answers in view_by_hudi["partitions"].items():
        every = list_slices(view, path)
        slices = keep_completed_slices(every, state.timeline, table_version=state.table_version)
        hudi = by_hudi(answers["latest"], with_key=True)
        assert hudi == by_us(select_latest_slices(slices), with_key=True), path
        if not expected.get("skip_merged"):
            hudi = by_hudi(answers["merged"], with_key=False)
            assert hudi == by_us(select_merged_slices(slices), with_key=False), path
        assert set(answers["replaced"]) <= {i for p, i in state.replaced if p == path}
        if "all" in answers:
            hudi = by_hudi(answers["all"], with_key=True)
            ours = by_us([s for s in every if not s.is_empty], with_key=True)
            assert hudi == ours, path


def test_most_tables_have_an_answer():

    assert len(WITH_VIEW) >= 30
