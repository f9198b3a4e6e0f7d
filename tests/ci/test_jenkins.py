"""The Jenkinsfile: its structure, and what its scripts do."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

import pytest

from reconciler import runtime
from tests.ci.lake import COMMAND, NO_REMOVAL, TEMPLATES, Lake, needs
from tests.ci.pipelines import Pipelines
from tests.ci.shell import Said, run

TEXT = (TEMPLATES / "jenkins" / "Jenkinsfile").read_text(encoding="utf-8")
STAGES = dict(
    re.findall(r"^    stage\('([^']+)'\) \{(.*?)^    \}$", TEXT, re.MULTILINE | re.DOTALL)
)
SCRIPTS = {
    name: textwrap.dedent(script[1])
    for name, stage in STAGES.items()
    if (script := re.search("sh '''\n(.*?)'''", stage, re.DOTALL))
}


def test_brackets_close():
    text = re.sub(r"'''.*?'''|'[^'\n]*'|\"[^\"\n]*\"", "", TEXT, flags=re.DOTALL)
    code = re.sub("//.*", "", text)

    assert [0, 0, 0] == [code.count(left) - code.count(right) for left, right in ("{}", "[]", "()")]


def test_each_stage_has_a_script_that_groovy_leaves_alone():

    assert (
        list(SCRIPTS)
        == list(STAGES)
        == [
            "Install",
            "Lint",
            "Plan",
            "Plan of the merge",
            "Apply",
            "Drift",
        ]
    )
    assert TEXT.count("sh '''") == len(SCRIPTS) == len(re.findall(r"\bsh\b", TEXT))


@needs("jq")
def test_forks_see_no_credentials():
    secret = [name for name, stage in STAGES.items() if "credentialsId" in stage]

    assert ["Plan", "Plan of the merge", "Apply", "Drift"] == secret
    assert "changeRequest()\n        expression { env.CHANGE_FORK == null }" in STAGES["Plan"]
    assert all("branch 'main'" in STAGES[name] for name in secret[1:])


def test_an_apply_waits_for_a_person_and_only_it_may_write():

    assert "submitter" in STAGES["Apply"]
    assert "beforeInput true" in STAGES["Apply"]
    assert ["Apply"] == [name for name, stage in STAGES.items() if "reconciler-write" in stage]


def test_the_version_is_this_one():

    assert f"@git+https://git.example.org/acme/reconciler@v{runtime.VERSION} " in TEXT


def built(lake: Lake, forge: Pipelines, stage: str, **variables: str) -> Said:
    """The script of a stage, in the folder of the repository."""
    folder = lake.repository
    venv = folder.parent / "venv"
    (venv / "bin").mkdir(parents=True, exist_ok=True)
    if not (venv / "bin" / "reconciler").exists():
        (venv / "bin" / "reconciler").symlink_to(COMMAND / "reconciler")
    environment = {
        "VENV": str(venv),
        "SPECS": "specs",
        "OPTIONS": "--env prod",
        "PACKAGES": "hudi-reconciler",
        "REPOSITORY": "acme/tables",
        "GITHUB_API_URL": f"{forge.url}/api/v3",
        "GITHUB_TOKEN": "person-token",
        "no_proxy": "*",
        **variables,
    }
    return run(["sh", "-xe", "-c", SCRIPTS[stage]], folder, **environment)


def test_it_installs_where_it_is_told(lake, forge, tmp_path):
    said = built(lake, forge, "Install", VENV=str(tmp_path / "fresh"))

    assert said.code == 0, said.text
    assert "hudi-reconciler 0.1.0" in said.text


@pytest.mark.usefixtures("installed")
def test_a_pull_request_gets_its_plan_as_a_comment(lake, forge):
    lake.branch("shorter")
    lake.keep("sales.orders", 3)
    lake.commit("Keep less")
    said = built(lake, forge, "Plan", CHANGE_TARGET="main", CHANGE_ID="5")

    assert said.code == 0, said.text
    assert json.loads(Path(lake.repository, "plan.json").read_bytes())["digest"] in (
        forge.comments[0].body
    )


@needs("jq")
@pytest.mark.parametrize("first", [True, False])
def test_a_merge_is_planned_since_the_last_build_that_went_through(first, lake, forge):
    before = lake.git("rev-parse", "HEAD")
    lake.keep("sales.orders", 3)
    lake.commit("Keep less")
    since = {} if first else {"GIT_PREVIOUS_SUCCESSFUL_COMMIT": before}
    said = built(lake, forge, "Plan of the merge", **since)
    plan = json.loads(Path(lake.repository, "plan.json").read_bytes())

    assert said.code == 0, said.text
    assert (3 if first else 1) == len(plan["tables"])  # the first build plans everything
    assert plan["digest"] == Path(lake.repository, "digest").read_text().strip()
    assert Path(lake.repository, "steps").read_text() == "1\n"


@needs("jq")
def test_steps_that_a_policy_refuses_are_not_counted(lake, forge):
    before = lake.git("rev-parse", "HEAD")
    lake.keep("sales.orders", 3)
    lake.write("policies/gold.yaml", NO_REMOVAL)
    lake.commit("Keep less than a policy allows")
    said = built(lake, forge, "Plan of the merge", GIT_PREVIOUS_SUCCESSFUL_COMMIT=before)
    plan = json.loads(Path(lake.repository, "plan.json").read_bytes())

    assert said.code == 0, said.text
    assert ["clean"] == [step["kind"] for table in plan["tables"] for step in table["steps"]]
    assert Path(lake.repository, "steps").read_text() == "0\n"


def test_drift_is_one_issue_that_is_closed(lake, forge):
    lake.keep("sales.orders", 3)

    assert built(lake, forge, "Drift").code == 0
    assert forge.issues[0].is_open

    lake.keep("sales.orders", 40)

    assert built(lake, forge, "Drift").code == 0
    assert not forge.issues[0].is_open


@needs("jq")
@pytest.mark.spark
def test_the_approved_digest_is_applied(lake, forge):
    before = lake.git("rev-parse", "HEAD")
    lake.keep("sales.orders", 3)
    commit = lake.commit("Keep less")
    built(lake, forge, "Plan of the merge", GIT_PREVIOUS_SUCCESSFUL_COMMIT=before)
    forge.merged, forge.merges = {commit: 5}, {commit: before}
    files = lake.data_files("sales.orders")
    digest = Path(lake.repository, "digest").read_text().strip()
    said = built(lake, forge, "Apply", DIGEST=digest, GIT_COMMIT=commit)

    assert said.code == 0, said.text
    assert lake.data_files("sales.orders") < files
    assert digest in forge.comments[0].body
