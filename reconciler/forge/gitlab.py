"""GitLab, hosted anywhere: https://docs.gitlab.com/api. A merge request is a pull request here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from reconciler.forge.api import ForgeError, Post
from reconciler.forge.client import Client, Path, number_of, text_of
from reconciler.forge.http import Patience
from reconciler.forge.place import Place

_NAME: Final = "GitLab"
_NOTHING_THERE: Final = 404
#: the start of a line that GitLab would take for a command: /close, /merge, /approve
_COMMAND: Final = re.compile(r"^/", re.MULTILINE)


def gitlab(where: Place, patience: Patience) -> GitLab:
    """The project at a place."""
    header = "JOB-TOKEN" if where.is_job_token else "PRIVATE-TOKEN"
    client = Client(
        name=_NAME,
        base=where.api_url,
        token=where.token,
        headers={header: where.token},
        patience=patience,
        advice=_advice_to_jobs if where.is_job_token else _advice,
    )
    return GitLab(client=client, where=where)


@dataclass(slots=True)
class GitLab:
    """Implements ``Forge``. A post holds a million characters here."""

    client: Client
    where: Place
    longest: int = 1_000_000
    _me: str = field(default="", init=False)

    def as_posted(self, body: str) -> str:
        """No line begins with a slash: GitLab might carry it out."""
        return _COMMAND.sub(" /", body)

    def me(self) -> str:
        """Who the token is; a job's token is the user's who runs the job."""
        if not self._me:
            found = (
                self.client.get(("job",)) if self.where.is_job_token else self.client.get(("user",))
            )
            keys = ("user", "username") if self.where.is_job_token else ("username",)
            self._me = text_of(found, *keys)
        if not self._me:
            raise ForgeError(f"{_NAME}: does not say whose the token is")
        return self._me

    def pull_request_of(self, commit: str) -> int | None:
        path = (*self._project, "repository", "commits", commit, "merge_requests")
        try:
            found = list(self.client.pages(path))
        except ForgeError as error:
            if error.status == _NOTHING_THERE:
                return None
            raise
        merged = [request for request in found if request.get("state") == "merged"]
        return max((number_of(request, "iid", _NAME) for request in merged), default=None)

    def comments(self, pull_request: int) -> Iterator[Post]:
        pages = self.client.pages(self._notes(pull_request))
        return (self._note(pull_request, note) for note in pages if note.get("system") is not True)

    def add_comment(self, pull_request: int, body: str) -> Post:
        path = self._notes(pull_request)
        return self._note(pull_request, self.client.change("POST", path, body=body))

    def edit_comment(self, pull_request: int, comment: Post, body: str) -> Post:
        path = (*self._notes(pull_request), comment.number)
        return self._note(pull_request, self.client.change("PUT", path, body=body))

    def delete_comment(self, pull_request: int, comment: Post) -> None:
        self.client.change("DELETE", (*self._notes(pull_request), comment.number))

    def issues(self, label: str) -> Iterator[Post]:
        pages = self.client.pages((*self._project, "issues"), state="opened", labels=label)
        return (_issue(issue) for issue in pages)

    def open_issue(self, title: str, body: str, label: str) -> Post:
        fields = {"title": title, "description": body, "labels": label}
        return _issue(self.client.change("POST", (*self._project, "issues"), **fields))

    def edit_issue(self, issue: Post, title: str, body: str) -> Post:
        path = (*self._project, "issues", issue.number)
        return _issue(self.client.change("PUT", path, title=title, description=body))

    def close_issue(self, issue: Post, word: str) -> None:
        path = (*self._project, "issues", issue.number)
        self.client.change("POST", (*path, "notes"), body=word)
        self.client.change("PUT", path, state_event="close")

    @property
    def _project(self) -> Path:
        return ("projects", self.where.repository)

    def _notes(self, pull_request: int) -> Path:
        return (*self._project, "merge_requests", pull_request, "notes")

    def _note(self, pull_request: int, document: Mapping[str, Any]) -> Post:
        number = number_of(document, "id", _NAME)
        return Post(
            number=number,
            author=text_of(document, "author", "username"),
            body=text_of(document, "body"),
            url=f"merge request {pull_request}, note {number}",  # a note has no URL of its own
        )


def _issue(document: Mapping[str, Any]) -> Post:
    return Post(
        number=number_of(document, "iid", _NAME),
        author=text_of(document, "author", "username"),
        title=text_of(document, "title"),
        body=text_of(document, "description"),
        url=text_of(document, "web_url"),
    )


def _advice(status: int) -> str:
    return {
        401: "; the token is not valid (any more); it needs the scope `api`",
        403: "; the token needs the scope `api` and the role Reporter at least",
        404: "; there is no such project, merge request or issue, or the token may not see it",
    }.get(status, "")


def _advice_to_jobs(status: int) -> str:
    instead = (
        "; a job's own token may not write to merge requests or issues: put a project access token "
        "of scope `api` into RECONCILER_GITLAB_TOKEN"
    )
    return instead if status in (401, 403, 404) else ""
