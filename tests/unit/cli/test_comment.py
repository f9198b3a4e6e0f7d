"""``reconciler comment`` as CI runs it, against a stand-in for the forge's API."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pytest

from tests.code_host_server import CodeHostServer
from tests.command import run

BODY = "<!-- reconciler:plan:default -->\n### plan\n"


@pytest.fixture
def forge(monkeypatch) -> Iterator[CodeHostServer]:
    for name in ("GITHUB_EVENT_PATH", "CI_MERGE_REQUEST_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)
    with CodeHostServer() as standing:
        yield standing


@pytest.fixture
def github(forge, tmp_path, monkeypatch) -> CodeHostServer:
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 5}}))
    for name, value in forge.github_environment(str(event)).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("GITLAB_CI", raising=False)
    return forge


@pytest.fixture
def gitlab(forge, monkeypatch) -> CodeHostServer:
    for name, value in forge.gitlab_environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    return forge


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "plan.md"
    path.write_text(BODY)
    return path


def test_a_plan_is_posted_once_and_edited_after(github, plan, capsys):
    assert 0 == run("comment", plan)
    assert 0 == run("comment", plan)
    plan.write_text(f"{BODY}more\n")
    assert 0 == run("comment", plan)
    said = capsys.readouterr().out.splitlines()
    url = "https://github.example/acme/tables/101"

    assert [f"comment {how}: {url}" for how in ("created", "unchanged", "edited")] == said
    assert [f"{BODY}more\n"] == [note.body for note in github.comments]


def test_standard_input_is_posted_too(gitlab, monkeypatch):
    text = io.TextIOWrapper(io.BytesIO(BODY.replace("\n", "\r\n").encode()))
    monkeypatch.setattr("sys.stdin", text)

    assert 0 == run("comment", "-")
    assert [BODY] == [note.body for note in gitlab.comments]


def test_the_pull_request_of_a_merged_commit_gets_the_result(github, plan, capsys):
    assert 0 == run("comment", plan, "--commit", "abcdef1234")
    assert 1 == len(github.comments)
    assert 0 == run("comment", plan, "--commit", "0000000")
    assert "no pull request merged 0000000" in capsys.readouterr().out
    assert 1 == len(github.comments)


def test_drift_is_one_issue_until_it_is_gone(gitlab, plan, capsys):
    for more, how in ((), "created"), (("--close",), "closed"):
        assert 0 == run("comment", plan, "--issue", "Drift in prod", *more)
        assert f"issue {how}: https://" in capsys.readouterr().out
    assert 0 == run("comment", plan, "--issue", "Drift in prod", "--close")
    assert "no open issue to close\n" == capsys.readouterr().out
    assert ["Closed by reconciler: no table differs from its spec any more."] == gitlab.issues[
        0
    ].remarks


def test_a_second_comment_is_removed_and_told(github, plan, capsys):
    for _ in range(2):
        github.add(github.comments, "github-actions[bot]", BODY)

    assert 0 == run("comment", plan)
    assert "removed a second comment with the same marker: https://" in capsys.readouterr().err


def test_a_job_that_runs_for_no_pull_request_says_so(github, plan, capsys, monkeypatch):
    monkeypatch.delenv("GITHUB_EVENT_PATH")
    monkeypatch.setenv("GITHUB_REF", "refs/heads/main")

    assert 64 == run("comment", plan)
    assert "this job has no pull request; give --pull-request" in capsys.readouterr().err
    assert [] == github.asked


def test_outside_of_ci_nothing_is_guessed(plan, capsys, monkeypatch):
    for name in ("GITHUB_ACTIONS", "GITHUB_REPOSITORY", "GITLAB_CI", "CI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)

    assert 64 == run("comment", plan)
    assert "no variables of GitHub Actions or GitLab CI" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--close"], "--close: only valid with --issue"),
        (["--issue", "a\nb"], "--issue: the title must be one line"),
        (["--issue", "a" * 256], "--issue: the title must be one line"),
        (["--issue", "a", "--pull-request", "5"], "--issue: not valid with --pull-request"),
        (["--commit", "abcdef1", "--pull-request", "5"], "--commit: not valid with"),
        (["--pull-request", "0"], "--pull-request"),
        (["--provider", "gitea"], "'gitea' is not one of"),
    ],
)
def test_a_wrong_command_line_is_one_line(github, plan, arguments, message, capsys):
    assert 64 == run("comment", plan, *arguments)
    said = capsys.readouterr().err

    assert message in said
    assert 1 == said.count("\n")
    assert [] == github.asked


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"### plan", "does not begin with a marker"),
        (b"", "does not begin with a marker"),
        (BODY.encode("utf-16"), "is not UTF-8"),
        (None, "does not exist"),
    ],
)
def test_a_file_that_is_no_markdown_of_ours_is_not_posted(github, plan, data, message, capsys):
    plan.write_bytes(data) if data is not None else plan.unlink()

    assert run("comment", plan) != 0
    assert message in capsys.readouterr().err
    assert [] == github.asked


@pytest.mark.parametrize("debug", [[], ["--debug"]])
def test_the_token_is_never_shown(github, plan, debug, capsys, monkeypatch):
    for token in ("s3cr3t", "s3cr3t\ninjected: 1"):
        monkeypatch.setenv("GITHUB_TOKEN", token)
        assert 1 == run("comment", plan, *debug)
    said = capsys.readouterr()

    assert "the token is invalid or expired" in said.err
    assert github.asked
    assert "s3cr3t" not in said.out + said.err


def test_a_connection_without_encryption_is_told(github, plan, capsys):
    run("comment", plan)

    assert f"{github.url}/api/v3 is not encrypted" in capsys.readouterr().err
