"""A small repository of specs with its tables, a bare one that it is pushed to, and programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.trees import unpack

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "ci"
CASES = ROOT / "tests" / "cases" / "clean"
#: stand-ins for what the machines of a pipeline have
PROGRAMS = Path(__file__).parent / "programs"
#: the command, at a time that every table is older than
COMMAND = Path(__file__).parent / "command"
#: where the machine's own programs are, without the folder that has the command by chance
TOOLS = ":".join(
    folder
    for folder in os.environ["PATH"].split(os.pathsep)
    if not (Path(folder) / "reconciler").exists()
)
#: what those run
REAL = {"RECONCILER": str(Path(sys.executable).parent / "reconciler"), "PYTHON": sys.executable}
TABLES = {
    "sales.orders": "cow_basic__1.2.0",
    "sales.clicks": "cow_few__1.2.0",
    "finance.payments": "cow_basic__0.15.0",
}
FILES = {
    "specs/defaults.yaml": """\
        apiVersion: reconciler/v1
        kind: TableDefaults
        metadata: {name: everywhere}
        spec:
          timezone: UTC
          concurrency: {lock: {provider: filesystem}}
        """,
    "policies/platform.yaml": """\
        apiVersion: reconciler/v1
        kind: Policy
        metadata: {name: platform}
        spec:
          protected: ["finance.*"]
        """,
    "README.md": "Our tables.\n",
}
#: a policy that refuses the clean of any table
NO_REMOVAL = """\
apiVersion: reconciler/v1
kind: Policy
metadata: {name: gold}
spec: {maxFilesRemoved: 0}
"""
ENVIRONMENT = """\
apiVersion: reconciler/v1
kind: Environment
metadata: {{name: prod}}
spec:
  pattern: "{lake}/{{name}}"
  spark: {{master: "local[2]"}}
"""
TABLE = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: {name}, labels: {{apply: scheduled}}}}
spec:
  retention: {{commits: 40}}
"""
ANN = {
    "GIT_AUTHOR_NAME": "ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
}


@dataclass
class Lake:
    home: Path

    @property
    def repository(self) -> Path:
        return self.home / "repository"

    @property
    def origin(self) -> str:
        return (self.home / "origin").as_uri()

    @property
    def tables(self) -> Path:
        return self.home / "lake"

    def git(self, *arguments: str, at: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=at or self.repository,
            env={**os.environ, **ANN},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout.strip()

    def write(self, path: str, text: str) -> None:
        file = self.repository / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))

    def commit(self, message: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-qm", message)
        self.git("push", "-q", "origin", "HEAD")
        return self.git("rev-parse", "HEAD")

    def keep(self, table: str, commits: int) -> None:
        """Declare a retention, on the branch we are on."""
        spec = self.repository / f"specs/{table}.yaml"
        before = spec.read_text().partition("retention")[0]
        spec.write_text(f"{before}retention: {{commits: {commits}}}\n")

    def branch(self, name: str) -> None:
        self.git("switch", "-qc", name, "main")

    def merged(self, name: str) -> str:
        """Merge a branch into main and push it; the merge's commit."""
        self.git("switch", "-q", "main")
        self.git("merge", "-q", "--no-ff", "-m", f"Merge {name}", name)
        self.git("push", "-q", "origin", "main")
        return self.git("rev-parse", "HEAD")

    def would_be_merged(self, name: str) -> str:
        """The commit that a forge makes to test a branch: what main would be with it."""
        at = self.home / "merging"
        shutil.rmtree(at, ignore_errors=True)
        self.git("clone", "-q", self.origin, str(at), at=self.home)
        self.git("merge", "-q", "--no-ff", "-m", "Test", f"origin/{name}", at=at)
        self.git("push", "-q", "origin", "HEAD:refs/pull/5/merge", "--force", at=at)
        return self.git("rev-parse", "HEAD", at=at)

    def show(self, sha: str, path: str) -> str:
        return self.git("show", f"{sha}:{path}", at=self.home / "origin")

    def checkout(self, folder: Path, sha: str, depth: int) -> None:
        """What actions/checkout does: this commit alone, or (0) it with every branch."""
        self.git("init", "-q", ".", at=folder)
        self.git("remote", "add", "origin", self.origin, at=folder)
        if depth:
            self.git("fetch", "-q", f"--depth={depth}", "origin", sha, at=folder)
        else:
            branches = "+refs/heads/*:refs/remotes/origin/*"
            self.git("fetch", "-q", "origin", branches, sha, at=folder)
        self.git("checkout", "-q", "--detach", sha, at=folder)

    def data_files(self, table: str) -> set[str]:
        folder = self.tables / table
        return {
            path.name
            for path in folder.rglob("*.parquet")
            if ".hoodie" not in path.parts and not path.name.endswith(".crc")
        }


def needs(*programs: str) -> pytest.MarkDecorator:
    """Skips where the machine has not what the machines of a pipeline have."""
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"no {', '.join(missing)} here")


def make_lake(home: Path) -> Lake:
    """Three tables and the repository that declares them as they are, pushed to main."""
    lake = Lake(home)
    for name, kind in TABLES.items():
        unpack(CASES / kind / "table.zip", lake.tables / name, hollow=True)
        lake.write(f"specs/{name}.yaml", TABLE.format(name=name))
    for path, text in FILES.items():
        lake.write(path, text)
    lake.write("environments/prod.yaml", ENVIRONMENT.format(lake=lake.tables))
    shutil.copytree(TEMPLATES / "github", lake.repository / ".github")
    _with_options(lake.repository / ".github" / "workflows")
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", home / "origin"], check=True)
    lake.git("config", "uploadpack.allowAnySHA1InWant", "true", at=home / "origin")
    lake.git("init", "-q", "-b", "main", ".")
    lake.git("remote", "add", "origin", lake.origin)
    lake.commit("Declare every table as it is")
    return lake


def _with_options(workflows: Path) -> None:
    """As people are told to: say the environment in the options."""
    for file in workflows.iterdir():
        text = file.read_text()
        chosen = text.replace('OPTIONS: ""', 'OPTIONS: "--env prod"')
        chosen = chosen.replace("apply=scheduled", "apply=scheduled --env prod", 1)
        assert chosen != text, file
        file.write_text(chosen)
