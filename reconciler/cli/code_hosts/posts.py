"""Post one comment or one issue: found by its marker and author, and edited in place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal

from reconciler.cli.code_hosts.api import CodeHost, Post
from reconciler.cli.code_hosts.client import CodeHostError
from reconciler.errors import UsageError
from reconciler.lazy_dataclass import dataclass
from reconciler.render.page import utf16_length

LABEL: Final = "reconciler"
_MARKER: Final = re.compile(r"<!-- reconciler:[a-z]+:[\w./-]+ -->(?=\n|$)", re.ASCII)
_TRIES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PostResult:
    """The result of posting. ``removed_urls``: duplicates that were removed or closed."""

    status: Literal["created", "edited", "unchanged", "closed", "absent"]
    url: str = ""
    removed_urls: Sequence[str] = ()


def find_marker(body: str, name: str) -> str:
    """Return the marker that a text begins with; UsageError with the file's name if it has none."""
    marker = _MARKER.match(body)
    if marker is None:
        raise UsageError(
            f"{name}: does not begin with a marker such as <!-- reconciler:plan:default -->, which "
            "finds the comment again; create the file with --format markdown"
        )
    return marker[0]


def post_comment(host: CodeHost, pull_request: int, body: str, name: str) -> PostResult:
    """Create or edit the pull request's comment that has the body's marker.

    If two runs created one at the same time, the older one stays. Comments of other accounts are
    not touched.
    """
    marker, body = _prepare_body(host, body, name)
    return _post(
        find_own_posts=lambda: _find_own_posts(host, host.list_comments(pull_request), marker),
        create=lambda: host.add_comment(pull_request, body),
        is_same=lambda post: _is_same_text(post.body, body),
        edit=lambda post: host.edit_comment(pull_request, post, body),
        remove_duplicate=lambda post, _first: host.delete_comment(pull_request, post),
    )


def post_issue(host: CodeHost, title: str, body: str, name: str) -> PostResult:
    """Create or edit the open issue that has the body's marker.

    If two runs opened one at the same time, the older one stays open.
    """
    marker, body = _prepare_body(host, body, name)
    return _post(
        find_own_posts=lambda: _find_own_posts(host, host.list_issues(LABEL), marker),
        create=lambda: host.open_issue(title, body, LABEL),
        is_same=lambda post: _is_same_text(post.body, body) and post.title == title,
        edit=lambda post: host.edit_issue(post, title, body),
        remove_duplicate=lambda post, first: host.close_issue(
            post, f"Duplicate of #{first.number}."
        ),
    )


def _post(
    *,
    find_own_posts: Callable[[], list[Post]],
    create: Callable[[], Post],
    is_same: Callable[[Post], bool],
    edit: Callable[[Post], Post],
    remove_duplicate: Callable[[Post, Post], None],
) -> PostResult:
    """Create the post, or edit the oldest one and remove the others."""
    status: Literal["created", "edited", "unchanged"] = "unchanged"
    posts = find_own_posts()
    if not posts:
        created = _create_once(create, find_own_posts)
        status, posts = "created", _add_post(find_own_posts(), created)
    first, *others = posts
    if not is_same(first):
        edit(first)
        status = "edited"
    for other in others:
        remove_duplicate(other, first)
    return PostResult(status=status, url=first.url, removed_urls=[post.url for post in others])


def close_issue(host: CodeHost, body: str, last_comment: str, name: str) -> PostResult:
    """Close every open issue that has the body's marker, each with a last comment."""
    posts = _find_own_posts(host, host.list_issues(LABEL), find_marker(body, name))
    for issue in posts:
        host.close_issue(issue, last_comment)
    if not posts:
        return PostResult(status="absent")
    return PostResult(
        status="closed", url=posts[0].url, removed_urls=[post.url for post in posts[1:]]
    )


def _prepare_body(host: CodeHost, body: str, name: str) -> tuple[str, str]:
    """Return the marker and the text as it can be posted."""
    marker, body = find_marker(body, name), host.make_postable(body)
    length = utf16_length(body)
    if length > host.max_post_length:
        raise UsageError(
            f"{name}: has {length} characters, but a post holds {host.max_post_length}"
        )
    return marker, body


def _find_own_posts(host: CodeHost, posts: Iterable[Post], marker: str) -> list[Post]:
    """Return the posts of the token's account that begin with the marker, the oldest first."""
    marked = [post for post in posts if _begins_with_marker(post.body, marker)]
    if not marked:
        return []
    account = host.current_account()
    return sorted((post for post in marked if post.author == account), key=lambda post: post.number)


def _begins_with_marker(body: str, marker: str) -> bool:
    return body.startswith(marker) and body[len(marker) :][:1] in ("", "\n", "\r")


def _create_once(create: Callable[[], Post], find_own_posts: Callable[[], list[Post]]) -> Post:
    """Create a post. If the outcome is unknown, look for it before trying again."""
    for left in reversed(range(_TRIES)):
        try:
            return create()
        except CodeHostError as error:
            if not error.is_outcome_unknown:
                raise
            posts = find_own_posts()
            if posts:
                return posts[0]
            if not left:
                raise
    raise AssertionError("there is at least one try")


def _add_post(known: Iterable[Post], made: Post) -> list[Post]:
    """Return the known posts and the new one, which the list may not have yet."""
    posts = {post.number: post for post in (made, *known)}
    return [posts[number] for number in sorted(posts)]


def _is_same_text(posted: str, wanted: str) -> bool:
    """Return whether two texts are equal but for trailing blanks, which code hosts change."""
    return _normalize_lines(posted) == _normalize_lines(wanted)


def _normalize_lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]
