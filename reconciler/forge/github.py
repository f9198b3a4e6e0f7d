"""GitHub, and GitHub Enterprise Server: https://docs.github.com/rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from reconciler.forge.api import ForgeError, Post
from reconciler.forge.client import Client, Path, number_of, text_of
from reconciler.forge.http import Patience
from reconciler.forge.place import Place

_NAME: Final = "GitHub"
_ACTIONS: Final = "github-actions[bot]"
_BOT: Final = "[bot]"
_FORBIDDEN: Final = 403
_NOTHING_THERE: Final = frozenset({404, 422})  # 422: no commit of that name


def github(where: Place, patience: Patience) -> GitHub:
    """The repository at a place."""
    headers = {
        "Authorization": f"Bearer {where.token}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    client = Client(
        name=_NAME,
        base=where.api_url,
        token=where.token,
        headers=headers,
        patience=patience,
        advice=_advice,
    )
    return GitHub(client=client, where=where)


@dataclass(slots=True)
class GitHub:
    """Implements ``Forge``. A post holds 65 536 characters here, or 262 144 bytes."""

    client: Client
    where: Place
    longest: int = 65_536
    _me: str = field(default="", init=False)

    def as_posted(self, body: str) -> str:
        return body

    def me(self) -> str:
        """Who the token is.

        An app's token, such as a workflow's, may not ask for its user; the graph tells it who
        looks. The account of an app ends in ``[bot]``, which no person's can.
        """
        self._me = self._me or self._account()
        return self._me

    def _account(self) -> str:
        try:
            login = text_of(self.client.get(("user",)), "login")
        except ForgeError as error:
            if error.status != _FORBIDDEN:
                raise
            login = self._app()
        if not login:
            raise ForgeError(f"{_NAME}: does not say whose the token is")
        return login

    def _app(self) -> str:
        try:
            answer = self.client.ask(self.where.graph_url, query="query { viewer { login } }")
        except ForgeError:
            if not self.where.is_workflow:
                raise
            answer = {}
        login = text_of(answer, "data", "viewer", "login")
        if not login:
            return _ACTIONS if self.where.is_workflow else ""
        return login if login.endswith(_BOT) else login + _BOT

    def pull_request_of(self, commit: str) -> int | None:
        try:
            found = list(self.client.pages((*self._repository, "commits", commit, "pulls")))
        except ForgeError as error:
            if error.status in _NOTHING_THERE:
                return None
            raise
        merged = [pull for pull in found if pull.get("merged_at")]
        exact = [pull for pull in merged if pull.get("merge_commit_sha") == commit]
        numbers = [number_of(pull, "number", _NAME) for pull in exact or merged]
        return max(numbers, default=None)

    def comments(self, pull_request: int) -> Iterator[Post]:
        pages = self.client.pages((*self._repository, "issues", pull_request, "comments"))
        return (_post(comment, "id") for comment in pages)

    def add_comment(self, pull_request: int, body: str) -> Post:
        path = (*self._repository, "issues", pull_request, "comments")
        return _post(self.client.change("POST", path, body=body), "id")

    def edit_comment(self, pull_request: int, comment: Post, body: str) -> Post:  # noqa: ARG002 (a Forge's)
        path = (*self._repository, "issues", "comments", comment.number)
        return _post(self.client.change("PATCH", path, body=body), "id")

    def delete_comment(self, pull_request: int, comment: Post) -> None:  # noqa: ARG002 (a Forge's)
        path = (*self._repository, "issues", "comments", comment.number)
        self.client.change("DELETE", path)

    def issues(self, label: str) -> Iterator[Post]:
        pages = self.client.pages((*self._repository, "issues"), state="open", labels=label)
        return (_post(issue, "number") for issue in pages if "pull_request" not in issue)

    def open_issue(self, title: str, body: str, label: str) -> Post:
        path = (*self._repository, "issues")
        made = self.client.change("POST", path, title=title, body=body, labels=[label])
        return _post(made, "number")

    def edit_issue(self, issue: Post, title: str, body: str) -> Post:
        path = (*self._repository, "issues", issue.number)
        return _post(self.client.change("PATCH", path, title=title, body=body), "number")

    def close_issue(self, issue: Post, word: str) -> None:
        path = (*self._repository, "issues", issue.number)
        self.client.change("POST", (*path, "comments"), body=word)
        self.client.change("PATCH", path, state="closed", state_reason="completed")

    @property
    def _repository(self) -> Path:
        return ("repos", *self.where.repository.split("/"))


def _post(document: Mapping[str, Any], key: str) -> Post:
    return Post(
        number=number_of(document, key, _NAME),
        author=text_of(document, "user", "login"),
        title=text_of(document, "title"),
        body=text_of(document, "body"),
        url=text_of(document, "html_url"),
    )


def _advice(status: int) -> str:
    moved = "; the repository has moved: say its new name with --repository"
    return {
        401: "; the token is not valid (any more)",
        403: "; the job needs `permissions: pull-requests: write` (`issues: write` for an issue), "
        "and a pull request from a fork gets a token that may only read",
        404: "; there is no such repository, pull request or issue, or the token may not see it",
        301: moved,
        307: moved,
        308: moved,
        410: "; are issues switched off in the repository?",
    }.get(status, "")
