"""Values of Thrift's compact protocol as regular expressions, and row groups walked by them. Pure.

In Python it takes half a millisecond to skip a row group, so the usual ones are walked by a regular
expression of the same grammar, less deep and with shorter texts. Every alternative begins with
another byte, and what has matched is never tried again (possessive), so there is one way to match
at most. What does not match is left to ``compact.fields``.
Source: parquet.thrift for what a row group looks like.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Final

from reconciler.index.compact import (
    BINARY,
    LIST,
    LONG,
    STRUCT,
    TRUTHS,
    WHOLE,
    MalformedError,
    field,
    fields,
    listed,
)

_SHORT: Final = 48
LONGER: Final = 127
_MOST_ELEMENTS: Final = 6
_COLUMNS: Final = 1
NUMBER: Final = rb"[\x80-\xff]{0,9}+[\x00-\x7f]"
Match = Callable[[bytes, int], "re.Match[bytes] | None"]


def row_group(data: bytes, at: int) -> tuple[int, tuple[int, ...]]:
    """Where a row group ends, given where it begins, and where its column chunks begin.

    Raises MalformedError.
    """
    number, kind, start = field(data, at, 0)
    if (number, kind) != (_COLUMNS, LIST):
        raise MalformedError("a row group without columns")
    size, element, at = listed(data, start)
    if size and element != STRUCT:
        raise MalformedError("columns of another kind")
    chunk, rest = _chunk_and_rest()
    starts = []
    for _ in range(size):
        starts.append(at)
        found = chunk(data, at)
        at = fields(data, at) if found is None else found.end()
    found = rest(data, at)
    end = fields(data, at, last=_COLUMNS) if found is None else found.end()
    return end, tuple(starts)


def key_of_pair(data: bytes, at: int) -> tuple[bytes, int]:
    """The key of a pair that begins here, and where the text begins that is its value."""
    found = _key_of_pair()(data, at)
    if found is None:
        raise MalformedError("a pair without key or value, or with a long key")
    return found[1][1:], found.end()


@cache
def _chunk_and_rest() -> tuple[Match, Match]:
    """A column chunk, and what follows all of them: numbers, and which columns are sorted.

    A chunk has a struct in it, and in that one are structs and lists of statistics.
    """
    leaf = struct(of(BINARY) + text(LONGER), of(LIST) + numbers())
    inner = struct(of(BINARY) + text(_SHORT), of(STRUCT) + leaf, of(LIST) + lists())
    rest = struct(of(LIST) + elements(STRUCT, struct()))
    found = (struct(of(STRUCT) + inner), rest)
    chunk, rest_of = (re.compile(pattern, re.DOTALL).match for pattern in found)
    return chunk, rest_of


@cache
def _key_of_pair() -> Match:
    return re.compile(rb"\x18(%b)\x18" % text(LONGER), re.DOTALL).match


def struct(*more: bytes) -> bytes:
    """Fields that are numbers or truth values or ``more``, and the end."""
    return rb"(?:%b)*+\x00" % either(of(*WHOLE) + NUMBER, of(*TRUTHS), *more)


def of(*kinds: int) -> bytes:
    """The first byte of a field of such a kind, in its turn."""
    found = (rb"\x%02x" % (step << 4 | kind) for step in range(1, LONG + 1) for kind in kinds)
    return rb"[%b]" % b"".join(found)


def text(most: int) -> bytes:
    """A text of at most so many bytes."""
    return either(*(text_of(size) for size in range(most + 1)))


def text_of(size: int) -> bytes:
    """A text of so many bytes, no more than ``LONGER``."""
    return rb"\x%02x.{%d}" % (size, size)


def numbers() -> bytes:
    """A list of numbers, or of nothing."""
    return either(rb"[\x00-\x0f]", *(elements(kind, NUMBER) for kind in sorted(WHOLE)))


def lists() -> bytes:
    """A list of numbers, of short texts or of structs of numbers."""
    return either(numbers(), elements(BINARY, text(_SHORT)), elements(STRUCT, struct()))


def elements(kind: int, pattern: bytes) -> bytes:
    """A list of a few elements of one kind, and one at least."""
    sizes = range(1, _MOST_ELEMENTS + 1)
    return either(*(rb"\x%02x%b" % (n << 4 | kind, rb"(?:%b){%d}" % (pattern, n)) for n in sizes))


def either(*patterns: bytes) -> bytes:
    """Whichever begins here; one that has matched is never left for another."""
    return rb"(?>%b)" % b"|".join(patterns)
