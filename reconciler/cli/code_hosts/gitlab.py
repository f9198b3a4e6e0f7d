"""GitLab, hosted anywhere: https://docs.gitlab.com/api. A merge request is a pull request here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from reconciler.cli.code_hosts.api import CodeHostError, Post
from reconciler.cli.code_hosts.client import ApiClient, Path, get_number, get_text
from reconciler.cli.code_hosts.http import RetryPolicy
from reconciler.cli.code_hosts.target import CommentTarget

_NAME: Final = "GitLab"
_NOT_FOUND: Final = 404
#: the start of a line that GitLab would execute as a command: /close, /merge, /approve
_COMMAND: Final = re.compile(r"^/", re.MULTILINE)


def connect_gitlab(target: CommentTarget, retry_policy: RetryPolicy) -> GitLab:
    """Return a client of the target's project."""
    header = "JOB-TOKEN" if target.is_job_token else "PRIVATE-TOKEN"
    client = ApiClient(
        name=_NAME,
        base=target.api_url,
        token=target.token,
        headers={header: target.token},
        retry_policy=retry_policy,
        suggest_permission=_suggest_job_permission if target.is_job_token else _suggest_permission,
    )
    return GitLab(client=client, target=target)


@dataclass(slots=True)
class GitLab:
    """GitLab as a ``CodeHost``. A post holds a million characters."""

    client: ApiClient
    target: CommentTarget
    max_post_length: int = 1_000_000
    _account_name: str = field(default="", init=False)

    def make_postable(self, body: str) -> str:
        """Return the text without lines that begin with a slash: GitLab might execute them."""
        return _COMMAND.sub(" /", body)

    def current_account(self) -> str:
        """Return the account of the token; a job's token belongs to the user who runs the job."""
        if not self._account_name:
            found = (
                self.client.get(("job",))
                if self.target.is_job_token
                else self.client.get(("user",))
            )
            keys = ("user", "username") if self.target.is_job_token else ("username",)
            self._account_name = get_text(found, *keys)
        if not self._account_name:
            raise CodeHostError(f"{_NAME}: did not name the account of the token")
        return self._account_name

    def find_pull_request(self, commit: str) -> int | None:
        path = (*self._project_path, "repository", "commits", commit, "merge_requests")
        try:
            found = list(self.client.list_objects(path))
        except CodeHostError as error:
            if error.status == _NOT_FOUND:
                return None
            raise
        merged = [request for request in found if request.get("state") == "merged"]
        return max((get_number(request, "iid", _NAME) for request in merged), default=None)

    def list_comments(self, pull_request: int) -> Iterator[Post]:
        pages = self.client.list_objects(self._notes_path(pull_request))
        return (
            self._parse_note(pull_request, note) for note in pages if note.get("system") is not True
        )

    def add_comment(self, pull_request: int, body: str) -> Post:
        path = self._notes_path(pull_request)
        return self._parse_note(pull_request, self.client.send_change("POST", path, body=body))

    def edit_comment(self, pull_request: int, comment: Post, body: str) -> Post:
        path = (*self._notes_path(pull_request), comment.number)
        return self._parse_note(pull_request, self.client.send_change("PUT", path, body=body))

    def delete_comment(self, pull_request: int, comment: Post) -> None:
        self.client.send_change("DELETE", (*self._notes_path(pull_request), comment.number))

    def list_issues(self, label: str) -> Iterator[Post]:
        pages = self.client.list_objects(
            (*self._project_path, "issues"), state="opened", labels=label
        )
        return (_parse_issue(issue) for issue in pages)

    def open_issue(self, title: str, body: str, label: str) -> Post:
        fields = {"title": title, "description": body, "labels": label}
        return _parse_issue(
            self.client.send_change("POST", (*self._project_path, "issues"), **fields)
        )

    def edit_issue(self, issue: Post, title: str, body: str) -> Post:
        path = (*self._project_path, "issues", issue.number)
        return _parse_issue(self.client.send_change("PUT", path, title=title, description=body))

    def close_issue(self, issue: Post, last_comment: str) -> None:
        path = (*self._project_path, "issues", issue.number)
        self.client.send_change("POST", (*path, "notes"), body=last_comment)
        self.client.send_change("PUT", path, state_event="close")

    @property
    def _project_path(self) -> Path:
        return ("projects", self.target.repository)

    def _notes_path(self, pull_request: int) -> Path:
        return (*self._project_path, "merge_requests", pull_request, "notes")

    def _parse_note(self, pull_request: int, document: Mapping[str, Any]) -> Post:
        number = get_number(document, "id", _NAME)
        return Post(
            number=number,
            author=get_text(document, "author", "username"),
            body=get_text(document, "body"),
            url=f"merge request {pull_request}, note {number}",  # a note has no URL of its own
        )


def _parse_issue(document: Mapping[str, Any]) -> Post:
    return Post(
        number=get_number(document, "iid", _NAME),
        author=get_text(document, "author", "username"),
        title=get_text(document, "title"),
        body=get_text(document, "description"),
        url=get_text(document, "web_url"),
    )


def _suggest_permission(status: int) -> str:
    return {
        401: "; the token is invalid or expired; it needs the scope `api`",
        403: "; the token needs the scope `api` and at least the role Reporter",
        404: "; the project, merge request or issue does not exist, or the token may not see it",
    }.get(status, "")


def _suggest_job_permission(status: int) -> str:
    hint = (
        "; a job token cannot write to merge requests or issues: set RECONCILER_GITLAB_TOKEN to a "
        "project access token with the scope `api`"
    )
    return hint if status in (401, 403, 404) else ""
