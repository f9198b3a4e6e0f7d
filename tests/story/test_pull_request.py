"""How a team uses it, from a branch to a scheduled run, with the commands a pipeline would run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.hudi.codecs import avro_container
from tests.code_host_server import CodeHostServer
from tests.story.team import CASES, KINDS, NOW, Said, Team, make_team
from tests.trees import unpack

COMMENTS = Path(__file__).parent / "comments"
PLAN = ("plan", "specs", "--env", "prod", "--now", NOW)
REVIEW = (*PLAN, "--changed-since", "origin/main", "-o", "plan.json", "--format", "markdown")
WAIVER = """\
  waivers:
    - {table: sales.t01, rule: minRetention, until: "2026-12-31", reason: being retired}
"""


@pytest.fixture
def forge() -> Iterator[CodeHostServer]:
    with CodeHostServer() as standing:
        yield standing


@pytest.fixture
def team(tmp_path, forge) -> Team:
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 5}}))
    return make_team(tmp_path / "home", **forge.github_environment(str(event)))


def shorten(team: Team) -> None:
    """A branch on which three tables keep less."""
    team.git("switch", "-qc", "shorter")
    for name, commits in (("sales.t00", 2), ("sales.t01", 1), ("sales.t02", 3)):
        spec = team.repository / f"specs/{name}.yaml"
        spec.write_text(spec.read_text().replace("commits: 30", f"commits: {commits}"))
    team.commit("Keep less of three tables")


def waive(team: Team) -> None:
    policy = team.repository / "policies/platform.yaml"
    policy.write_text(policy.read_text() + WAIVER)
    team.commit("Waive the minimum for a table that is being retired")


def post(team: Team, body: str, *more: str) -> None:
    (team.home / "comment.md").write_text(body)
    said = team.run("comment", str(team.home / "comment.md"), *more)
    assert said.code == 0, said.err


def digest(team: Team) -> str:
    return json.loads((team.repository / "plan.json").read_bytes())["digest"]


def as_read(text: str, team: Team) -> str:
    """A comment without what differs from run to run: folders and what is digested of them."""
    text = text.replace(str(team.home), "/home")
    return re.sub(r"sha256:[0-9a-f]{64}", "sha256:…", text)


def savepoint_oldest(team: Team, table: str) -> str:
    """Somebody makes a savepoint that pins the oldest base file of a table; its name."""
    folder = team.lake / table
    commits = sorted((folder / ".hoodie").glob("*.commit"))
    oldest = commits[0].name.split(".")[0]
    (pinned,) = folder.glob(f"a/*_{oldest}.parquet")
    pins = {"a": {"partitionPath": "a", "savepointDataFile": [pinned.name]}}
    record = {
        "savepointedBy": "bob",
        "savepointedAt": 0,
        "comments": "",
        "partitionMetadata": pins,
        "version": 1,
    }
    (folder / ".hoodie" / f"{oldest}.savepoint.inflight").touch()
    data = avro_container.encode_container("HoodieSavepointMetadata.avsc", record)
    (folder / ".hoodie" / f"{oldest}.savepoint").write_bytes(data)
    return f"a/{pinned.name}"


def test_a_branch_is_reviewed_in_one_comment(team, forge, golden):
    shorten(team)
    blocked = team.run(*REVIEW)
    post(team, blocked.out)
    first = forge.comments[0].body
    waive(team)
    allowed = team.run(*REVIEW, "--detailed-exitcode")
    post(team, allowed.out)

    assert (3, 2) == (blocked.code, allowed.code)
    assert len(forge.comments) == 1
    for name, body in (("blocked.md", first), ("waived.md", forge.comments[0].body)):
        found = as_read(body, team)
        assert golden.expected(COMMENTS / name, found) == found


def test_whoever_may_only_read_can_do_all_of_a_review(team):
    shorten(team)
    everything = [team.lake, *team.lake.rglob("*")]
    for path in everything:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = {path: path.lstat() for path in everything}
    try:
        said = [team.run(*REVIEW), team.run("lint", "specs"), team.run("status", *PLAN[1:])]
        after = {path: path.lstat() for path in [team.lake, *team.lake.rglob("*")]}
    finally:
        for path in everything:
            path.chmod(0o755)

    assert [3, 0, 0] == [one.code for one in said], said
    assert {path: (at.st_size, at.st_mtime_ns) for path, at in before.items()} == {
        path: (at.st_size, at.st_mtime_ns) for path, at in after.items()
    }


@pytest.mark.spark
def test_a_reviewed_plan_is_merged_applied_and_holds(team, forge):
    before = {name: team.data_files(name) for name in ("sales.t00", "sales.t01", "sales.t02")}
    shorten(team)
    waive(team)
    team.run(*REVIEW)
    reviewed = json.loads((team.repository / "plan.json").read_bytes())
    commit = merged(team)
    pinned = savepoint_oldest(team, "sales.t00")
    applied = apply_reviewed(team)
    audited = [json.loads(line) for line in (team.home / "audit.jsonl").read_text().splitlines()]
    scanned = team.run(*PLAN, "--detailed-exitcode", "--format", "markdown")

    assert applied.code == 4, applied.err
    for name, files in before.items():
        assert files - team.data_files(name) == removed_by(reviewed, name) - {pinned}
    assert commit in {line["specCommit"] for line in audited}
    assert scanned.code == 0, scanned.out
    nightly_scan_finds_a_drift_made_by_hand(team, forge)


def merged(team: Team) -> str:
    """The branch becomes main; its commit."""
    team.git("switch", "-q", "main")
    team.git("merge", "-q", "--no-ff", "-m", "Merge the review", "shorter")
    team.git("push", "-q", "origin", "main")
    return team.git("rev-parse", "HEAD")


def apply_reviewed(team: Team) -> Said:
    said = ("plan.json", "--specs", "specs", "--env", "prod", "--digest", digest(team))
    return team.run("apply", *said, "--now", NOW, "--audit", str(team.home / "audit.jsonl"))


def removed_by(plan: dict, name: str) -> set[str]:
    (table,) = (table for table in plan["tables"] if table["name"] == name)
    return {
        f"{partition['path']}/{file['name']}"
        for step in table["steps"]
        for partition in step["partitions"]
        for file in partition["files"]
    }


def nightly_scan_finds_a_drift_made_by_hand(team: Team, forge: CodeHostServer) -> None:
    """Somebody puts older files back from a backup; the scan opens an issue, and one only."""
    unpack(CASES / KINDS[2] / "table.zip", team.lake / "sales.t02")
    for _night in range(2):
        said = team.run(*PLAN, "--detailed-exitcode", "--format", "markdown")
        post(team, said.out, "--issue", "Tables have drifted")

    assert said.code == 2
    assert ["Tables have drifted"] == [issue.title for issue in forge.issues]
    assert "sales.t02" in forge.issues[0].body
