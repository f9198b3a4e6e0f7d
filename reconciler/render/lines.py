"""Lines for a terminal, 80 columns wide: a label, a sentence, bars, and what belongs to them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from reconciler.render import words
from reconciler.render.paint import Paint

_WIDTH = 80
_BAR = 12
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def item(label: str, sentence: str) -> Iterator[str]:
    """A label (it may be painted) and a sentence, wrapped under itself."""
    return _wrapped(f"  {label}  ", words.plain(sentence), 6)


def more(sentence: str, deeper: int = 0) -> Iterator[str]:
    """A sentence below an item."""
    return _wrapped(" " * (6 + deeper), words.plain(sentence), 8 + deeper)


def bar(files: int, most: int) -> str:
    """A number and a bar as long as its share of the most, in eighths of a character.

    >>> bar(1, 2), bar(0, 2), bar(1, 1000)
    ('      1 ██████      ', '      0             ', '      1 ▏           ')
    """
    return f"{words.number(files):>7} {stripe(files, most):<{_BAR}}"


def stripe(part: int, most: int) -> str:
    """A bar as long as a share of the most.

    >>> stripe(1, 2), stripe(2, 2), stripe(0, 0)
    ('██████', '████████████', '')
    """
    eighths = -(-part * _BAR * 8 // most) if most else 0
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _wrapped(start: str, sentence: str, indent: int) -> Iterator[str]:
    paint = len(start) - Paint.width(start)  # what is painted has no width
    yield from textwrap.wrap(
        sentence,
        width=_WIDTH + paint,
        initial_indent=start,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [start.rstrip()]
