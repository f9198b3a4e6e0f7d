"""Where a post goes, by what CI says of itself."""

from __future__ import annotations

import json

import pytest

from reconciler.cli.code_hosts.target import CommentTarget, TargetOptions, find_target
from reconciler.errors import UsageError

GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_REPOSITORY": "acme/tables",
    "GITHUB_TOKEN": "t",
    "GITHUB_API_URL": "https://ghe.example/api/v3",
    "GITHUB_EVENT_PATH": "/event.json",
}
GITLAB = {
    "GITLAB_CI": "true",
    "CI_API_V4_URL": "https://gitlab.example/api/v4",
    "CI_PROJECT_ID": "7",
    "CI_MERGE_REQUEST_IID": "5",
    "CI_JOB_TOKEN": "j",
    "RECONCILER_GITLAB_TOKEN": "t",
}


def found(environ, event: object = None, **wanted) -> CommentTarget:
    def read(path: str) -> bytes:
        assert path == "/event.json"
        return event if isinstance(event, bytes) else json.dumps(event).encode()

    return find_target(environ, TargetOptions(**wanted), read=read)


def test_a_workflow_says_everything():
    assert found(GITHUB, {"pull_request": {"number": 5}}) == CommentTarget(
        provider="github",
        api_url="https://ghe.example/api/v3",
        graphql_url="https://ghe.example/api/graphql",
        repository="acme/tables",
        token="t",
        pull_request=5,
        is_workflow=True,
    )


def test_a_merge_request_pipeline_says_everything():
    assert found(GITLAB) == CommentTarget(
        provider="gitlab",
        api_url="https://gitlab.example/api/v4",
        repository="7",
        token="t",
        pull_request=5,
    )


@pytest.mark.parametrize(
    ("event", "ref", "number"),
    [
        ({"pull_request": {"number": 5}}, "", 5),
        ({"issue": {"number": 6, "pull_request": {}}}, "", 6),
        ({"issue": {"number": 6}}, "", None),
        ({"push": {}}, "refs/pull/8/merge", 8),
        ({"pull_request": {"number": "5"}}, "refs/heads/main", None),
        ([], "", None),
        ({"pull_request": None}, "refs/pull/x/merge", None),
    ],
)
def test_the_event_names_the_pull_request(event, ref, number):
    assert found({**GITHUB, "GITHUB_REF": ref}, event).pull_request == number


def test_what_the_command_line_says_wins():
    event = {"pull_request": {"number": 5}}

    assert found(GITHUB, event, pull_request=9).pull_request == 9
    assert found(GITHUB, event, commit="abcdef1").pull_request is None
    assert found({**GITHUB, **GITLAB}, provider="gitlab").repository == "7"
    assert found(GITLAB, repository="group/sub/project").repository == "group/sub/project"


def test_the_number_of_here_is_none_of_another_repository():
    event = {"pull_request": {"number": 5}}

    assert found(GITHUB, event, repository="acme/other").pull_request is None
    assert found(GITLAB, repository="acme/other").pull_request is None


def test_a_merge_request_of_a_fork_is_commented_on_where_it_goes_to():
    assert found({**GITLAB, "CI_MERGE_REQUEST_PROJECT_ID": "1"}).repository == "1"


def test_jenkins_says_nothing_and_is_told():
    where = found(
        {"GITHUB_TOKEN": " t\n"}, provider="github", repository="acme/tables", pull_request=5
    )

    assert (where.api_url, where.token, where.is_workflow) == (
        "https://api.github.com",
        "t",
        False,
    )
    assert where.graphql_url == "https://api.github.com/graphql"


def test_a_variable_that_is_empty_is_not_set():
    event = {"pull_request": {"number": 5}}

    assert found({**GITHUB, "GITHUB_API_URL": ""}, event).api_url == "https://api.github.com"
    assert found({**GITLAB, "CI_API_V4_URL": ""}).api_url == "https://gitlab.com/api/v4"


def test_a_job_token_is_the_last_resort():
    assert not found(GITLAB).is_job_token
    job = found({**GITLAB, "RECONCILER_GITLAB_TOKEN": ""})

    assert (job.is_job_token, job.token) == (True, "j")


def test_the_token_is_not_shown_with_the_place():
    where = found({**GITLAB, "RECONCILER_GITLAB_TOKEN": "s3cr3t"})

    assert (where.token, "s3cr3t" in repr(where)) == ("s3cr3t", False)


@pytest.mark.parametrize(
    ("environ", "wanted", "message"),
    [
        ({}, {}, "no variables of GitHub Actions or GitLab CI are set; give --provider"),
        ({**GITHUB, **GITLAB}, {}, "no variables of GitHub Actions or GitLab CI"),
        ({"GITHUB_TOKEN": "t"}, {"provider": "github"}, "no repository: GITHUB_REPOS"),
        ({}, {"provider": "github", "repository": "acme"}, "--repository acme: write it as owner"),
        ({}, {"provider": "github", "repository": "a/../b"}, "write it as owner/name"),
        ({}, {"provider": "github", "repository": "../.."}, "write it as owner/name"),
        ({}, {"provider": "github", "repository": "a/b"}, "GITHUB_TOKEN is not set"),
        ({}, {"provider": "gitlab"}, "no project: CI_PROJECT_ID is not set"),
        ({}, {"provider": "gitlab", "repository": "a/b"}, "RECONCILER_GITLAB_TOKEN is not set"),
        (GITHUB, {"commit": "HEAD"}, "--commit HEAD: expected 7 to 64 hexadecimal digits"),
    ],
)
def test_what_is_missing_is_said(environ, wanted, message):
    with pytest.raises(UsageError) as caught:
        found(environ, {}, **wanted)

    assert message in str(caught.value)


@pytest.mark.parametrize("event", [b"not json", b"\xff", b"[" * 100_000])
def test_an_event_that_cannot_be_read_is_an_error(event):
    with pytest.raises(UsageError, match=r"^/event\.json: not a workflow event"):
        found(GITHUB, event)
