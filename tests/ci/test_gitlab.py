"""The GitLab pipeline: which jobs run when, and what their scripts do."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler import runtime
from tests.ci.lake import PROGRAMS, REAL, TEMPLATES, TOOLS, Lake, needs
from tests.ci.pipelines import Pipelines

DOCUMENT = yaml.safe_load((TEMPLATES / "gitlab" / "reconciler.gitlab-ci.yml").read_text("utf-8"))
JOBS = {name: job for name, job in DOCUMENT.items() if name.startswith("reconciler-")}
MERGE_REQUEST = {
    "CI_PIPELINE_SOURCE": "merge_request_event",
    "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "7",
}
ON_MAIN = {"CI_PIPELINE_SOURCE": "push", "CI_COMMIT_BRANCH": "main", "CI_DEFAULT_BRANCH": "main"}


def started(**variables: str) -> list[str]:
    """The jobs of a pipeline with these variables, by their rules; all paths changed."""
    known = {"CI_PROJECT_ID": "7", **variables}
    return [
        name for name, job in JOBS.items() if any(holds(rule["if"], known) for rule in job["rules"])
    ]


def holds(condition: str, variables: dict[str, str]) -> bool:
    def value(word: str) -> str:
        return word[1:-1] if word[0] == '"' else variables.get(word[1:], "")

    parts = [part.split() for part in condition.split("&&")]
    assert all(part[1] == "==" and len(part) == 3 for part in parts), condition
    return all(value(left) == value(right) for left, _, right in parts)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (MERGE_REQUEST, ["reconciler-lint", "reconciler-plan"]),
        ({**MERGE_REQUEST, "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "8"}, ["reconciler-lint"]),
        (ON_MAIN, ["reconciler-find", "reconciler-apply"]),
        ({**ON_MAIN, "CI_COMMIT_BRANCH": "shorter"}, []),
        (
            {"CI_PIPELINE_SOURCE": "schedule", "RECONCILER_TASK": "drift"},
            ["reconciler-drift"],
        ),
        (
            {"CI_PIPELINE_SOURCE": "schedule", "RECONCILER_TASK": "apply"},
            ["reconciler-scheduled-apply"],
        ),
        ({"CI_PIPELINE_SOURCE": "schedule"}, []),
    ],
)
def test_each_event_starts_its_jobs(variables, expected):

    assert expected == started(**variables)


def test_what_writes_has_an_environment_and_runs_alone():
    behind = {name: job.get("environment") for name, job in JOBS.items()}

    assert {name: env for name, env in behind.items() if env} == {
        "reconciler-apply": "production",
        "reconciler-scheduled-apply": "production-scheduled",
    }
    assert all(JOBS[name]["resource_group"] == "reconciler" for name, env in behind.items() if env)
    assert JOBS["reconciler-apply"]["rules"][0]["when"] == "manual"


def test_the_version_is_this_one_and_nothing_secret_is_written_down():
    text = json.dumps(DOCUMENT)

    assert f"@v{runtime.VERSION} " in DOCUMENT["variables"]["RECONCILER_PACKAGES"]
    assert set(DOCUMENT["variables"]) == {
        "RECONCILER_SPECS",
        "RECONCILER_OPTIONS",
        "RECONCILER_PACKAGES",
    }
    assert ["$RECONCILER_GITLAB_TOKEN"] == re.findall(r"\$\w*TOKEN\w*", text)


@dataclass
class Runner:
    """Runs the scripts of a job as GitLab's does: one bash, in a checkout, files handed on."""

    lake: Lake
    variables: dict[str, str]
    files: dict[str, bytes] = field(default_factory=dict)
    log: str = ""

    def run(self, name: str, sha: str, **variables: str) -> int:
        folder = self.lake.home / "builds" / str(len(list(self.lake.home.glob("builds/*"))))
        folder.mkdir(parents=True)
        self.lake.checkout(folder, sha, depth=0)
        for file, data in self.files.items():
            (folder / file).write_bytes(data)
        job, base = JOBS[name], DOCUMENT[".reconciler"]
        environment = {
            **DOCUMENT["variables"],
            "RECONCILER_OPTIONS": "--env prod",
            **self.variables,
            **REAL,
            "PATH": f"{PROGRAMS}:{TOOLS}",
            "HOME": str(folder),
            "JAVA_HOME": os.environ.get("JAVA_HOME", ""),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "CI_PROJECT_DIR": str(folder),
            "CI_COMMIT_SHA": sha,
            **variables,
        }
        script = "\n".join(["set -eo pipefail", *base["before_script"], *job["script"]])
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.log = done.stdout
        self._hand_on(folder, job.get("artifacts", {}))
        return done.returncode

    def _hand_on(self, folder: Path, artifacts: dict[str, Any]) -> None:
        for file in artifacts.get("paths", ()):
            if (folder / file).exists():
                self.files[file] = (folder / file).read_bytes()
        if (said := artifacts.get("reports", {}).get("dotenv")) and (folder / said).exists():
            pairs = (line.split("=", 1) for line in (folder / said).read_text().splitlines())
            self.variables |= dict(pairs)


