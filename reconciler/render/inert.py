"""Text of others inside Markdown that can't become Markdown or HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable

from reconciler.render import words

#: everything that Markdown, HTML or a forge (mentions, references) reads as more than a character
_SPECIAL = re.compile(r"[^\w\s.,;:%/=+→…—()'-]|_|(?<=://)|(?<=\bwww)(?=\.)", re.ASCII)
_KEPT_AS_IS = re.compile(r"[^\x00-\x7f]")
_BACKTICKS = re.compile(r"`+")
_JOINER = "&#8288;"  # a word joiner: no width, and a link or a mention ends at it


def inert(text: str) -> str:
    """Text that shows as it is, as one line.

    >>> inert("a|b *c* <d> @team")
    'a&#124;b &#42;c&#42; &#60;d&#62; &#64;&#8288;team'
    """
    return _SPECIAL.sub(_reference, words.plain(text)).strip()


def _reference(found: re.Match[str]) -> str:
    character = found[0]
    if not character:
        return _JOINER
    if _KEPT_AS_IS.match(character):
        return character
    return f"&#{ord(character)};" + (_JOINER if character in "@#" else "")


def code(text: str) -> str:
    """Text in a monospaced face; forges look for no mentions or links in it.

    >>> code("sales.orders"), code("</code>`")
    ('<code>sales.orders</code>', '<code>&#60;/code&#62;&#96;</code>')
    """
    return f"<code>{inert(text)}</code>"


def fenced(lines: Iterable[str], language: str) -> str:
    """Lines in a code block whose fence is longer than any run of backticks in them."""
    body = "\n".join(lines)
    longest = max(map(len, _BACKTICKS.findall(body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{body}\n{fence}\n"
