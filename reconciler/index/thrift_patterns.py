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

from reconciler.index.thrift_compact import (
    BINARY,
    BOOLEANS,
    INTEGERS,
    LIST,
    LONG_FORM,
    STRUCT,
    MalformedError,
    read_field,
    read_list_header,
    skip_struct,
)

_MAX_SHORT_TEXT: Final = 48
MAX_TEXT: Final = 127
_MAX_ELEMENTS: Final = 6
_COLUMNS: Final = 1
NUMBER_PATTERN: Final = rb"[\x80-\xff]{0,9}+[\x00-\x7f]"
Matcher = Callable[[bytes, int], "re.Match[bytes] | None"]


def split_row_group(data: bytes, at: int) -> tuple[int, tuple[int, ...]]:
    """Where a row group ends, given where it begins, and where its column chunks begin.

    Raises MalformedError.
    """
    number, kind, start = read_field(data, at, 0)
    if (number, kind) != (_COLUMNS, LIST):
        raise MalformedError("a row group without columns")
    size, element, at = read_list_header(data, start)
    if size and element != STRUCT:
        raise MalformedError("columns of another kind")
    chunk, rest = _row_group_matchers()
    starts = []
    for _ in range(size):
        starts.append(at)
        found = chunk(data, at)
        at = skip_struct(data, at) if found is None else found.end()
    found = rest(data, at)
    end = skip_struct(data, at, last=_COLUMNS) if found is None else found.end()
    return end, tuple(starts)


def read_pair_key(data: bytes, at: int) -> tuple[bytes, int]:
    """The key of a pair that begins here, and where the text begins that is its value."""
    found = _pair_key_matcher()(data, at)
    if found is None:
        raise MalformedError("a pair without key or value, or with a long key")
    return found[1][1:], found.end()


@cache
def _row_group_matchers() -> tuple[Matcher, Matcher]:
    """A column chunk, and what follows all of them: numbers, and which columns are sorted.

    A chunk has a struct in it, and in that one are structs and lists of statistics.
    """
    leaf = struct_pattern(
        field_pattern(BINARY) + text_pattern(MAX_TEXT), field_pattern(LIST) + number_list_pattern()
    )
    inner = struct_pattern(
        field_pattern(BINARY) + text_pattern(_MAX_SHORT_TEXT),
        field_pattern(STRUCT) + leaf,
        field_pattern(LIST) + list_pattern(),
    )
    rest = struct_pattern(field_pattern(LIST) + elements_pattern(STRUCT, struct_pattern()))
    found = (struct_pattern(field_pattern(STRUCT) + inner), rest)
    chunk, rest_of = (re.compile(pattern, re.DOTALL).match for pattern in found)
    return chunk, rest_of


@cache
def _pair_key_matcher() -> Matcher:
    return re.compile(rb"\x18(%b)\x18" % text_pattern(MAX_TEXT), re.DOTALL).match


def struct_pattern(*more: bytes) -> bytes:
    """Fields that are numbers or truth values or ``more``, and the end."""
    return rb"(?:%b)*+\x00" % either_pattern(
        field_pattern(*INTEGERS) + NUMBER_PATTERN, field_pattern(*BOOLEANS), *more
    )


def field_pattern(*kinds: int) -> bytes:
    """The first byte of a field of such a kind, in its turn."""
    found = (rb"\x%02x" % (step << 4 | kind) for step in range(1, LONG_FORM + 1) for kind in kinds)
    return rb"[%b]" % b"".join(found)


def text_pattern(most: int) -> bytes:
    """A text of at most so many bytes."""
    return either_pattern(*(sized_text_pattern(size) for size in range(most + 1)))


def sized_text_pattern(size: int) -> bytes:
    """A text of so many bytes, no more than ``MAX_TEXT``."""
    return rb"\x%02x.{%d}" % (size, size)


def number_list_pattern() -> bytes:
    """A list of numbers, or of nothing."""
    return either_pattern(
        rb"[\x00-\x0f]", *(elements_pattern(kind, NUMBER_PATTERN) for kind in sorted(INTEGERS))
    )


def list_pattern() -> bytes:
    """A list of numbers, of short texts or of structs of numbers."""
    return either_pattern(
        number_list_pattern(),
        elements_pattern(BINARY, text_pattern(_MAX_SHORT_TEXT)),
        elements_pattern(STRUCT, struct_pattern()),
    )


def elements_pattern(kind: int, pattern: bytes) -> bytes:
    """A list of a few elements of one kind, and one at least."""
    sizes = range(1, _MAX_ELEMENTS + 1)
    return either_pattern(
        *(rb"\x%02x%b" % (n << 4 | kind, rb"(?:%b){%d}" % (pattern, n)) for n in sizes)
    )


def either_pattern(*patterns: bytes) -> bytes:
    """Whichever begins here; one that has matched is never left for another."""
    return rb"(?>%b)" % b"|".join(patterns)
