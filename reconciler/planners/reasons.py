"""Assign sentences to many rows, and format counts and sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from reconciler.arrays import Integers, Mask, find_distinct
from reconciler.plans.columns import build_dictionary

#: a sentence, or a function from the key of a row to its sentence
Sentence = str | Callable[[int], str]

_TWO_DIGITS: Final = 10
_THREE_DIGITS: Final = 1000


class RowReasons:
    """One sentence per row, stored as codes; the first sentence assigned to a row stays."""

    def __init__(self, rows: int) -> None:
        self.codes = np.full(rows, -1, np.int32)
        self.texts: list[str] = []

    def assign(self, where: Mask, sentence: Sentence, key: NDArray[Any] | int = 0) -> None:
        """Assign a sentence, or the function of each row's ``key``, to the rows that have none."""
        rows = np.flatnonzero(where & (self.codes < 0))
        if not len(rows):
            return
        if isinstance(sentence, str):
            self.codes[rows] = len(self.texts)
            self.texts.append(sentence)
            return
        keys = np.broadcast_to(key, len(self.codes))[rows]
        values, which = find_distinct(keys)
        self.codes[rows] = len(self.texts) + which.astype(np.int32)
        self.texts += [sentence(int(value)) for value in values]

    def build_column(self, rows: Integers) -> Any:
        """Return the sentences of some rows as a dictionary array; every row must have one."""
        codes = self.codes[rows]
        used, compact = find_distinct(codes)
        return build_dictionary(compact.astype(np.int32), [self.texts[code] for code in used])


#: words of a sentence about one file slice, and those for several
_OF_MANY: Final = (
    ("its file group", "their file groups"),
    ("its log files", "their log files"),
    ("rewrites it,", "rewrites them,"),
    ("its base file is a bootstrap skeleton", "their base files are bootstrap skeletons"),
    ("its folder is not a partition", "their folders are no partitions"),
)


def speak_of(count: int, sentence: str) -> str:
    """Return a sentence about one file slice as one about so many.

    >>> speak_of(1, "clustering 7 is going to rewrite its file group")
    'clustering 7 is going to rewrite its file group'
    >>> speak_of(3, "clustering 7 is going to rewrite its file group")
    'clustering 7 is going to rewrite their file groups'
    """
    if count != 1:
        for one, many in _OF_MANY:
            sentence = sentence.replace(one, many)
    return sentence


def pluralize(count: int, noun: str) -> str:
    """Format a count with its noun and thousands separators.

    >>> pluralize(1, "file slice"), pluralize(1240, "file slice")
    ('1 file slice', '1 240 file slices')
    """
    return f"{count:,}".replace(",", " ") + f" {noun}" + ("" if count == 1 else "s")


def format_bytes(size: int) -> str:
    """Format a size with two or three digits.

    >>> format_bytes(999), format_bytes(1536), format_bytes(125829120)
    ('999 B', '1.5 KiB', '120 MiB')
    """
    amount, units = float(size), ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
    while amount >= _THREE_DIGITS and units[1:]:
        amount /= 1024
        units.pop(0)
    is_short = amount < _TWO_DIGITS and units[0] != "B"
    return f"{amount:.1f} {units[0]}" if is_short else f"{amount:.0f} {units[0]}"
