"""Cron, Kubernetes and Airflow: what is scheduled, and what the scripts do."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
import types
from pathlib import Path

import pytest
import yaml

from reconciler import runtime
from tests.ci.lake import COMMAND, REAL, TEMPLATES, TOOLS, Lake, needs
from tests.ci.shell import Said, run

SCRIPT = TEMPLATES / "cron" / "reconciler.sh"
CRONTAB = (TEMPLATES / "cron" / "crontab").read_text(encoding="utf-8")
CLUSTER = list(
    yaml.safe_load_all((TEMPLATES / "kubernetes" / "cronjob.yaml").read_text(encoding="utf-8"))
)
CRON_JOBS = {d["metadata"]["name"]: d["spec"] for d in CLUSTER if d["kind"] == "CronJob"}
DAG = TEMPLATES / "airflow" / "reconciler_dag.py"


def drift(lake: Lake) -> str:
    lake.keep("sales.orders", 3)
    return lake.commit("Nobody applies this")


# cron

#: keeps two runs apart
with_flock = needs("flock")


def cron(lake: Lake, task: str, **variables: str) -> Said:
    checkout = lake.home / "checkout"
    if not checkout.exists():
        lake.git("clone", "-q", lake.origin, str(checkout), at=lake.home)
    environment = {
        "RECONCILER_REPOSITORY": str(checkout),
        "RECONCILER_OPTIONS": "--env prod",
        "RECONCILER_STATE": str(lake.home / "state"),
        **variables,
    }
    return run([str(SCRIPT), task], lake.home, **environment)


def test_the_script_is_one_that_bash_can_read_and_may_be_run():
    subprocess.run(["bash", "-n", SCRIPT], check=True)

    assert SCRIPT.stat().st_mode & 0o111


def test_the_crontab_has_lines_of_cron_that_run_the_script():
    lines = [line for line in CRONTAB.splitlines() if line[:1].isdigit()]
    tasks = [line.split(maxsplit=5)[5] for line in lines]

    assert [["17", "3", "*", "*", "*"], ["43", "4", "*", "*", "6"]] == [
        line.split()[:5] for line in lines
    ]
    assert "reconciler.sh drift" in tasks[0]
    assert tasks[1].endswith("reconciler.sh apply")
    assert not any("%" in line for line in lines)  # a line end, to cron


@with_flock
@pytest.mark.usefixtures("installed")
def test_drift_is_told_after_the_specs_are_pulled(lake):
    assert cron(lake, "drift").code == 0

    drift(lake)
    said = cron(lake, "drift")

    assert said.code == 2, said.text
    assert "sales.orders" in said.text


@with_flock
def test_two_runs_at_a_time_are_one(lake):
    (lake.home / "state").mkdir()
    lock = lake.home / "state" / "lock"
    with subprocess.Popen(
        ["flock", lock, "-c", "echo locked; read x"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        other.stdout.readline()
        said = cron(lake, "drift")
        other.communicate(b"\n")

    assert said.code == 6
    assert "an earlier run is still at work" in said.text


@pytest.mark.parametrize("task", ["", "aplly"])
def test_another_task_is_refused(task, lake):

    assert cron(lake, task).code == 64


def test_a_checkout_that_is_not_named_is_asked_for(lake):
    said = cron(lake, "drift", RECONCILER_REPOSITORY="")

    assert said.code == 1
    assert "RECONCILER_REPOSITORY: is not set" in said.text


@with_flock
@pytest.mark.spark
def test_a_scheduled_apply_writes_its_record(lake):
    drift(lake)
    files = lake.data_files("sales.orders")
    said = cron(lake, "apply", RECONCILER_OPTIONS="--env prod --exclude finance.*")

    assert said.code == 0, said.text
    assert lake.data_files("sales.orders") < files
    assert "sales.orders" in (lake.home / "state" / "audit.jsonl").read_text()


# Kubernetes


def containers(job: dict) -> list[dict]:
    pod = job["jobTemplate"]["spec"]["template"]["spec"]
    return [*pod["initContainers"], *pod["containers"]]


@pytest.mark.parametrize("name", ["reconciler-drift", "reconciler-apply"])
def test_a_job_runs_alone_ends_and_may_do_little(name):
    job = CRON_JOBS[name]
    spec = job["jobTemplate"]["spec"]
    pod = spec["template"]["spec"]

    assert job["concurrencyPolicy"] == "Forbid"
    assert spec["activeDeadlineSeconds"] <= 6 * 3600
    assert spec["backoffLimit"] in (1, 3)
    assert pod["restartPolicy"] == "Never"  # what podFailurePolicy asks for
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"]
    for container in containers(job):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["image"].endswith(f":{runtime.VERSION}")
        assert container["resources"]["limits"]["memory"]
        assert {"/workspace", "/tmp"} == {mount["mountPath"] for mount in container["volumeMounts"]}


def test_only_the_apply_may_write():
    accounts = {
        name: job["jobTemplate"]["spec"]["template"]["spec"]["serviceAccountName"]
        for name, job in CRON_JOBS.items()
    }

    assert accounts == {
        "reconciler-drift": "reconciler-read",
        "reconciler-apply": "reconciler-write",
    }


def test_no_try_is_wasted_on_what_a_person_must_change():
    for job in CRON_JOBS.values():
        [rule] = job["jobTemplate"]["spec"]["podFailurePolicy"]["rules"]

        assert rule["action"] == "FailJob"
        assert rule["onExitCodes"] == {
            "containerName": "reconciler",
            "operator": "In",
            "values": [1, 3, 64],
        }


def pod(lake: Lake, name: str) -> Said:
    """Its containers one after the other; what is mounted at /workspace is a folder here."""
    work = lake.home / "work"
    work.mkdir()
    [settings] = [document["data"] for document in CLUSTER if document["kind"] == "ConfigMap"]
    settings = {**settings, "REPOSITORY": lake.origin, "OPTIONS": "--env prod"}
    said = Said(0, "")
    for container in containers(CRON_JOBS[name]):
        folder = work / Path(container["workingDir"]).relative_to("/workspace")
        said = run([*container["command"], *container["args"]], folder, **settings)
        if said.code:
            break
    return said


def test_drift_in_a_pod_is_told_and_no_failure(lake):
    drift(lake)
    said = pod(lake, "reconciler-drift")

    assert said.code == 0, said.text
    assert "sales.orders" in said.text


def test_a_table_that_cannot_be_read_fails_the_pod(lake):
    (lake.tables / "sales.orders" / ".hoodie" / "hoodie.properties").unlink()

    assert pod(lake, "reconciler-drift").code == 1


@pytest.mark.spark
def test_a_pod_applies_and_logs_its_record(lake):
    drift(lake)
    files = lake.data_files("sales.orders")
    said = pod(lake, "reconciler-apply")

    assert said.code == 0, said.text
    assert "planDigest" in said.text
    assert lake.data_files("sales.orders") < files


# Airflow


class Ended(Exception):  # noqa: N818 (not an error of ours)
    """How a task ended, for the stand-ins of Airflow's exceptions."""


