"""The repository and pull request to post to, found in the environment variables of CI."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from reconciler.errors import UsageError
from reconciler.lazy_dataclass import dataclass

_GITHUB: Final = "https://api.github.com"
_GITLAB: Final = "https://gitlab.com/api/v4"
_OWNER_AND_NAME: Final = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_PULL_REF: Final = re.compile(r"refs/pull/(\d+)/\w+")
_COMMIT: Final = re.compile(r"[0-9a-f]{7,64}")


class Provider(StrEnum):
    GITHUB = "github"
    GITLAB = "gitlab"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetOptions:
    """The options of the command line; the rest is found in environment variables."""

    pull_request: Annotated[
        int | None,
        typer.Option(
            "--pull-request",
            metavar="NUMBER",
            min=1,
            help="Pull request to comment on (default: CI's).",
        ),
    ] = None
    commit: Annotated[
        str | None,
        typer.Option(
            "--commit", metavar="SHA", help="Comment on the pull request that merged this commit."
        ),
    ] = None
    repository: Annotated[
        str | None,
        typer.Option(
            "--repository", metavar="OWNER/NAME", help="Repository of the post (default: CI's)."
        ),
    ] = None
    provider: Annotated[
        Provider | None, typer.Option("--provider", help="Code host (default: CI's).")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentTarget:
    """A repository and, if known, the pull request.

    ``repository``: owner/name on GitHub, number or path of a project on GitLab. ``is_workflow``:
    this is a GitHub Actions job, so the token may be the workflow's. ``is_job_token``: the token is
    the GitLab job's own. ``commit`` stands for the pull request that merged it.
    """

    provider: Provider
    api_url: str
    repository: str
    token: str = field(repr=False)
    pull_request: int | None = None
    commit: str | None = None
    graphql_url: str = ""
    is_workflow: bool = False
    is_job_token: bool = False


def find_target(
    environ: Mapping[str, str], options: TargetOptions, *, read: Callable[[str], bytes]
) -> CommentTarget:
    """Return where to post. ``read`` reads the file that describes GitHub's event.

    Raises UsageError with what is missing.
    """
    provider = options.provider or _detect_provider(environ)
    if options.commit is not None and not _COMMIT.fullmatch(options.commit):
        raise UsageError(f"--commit {options.commit}: expected 7 to 64 hexadecimal digits")
    if provider == Provider.GITHUB:
        return _find_github_target(environ, options, read)
    return _find_gitlab_target(environ, options)


def _detect_provider(environ: Mapping[str, str]) -> Provider:
    for github, gitlab in (("GITHUB_ACTIONS", "GITLAB_CI"), ("GITHUB_REPOSITORY", "CI_PROJECT_ID")):
        if bool(environ.get(github)) != bool(environ.get(gitlab)):
            return Provider.GITHUB if environ.get(github) else Provider.GITLAB
    raise UsageError(
        "no variables of GitHub Actions or GitLab CI are set; give --provider, --repository "
        "and --pull-request"
    )


def _find_github_target(
    environ: Mapping[str, str], options: TargetOptions, read: Callable[[str], bytes]
) -> CommentTarget:
    repository = options.repository or environ.get("GITHUB_REPOSITORY", "")
    if not _OWNER_AND_NAME.fullmatch(repository) or ".." in repository.split("/"):
        raise UsageError(
            f"--repository {repository}: write it as owner/name"
            if repository
            else "no repository: GITHUB_REPOSITORY is not set; give --repository owner/name"
        )
    token = environ.get("GITHUB_TOKEN", "").strip()
    if not token:
        raise UsageError("GITHUB_TOKEN is not set; set it to the job's token")
    api = (environ.get("GITHUB_API_URL") or _GITHUB).rstrip("/")
    is_here = repository == environ.get("GITHUB_REPOSITORY")
    number = options.pull_request
    if number is None and options.commit is None and is_here:
        number = _find_event_pull_request(environ, read)
    return CommentTarget(
        provider=Provider.GITHUB,
        api_url=api,
        graphql_url=environ.get("GITHUB_GRAPHQL_URL") or _derive_graphql_url(api),
        repository=repository,
        token=token,
        pull_request=number,
        commit=options.commit,
        is_workflow=environ.get("GITHUB_ACTIONS") == "true",
    )


def _derive_graphql_url(api: str) -> str:
    """Return the GraphQL URL of an API.

    >>> _derive_graphql_url("https://api.github.com")
    'https://api.github.com/graphql'
    >>> _derive_graphql_url("https://ghe.example/api/v3")
    'https://ghe.example/api/graphql'
    """
    return f"{api.removesuffix('/v3')}/graphql"


def _find_event_pull_request(
    environ: Mapping[str, str], read: Callable[[str], bytes]
) -> int | None:
    """Return the pull request that a workflow runs for."""
    event: Any = None
    path = environ.get("GITHUB_EVENT_PATH")
    if path:
        try:
            event = json.loads(read(path))
        except (OSError, ValueError, RecursionError):
            raise UsageError(
                f"{path}: not a workflow event (GITHUB_EVENT_PATH); give --pull-request"
            ) from None
    if isinstance(event, dict):
        issue = event.get("issue")  # of a comment on a pull request
        is_pull = isinstance(issue, dict) and "pull_request" in issue
        for document in (event.get("pull_request"), issue if is_pull else None):
            number = document.get("number") if isinstance(document, dict) else None
            if type(number) is int:
                return number
    ref = _PULL_REF.fullmatch(environ.get("GITHUB_REF", ""))
    return int(ref[1]) if ref else None


def _find_gitlab_target(environ: Mapping[str, str], options: TargetOptions) -> CommentTarget:
    number, iid = options.pull_request, environ.get("CI_MERGE_REQUEST_IID", "")
    repository = own_project = options.repository or environ.get("CI_PROJECT_ID", "")
    if options.repository is None and options.commit is None and number is None and iid.isdecimal():
        number = int(iid)
        # CI_PROJECT_ID may be a fork
        repository = environ.get("CI_MERGE_REQUEST_PROJECT_ID") or own_project
    if not repository or not all(map(str.isprintable, repository)):
        raise UsageError("no project: CI_PROJECT_ID is not set; give --repository group/project")
    own, job = (
        environ.get(name, "").strip() for name in ("RECONCILER_GITLAB_TOKEN", "CI_JOB_TOKEN")
    )
    if not own and not job:
        raise UsageError(
            "RECONCILER_GITLAB_TOKEN is not set; set it to a project access token with the scope "
            "`api`"
        )
    return CommentTarget(
        provider=Provider.GITLAB,
        api_url=(environ.get("CI_API_V4_URL") or _GITLAB).rstrip("/"),
        repository=repository,
        token=own or job,
        pull_request=number,
        commit=options.commit,
        is_job_token=not own,
    )
