"""The GitHub workflows: what they may do, and what they do on a merge from end to end."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from reconciler import runtime
from tests.ci.actions import Runner
from tests.ci.lake import NO_REMOVAL, TEMPLATES, Lake, needs
from tests.ci.pipelines import Pipelines

#: GitHub's machines have them
with_tools = needs("curl", "jq")
WORKFLOWS = sorted((TEMPLATES / "github" / "workflows").glob("*.yml"))
ACTION = TEMPLATES / "github" / "actions" / "reconciler" / "action.yml"
DOCUMENTS = {file.stem: yaml.safe_load(file.read_text(encoding="utf-8")) for file in WORKFLOWS}
JOBS = {
    f"{name}/{job}": body
    for name, document in DOCUMENTS.items()
    for job, body in document["jobs"].items()
}
EVENTS = {name: document[True] for name, document in DOCUMENTS.items()}  # YAML 1.1 reads `on` so


def steps() -> Iterator[tuple[str, dict]]:
    yield from ((name, step) for name, job in JOBS.items() for step in job["steps"])
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    yield from (("action", step) for step in action["runs"]["steps"])


def test_no_script_has_an_expression_in_it():

    assert [] == [(name, step["run"]) for name, step in steps() if "${{" in step.get("run", "")]


def test_nothing_runs_code_of_a_fork_beside_a_secret():
    text = "".join(file.read_text(encoding="utf-8") for file in WORKFLOWS)

    assert "pull_request_target" not in str(EVENTS)
    assert "workflow_run" not in str(EVENTS)
    assert "secrets." not in text
    assert JOBS["reconciler-plan/lint"]["permissions"] == {"contents": "read"}
    assert JOBS["reconciler-plan/plan"]["if"] == (
        "github.event.pull_request.head.repo.full_name == github.repository"
    )


def test_every_job_has_the_permissions_it_needs_and_an_end():
    granted = {name: job["permissions"] for name, job in JOBS.items()}
    read = {"contents": "read"}
    role = {**read, "id-token": "write"}

    assert all(document["permissions"] == {} for document in DOCUMENTS.values())
    assert all(document["concurrency"]["group"] for document in DOCUMENTS.values())
    assert all(job["timeout-minutes"] <= 360 for job in JOBS.values())
    assert granted == {
        "reconciler-plan/lint": read,
        "reconciler-plan/plan": {**role, "pull-requests": "write"},
        "reconciler-apply/find": {**role, "actions": "read", "pull-requests": "read"},
        "reconciler-apply/apply": {**role, "pull-requests": "write"},
        "reconciler-drift/drift": {**role, "issues": "write"},
        "reconciler-scheduled-apply/apply": role,
    }


def test_what_writes_waits_for_an_environment():
    behind = {name: job.get("environment") for name, job in JOBS.items()}
    writing = {name for name, job in JOBS.items() if "RECONCILER_WRITE_ROLE" in str(job)}

    assert {name for name, environment in behind.items() if environment} == writing
    assert behind["reconciler-apply/apply"] == "production"


def test_actions_of_others_are_pinned_and_a_checkout_leaves_no_token():
    used = [step for _, step in steps() if "uses" in step]

    assert [] == [
        s["uses"] for s in used if not re.fullmatch(r"\./.*|[\w-]+/[\w-]+@v\d+", s["uses"])
    ]
    assert {False} == {
        step["with"]["persist-credentials"] for step in used if "checkout" in step["uses"]
    }


def test_a_run_of_the_plan_is_looked_for_by_the_name_of_its_file():
    asked = re.findall(r"actions/workflows/([\w.-]+)/runs", str(DOCUMENTS["reconciler-apply"]))

    assert ["reconciler-plan.yml"] == asked
    assert "reconciler-plan" in DOCUMENTS


def test_the_version_is_this_one():
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))

    assert action["inputs"]["source"]["default"].endswith(f"@v{runtime.VERSION}")


@pytest.fixture
def runner(lake, forge) -> Runner:
    api = {
        name: value
        for name, value in forge.github_environment().items()
        if name not in ("GITHUB_REF", "GITHUB_TOKEN")
    }
    made = Runner(lake, api)
    forge.runs = made.runs
    return made


def shortened(lake: Lake, *tables: str) -> str:
    lake.branch("shorter")
    for table in tables:
        lake.keep(table, 3)
    return lake.commit("Keep less")


def plan_of(folder: Path) -> dict:
    return json.loads((folder / "plan.json").read_bytes())


@pytest.mark.usefixtures("installed")
def test_a_pull_request_gets_its_plan_as_a_comment_and_an_artifact(lake, runner, forge):
    head = shortened(lake, "sales.orders")
    run = runner.pull_request(lake.would_be_merged("shorter"), head)
    [comment] = forge.comments
    plan = plan_of(run.artifacts / "reconciler-plan")

    assert run.jobs == {"lint": "success", "plan": "success"}, run.log
    assert ["sales.orders"] == [table["name"] for table in plan["tables"]]
    assert plan["digest"] in comment.body
    assert "sales" in comment.body
    assert comment.body in run.summary
    assert "hudi-reconciler @ git+https://git.example.org/acme/reconciler@v0.1.0 s3fs" in run.log


def test_a_second_push_edits_the_comment(lake, runner, forge):
    head = shortened(lake, "sales.orders")
    runner.pull_request(lake.would_be_merged("shorter"), head, jobs=("plan",))
    lake.keep("sales.clicks", 2)
    head = lake.commit("Of another too")
    runner.pull_request(lake.would_be_merged("shorter"), head, jobs=("plan",))
    [comment] = forge.comments

    assert "clicks" in comment.body


def test_a_fork_gets_a_lint_and_nothing_else(lake, runner, forge):
    head = shortened(lake, "sales.orders")
    run = runner.pull_request(lake.would_be_merged("shorter"), head, fork=True)

    assert run.jobs == {"lint": "success", "plan": "skipped"}, run.log
    assert not run.artifacts.exists()
    assert [] == forge.asked


def test_what_a_policy_blocks_is_commented_and_red(lake, runner, forge):
    head = shortened(lake, "finance.payments")
    run = runner.pull_request(lake.would_be_merged("shorter"), head)

    assert run.jobs == {"lint": "success", "plan": "failure"}, run.log
    assert "protected" in forge.comments[0].body


def test_a_wrong_spec_is_red_before_anything_is_read(lake, runner, forge):
    lake.branch("wrong")
    lake.write("specs/sales.orders.yaml", "kind: HudiTable\n")
    head = lake.commit("Oops")
    run = runner.pull_request(lake.would_be_merged("wrong"), head)

    assert run.jobs == {"lint": "failure", "plan": "skipped"}
    assert "specs/sales.orders.yaml:1:1" in run.log
    assert [] == forge.comments


def merge(lake: Lake, runner: Runner, forge: Pipelines, *, fork: bool = False) -> tuple[str, str]:
    """A reviewed and merged pull request: main before and after."""
    before = lake.git("rev-parse", "main")
    head = shortened(lake, "sales.orders")
    runner.pull_request(lake.would_be_merged("shorter"), head, fork=fork, jobs=("plan",))
    after = lake.merged("shorter")
    forge.merges[after] = head
    return before, after


@with_tools
def test_the_plan_that_was_reviewed_is_found_and_shown_by_its_digest(lake, runner, forge):
    before, after = merge(lake, runner, forge)
    run = runner.push(after, before, jobs=("find",))
    reviewed = plan_of(runner.runs[0].artifacts / "reconciler-plan")

    assert run.jobs == {"find": "success", "apply": "skipped"}, run.log
    assert run.outputs["find"] == {"digest": reviewed["digest"], "steps": "1"}
    assert reviewed == plan_of(run.artifacts / "reconciler-apply")
    assert reviewed["digest"] in run.summary
    assert "this one is new" not in run.summary


@with_tools
def test_without_a_reviewed_plan_a_new_one_of_the_same_tables_is_shown(lake, runner, forge):
    before, after = merge(lake, runner, forge, fork=True)
    run = runner.push(after, before, jobs=("find",))
    plan = plan_of(run.artifacts / "reconciler-apply")

    assert run.jobs == {"find": "success", "apply": "skipped"}, run.log
    assert ["sales.orders"] == [table["name"] for table in plan["tables"]]
    assert run.outputs["find"] == {"digest": plan["digest"], "steps": "1"}
    assert "this one is new" in run.summary


@with_tools
def test_a_plan_that_a_run_of_a_fork_left_is_none(lake, runner, forge):
    before, after = merge(lake, runner, forge, fork=True)
    forged = runner.runs[0].artifacts / "reconciler-plan"
    forged.mkdir(parents=True)
    (forged / "plan.json").write_text("{}")
    run = runner.push(after, before, jobs=("find",))

    assert run.jobs == {"find": "success", "apply": "skipped"}, run.log
    assert "this one is new" in run.summary


@with_tools
def test_what_else_an_artifact_holds_lies_over_no_spec(lake, runner, forge):
    before, after = merge(lake, runner, forge)
    left = runner.runs[0].artifacts / "reconciler-plan"
    (left / "plan.json").unlink()
    (left / "specs").mkdir()
    for name in ("specs/sales.orders.yaml", "plan.md"):
        (left / name).write_text("kind: Nothing\n")
    run = runner.push(after, before, jobs=("find",))

    assert run.jobs == {"find": "success", "apply": "skipped"}, run.log
    assert "this one is new" in run.summary


@with_tools
def test_a_plan_in_the_repository_is_none_that_was_reviewed(lake, runner):
    before = lake.git("rev-parse", "main")
    lake.keep("sales.orders", 3)
    for name in ("plan.json", "reviewed/plan.json"):
        lake.write(name, "{}")
    run = runner.push(lake.commit("Straight to main"), before, jobs=("find",))

    assert run.jobs == {"find": "success", "apply": "skipped"}, run.log
    assert "this one is new" in run.summary


@with_tools
def test_a_push_without_a_pull_request_is_planned_anew(lake, runner):
    before = lake.git("rev-parse", "main")
    lake.keep("sales.orders", 3)
    run = runner.push(lake.commit("Straight to main"), before, jobs=("find",))

    assert run.jobs == {"find": "success", "apply": "skipped"}, run.log
    assert "this one is new" in run.summary


@with_tools
def test_nobody_is_asked_to_approve_nothing(lake, runner):
    before = lake.git("rev-parse", "main")
    lake.keep("sales.orders", 39)
    run = runner.push(lake.commit("Changes nothing yet"), before)

    assert run.outputs["find"]["steps"] == "0"
    assert run.jobs == {"find": "success", "apply": "skipped"}, run.log


@with_tools
def test_nobody_is_asked_to_approve_what_a_policy_refuses(lake, runner):
    before = lake.git("rev-parse", "main")
    lake.keep("sales.orders", 3)
    lake.write("policies/gold.yaml", NO_REMOVAL)
    run = runner.push(lake.commit("Keep less than a policy allows"), before)
    plan = plan_of(run.artifacts / "reconciler-apply")

    assert ["clean"] == [step["kind"] for table in plan["tables"] for step in table["steps"]]
    assert run.outputs["find"]["steps"] == "0"
    assert run.jobs == {"find": "success", "apply": "skipped"}, run.log


@with_tools
def test_a_forge_that_does_not_answer_is_red_and_no_new_plan(lake, runner, forge):
    before, after = merge(lake, runner, forge)
    forge.failures = [("GET", 404, {})] * 9
    run = runner.push(after, before, jobs=("find",))

    assert run.jobs == {"find": "failure", "apply": "skipped"}
    assert not run.artifacts.exists()


@with_tools
@pytest.mark.spark
def test_what_was_reviewed_is_applied_by_its_digest_and_told_on_the_pull_request(
    lake, runner, forge
):
    before, after = merge(lake, runner, forge)
    forge.merged = {after: 5}
    files = lake.data_files("sales.orders")
    run = runner.push(after, before)
    lines = (run.artifacts / "reconciler-audit" / "audit.jsonl").read_text().splitlines()
    audit = [json.loads(line) for line in lines]
    digest = run.outputs["find"]["digest"]

    assert run.jobs == {"find": "success", "apply": "success"}, run.log
    assert lake.data_files("sales.orders") < files
    assert {("sales.orders", digest)} == {(each["table"], each["planDigest"]) for each in audit}
    assert len(forge.comments) == 2
    assert digest in forge.comments[1].body


def nightly(runner: Runner, lake: Lake) -> None:
    run = runner.start("reconciler-drift.yml", event="schedule", sha=lake.git("rev-parse", "main"))

    assert run.jobs == {"drift": "success"}, run.log


def test_drift_is_one_issue_that_is_edited_and_closed(lake, runner, forge):
    nightly(runner, lake)

    assert [] == forge.issues

    lake.keep("sales.orders", 3)
    lake.commit("Nobody applies this")
    nightly(runner, lake)
    lake.keep("sales.clicks", 2)
    lake.commit("Nor this")
    nightly(runner, lake)
    [issue] = forge.issues

    assert issue.title == "Tables differ from their specs"
    assert issue.is_open
    assert "clicks" in issue.body

    lake.git("revert", "--no-edit", "HEAD", "HEAD~1")
    lake.git("push", "-q", "origin", "main")
    nightly(runner, lake)

    assert not issue.is_open


def test_a_table_that_cannot_be_read_is_in_the_issue_and_red(lake, runner, forge):
    (lake.tables / "sales.orders" / ".hoodie" / "hoodie.properties").unlink()
    run = runner.start("reconciler-drift.yml", event="schedule", sha=lake.git("rev-parse", "main"))

    assert run.jobs == {"drift": "failure"}
    assert "hoodie.properties" in forge.issues[0].body.replace("\\", "")


@pytest.mark.spark
def test_a_scheduled_apply_brings_the_labelled_tables_to_their_specs(lake, runner):
    lake.keep("sales.orders", 3)
    sha = lake.commit("Keep less")
    files = lake.data_files("sales.orders")
    run = runner.start("reconciler-scheduled-apply.yml", event="schedule", sha=sha)

    assert run.jobs == {"apply": "success"}, run.log
    assert lake.data_files("sales.orders") < files
    assert (run.artifacts / "reconciler-audit" / "audit.jsonl").exists()