class AirflowException(Ended): ...


class AirflowFailException(Ended): ...


class AirflowSkipException(Ended): ...


@pytest.fixture(params=["airflow.sdk", "airflow.decorators"], ids=["Airflow 3", "Airflow 2"])
def dag(request, monkeypatch, tmp_path):
    """The module, with an Airflow that only remembers what it was told."""
    sdk, is_new = request.param, request.param == "airflow.sdk"
    made: dict[str, dict] = {}
    values = {"reconciler_repository": Lake(tmp_path).origin, "reconciler_options": "--env prod"}

    def decorated(**options):
        def wrap(function):
            made[options.get("dag_id", function.__name__)] = options
            return function

        return wrap

    variable = types.SimpleNamespace(get=values.get)
    for name, content in {
        "airflow": {},
        sdk: {"dag": decorated, "task": decorated, "Variable": variable},
        "airflow.exceptions": {each.__name__: each for each in Ended.__subclasses__()},
        **({} if is_new else {"airflow.models": {"Variable": variable}}),
    }.items():
        module = types.ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    spec = importlib.util.spec_from_file_location("reconciler_dag", DAG)
    module = importlib.util.module_from_spec(spec)
    module.made = made
    source = DAG.read_text(encoding="utf-8")
    # tasks are called while a DAG is declared; here that would run them
    kept = [
        node
        for node in ast.parse(source).body
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
    ]
    exec(compile(ast.Module(kept, []), DAG, "exec"), vars(module))
    return module


def ends(dag, monkeypatch, code: int) -> str:
    done = types.SimpleNamespace(returncode=code, stdout="")
    monkeypatch.setattr(dag.subprocess, "run", lambda *_, **__: done)
    try:
        dag.run("plan")
    except Ended as ended:
        return type(ended).__name__
    return "done"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (0, "done"),
        (1, "AirflowFailException"),
        (2, "done"),
        (3, "AirflowSkipException"),
        (4, "done"),
        (5, "AirflowException"),
        (6, "AirflowException"),
        (64, "AirflowFailException"),
        (-15, "AirflowFailException"),
    ],
)
def test_an_exit_code_ends_a_task_as_it_should(code, expected, dag, monkeypatch):

    assert expected == ends(dag, monkeypatch, code)


def test_the_dags_run_one_at_a_time_and_catch_nothing_up(dag):

    assert {"reconciler_drift", "reconciler_apply"} == dag.made.keys()
    for options in dag.made.values():
        assert options["max_active_runs"] == 1
        assert options["catchup"] is False


def test_a_task_runs_the_command_in_a_clone_of_the_specs(dag, lake, monkeypatch, capsys):
    drift(lake)
    for name, value in REAL.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{COMMAND}:{TOOLS}")
    dag.run("plan", "--detailed-exitcode")

    assert "sales.orders" in capsys.readouterr().out


def test_the_dag_compiles_for_old_pythons_too():
    ast.parse(DAG.read_text(encoding="utf-8"), feature_version=(3, 8))
