"""A team's repository: thirty tables in a lake, a spec for each, a policy, an environment."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.trees import unpack

CASES = Path(__file__).parents[1] / "cases" / "clean"
#: later than every instant of the tables; the machine's clock is of no importance to the plans
NOW = "2026-12-01T00:00:00+00:00"
#: real tables of three versions, copy-on-write and merge-on-read, with and without metadata table
KINDS = (
    "cow_basic__0.15.0",
    "cow_basic__1.2.0",
    "cow_trigger__0.15.0",
    "cow_late_clustering__1.0.2",
    "cow_partition_filter__1.2.0",
    "cow_delete_partition__1.2.0",
    "mor_logs__0.15.0",
    "mor_logs__1.0.2",
    "mor_insert_overwrite__1.2.0",
    "cow_few__1.2.0",
)
TABLES = 30
FILES = {
    "specs/defaults.yaml": """\
        apiVersion: reconciler/v1
        kind: TableDefaults
        metadata: {name: everywhere}
        spec:
          timezone: UTC
          retention: {commits: 30}
          concurrency: {lock: {provider: filesystem}}
        """,
    "policies/platform.yaml": """\
        apiVersion: reconciler/v1
        kind: Policy
        metadata: {name: platform}
        spec:
          minRetention: {commits: 2}
          protected: ["finance.*"]
        """,
    "environments/prod.yaml": """\
        apiVersion: reconciler/v1
        kind: Environment
        metadata: {name: prod}
        spec:
          pattern: "../../lake/{name}"
          spark: {master: "local[2]"}
        """,
}
TABLE = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: {name}, labels: {{team: {team}}}}}
spec:
  retention: {{commits: 30}}
"""
PROGRAM = Path(sys.executable).parent / "reconciler"


@dataclass(frozen=True)
class Said:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str


@dataclass
class Team:
    """The repository, a bare one that it is pushed to, and the lake."""

    home: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def repository(self) -> Path:
        return self.home / "repository"

    @property
    def lake(self) -> Path:
        return self.home / "lake"

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.repository,
            env={**os.environ, **_ANN},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, message: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-qm", message)
        return self.git("rev-parse", "HEAD")

    def write(self, path: str, text: str) -> None:
        file = self.repository / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))

    def run(self, *arguments: str) -> Said:
        """``reconciler ARGUMENTS`` in the repository, in a process of its own."""
        done = subprocess.run(
            [str(PROGRAM), *arguments],
            cwd=self.repository,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def data_files(self, table: str) -> set[str]:
        folder = self.lake / table
        return {
            path.relative_to(folder).as_posix()
            for path in folder.rglob("*")
            if path.is_file() and ".hoodie" not in path.parts and not path.name.endswith(".crc")
        }


def name_of(number: int) -> str:
    """What the team calls a table.

    >>> name_of(0), name_of(29)
    ('sales.t00', 'finance.t29')
    """
    return f"{'finance' if number == TABLES - 1 else 'sales'}.t{number:02}"


def make_team(home: Path, **environment: Any) -> Team:
    """Thirty tables and the repository that declares them, committed and pushed to main."""
    team = Team(home=home, environment=environment)
    for number in range(TABLES):
        kind = KINDS[number % len(KINDS)]
        unpack(CASES / kind / "table.zip", team.lake / name_of(number), hollow=True)
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(home / "origin")], check=True)
    subprocess.run(["git", "init", "-q", "-b", "main", str(team.repository)], check=True)
    team.git("remote", "add", "origin", str(home / "origin"))
    for path, text in FILES.items():
        team.write(path, text)
    for number in range(TABLES):
        name = name_of(number)
        team.write(f"specs/{name}.yaml", TABLE.format(name=name, team=name.split(".")[0]))
    team.commit("Declare every table as it is")
    team.git("push", "-q", "origin", "main")
    return team


_ANN = {
    "GIT_AUTHOR_NAME": "ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
}
