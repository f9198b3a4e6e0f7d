"""Enough of a GitHub Actions runner to run the workflows here: their real shell, none of GitHub.

Actions of others are played by what they do for us: a checkout, artifacts as folders. What a
workflow may not rely on is not there: each job has an empty folder and only the variables that a
runner sets.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.ci.lake import PROGRAMS, REAL, TOOLS, Lake

TOKEN = "workflow-token"
#: of actions by others that are not needed here
IDLE = ("actions/setup-python@", "aws-actions/configure-aws-credentials@")


@dataclass
class Run:
    """One run of a workflow: how its jobs ended and what it left."""

    number: int
    workflow: str
    event: str
    head_sha: str
    head_repository: str
    artifacts: Path
    jobs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    log: str = ""
    summary: str = ""

    @property
    def conclusion(self) -> str:
        return "failure" if "failure" in self.jobs.values() else "success"


@dataclass
class Runner:
    lake: Lake
    api: dict[str, str]
    runs: list[Run] = field(default_factory=list)

    def pull_request(self, sha: str, head: str, *, fork: bool = False, **more) -> Run:
        """The plan of pull request 5, whose branch's last commit is ``head``."""
        repository = "mallory/tables" if fork else "acme/tables"
        pull = {"number": 5, "head": {"sha": head, "repo": {"full_name": repository}}}
        return self.start(
            "reconciler-plan.yml",
            event="pull_request",
            sha=sha,
            ref="refs/pull/5/merge",
            base_ref="main",
            payload={"pull_request": pull},
            **more,
        )

    def push(self, sha: str, before: str, **more) -> Run:
        """What a merge to main starts."""
        payload = {"before": before}
        return self.start("reconciler-apply.yml", event="push", sha=sha, payload=payload, **more)

    def start(self, workflow: str, *, event: str, sha: str, jobs: tuple[str, ...] = (), **github):
        """Run a workflow as the commit has it: all of it, or ``jobs`` as if others were done."""
        text = self.lake.show(sha, f".github/workflows/{workflow}")
        document = yaml.safe_load(text)
        assert document["defaults"] == {"run": {"shell": "bash"}}  # or it would go on after a pipe
        number = len(self.runs) + 1
        pull = github.get("payload", {}).get("pull_request", {"head": {}})["head"]
        home = self.lake.home / "runs" / str(number)
        run = Run(
            number=number,
            workflow=workflow,
            event=event,
            head_sha=pull.get("sha", sha),
            head_repository=pull.get("repo", {"full_name": "acme/tables"})["full_name"],
            artifacts=home / "artifacts",
        )
        self.runs.append(run)
        about = {"sha": sha, "token": TOKEN, "repository": "acme/tables", **github}
        about["event"] = about.pop("payload", {})
        for name, job in document["jobs"].items():
            needed = [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", [])
            done = {n: {"outputs": run.outputs.get(n, {}), "result": run.jobs[n]} for n in needed}
            names = {"github": about, "vars": {}, "needs": done}
            left_out = [] if not jobs else [n for n in document["jobs"] if n not in jobs]
            can = all(run.jobs[n] == "success" or n in left_out for n in needed)
            if can and name not in left_out and evaluated(str(job.get("if", "true")), names, home):
                environment = self._environment(home / name, run, about, document)
                one = _Job(self, run, job, names, home / name / "work", environment)
                run.jobs[name] = one.done()
            else:
                run.jobs[name] = "skipped"
        return run

    def _environment(self, home: Path, run: Run, about: dict, document: dict) -> dict[str, str]:
        home.mkdir(parents=True)
        (home / "work").mkdir()
        for file in ("output", "path", "summary"):
            (home / file).touch()
        (home / "event.json").write_text(json.dumps(about["event"]))
        ref = about.get("ref", "refs/heads/main")
        return {
            **self.api,
            **REAL,
            "PATH": f"{PROGRAMS}:{TOOLS}",
            "HOME": str(home),
            "JAVA_HOME": os.environ.get("JAVA_HOME", ""),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "RUNNER_TEMP": str(home / "temp"),
            "GITHUB_EVENT_NAME": run.event,
            "GITHUB_EVENT_PATH": str(home / "event.json"),
            "GITHUB_REPOSITORY": about["repository"],
            "GITHUB_SHA": about["sha"],
            "GITHUB_REF": ref,
            "GITHUB_REF_NAME": ref.removeprefix("refs/heads/").removeprefix("refs/"),
            "GITHUB_BASE_REF": about.get("base_ref", ""),
            "GITHUB_OUTPUT": str(home / "output"),
            "GITHUB_PATH": str(home / "path"),
            "GITHUB_STEP_SUMMARY": str(home / "summary"),
            **{name: str(value) for name, value in document.get("env", {}).items()},
        }


@dataclass
class _Job:
    runner: Runner
    run: Run
    job: dict
    names: dict[str, Any]
    folder: Path
    environment: dict[str, str]

    def done(self) -> str:
        home = self.folder.parent
        self.names["steps"] = {}
        failed = False
        for step in self.job["steps"]:
            wanted = str(step.get("if", "true"))
            if (failed and "always()" not in wanted) or not self._value(wanted):
                continue
            try:
                self._step(step, self.names, self.folder)
            except (subprocess.CalledProcessError, FileNotFoundError) as error:
                self.run.log += f"\n{step.get('name', step.get('uses'))}: {error}\n"
                failed = failed or not step.get("continue-on-error", False)
        self.run.summary += (home / "summary").read_text()
        outputs = self.job.get("outputs", {})
        self.run.outputs[home.name] = {
            key: filled(value, self.names, self.folder) for key, value in outputs.items()
        }
        return "failure" if failed else "success"

    def _value(self, expression: str) -> Any:
        return evaluated(expression, self.names, self.folder)

    def _step(self, step: dict, names: dict[str, Any], folder: Path) -> None:
        if "run" in step:
            self._shell(step, names)
            return
        uses = step["uses"]
        given = {
            key: filled(str(value), names, folder) for key, value in step.get("with", {}).items()
        }
        if uses.startswith("./"):
            self._composite(yaml.safe_load((folder / uses / "action.yml").read_text()), given)
        elif uses.startswith("actions/checkout@"):
            depth = given.get("fetch-depth", "1")
            self.runner.lake.checkout(folder, self.names["github"]["sha"], depth=int(depth))
        elif uses.startswith("actions/upload-artifact@"):
            self._upload(given)
        elif uses.startswith("actions/download-artifact@"):
            self._download(given)
        else:
            assert uses.startswith(IDLE), uses

    def _composite(self, action: dict, given: dict[str, str]) -> None:
        inputs = {name: str(each.get("default", "")) for name, each in action["inputs"].items()}
        assert given.keys() <= inputs.keys(), given
        for step in action["runs"]["steps"]:
            self._step(step, {**self.names, "inputs": {**inputs, **given}}, self.folder)

    def _shell(self, step: dict, names: dict[str, Any]) -> None:
        home = self.folder.parent
        added = (home / "path").read_text().split()
        own = {k: filled(str(v), names, self.folder) for k, v in step.get("env", {}).items()}
        environment = {**self.environment, **own}
        environment["PATH"] = ":".join([*reversed(added), environment["PATH"]])
        (home / "output").write_text("")
        (home / "script").write_text(step["run"])
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", home / "script"],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.run.log += done.stdout
        lines = (home / "output").read_text().splitlines()
        said = dict(line.split("=", 1) for line in lines)
        self.names["steps"][step.get("id", "")] = {"outputs": said}
        done.check_returncode()

    def _upload(self, given: dict[str, str]) -> None:
        target = self.run.artifacts / given["name"]
        target.mkdir(parents=True)
        found = [self.folder / path for path in given["path"].split()]
        for file in (file for file in found if file.exists()):
            shutil.copy(file, target)

    def _download(self, given: dict[str, str]) -> None:
        number = int(given.get("run-id", self.run.number))
        assert number == self.run.number or given["github-token"] == TOKEN
        there = self.runner.runs[number - 1].artifacts / given["name"]
        shutil.copytree(there, self.folder / given.get("path", ""), dirs_exist_ok=True)


def filled(text: str, names: dict[str, Any], folder: Path) -> str:
    """The text with its ``${{ expressions }}``."""
    return re.sub(
        r"\$\{\{\s*(.*?)\s*\}\}", lambda found: str(evaluated(found[1], names, folder)), text
    )


def evaluated(expression: str, names: dict[str, Any], folder: Path) -> Any:
    """What an expression is; a name that leads nowhere is an empty text, as there."""

    def look(path: str) -> Any:
        found: Any = names
        for part in path.split("."):
            found = found.get(part, "") if isinstance(found, dict) else ""
        return found

    def in_python(found: re.Match[str]) -> str:
        word = found[0]
        known = word[0] == "'" or word in ("and", "or", "true")
        return word if known else f"look({word!r})"

    expression = expression.replace("&&", " and ").replace("||", " or ")
    python = re.sub(r"'[^']*'|[A-Za-z_][\w-]*(?:\.[\w-]+)*(?![\w.-]*\()", in_python, expression)
    functions = {
        "true": True,
        "look": look,
        "always": lambda: True,
        "hashFiles": lambda name: "hash" if (folder / name).exists() else "",
    }
    return eval(python, {"__builtins__": {}}, functions)
