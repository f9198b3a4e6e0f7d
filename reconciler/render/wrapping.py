"""Lines for a terminal, 80 columns wide: a label, a sentence, bars, and what belongs to them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from reconciler.render import words
from reconciler.render.paint import Paint

_WIDTH = 80
_BAR_WIDTH = 12
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def wrap_item(label: str, sentence: str) -> Iterator[str]:
    """A label (it may be painted) and a sentence, wrapped under itself."""
    return _wrap(f"  {label}  ", words.escape_text(sentence), 6)


def wrap_detail(sentence: str, extra_indent: int = 0) -> Iterator[str]:
    """A sentence below an item."""
    return _wrap(" " * (6 + extra_indent), words.escape_text(sentence), 8 + extra_indent)


def draw_count_bar(count: int, maximum: int) -> str:
    """A number and a bar as long as its share of the most, in eighths of a character.

    >>> bar(1, 2), bar(0, 2), bar(1, 1000)
    ('      1 ██████      ', '      0             ', '      1 ▏           ')
    """
    return f"{words.format_number(count):>7} {draw_bar(count, maximum):<{_BAR_WIDTH}}"


def draw_bar(part: int, maximum: int) -> str:
    """A bar as long as a share of the most.

    >>> stripe(1, 2), stripe(2, 2), stripe(0, 0)
    ('██████', '████████████', '')
    """
    eighths = -(-part * _BAR_WIDTH * 8 // maximum) if maximum else 0
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _wrap(start: str, sentence: str, indent: int) -> Iterator[str]:
    paint = len(start) - Paint.visible_width(start)  # what is painted has no width
    yield from textwrap.wrap(
        sentence,
        width=_WIDTH + paint,
        initial_indent=start,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [start.rstrip()]
