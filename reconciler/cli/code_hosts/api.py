"""Code hosts: posts on pull requests and issues, on GitHub or GitLab.

A merge request of GitLab is a pull request here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar

from reconciler.cli.code_hosts.client import ApiClient, CodeHostError, Path, get_number, get_text
from reconciler.cli.code_hosts.target import CommentTarget
from reconciler.lazy_dataclass import dataclass

_Document = Mapping[str, Any]


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


@dataclass
class CodeHost(ABC):
    """One repository on a code host. Every method may raise CodeHostError.

    The class variables say how its API differs from others; paths are below the repository's.
    ``max_post_length``: the largest length of a post, in UTF-16 code units.
    """

    max_post_length: ClassVar[int]
    edit_method: ClassVar[str]
    comments_path: ClassVar[str]
    comment_path: ClassVar[str]
    commit_path: ClassVar[str]
    absent_commit: ClassVar[tuple[int, ...]]
    issue_comments: ClassVar[str]
    issue_number: ClassVar[str]
    issue_body: ClassVar[str]
    url: ClassVar[str]
    author: ClassVar[tuple[str, str]]
    open_state: ClassVar[str]
    closing: ClassVar[Mapping[str, str]]

    client: ApiClient
    target: CommentTarget
    repository_path: Path
    _account_name: str = field(default="", init=False)

    def make_postable(self, body: str) -> str:
        """Return the text without anything that the code host would execute as a command."""
        return body

    def _format_labels(self, label: str) -> str | list[str]:
        return [label]

    @abstractmethod
    def _read_account(self) -> str: ...

    @abstractmethod
    def _select_merged(self, pulls: Sequence[_Document], commit: str) -> Sequence[_Document]:
        """Return the pull requests that merged the commit."""

    def current_account(self) -> str:
        """Return the account that the token belongs to."""
        self._account_name = self._account_name or self._read_account()
        if not self._account_name:
            raise CodeHostError(f"{self.client.name}: did not name the account of the token")
        return self._account_name

    def find_pull_request(self, commit: str) -> int | None:
        """Return the pull request that merged a commit; None if there is none."""
        try:
            path = self._build_path(self.commit_path, commit=commit)
            pulls = list(self.client.list_objects(path))
        except CodeHostError as error:
            if error.status in self.absent_commit:
                return None
            raise
        merged = self._select_merged(pulls, commit)
        return max((self._get_number(pull, self.issue_number) for pull in merged), default=None)

    def list_comments(self, pull_request: int) -> Iterator[Post]:
        """Return all comments, in any order."""
        pages = self.client.list_objects(self._build_path(self.comments_path, pull=pull_request))
        written = (comment for comment in pages if comment.get("system") is not True)
        return (self._parse_comment(pull_request, comment) for comment in written)

    def add_comment(self, pull_request: int, body: str) -> Post:
        path = self._build_path(self.comments_path, pull=pull_request)
        return self._parse_comment(pull_request, self.client.send_change("POST", path, body=body))

    def edit_comment(self, pull_request: int, comment: Post, body: str) -> Post:
        path = self._build_path(self.comment_path, pull=pull_request, comment=comment.number)
        edited = self.client.send_change(self.edit_method, path, body=body)
        return self._parse_comment(pull_request, edited)

    def delete_comment(self, pull_request: int, comment: Post) -> None:
        path = self._build_path(self.comment_path, pull=pull_request, comment=comment.number)
        self.client.send_change("DELETE", path)

    def list_issues(self, label: str) -> Iterator[Post]:
        """Return the open issues with a label, in any order."""
        pages = self.client.list_objects(self._issue_path(), state=self.open_state, labels=label)
        return (self._parse_issue(issue) for issue in pages if "pull_request" not in issue)

    def open_issue(self, title: str, body: str, label: str) -> Post:
        values = {"title": title, self.issue_body: body, "labels": self._format_labels(label)}
        return self._parse_issue(self.client.send_change("POST", self._issue_path(), **values))

    def edit_issue(self, issue: Post, title: str, body: str) -> Post:
        values = {"title": title, self.issue_body: body}
        path = self._issue_path(issue.number)
        return self._parse_issue(self.client.send_change(self.edit_method, path, **values))

    def close_issue(self, issue: Post, last_comment: str) -> None:
        """Close an issue with a last comment."""
        path = self._issue_path(issue.number)
        self.client.send_change("POST", (*path, self.issue_comments), body=last_comment)
        self.client.send_change(self.edit_method, path, **self.closing)

    def _build_path(self, template: str, **values: str | int) -> Path:
        return (*self.repository_path, *(part.format(**values) for part in template.split("/")))

    def _issue_path(self, *number: int) -> Path:
        return (*self.repository_path, "issues", *number)

    def _parse_comment(self, pull_request: int, document: _Document) -> Post:
        """Return a comment; one without a URL of its own is described instead."""
        number = self._get_number(document, "id")
        return Post(
            number=number,
            author=get_text(document, *self.author),
            body=get_text(document, "body"),
            url=get_text(document, self.url) or f"merge request {pull_request}, note {number}",
        )

    def _parse_issue(self, document: _Document) -> Post:
        return Post(
            number=self._get_number(document, self.issue_number),
            author=get_text(document, *self.author),
            title=get_text(document, "title"),
            body=get_text(document, self.issue_body),
            url=get_text(document, self.url),
        )

    def _get_number(self, document: Mapping[str, Any], key: str) -> int:
        return get_number(document, key, self.client.name)
