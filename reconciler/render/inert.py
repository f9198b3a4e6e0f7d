"""Text of others inside Markdown that can't become Markdown, HTML or a forge's reference.

Markdown is read from the source, so a character reference stops it. A forge then looks through the
text that came of it for mentions, links, issues and commits, everywhere but in code: there what it
looks for is put into code or broken by a character without width.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from reconciler.render import words

#: what is referred to by number; nothing outside of ASCII is
_SPECIAL: Final = re.compile(
    r"[^\w\s.,;:%/=+()'\x80-\U0010ffff-]|_|^/|(?<=:)/(?=/)|(?<=\b(?i:www))\.", re.ASCII
)
_BACKTICKS: Final = re.compile(r"`+")
_JOINER: Final = "&#8288;"  # a word joiner: no width, and a link or a mention ends at it

#: URLs, and what may be the name of a commit (instants too): to be copied, and linked nowhere
_LITERAL: Final = re.compile(
    r"[A-Za-z0-9+.-]+://(?:\S*[\w/=])?|(?<![A-Za-z0-9])[0-9A-Fa-f]{7,}(?![A-Za-z0-9])"
)
#: after these a forge expects a name or a number: !1 ~label %1.0 &2 $3 ^alert#4 GH-5 :smile: {+ +}
_OPENING: Final = re.compile(
    r"[!~%&$^](?=[\w\"'])|(?<=[A-Za-z])-(?=\d)|[\[{](?=[+-])"
    r"|\b(?i:www)(?=\.)|:(?=(?:\d*[A-Za-z_+-][\w+-]*|100|1234):)"
)
_SPLIT: Final = "\ufdd0"  # stands for the joiner until references are made; no text has it


def inert(text: str) -> str:
    """Text that shows as it is, as one line.

    >>> inert("a|b *c* <d> @team #1")
    'a&#124;b &#42;c&#42; &#60;d&#62; &#64;&#8288;team &#35;&#8288;1'
    >>> inert("see s3://lake/t, since 20261121041500123")
    'see <code>s3:&#47;/lake/t</code>, since <code>20261121041500123</code>'
    """
    text = words.plain(text).replace(_SPLIT, "").strip()
    shown, end = [], 0
    for found in _LITERAL.finditer(text):
        shown += [_sentence(text[end : found.start()]), code(found[0])]
        end = found.end()
    return "".join([*shown, _sentence(text[end:])])


def _sentence(text: str) -> str:
    return _referred(_OPENING.sub(lambda found: found[0] + _SPLIT, text)).replace(_SPLIT, _JOINER)


def code(text: str) -> str:
    """Text in a monospaced face; forges look for no mentions or links in it.

    >>> code("sales.orders"), code("</code>`")
    ('<code>sales.orders</code>', '<code>&#60;/code&#62;&#96;</code>')
    """
    return f"<code>{_referred(words.plain(text)).strip()}</code>"


def _referred(text: str) -> str:
    return _SPECIAL.sub(_reference, text)


def _reference(found: re.Match[str]) -> str:
    character = found[0]
    return f"&#{ord(character)};" + (_JOINER if character in "@#" else "")


def fenced(lines: Iterable[str], language: str) -> str:
    """Lines in a code block whose fence is longer than any run of backticks in them.

    None begins with a slash: GitLab takes such a line for a command where it misreads the fence.
    """
    body = "\n".join(f" {line}" if line.startswith("/") else line for line in lines)
    longest = max(map(len, _BACKTICKS.findall(body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{body}\n{fence}\n"
