"""A run that its budget ended, or another declaration: the next run goes on, whoever writes."""

from __future__ import annotations

from pathlib import Path

from tests.crash.clustering_drill import PlannedDrill, make_drill_of

#: 24 file slices in three partitions
TABLE = Path(__file__).parents[1] / "tables" / "clustering" / "orders.zip"
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  files: {{target: 1MiB, small: 512KiB}}
  clustering: {asked}
  concurrency: {{lock: {{provider: filesystem}}}}
"""


class Declared(PlannedDrill):
    SPEC_TEXT = SPEC

    def now(self, asked: str) -> Declared:
        """The same table, declared otherwise."""
        return Declared(self.folder, {"asked": asked})


def declared(asked: str, folder: Path) -> Declared:
    return make_drill_of(Declared, TABLE, folder, asked=asked)


def applied(it: Declared) -> list[int]:
    """File slices that each run rewrites until a plan finds nothing to do."""
    found: list[int] = []
    while (plan := it.plan()).tables[0].steps and len(found) < 9:
        (outcome,) = it.apply(plan).tables[0].outcomes
        found.append(outcome.rewritten.slices)
    return found


def test_what_a_budget_left_goes_on_although_nobody_writes(tmp_path):
    it = declared("{columns: [customer_id], budget: {groups: 1}}", tmp_path / "t")
    rows = it.rows()

    assert [8, 8, 8] == applied(it)
    assert rows == it.rows()


def test_other_columns_and_another_curve_are_made_although_nobody_writes(tmp_path):
    it = declared("{columns: [customer_id]}", tmp_path / "t")

    assert [24] == applied(it)
    assert [3] == applied(it.now("{columns: [amount]}"))
    assert [3] == applied(it.now("{columns: [amount], curve: linear}"))
    assert [] == applied(it.now("{columns: [amount], curve: linear}"))


def test_hudis_own_rule_waits_for_commits_all_the_same(tmp_path):
    it = declared("{columns: [customer_id], when: always, budget: {groups: 1}}", tmp_path / "t")

    assert [8] == applied(it)
    assert [] == applied(it.now("{columns: [amount], when: always}"))
