"""Escape text of others inside Markdown, so that it is neither markup nor a reference.

A character reference stops Markdown, which is parsed from the source. Code hosts then search the
rendered text, except code, for mentions, links, issues and commits. Such text is put into code or
divided by a character without width.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from reconciler.render import words

#: characters that become character references; none outside of ASCII
_SPECIAL_CHARACTER: Final = re.compile(
    r"[^\w\s.,;:%/=+()'\x80-\U0010ffff-]|_|^/|(?<=:)/(?=/)|(?<=\b(?i:www))\.", re.ASCII
)
_BACKTICKS: Final = re.compile(r"`+")
_WORD_JOINER: Final = (
    "&#8288;"  # a word joiner: it has no width, and a link or a mention ends at it
)

#: URLs, and what may be a commit (instants too): they become code, which is never linked
_LITERAL: Final = re.compile(
    r"[A-Za-z0-9+.-]+://(?:\S*[\w/=])?|(?<![A-Za-z0-9])[0-9A-Fa-f]{7,}(?![A-Za-z0-9])"
)
#: code hosts look for a name or a number after these: !1 ~label %1.0 &2 $3 ^alert#4 GH-5 :smile: {+
_REFERENCE_START: Final = re.compile(
    r"[!~%&$^](?=[\w\"'])|(?<=[A-Za-z])-(?=\d)|[\[{](?=[+-])"
    r"|\b(?i:www)(?=\.)|:(?=(?:\d*[A-Za-z_+-][\w+-]*|100|1234):)"
)
_JOINER_PLACEHOLDER: Final = (
    "\ufdd0"  # placeholder for the joiner until references are made; no text contains it
)


def escape_markdown(text: str) -> str:
    """Return text that Markdown shows unchanged, on one line.

    >>> escape_markdown("a|b *c* <d> @team #1")
    'a&#124;b &#42;c&#42; &#60;d&#62; &#64;&#8288;team &#35;&#8288;1'
    >>> escape_markdown("see s3://lake/t, since 20261121041500123")
    'see <code>s3:&#47;/lake/t</code>, since <code>20261121041500123</code>'
    """
    text = words.escape_text(text).replace(_JOINER_PLACEHOLDER, "").strip()
    shown, end = [], 0
    for literal in _LITERAL.finditer(text):
        shown += [_escape_sentence(text[end : literal.start()]), code_span(literal[0])]
        end = literal.end()
    return "".join([*shown, _escape_sentence(text[end:])])


def _escape_sentence(text: str) -> str:
    return _escape_characters(
        _REFERENCE_START.sub(lambda start: start[0] + _JOINER_PLACEHOLDER, text)
    ).replace(_JOINER_PLACEHOLDER, _WORD_JOINER)


def code_span(text: str) -> str:
    """Return text as code, in which code hosts search no mentions or links.

    >>> code_span("sales.orders"), code_span("</code>`")
    ('<code>sales.orders</code>', '<code>&#60;/code&#62;&#96;</code>')
    """
    return f"<code>{_escape_characters(words.escape_text(text)).strip()}</code>"


def _escape_characters(text: str) -> str:
    return _SPECIAL_CHARACTER.sub(_character_reference, text)


def _character_reference(match: re.Match[str]) -> str:
    character = match[0]
    return f"&#{ord(character)};" + (_WORD_JOINER if character in "@#" else "")


def folded_block(summary: str, body: str) -> str:
    """Return Markdown that a code host shows only on demand, below a summary."""
    return f"\n<details><summary>{summary}</summary>\n\n{body}</details>\n"


def code_block(lines: Iterable[str], language: str) -> str:
    """Return lines in a code block whose fence is longer than any run of backticks in them.

    No line begins with a slash: GitLab treats such a line as a command where it misreads the fence.
    """
    body = "\n".join(f" {line}" if line.startswith("/") else line for line in lines)
    longest = max(map(len, _BACKTICKS.findall(body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{body}\n{fence}\n"
