"""Colour for terminals, only when asked."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ESCAPE_SEQUENCE = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True, kw_only=True)
class Paint:
    r"""Text with meaning, painted or not.

    >>> Paint(is_on=False).bad("gone"), Paint(is_on=True).bad("gone")
    ('gone', '\x1b[31mgone\x1b[0m')
    """

    is_on: bool

    def bad(self, text: str) -> str:
        return self._paint("31", text)

    def warn(self, text: str) -> str:
        return self._paint("33", text)

    def good(self, text: str) -> str:
        return self._paint("32", text)

    def strong(self, text: str) -> str:
        return self._paint("1", text)

    def _paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.is_on else text

    @staticmethod
    def visible_width(text: str) -> int:
        """How many columns painted text takes."""
        return len(_ESCAPE_SEQUENCE.sub("", text))
