"""GitHub, and GitHub Enterprise Server: https://docs.github.com/rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from reconciler.cli.code_hosts.api import CodeHostError, Post
from reconciler.cli.code_hosts.client import ApiClient, Path, get_number, get_text
from reconciler.cli.code_hosts.http import RetryPolicy
from reconciler.cli.code_hosts.target import CommentTarget

_NAME: Final = "GitHub"
_ACTIONS_ACCOUNT: Final = "github-actions[bot]"
_BOT_SUFFIX: Final = "[bot]"
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = frozenset({404, 422})  # 422: there is no such commit


def connect_github(target: CommentTarget, retry_policy: RetryPolicy) -> GitHub:
    """Return a client of the target's repository."""
    headers = {
        "Authorization": f"Bearer {target.token}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    client = ApiClient(
        name=_NAME,
        base=target.api_url,
        token=target.token,
        headers=headers,
        retry_policy=retry_policy,
        suggest_permission=_suggest_permission,
    )
    return GitHub(client=client, target=target)


@dataclass(slots=True)
class GitHub:
    """GitHub as a ``CodeHost``. A post holds 65 536 characters, or 262 144 bytes."""

    client: ApiClient
    target: CommentTarget
    max_post_length: int = 65_536
    _account_name: str = field(default="", init=False)

    def make_postable(self, body: str) -> str:
        return body

    def current_account(self) -> str:
        """Return the account of the token.

        An app's token, such as a workflow's, may not read its user; GraphQL tells the viewer. The
        account of an app ends in ``[bot]``, which no person's account can.
        """
        self._account_name = self._account_name or self._read_account()
        return self._account_name

    def _read_account(self) -> str:
        try:
            login = get_text(self.client.get(("user",)), "login")
        except CodeHostError as error:
            if error.status != _FORBIDDEN:
                raise
            login = self._read_app_account()
        if not login:
            raise CodeHostError(f"{_NAME}: did not name the account of the token")
        return login

    def _read_app_account(self) -> str:
        try:
            answer = self.client.query(self.target.graphql_url, query="query { viewer { login } }")
        except CodeHostError:
            if not self.target.is_workflow:
                raise
            answer = {}
        login = get_text(answer, "data", "viewer", "login")
        if not login:
            return _ACTIONS_ACCOUNT if self.target.is_workflow else ""
        return login if login.endswith(_BOT_SUFFIX) else login + _BOT_SUFFIX

    def find_pull_request(self, commit: str) -> int | None:
        try:
            found = list(
                self.client.list_objects((*self._repository_path, "commits", commit, "pulls"))
            )
        except CodeHostError as error:
            if error.status in _NOT_FOUND:
                return None
            raise
        merged = [pull for pull in found if pull.get("merged_at")]
        exact = [pull for pull in merged if pull.get("merge_commit_sha") == commit]
        numbers = [get_number(pull, "number", _NAME) for pull in exact or merged]
        return max(numbers, default=None)

    def list_comments(self, pull_request: int) -> Iterator[Post]:
        pages = self.client.list_objects(
            (*self._repository_path, "issues", pull_request, "comments")
        )
        return (_parse_post(comment, "id") for comment in pages)

    def add_comment(self, pull_request: int, body: str) -> Post:
        path = (*self._repository_path, "issues", pull_request, "comments")
        return _parse_post(self.client.send_change("POST", path, body=body), "id")

    def edit_comment(self, pull_request: int, comment: Post, body: str) -> Post:  # noqa: ARG002 (a CodeHost's)
        path = (*self._repository_path, "issues", "comments", comment.number)
        return _parse_post(self.client.send_change("PATCH", path, body=body), "id")

    def delete_comment(self, pull_request: int, comment: Post) -> None:  # noqa: ARG002 (a CodeHost's)
        path = (*self._repository_path, "issues", "comments", comment.number)
        self.client.send_change("DELETE", path)

    def list_issues(self, label: str) -> Iterator[Post]:
        pages = self.client.list_objects(
            (*self._repository_path, "issues"), state="open", labels=label
        )
        return (_parse_post(issue, "number") for issue in pages if "pull_request" not in issue)

    def open_issue(self, title: str, body: str, label: str) -> Post:
        path = (*self._repository_path, "issues")
        issue = self.client.send_change("POST", path, title=title, body=body, labels=[label])
        return _parse_post(issue, "number")

    def edit_issue(self, issue: Post, title: str, body: str) -> Post:
        path = (*self._repository_path, "issues", issue.number)
        return _parse_post(self.client.send_change("PATCH", path, title=title, body=body), "number")

    def close_issue(self, issue: Post, last_comment: str) -> None:
        path = (*self._repository_path, "issues", issue.number)
        self.client.send_change("POST", (*path, "comments"), body=last_comment)
        self.client.send_change("PATCH", path, state="closed", state_reason="completed")

    @property
    def _repository_path(self) -> Path:
        return ("repos", *self.target.repository.split("/"))


def _parse_post(document: Mapping[str, Any], key: str) -> Post:
    return Post(
        number=get_number(document, key, _NAME),
        author=get_text(document, "user", "login"),
        title=get_text(document, "title"),
        body=get_text(document, "body"),
        url=get_text(document, "html_url"),
    )


def _suggest_permission(status: int) -> str:
    moved = "; the repository has moved: give its new name with --repository"
    return {
        401: "; the token is invalid or expired",
        403: "; the job needs `permissions: pull-requests: write` (`issues: write` for an issue), "
        "and jobs of pull requests from forks get a read-only token",
        404: "; the repository, pull request or issue does not exist, or the token may not see it",
        301: moved,
        307: moved,
        308: moved,
        410: "; issues are disabled in the repository",
    }.get(status, "")
