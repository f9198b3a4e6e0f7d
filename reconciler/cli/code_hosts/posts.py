"""One comment, one issue: found again by its marker and its author, and edited in place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal

from reconciler.cli.code_hosts.api import CodeHost, CodeHostError, Post
from reconciler.errors import UsageError
from reconciler.render.page import utf16_length

LABEL: Final = "reconciler"
_MARKER: Final = re.compile(r"<!-- reconciler:[a-z]+:[\w./-]+ -->(?=\n|$)", re.ASCII)
_TRIES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PostResult:
    """What became of a post. ``removed_urls`` are further ones of ours, which were removed."""

    status: Literal["created", "edited", "unchanged", "closed", "absent"]
    url: str = ""
    removed_urls: tuple[str, ...] = ()


def find_marker(body: str, name: str) -> str:
    """The marker that a text begins with; UsageError, naming its file, when it has none."""
    found = _MARKER.match(body)
    if found is None:
        raise UsageError(
            f"{name}: does not begin with a marker as <!-- reconciler:plan:default -->, by which "
            "its comment is found again; write it with --format markdown"
        )
    return found[0]


def post_comment(host: CodeHost, pull_request: int, body: str, name: str) -> PostResult:
    """Make the pull request's one comment with the body's marker say the body.

    Of two that runs at the same time made, the older one stays. Comments of others are left alone,
    whatever they begin with.
    """
    marker, body = _prepare_body(host, body, name)

    def ours() -> list[Post]:
        return _find_own_posts(host, host.list_comments(pull_request), marker)

    how: Literal["created", "edited", "unchanged"] = "unchanged"
    found = ours()
    if not found:
        made = _create_once(lambda: host.add_comment(pull_request, body), ours)
        how, found = "created", _add_post(ours(), made)
    first, *others = found
    if not _is_same_text(first.body, body):
        host.edit_comment(pull_request, first, body)
        how = "edited"
    for other in others:
        host.delete_comment(pull_request, other)
    return PostResult(status=how, url=first.url, removed_urls=tuple(other.url for other in others))


def post_issue(host: CodeHost, title: str, body: str, name: str) -> PostResult:
    """Make the one open issue with the body's marker say the body, under the title.

    Of two that runs at the same time opened, the older one stays open.
    """
    marker, body = _prepare_body(host, body, name)

    def ours() -> list[Post]:
        return _find_own_posts(host, host.list_issues(LABEL), marker)

    how: Literal["created", "edited", "unchanged"] = "unchanged"
    found = ours()
    if not found:
        made = _create_once(lambda: host.open_issue(title, body, LABEL), ours)
        how, found = "created", _add_post(ours(), made)
    first, *others = found
    if not _is_same_text(first.body, body) or first.title != title:
        host.edit_issue(first, title, body)
        how = "edited"
    for other in others:
        host.close_issue(other, f"The same as #{first.number}, which was opened before.")
    return PostResult(status=how, url=first.url, removed_urls=tuple(other.url for other in others))


def close_issue(host: CodeHost, body: str, last_comment: str, name: str) -> PostResult:
    """Close every open issue with the body's marker, each with the word as its last comment."""
    found = _find_own_posts(host, host.list_issues(LABEL), find_marker(body, name))
    for issue in found:
        host.close_issue(issue, last_comment)
    if not found:
        return PostResult(status="absent")
    return PostResult(
        status="closed", url=found[0].url, removed_urls=tuple(post.url for post in found[1:])
    )


def _prepare_body(host: CodeHost, body: str, name: str) -> tuple[str, str]:
    """The marker and the text as it may be posted."""
    marker, body = find_marker(body, name), host.make_postable(body)
    length = utf16_length(body)
    if length > host.max_post_length:
        raise UsageError(f"{name}: has {length} characters; a post holds {host.max_post_length}")
    return marker, body


def _find_own_posts(host: CodeHost, posts: Iterable[Post], marker: str) -> list[Post]:
    """The posts that we wrote and that begin with the marker, the oldest first."""
    marked = [post for post in posts if _begins_with_marker(post.body, marker)]
    if not marked:
        return []
    me = host.current_account()
    return sorted((post for post in marked if post.author == me), key=lambda post: post.number)


def _begins_with_marker(body: str, marker: str) -> bool:
    return body.startswith(marker) and body[len(marker) :][:1] in ("", "\n", "\r")


def _create_once(create: Callable[[], Post], find_own_posts: Callable[[], list[Post]]) -> Post:
    """Create, and where nobody knows whether it went well, look before trying again."""
    for left in reversed(range(_TRIES)):
        try:
            return create()
        except CodeHostError as error:
            if not error.is_outcome_unknown:
                raise
            found = find_own_posts()
            if found:
                return found[0]
            if not left:
                raise
    raise AssertionError("one try at least")


def _add_post(found: Iterable[Post], made: Post) -> list[Post]:
    """Those found and the one just made, which a list may not have yet."""
    posts = {post.number: post for post in (made, *found)}
    return [posts[number] for number in sorted(posts)]


def _is_same_text(found: str, wanted: str) -> bool:
    """Whether two texts differ in ends of lines and of the text at most, which forges touch."""
    return _normalize_lines(found) == _normalize_lines(wanted)


def _normalize_lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]
