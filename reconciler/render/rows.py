"""Rows of a table for standard output: as a table for people, and as CSV."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from reconciler.render import words

#: a longer cell of a table for people is cut
_MAX_CELL_WIDTH: Final = 60
_NULL_TEXT: Final = "null"
_RIGHT_ALIGNED: Final = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")

Cells = Sequence[str | None]


def rows_text(names: Sequence[str], kinds: Sequence[str], rows: Sequence[Cells]) -> str:
    """Return rows as a table; ``kinds``: Spark's names of the types, numbers are right-aligned.

    >>> print(rows_text(["id", "name"], ["int", "string"], [["7", None], ["10", "n"]]), end="")
    id  name
    --  ----
     7  null
    10  n
    """
    shown = [[_format_cell(cell) for cell in row] for row in rows]
    heads = [_format_cell(name) for name in names]
    widths = [
        max([_display_width(head), *(_display_width(row[at]) for row in shown)])
        for at, head in enumerate(heads)
    ]
    right = [kind.partition("(")[0] in _RIGHT_ALIGNED for kind in kinds]
    lines = [heads, ["-" * width for width in widths], *shown]
    return "".join(_format_row(line, widths, right) for line in lines)


def _format_cell(text: str | None) -> str:
    shown = _NULL_TEXT if text is None else words.escape_text(text)
    return shown if len(shown) <= _MAX_CELL_WIDTH else f"{shown[: _MAX_CELL_WIDTH - 1]}…"


def _format_row(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = []
    for cell, width, is_right in zip(cells, widths, right, strict=True):
        space = " " * (width - _display_width(cell))
        padded.append(space + cell if is_right else cell + space)
    return "  ".join(padded).rstrip() + "\n"


def _display_width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return sum(
        0 if unicodedata.combining(sign) else 1 + (unicodedata.east_asian_width(sign) in "WF")
        for sign in text
    )


def csv_lines(rows: Iterable[Cells]) -> Iterator[str]:
    r"""Yield rows as lines of CSV (RFC 4180 with \n): null is empty, an empty text two quotes.

    >>> list(csv_lines([["a", None, "", "1,2"]]))
    ['a,,"","1,2"\n']
    """
    for row in rows:
        yield ",".join(map(_csv_field, row)) + "\n"


def _csv_field(text: str | None) -> str:
    if text is None:
        return ""
    if text.isalnum():  # most texts
        return text
    if not text or any(sign in text for sign in ',"\r\n') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text
