"""A clustering and a clean of one plan: both are done in one apply, and nothing is left to plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.executor import session
from reconciler.planners import compose
from tests.crash.clustering_drill import PlannedDrill, make_drill_of

#: Hudi 1.2.0 wrote it in 8 commits, each with new small files: 42 files, of which 24 are read
TABLE = Path(__file__).parents[1] / "tables" / "clustering" / "orders.zip"
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  retention: {{{retention}}}
  files: {{target: 1MiB, small: 512KiB}}
  clustering: {{columns: [customer_id, amount]}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""


class Both(PlannedDrill):
    SPEC_TEXT = SPEC


@pytest.mark.parametrize("retention", ["commits: 3", "fileVersions: 1"])
def test_both_are_done_as_reviewed(retention, tmp_path):
    it = make_drill_of(Both, TABLE, tmp_path / "t", retention=retention)
    rows, plan = it.rows(), it.plan()
    (reviewed,) = plan.tables
    result = it.apply(plan)
    (table,) = result.tables
    clustered, cleaned = table.outcomes
    planned = reviewed.steps[1].files.name.to_pylist()

    assert ["cluster", "clean"] == [step.kind for step in reviewed.steps]
    assert (0, None) == (result.exit_code, table.error)
    assert (24, 3) == (clustered.rewritten.slices, clustered.rewritten.files_after)
    assert len(planned) == cleaned.removed > 0
    assert [] == [name for name in planned if list(it.table.rglob(name))]
    assert rows == it.rows()


def test_then_there_is_nothing_to_do(tmp_path):
    it = make_drill_of(Both, TABLE, tmp_path / "t", retention="commits: 3")
    it.apply(it.plan())

    (table,) = it.plan().tables
    assert () == table.steps


def test_the_clean_is_planned_without_another_rewrite(tmp_path, monkeypatch):
    """Then the replaced files count as newest ones once more, and they are small."""
    it = make_drill_of(Both, TABLE, tmp_path / "t", retention="commits: 3")
    planned = []

    def plan_table(*arguments, **options):
        planned.append(compose.plan_table(*arguments, **options))
        return planned[-1]

    monkeypatch.setattr(session, "plan_table", plan_table)
    it.apply(it.plan())

    assert [["cluster", "clean"], ["clean"]] == [
        [step.kind for step in plan.steps] for plan in planned
    ]
