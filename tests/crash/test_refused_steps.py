"""A refusal of one kind of step: the other steps of the table are planned and applied."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

import reconciler
from reconciler.errors import PlanError
from reconciler.executor.fresh_plan import FreshPlan
from reconciler.executor.gate import RefusedError
from reconciler.executor.session import ApplyChange
from reconciler.plans.document import compute_steps_digest, dump_plan, load_plan
from reconciler.plans.model import Note, TablePlan
from reconciler.render.plan_text import plan_text
from reconciler.render.result import result_json, result_text
from reconciler.render.terminal import Terminal
from reconciler.spec.guard_policy import GuardPolicy, Waiver
from tests.crash.clustering_drill import PlannedDrill, make_drill_of
from tests.crash.drill import Killed
from tests.storage_wrappers import FaultyStorage, StorageFault

#: Hudi 1.2.0 wrote it in 8 commits, each with new small files
TABLE = Path(__file__).parents[1] / "tables" / "clustering" / "orders.zip"
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  retention: {{commits: 3}}
  files: {{target: 1MiB, small: 512KiB}}
  clustering: {{columns: [{by}]}}
  index: {{columns: [amount]}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""
NO_CLEAN = GuardPolicy(name="gold", max_files_removed=0)
NO_REWRITE = GuardPolicy(name="gold", max_rewrite=0)


class Story(PlannedDrill):
    SPEC_TEXT = SPEC

    def guard(self, *policies: GuardPolicy) -> None:
        self.spec = replace(self.spec, guarded_by=policies)


@pytest.fixture
def make(tmp_path):
    def unpacked(by: str = "customer_id") -> Story:
        return make_drill_of(Story, TABLE, tmp_path / "t", by=by)

    return unpacked


def kinds(steps) -> list[str]:
    return [step.kind for step in steps]


def refused(notes) -> list[tuple[str, str | None]]:
    return [(note.rule, note.step) for note in notes]


def test_a_refused_clustering_leaves_the_clean_and_the_index(make):
    it = make(by="nope")
    rows, plan = it.rows(), it.plan()
    [reviewed] = plan.tables
    result = it.apply(plan)
    [table] = result.tables

    assert [("columns", "cluster")] == refused(reviewed.refusals)
    assert ["index", "clean"] == kinds(reviewed.steps) == kinds(table.outcomes)
    assert (3, "blockedInPart", None) == (result.exit_code, table.status, table.error)
    assert reviewed.refusals == table.refusals
    assert table.removed == reviewed.impact.files_removed > 0
    assert rows == it.rows()
    assert "blocked in part" in result_text(result, Terminal())
    assert "! cluster refused" in result_text(result, Terminal())
    [document] = json.loads(result_json(result))["tables"]
    assert ["cluster"] == [refusal["step"] for refusal in document["refusals"]]


def test_a_refused_clean_leaves_the_clustering(make):
    it = make()
    it.guard(NO_CLEAN)
    rows, plan = it.rows(), it.plan()
    [reviewed] = plan.tables
    result = it.apply(plan)
    [table] = result.tables

    assert [("maxFilesRemoved", "clean")] == refused(reviewed.refusals)
    assert ["cluster", "index", "clean"] == kinds(reviewed.steps)
    assert 0 == reviewed.impact.files_removed < reviewed.impact.bytes_rewritten
    assert ["cluster", "index"] == kinds(table.outcomes)
    assert (3, 0) == (result.exit_code, table.removed)
    assert rows == it.rows()


def test_a_refused_clustering_is_shown_with_what_it_would_bring(make):
    it = make()
    free = it.plan().tables[0]
    it.guard(NO_REWRITE)
    plan = it.plan()
    [table] = plan.tables
    said = " ".join(plan_text(plan, Terminal()).split())
    steps = {step.kind: step for step in table.steps}

    assert steps["cluster"].groups.file_id.equals(free.steps[0].groups.file_id)
    assert (free.layout, free.predictions) == (table.layout, table.predictions)
    assert 0 == table.impact.bytes_rewritten
    assert "this plan writes" not in steps["index"].because
    assert "! cluster not applied (maxRewrite): " in said
    assert "= layout with the refused clustering: " in said
    assert "~ cluster " not in said
    assert "Applying updates the index of 1 table and removes" in said
    assert "to rewrite" not in said


def test_a_waiver_lets_the_steps_run_that_were_shown_as_refused(make):
    it = make()
    it.guard(NO_CLEAN)
    shown = it.plan().tables[0]
    waiver = Waiver(rule="maxFilesRemoved", table="t", until="2199-12-31", reason="backfill")
    it.guard(replace(NO_CLEAN, waivers=(waiver,)))
    plan = it.plan()
    result = it.apply(plan, specs=[it.spec])
    [clean] = (step for step in shown.steps if step.kind == "clean")

    assert compute_steps_digest(shown) == compute_steps_digest(plan.tables[0])
    assert (0, len(clean.files)) == (result.exit_code, result.tables[0].removed)


def test_the_digest_covers_refusals_and_the_steps_that_they_refuse(make):
    it = make()
    it.guard(NO_CLEAN)
    document = json.loads(dump_plan(it.plan()))
    [table] = document["tables"]
    edits = {"refusals": [], "steps": table["steps"][:-1]}
    for field, value in edits.items():
        edited = {**document, "tables": [{**table, field: value}]}

        with pytest.raises(PlanError, match="was edited after it was made"):
            load_plan(json.dumps(edited).encode(), "plan.json")


def test_a_refused_step_of_a_forged_plan_does_not_run_under_the_policy(make):
    """Somebody removes the refusal, and computes the digests of the plan again."""
    it = make()
    it.guard(NO_CLEAN)
    plan = it.plan()
    forged = replace(plan, tables=(replace(plan.tables[0], refusals=()),))
    result = it.apply(load_plan(dump_plan(forged), "plan.json"), specs=[it.spec])
    [table] = result.tables

    assert [("maxFilesRemoved", "clean")] == refused(table.refusals)
    assert ["cluster", "index"] == kinds(table.outcomes)
    assert (3, 0) == (result.exit_code, table.removed)


@pytest.mark.parametrize(
    ("policy", "left"),
    [(NO_CLEAN, ["cluster", "index"]), (NO_REWRITE, ["index", "clean"])],
    ids=["clean", "cluster"],
)
def test_a_policy_of_today_refuses_one_step_of_a_reviewed_plan(make, policy, left):
    it = make()
    plan = it.plan()
    result = it.apply(plan, specs=[replace(it.spec, guarded_by=(policy,))])
    [table] = result.tables

    assert ["cluster", "index", "clean"] == kinds(plan.tables[0].steps)
    assert left == kinds(table.outcomes)
    assert (3, "blockedInPart") == (result.exit_code, table.status)


def test_a_step_that_only_the_table_of_today_refuses_is_left(make):
    """Since the review a writer has begun to map keys to file groups: rows would be lost."""
    it = make()
    plan = it.plan()
    (it.table / ".hoodie/.bucket_index/consistent_hashing_metadata/dt=1").mkdir(parents=True)
    (it.table / ".hoodie/.bucket_index/consistent_hashing_metadata/dt=1/0.hashing_meta").touch()
    result = it.apply(plan)
    [table] = result.tables

    assert [("bucketIndex", "cluster")] == refused(table.refusals)
    assert ["index", "clean"] == kinds(table.outcomes)
    assert (3, None) == (result.exit_code, table.error)


def test_a_refused_step_brings_no_other_step_to_a_blocked_table(make):
    it = make()
    it.guard(GuardPolicy(name="gold", min_retention={"commits": 5}))
    [table] = reconciler.plan([it.spec], now=datetime(2023, 1, 1, tzinfo=UTC)).tables

    assert [("clock", None), ("minRetention", "clean")] == refused(table.refusals)
    assert () == table.steps


def test_nothing_oscillates_while_a_step_is_refused(make):
    it = make(by="nope")
    it.apply(it.plan())
    again = it.plan()
    result = it.apply(again)

    assert () == again.tables[0].steps
    assert (3, "blockedInPart") == (result.exit_code, result.tables[0].status)
    assert () == result.tables[0].outcomes


def test_a_refused_clustering_is_not_resumed_and_the_clean_goes_on(make):
    """Its owner died; by now a policy forbids what it would rewrite."""
    it = make()
    with pytest.raises(Killed):
        it.apply(it.plan(), around=lambda s: FaultyStorage(s, StorageFault(at=6), Killed()))
    [pending] = it.state().pending_clusterings
    rows = it.rows()
    it.guard(NO_REWRITE)
    plan = it.plan()
    [table] = it.apply(plan).tables

    assert (
        [("maxRewrite", "cluster")] == refused(plan.tables[0].refusals) == refused(table.refusals)
    )
    assert "resume" in kinds(plan.tables[0].steps)
    assert "resume" not in kinds(table.outcomes)
    assert "clean" in kinds(table.outcomes)
    assert table.error is None
    assert [pending.instant] == [one.instant for one in it.state().pending_clusterings]
    assert rows == it.rows()

    it.guard()
    result = it.apply(it.plan())

    assert 0 == result.exit_code
    assert () == it.state().pending_clusterings
    assert rows == it.rows()


@pytest.mark.parametrize("step", ["cluster", "clean", None])
def test_a_step_looks_once_more_whether_it_is_refused(step):
    refusal = Note("bucketIndex", "b", step="cluster")
    plan = TablePlan(name="t", path="/t", spec={}, spec_digest="", refusals=(refusal,))
    change = ApplyChange()
    change.refusable = step
    change.fresh = FreshPlan(state=None, plan=plan)

    if step == "cluster":
        with pytest.raises(RefusedError) as raised:
            change.take_fresh_plan()
        assert (refusal,) == raised.value.notes
    else:
        assert plan is change.take_fresh_plan().plan