@pytest.fixture
def runner(lake, forge) -> Runner:
    return Runner(lake, forge.gitlab_environment())


def reviewed(lake: Lake, runner: Runner, forge: Pipelines) -> tuple[str, str]:
    """A merge request with its plan, merged; main before and after."""
    before = lake.git("rev-parse", "main")
    lake.branch("shorter")
    lake.keep("sales.orders", 3)
    head = lake.commit("Keep less")
    code = runner.run("reconciler-plan", head, CI_MERGE_REQUEST_DIFF_BASE_SHA=before)

    assert code == 0, runner.log

    after = lake.merged("shorter")
    forge.merges[after] = head
    forge.plan = runner.files["plan.json"]
    runner.files.clear()
    return before, after


@needs("curl")
@pytest.mark.usefixtures("installed")
def test_a_merge_request_gets_its_plan_and_a_merge_finds_it_by_its_digest(lake, runner, forge):
    before, after = reviewed(lake, runner, forge)
    digest = json.loads(forge.plan)["digest"]

    assert digest in forge.comments[0].body
    assert runner.run("reconciler-find", after, CI_COMMIT_BEFORE_SHA=before) == 0, runner.log
    assert forge.plan == runner.files["plan.json"]
    assert digest == runner.variables["DIGEST"]
    assert "reviewed: merge request 5, job 11" in runner.log
    assert "pip install --quiet hudi-reconciler[jre]" in runner.log


@needs("curl")
@pytest.mark.parametrize("missing", ["plan", "job", "merge request", "source"])
def test_without_a_reviewed_plan_a_new_one_is_shown(missing, lake, runner, forge):
    before = lake.git("rev-parse", "main")
    lake.keep("sales.orders", 3)
    after = lake.commit("Keep less")
    forge.merges = {} if missing == "merge request" else {after: "x"}
    forge.job_status = "failed" if missing == "job" else "success"
    forge.source_project = 8 if missing == "source" else 7  # a fork's
    forge.plan = None if missing == "plan" else b"{}"

    assert runner.run("reconciler-find", after, CI_COMMIT_BEFORE_SHA=before) == 0, runner.log
    assert "this one is new" in runner.log
    assert json.loads(runner.files["plan.json"])["digest"] == runner.variables["DIGEST"]


def test_what_a_policy_blocks_is_commented_and_red(lake, runner, forge):
    before = lake.git("rev-parse", "main")
    lake.branch("shorter")
    lake.keep("finance.payments", 3)
    head = lake.commit("Keep less")

    assert runner.run("reconciler-plan", head, CI_MERGE_REQUEST_DIFF_BASE_SHA=before) == 3
    assert "protected" in forge.comments[0].body


def test_drift_is_one_issue_that_is_closed(lake, runner, forge):
    lake.keep("sales.orders", 3)
    drifted = lake.commit("Nobody applies this")

    assert runner.run("reconciler-drift", drifted) == 0, runner.log
    assert "Tables differ from their specs" == forge.issues[0].title

    lake.keep("sales.orders", 40)

    assert runner.run("reconciler-drift", lake.commit("Back")) == 0, runner.log
    assert not forge.issues[0].is_open


@needs("curl")
@pytest.mark.spark
def test_what_was_reviewed_is_applied_and_told_on_the_merge_request(lake, runner, forge):
    before, after = reviewed(lake, runner, forge)
    forge.merged = {after: 5}
    files = lake.data_files("sales.orders")
    runner.run("reconciler-find", after, CI_COMMIT_BEFORE_SHA=before)

    assert runner.run("reconciler-apply", after) == 0, runner.log
    assert lake.data_files("sales.orders") < files
    assert runner.variables["DIGEST"] in runner.files["audit.jsonl"].decode()
    assert len(forge.comments) == 2
