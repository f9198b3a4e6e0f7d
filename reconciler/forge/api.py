"""What a code forge is to this program: posts on pull requests and issues, whoever hosts them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from reconciler.errors import ReconcilerError


class ForgeError(ReconcilerError):
    """A forge refused, or could not be asked.

    ``is_unsure``: the request may have been carried out all the same.
    """

    def __init__(self, message: str, *, status: int | None = None, is_unsure: bool = False) -> None:
        super().__init__(message)
        self.status, self.is_unsure = status, is_unsure


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A comment or an issue.

    ``number`` addresses it and grows with time; ``author`` is the account's name on the forge.
    ``title`` is empty for comments.
    """

    number: int
    author: str
    body: str
    url: str
    title: str = ""


class Forge(Protocol):
    """One repository on one forge. Everything raises ForgeError."""

    @property
    def longest(self) -> int:
        """How many characters, as UTF-16 counts them, a post may have."""

    def as_posted(self, body: str) -> str:
        """The text that may be posted: with nothing that the forge would carry out."""

    def me(self) -> str:
        """The account that the token writes as."""

    def pull_request_of(self, commit: str) -> int | None:
        """The pull request that brought a commit; None where there is none."""

    def comments(self, pull_request: int) -> Iterator[Post]:
        """All there are, in no order."""

    def add_comment(self, pull_request: int, body: str) -> Post: ...

    def edit_comment(self, pull_request: int, comment: Post, body: str) -> Post: ...

    def delete_comment(self, pull_request: int, comment: Post) -> None: ...

    def issues(self, label: str) -> Iterator[Post]:
        """The open ones with the label, in no order."""

    def open_issue(self, title: str, body: str, label: str) -> Post: ...

    def edit_issue(self, issue: Post, title: str, body: str) -> Post: ...

    def close_issue(self, issue: Post, word: str) -> None:
        """Close it, with a last word as a comment."""
