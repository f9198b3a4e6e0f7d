"""GitHub, and GitHub Enterprise Server: https://docs.github.com/rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from reconciler.cli.code_hosts.api import CodeHost
from reconciler.cli.code_hosts.client import ApiClient, CodeHostError, get_text
from reconciler.cli.code_hosts.http import RetryPolicy
from reconciler.cli.code_hosts.target import CommentTarget

_ACTIONS_ACCOUNT: Final = "github-actions[bot]"
_BOT_SUFFIX: Final = "[bot]"
_FORBIDDEN: Final = 403


def connect_github(target: CommentTarget, retry_policy: RetryPolicy) -> GitHub:
    """Return a client of the target's repository."""
    headers = {
        "Authorization": f"Bearer {target.token}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    client = ApiClient(
        name="GitHub",
        base=target.api_url,
        token=target.token,
        headers=headers,
        retry_policy=retry_policy,
        suggest_permission=_suggest_permission,
    )
    return GitHub(client, target, ("repos", *target.repository.split("/")))


class GitHub(CodeHost):
    """GitHub as a code host. A post holds 65 536 characters, or 262 144 bytes."""

    max_post_length = 65_536
    edit_method = "PATCH"
    comments_path = "issues/{pull}/comments"
    comment_path = "issues/comments/{comment}"
    commit_path = "commits/{commit}/pulls"
    absent_commit = (404, 422)
    issue_comments = "comments"
    issue_number = "number"
    issue_body = "body"
    url = "html_url"
    author = ("user", "login")
    open_state = "open"
    closing: ClassVar = {"state": "closed", "state_reason": "completed"}

    def _read_account(self) -> str:
        """Return the account of the token.

        An app's token, such as a workflow's, may not read its user; GraphQL tells the viewer. The
        account of an app ends in ``[bot]``, which no person's account can.
        """
        try:
            return get_text(self.client.get(("user",)), "login")
        except CodeHostError as error:
            if error.status != _FORBIDDEN:
                raise
        return self._read_app_account()

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

    def _select_merged(
        self, pulls: Sequence[Mapping[str, Any]], commit: str
    ) -> Sequence[Mapping[str, Any]]:
        merged = [pull for pull in pulls if pull.get("merged_at")]
        return [pull for pull in merged if pull.get("merge_commit_sha") == commit] or merged


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
