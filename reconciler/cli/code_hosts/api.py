"""What a code forge is to this program: posts on pull requests and issues, whoever hosts them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from reconciler.errors import ReconcilerError


class CodeHostError(ReconcilerError):
    """A forge refused, or could not be asked.

    ``is_outcome_unknown``: the request may have been carried out all the same.
    """

    def __init__(
        self, message: str, *, status: int | None = None, is_outcome_unknown: bool = False
    ) -> None:
        super().__init__(message)
        self.status, self.is_outcome_unknown = status, is_outcome_unknown


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


class CodeHost(Protocol):
    """One repository on one forge. Everything raises ForgeError."""

    @property
    def max_post_length(self) -> int:
        """How many characters, as UTF-16 counts them, a post may have."""

    def make_postable(self, body: str) -> str:
        """The text that may be posted: with nothing that the forge would carry out."""

    def current_account(self) -> str:
        """The account that the token writes as."""

    def find_pull_request(self, commit: str) -> int | None:
        """The pull request that brought a commit; None where there is none."""

    def list_comments(self, pull_request: int) -> Iterator[Post]:
        """All there are, in no order."""

    def add_comment(self, pull_request: int, body: str) -> Post: ...

    def edit_comment(self, pull_request: int, comment: Post, body: str) -> Post: ...

    def delete_comment(self, pull_request: int, comment: Post) -> None: ...

    def list_issues(self, label: str) -> Iterator[Post]:
        """The open ones with the label, in no order."""

    def open_issue(self, title: str, body: str, label: str) -> Post: ...

    def edit_issue(self, issue: Post, title: str, body: str) -> Post: ...

    def close_issue(self, issue: Post, last_comment: str) -> None:
        """Close it, with a last word as a comment."""
