"""Reasons that differ only in their numbers, joined into one sentence with ranges."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from reconciler.lazy_dataclass import dataclass

#: a count, a figure or an instant: a number that stands alone, with blanks between thousands
_NUMBER: Final = re.compile(
    r"(?<![^\s(])(?:\d{1,3}(?: \d{3})+|\d+(?:\.\d+)?)(?=[\s,;:)]|\.(?:\s|$)|$)"
)
_SINGULARS: Final = {"are": "is", "were": "was", "their": "its", "have": "has", "cover": "covers"}
_WORD: Final = re.compile(r"[A-Za-z]+")


@dataclass(frozen=True, slots=True)
class Reason:
    """A sentence, and the number of files or groups that it is true of."""

    text: str
    count: int


def join_reasons(reasons: Iterable[Reason]) -> list[Reason]:
    """Join the reasons that differ in numbers alone; the most frequent comes first.

    >>> join_reasons([Reason("1 of 6 files is small", 1), Reason("4 of 9 files are small", 2)])
    [Reason(text='1 to 4 of 6 to 9 files are small', count=3)]
    """
    alike: dict[str, list[Reason]] = {}
    for reason in reasons:
        alike.setdefault(_pattern(reason.text), []).append(reason)
    joined = [_join(variants) for variants in alike.values()]
    return sorted(joined, key=lambda reason: (-reason.count, reason.text))


def _pattern(text: str) -> str:
    """The text without its numbers, and with singular and plural alike."""
    return _WORD.sub(lambda match: _singular(match[0]), _NUMBER.sub("#", text))


def _singular(word: str) -> str:
    return _SINGULARS.get(word, word).removesuffix("s")


def _join(variants: list[Reason]) -> Reason:
    count = sum(reason.count for reason in variants)
    texts = [reason.text for reason in variants]
    if len(texts) == 1:
        return Reason(texts[0], count)
    columns = [_NUMBER.findall(text) for text in texts]
    ranges = iter([_range(list(numbers)) for numbers in zip(*columns, strict=True)])
    plural = max(texts, key=lambda text: [_value(number) for number in _NUMBER.findall(text)])
    return Reason(_NUMBER.sub(lambda _: next(ranges), plural), count)


def _range(numbers: list[str]) -> str:
    least, most = min(numbers, key=_value), max(numbers, key=_value)
    return least if _value(least) == _value(most) else f"{least} to {most}"


def _value(number: str) -> tuple[int, float]:
    """The number as it compares; an instant has more digits than a float.

    >>> _value("1 240"), _value("2.5")
    ((1240, 0.0), (2, 0.5))
    """
    whole, _, fraction = number.replace(" ", "").partition(".")
    return int(whole), float(f"0.{fraction}") if fraction else 0.0
