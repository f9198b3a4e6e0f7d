"""Code hosts: posts on pull requests and issues, on GitHub or GitLab."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from reconciler.errors import ReconcilerError


class CodeHostError(ReconcilerError):
    """A code host refused a request or cannot be reached.

    ``is_outcome_unknown``: the request may have been executed nevertheless.
    """

    def __init__(
        self, message: str, *, status: int | None = None, is_outcome_unknown: bool = False
    ) -> None:
        super().__init__(message)
        self.status, self.is_outcome_unknown = status, is_outcome_unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A comment or an issue.

    ``number`` identifies it and grows with time; ``author`` is the name of its account. ``title``
    is empty for comments.
    """

    number: int
    author: str
    body: str
    url: str
    title: str = ""


class CodeHost(Protocol):
    """One repository on a code host. Every method may raise CodeHostError."""

    @property
    def max_post_length(self) -> int:
        """The largest length of a post, in UTF-16 code units."""

    def make_postable(self, body: str) -> str:
        """Return the text without anything that the code host would execute as a command."""

    def current_account(self) -> str:
        """Return the account that the token belongs to."""

    def find_pull_request(self, commit: str) -> int | None:
        """Return the pull request that merged a commit; None if there is none."""

    def list_comments(self, pull_request: int) -> Iterator[Post]:
        """Return all comments, in any order."""

    def add_comment(self, pull_request: int, body: str) -> Post: ...

    def edit_comment(self, pull_request: int, comment: Post, body: str) -> Post: ...

    def delete_comment(self, pull_request: int, comment: Post) -> None: ...

    def list_issues(self, label: str) -> Iterator[Post]:
        """Return the open issues with a label, in any order."""

    def open_issue(self, title: str, body: str, label: str) -> Post: ...

    def edit_issue(self, issue: Post, title: str, body: str) -> Post: ...

    def close_issue(self, issue: Post, last_comment: str) -> None:
        """Close an issue with a last comment."""
