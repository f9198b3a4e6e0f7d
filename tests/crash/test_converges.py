"""Plan, apply, plan: empty, on every table history there is, and nothing that is read is lost."""

from __future__ import annotations

import pytest

from tests.crash.drill import (
    CASES,
    list_data_files,
    list_newest_files,
    list_savepointed_files,
    list_traces,
    list_unlisted,
    make_drill,
)
from tests.selection import long

RETENTIONS = ("commits: 1", "fileVersions: 1")
TABLES = sorted(path.name for path in CASES.iterdir() if path.is_dir())
#: most histories are there for several table versions: each of those in turn gets one retention
PAIRS = [
    (case, retention) if (number + turn) % 2 == 0 else long(case, retention)
    for number, case in enumerate(TABLES)
    for turn, retention in enumerate(RETENTIONS)
]


@pytest.mark.parametrize(("case", "retention"), PAIRS)
def test_the_plan_after_an_apply_is_empty(case, retention, tmp_path):
    it = make_drill(CASES / case / "table.zip", tmp_path / "t", retention=retention)
    before = it.state()
    differences = list_unlisted(it, before)
    plan = it.plan()
    result = it.apply(plan)

    assert (result.exit_code, list_traces(it.table)) == (0, [])
    state = it.state()
    assert list_newest_files(state) == list_newest_files(before)
    assert list_unlisted(it, state) == differences
    assert list_newest_files(before) | list_savepointed_files(before) <= list_data_files(it.table)
    after = list_data_files(it.table)
    assert [(t.steps, t.error) for t in it.plan().tables] == [((), None)]
    assert it.apply(plan).exit_code == 0
    assert list_data_files(it.table) == after
