"""Lines for a terminal: colour, wrapped sentences under a label, and bars."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from reconciler.lazy_dataclass import dataclass
from reconciler.render import words

if TYPE_CHECKING:
    from reconciler.plans.model import Note

#: columns of sentences if the output is no terminal
_DEFAULT_WIDTH: Final = 80
#: narrower terminals get lines of this width
_MIN_WIDTH: Final = 40
_BAR_WIDTH: Final = 12
#: the least columns in which two bars fit behind the name of a size class
_MIN_WIDE: Final = 72
_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"
_ESCAPE_SEQUENCE: Final = re.compile(r"\x1b\[[0-9;]*m")
#: blanks inside a figure: between thousands, and before its unit
_FIGURE_BLANK: Final = re.compile(r"(?<=\d) (?=\d{3}\b|[KMGTPE]iB\b|bytes?\b|%|[A-Z]{3}\b)")
_UNBROKEN_BLANK: Final = "\xa0"  # textwrap does not divide lines at it; escaped text has none


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    r"""The abilities of the output: colours, and its width in columns.

    >>> Terminal().bad("lost"), Terminal(has_color=True).bad("lost")
    ('lost', '\x1b[31mlost\x1b[0m')
    """

    has_color: bool = False
    width: int | None = None

    def bad(self, text: str) -> str:
        return self._paint("31", text)

    def warn(self, text: str) -> str:
        return self._paint("33", text)

    def good(self, text: str) -> str:
        return self._paint("32", text)

    def strong(self, text: str) -> str:
        return self._paint("1", text)

    def item(self, label: str, sentence: str) -> Iterator[str]:
        """A label (it may be painted) and a sentence, wrapped under itself."""
        return self.wrap(f"  {label}  ", words.escape_text(sentence), 6)

    def step(
        self, label: str, paint: Callable[[str], str], sentence: str, refused_by: str = ""
    ) -> Iterator[str]:
        """A step of a plan by its label; one that is refused shows the rules and is not applied."""
        if not refused_by:
            return self.item(paint(label), sentence)
        _, _, kind = label.partition(" ")
        return self.item(self.bad(f"! {kind}"), f"not applied ({refused_by}): {sentence}")

    def detail(self, sentence: str, indent: int = 0) -> Iterator[str]:
        """A sentence below an item, ``indent`` columns further to the right."""
        return self.wrap(" " * (6 + indent), words.escape_text(sentence), 8 + indent)

    def details(
        self, sentences: Sequence[str], limit: int, noun: str, *, hint: str = "", indent: int = 0
    ) -> Iterator[str]:
        """The first sentences below an item, and the number of the others."""
        for sentence in sentences[:limit]:
            yield from self.detail(sentence, indent)
        if len(sentences) > limit:
            more = words.format_count(len(sentences) - limit, f"more {noun}")
            yield from self.detail(f"… and {more}{hint}", indent)

    def note(self, label: str, note: Note) -> Iterator[str]:
        """A note, with its rule behind the sentence."""
        return self.item(label, f"{note.because} [{note.rule}]")

    def title(self, *parts: str) -> Iterator[str]:
        """Painted parts on one line; in a narrow terminal the last part has a line of its own."""
        line = "  ".join(part for part in parts if part)
        if self.width is None or visible_width(line) <= self._columns:
            yield line
            return
        *first, last = (part for part in parts if part)
        yield "  ".join(first)
        yield f"  {last}"

    def paragraph(self, text: str, paint: Callable[[str], str] = str) -> Iterator[str]:
        """A sentence at the left edge; each of its lines is painted."""
        return map(paint, self.wrap("", text, 2))

    def narrower(self, columns: int) -> Terminal:
        """The terminal without its first columns, for lines that are indented afterwards."""
        return replace(self, width=self._columns - columns)

    def wrap(self, start: str, sentence: str, indent: int) -> Iterator[str]:
        """A sentence after a start, wrapped at blanks: no path, instant or figure is divided."""
        hidden = len(start) - visible_width(start)
        lines = textwrap.wrap(
            _FIGURE_BLANK.sub(_UNBROKEN_BLANK, sentence),
            width=self._columns + hidden,
            initial_indent=start,
            subsequent_indent=" " * indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        yield from (line.replace(_UNBROKEN_BLANK, " ") for line in lines or [start.rstrip()])

    @property
    def bar_width(self) -> int:
        """Characters of a bar: half as many in a narrow terminal."""
        return _BAR_WIDTH if self._columns >= _MIN_WIDE else _BAR_WIDTH // 2

    @property
    def _columns(self) -> int:
        return max(_MIN_WIDTH, self.width or _DEFAULT_WIDTH)

    def _paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.has_color else text


def visible_width(text: str) -> int:
    """Return how many columns painted text takes."""
    return len(_ESCAPE_SEQUENCE.sub("", text))


def limit_rows(rows: int, limit: int) -> int:
    """Return how many rows to show: a single one more than the limit is shown too."""
    return rows if rows <= limit + 1 else limit


def name_rows(
    names: Iterable[str | None], figures: Iterable[str], max_width: int = 40
) -> Iterator[str]:
    """Rows below an item: the names of partitions, and figures behind them in one column.

    A name longer than ``max_width`` pushes its figures to the right.
    """
    shown = [words.escape_text(name or "") or "(root)" for name in names]
    width = min(max(map(len, shown), default=0), max_width)
    return (f"      {name:<{width}}  {text}" for name, text in zip(shown, figures, strict=True))


def draw_count_bar(count: int, maximum: int, width: int = _BAR_WIDTH) -> str:
    """A number and a bar as long as its share of the maximum, in eighths of a character.

    >>> draw_count_bar(1, 2), draw_count_bar(0, 2), draw_count_bar(1, 1000)
    ('      1 ██████      ', '      0             ', '      1 ▏           ')
    """
    return f"{words.format_number(count):>7} {draw_bar(count, maximum, width):<{width}}"


def draw_bars(rows: Sequence[tuple[str, *tuple[int, ...]]], terminal: Terminal) -> Iterator[str]:
    """A line per row below an item: a name, and each number with its bar."""
    maximum = max((number for _, *numbers in rows for number in numbers), default=0)
    width = max((len(name) for name, *_ in rows), default=0)
    for name, *numbers in rows:
        bars = (draw_count_bar(number, maximum, terminal.bar_width) for number in numbers)
        yield f"      {name:<{width}}  {'  '.join(bars)}".rstrip()


def draw_bar(part: int, maximum: int, width: int = _BAR_WIDTH) -> str:
    """A bar as long as a share of the maximum.

    >>> draw_bar(1, 2), draw_bar(2, 2), draw_bar(0, 0)
    ('██████', '████████████', '')
    """
    eighths = -(-part * width * 8 // maximum) if maximum else 0
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
