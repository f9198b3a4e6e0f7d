"""Plan, apply, plan: empty, on every table history there is, and nothing that is read is lost."""

from __future__ import annotations

import pytest

from tests.crash.drill import CASES, data_files, drill, newest, savepointed, traces, unlisted


@pytest.mark.parametrize("retention", ["commits: 1", "fileVersions: 1"])
@pytest.mark.parametrize("case", sorted(path.name for path in CASES.iterdir() if path.is_dir()))
def test_the_plan_after_an_apply_is_empty(case, retention, tmp_path):
    it = drill(CASES / case / "table.zip", tmp_path / "t", retention=retention)
    before = it.state()
    differences = unlisted(it, before)
    plan = it.plan()
    result = it.apply(plan)

    assert (result.exit_code, traces(it.table)) == (0, [])
    state = it.state()
    assert newest(state) == newest(before)
    assert unlisted(it, state) == differences
    assert newest(before) | savepointed(before) <= data_files(it.table)
    after = data_files(it.table)
    assert [(t.steps, t.error) for t in it.plan().tables] == [((), None)]
    assert it.apply(plan).exit_code == 0
    assert data_files(it.table) == after
