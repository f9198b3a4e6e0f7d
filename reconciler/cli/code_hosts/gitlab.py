"""GitLab, hosted anywhere: https://docs.gitlab.com/api. A merge request is a pull request here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from reconciler.cli.code_hosts.api import CodeHost
from reconciler.cli.code_hosts.client import ApiClient, get_text
from reconciler.cli.code_hosts.http import RetryPolicy
from reconciler.cli.code_hosts.target import CommentTarget

#: the start of a line that GitLab would execute as a command: /close, /merge, /approve
_COMMAND: Final = re.compile(r"^/", re.MULTILINE)


def connect_gitlab(target: CommentTarget, retry_policy: RetryPolicy) -> GitLab:
    """Return a client of the target's project."""
    header = "JOB-TOKEN" if target.is_job_token else "PRIVATE-TOKEN"
    client = ApiClient(
        name="GitLab",
        base=target.api_url,
        token=target.token,
        headers={header: target.token},
        retry_policy=retry_policy,
        suggest_permission=_suggest_job_permission if target.is_job_token else _suggest_permission,
    )
    return GitLab(client, target, ("projects", target.repository))


class GitLab(CodeHost):
    """GitLab as a code host. A post holds a million characters."""

    max_post_length = 1_000_000
    edit_method = "PUT"
    comments_path = "merge_requests/{pull}/notes"
    comment_path = "merge_requests/{pull}/notes/{comment}"
    commit_path = "repository/commits/{commit}/merge_requests"
    absent_commit = (404,)
    issue_comments = "notes"
    issue_number = "iid"
    issue_body = "description"
    url = "web_url"
    author = ("author", "username")
    open_state = "opened"
    closing: ClassVar = {"state_event": "close"}

    def make_postable(self, body: str) -> str:
        """Return the text without lines that begin with a slash: GitLab might execute them."""
        return _COMMAND.sub(" /", body)

    def _format_labels(self, label: str) -> str:
        return label

    def _read_account(self) -> str:
        """Return the account of the token; a job's token belongs to the user who runs the job."""
        if self.target.is_job_token:
            return get_text(self.client.get(("job",)), "user", "username")
        return get_text(self.client.get(("user",)), "username")

    def _select_merged(
        self,
        pulls: Sequence[Mapping[str, Any]],
        commit: str,  # noqa: ARG002 (GitHub's)
    ) -> Sequence[Mapping[str, Any]]:
        return [pull for pull in pulls if pull.get("state") == "merged"]


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
