"""One comment, one issue: found again by its marker and its author, and edited in place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal

from reconciler.errors import UsageError
from reconciler.forge.api import Forge, ForgeError, Post
from reconciler.render.page import utf16_length

LABEL: Final = "reconciler"
_MARKER: Final = re.compile(r"<!-- reconciler:[a-z]+:[\w./-]+ -->(?=\n|$)", re.ASCII)
_TRIES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """What became of a post. ``others`` are further ones of ours, which were removed."""

    how: Literal["created", "edited", "unchanged", "closed", "absent"]
    url: str = ""
    others: tuple[str, ...] = ()


def marker_of(body: str, name: str) -> str:
    """The marker that a text begins with; UsageError, naming its file, when it has none."""
    found = _MARKER.match(body)
    if found is None:
        raise UsageError(
            f"{name}: does not begin with a marker as <!-- reconciler:plan:default -->, by which "
            "its comment is found again; write it with --format markdown"
        )
    return found[0]


def post_comment(forge: Forge, pull_request: int, body: str, name: str) -> Posted:
    """Make the pull request's one comment with the body's marker say the body.

    Of two that runs at the same time made, the older one stays. Comments of others are left alone,
    whatever they begin with.
    """
    marker, body = _checked(forge, body, name)

    def ours() -> list[Post]:
        return _ours(forge, forge.comments(pull_request), marker)

    how: Literal["created", "edited", "unchanged"] = "unchanged"
    found = ours()
    if not found:
        made = _created(lambda: forge.add_comment(pull_request, body), ours)
        how, found = "created", _merged(ours(), made)
    first, *others = found
    if not _same(first.body, body):
        forge.edit_comment(pull_request, first, body)
        how = "edited"
    for other in others:
        forge.delete_comment(pull_request, other)
    return Posted(how=how, url=first.url, others=tuple(other.url for other in others))


def post_issue(forge: Forge, title: str, body: str, name: str) -> Posted:
    """Make the one open issue with the body's marker say the body, under the title.

    Of two that runs at the same time opened, the older one stays open.
    """
    marker, body = _checked(forge, body, name)

    def ours() -> list[Post]:
        return _ours(forge, forge.issues(LABEL), marker)

    how: Literal["created", "edited", "unchanged"] = "unchanged"
    found = ours()
    if not found:
        made = _created(lambda: forge.open_issue(title, body, LABEL), ours)
        how, found = "created", _merged(ours(), made)
    first, *others = found
    if not _same(first.body, body) or first.title != title:
        forge.edit_issue(first, title, body)
        how = "edited"
    for other in others:
        forge.close_issue(other, f"The same as #{first.number}, which was opened before.")
    return Posted(how=how, url=first.url, others=tuple(other.url for other in others))


def close_issue(forge: Forge, body: str, word: str, name: str) -> Posted:
    """Close every open issue with the body's marker, each with the word as its last comment."""
    found = _ours(forge, forge.issues(LABEL), marker_of(body, name))
    for issue in found:
        forge.close_issue(issue, word)
    if not found:
        return Posted(how="absent")
    return Posted(how="closed", url=found[0].url, others=tuple(post.url for post in found[1:]))


def _checked(forge: Forge, body: str, name: str) -> tuple[str, str]:
    """The marker and the text as it may be posted."""
    marker, body = marker_of(body, name), forge.as_posted(body)
    length = utf16_length(body)
    if length > forge.longest:
        raise UsageError(f"{name}: has {length} characters; a post holds {forge.longest}")
    return marker, body


def _ours(forge: Forge, posts: Iterable[Post], marker: str) -> list[Post]:
    """The posts that we wrote and that begin with the marker, the oldest first."""
    marked = [post for post in posts if _begins(post.body, marker)]
    if not marked:
        return []
    me = forge.me()
    return sorted((post for post in marked if post.author == me), key=lambda post: post.number)


def _begins(body: str, marker: str) -> bool:
    return body.startswith(marker) and body[len(marker) :][:1] in ("", "\n", "\r")


def _created(create: Callable[[], Post], ours: Callable[[], list[Post]]) -> Post:
    """Create, and where nobody knows whether it went well, look before trying again."""
    for left in reversed(range(_TRIES)):
        try:
            return create()
        except ForgeError as error:
            if not error.is_unsure:
                raise
            found = ours()
            if found:
                return found[0]
            if not left:
                raise
    raise AssertionError("one try at least")


def _merged(found: Iterable[Post], made: Post) -> list[Post]:
    """Those found and the one just made, which a list may not have yet."""
    posts = {post.number: post for post in (made, *found)}
    return [posts[number] for number in sorted(posts)]


def _same(found: str, wanted: str) -> bool:
    """Whether two texts differ in ends of lines and of the text at most, which forges touch."""
    return _lines(found) == _lines(wanted)


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]
