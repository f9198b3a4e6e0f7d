"""Sets of values of one column: spans of its order, and whether they include NaN and null.

A cut lies just before or just after a value. A span lies between two cuts, so open and closed ends
need no special cases. Values are in the form that ``column_bounds`` compares: whole numbers for
booleans, numbers, unscaled decimals, days and microseconds; floats; bytes for text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from reconciler.lazy_dataclass import dataclass

#: (0, value, 0) lies just before a value, (0, value, 1) just after it
Cut = tuple[Any, ...]
Span = tuple[Cut, Cut]

LOWEST: Final[Cut] = (-1,)
HIGHEST: Final[Cut] = (1,)


def cut_before(value: Any) -> Cut:
    return (0, value, 0)


def cut_after(value: Any) -> Cut:
    return (0, value, 1)


def span_value(value: Any) -> Span:
    """Return the span that holds one value."""
    return cut_before(value), cut_after(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueSet:
    """Sorted spans that are not empty and do not touch; ``nan`` is ignored for types without it."""

    spans: tuple[Span, ...] = ()
    nan: bool = False
    null: bool = False

    @property
    def inverse(self) -> ValueSet:
        """All other values except null: those for which the comparison is false."""
        cuts = [LOWEST, *(cut for span in self.spans for cut in span), HIGHEST]
        return ValueSet(
            spans=_merge_spans(zip(cuts[::2], cuts[1::2], strict=True)), nan=not self.nan
        )

    def union(self, other: ValueSet) -> ValueSet:
        return ValueSet(
            spans=_merge_spans(self.spans + other.spans),
            nan=self.nan or other.nan,
            null=self.null or other.null,
        )

    def intersection(self, other: ValueSet) -> ValueSet:
        spans, mine, its = [], list(self.spans), list(other.spans)
        i = j = 0
        while i < len(mine) and j < len(its):
            spans.append((max(mine[i][0], its[j][0]), min(mine[i][1], its[j][1])))
            if mine[i][1] < its[j][1]:
                i += 1
            else:
                j += 1
        return ValueSet(
            spans=_merge_spans(spans),
            nan=self.nan and other.nan,
            null=self.null and other.null,
        )


NO_VALUES: Final = ValueSet()
ONLY_NULL: Final = ValueSet(null=True)
ANY_VALUE: Final = ValueSet(spans=((LOWEST, HIGHEST),), nan=True)


def make_value_set(spans: Iterable[Span]) -> ValueSet:
    """Return the set of spans given in any order; they may overlap.

    >>> make_value_set([(cut_before(3), cut_after(4)), (cut_before(1), cut_before(3))]).spans
    (((0, 1, 0), (0, 4, 1)),)
    """
    return ValueSet(spans=_merge_spans(spans))


def undo_sum(values: ValueSet, *, times: int, plus: int, bits: int) -> ValueSet:
    """Return the whole numbers n of ``bits`` bits for which ``times * n + plus`` is in a set.

    The sum wraps around on overflow, as in Java. ``times``: 1 or -1.

    >>> found = make_value_set([(cut_before(-128), cut_after(-127))])
    >>> undo_sum(found, times=1, plus=1, bits=8).spans
    (((0, -128, 0), (0, -127, 0)), ((0, 127, 0), (0, 128, 0)))
    """
    half, size = 1 << (bits - 1), 1 << bits
    back: list[Span] = []
    for low, high in values.spans:
        first = max(-half, _first_integer(low, -half))
        count = min(half, _first_integer(high, half)) - first
        if count <= 0:
            continue
        begin = first - plus if times > 0 else plus - first - count + 1
        begin = (begin + half) % size - half
        back.append((cut_before(begin), cut_before(min(begin + count, half))))
        back.append((cut_before(-half), cut_before(begin + count - size)))
    return ValueSet(spans=_merge_spans(back), nan=values.nan, null=values.null)


def find_first_number(is_so: Callable[[int], bool], most: int) -> int:
    """Return the first number from -most to most for which ``is_so`` holds, else most + 1.

    ``is_so`` must hold for all greater numbers too.
    """
    low, high = -most, most + 1
    while low < high:
        middle = (low + high) // 2
        if is_so(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _first_integer(cut: Cut, end: int) -> int:
    """Return the first whole number beyond a cut."""
    return end if cut in (LOWEST, HIGHEST) else int(cut[1]) + cut[2]


def _merge_spans(spans: Iterable[Span]) -> tuple[Span, ...]:
    merged: list[Span] = []
    for low, high in sorted(spans):
        if low >= high:
            continue
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return tuple(merged)
