"""Regular expressions for values of Thrift's compact protocol, to skip row groups fast. No I/O.

Skipping a row group field by field takes half a millisecond in Python. So the usual row groups are
matched by a regular expression of the same grammar, with less depth and shorter texts. All
alternatives begin with different bytes and all repetitions are possessive, so there is at most one
way to match. Row groups that do not match are skipped with ``thrift_compact.skip_struct``, and so
are the first ones of a process: compiling a pattern takes as long as skipping a hundred column
chunks, and small work reads no more.
Source: parquet.thrift for the layout of a row group.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from functools import cache, partial
from typing import Final

from reconciler.index.thrift_compact import (
    BINARY,
    BOOLEANS,
    INTEGERS,
    LIST,
    LONG_FORM,
    STRUCT,
    MalformedError,
    encode_varint,
    read_field,
    read_list_header,
    skip_struct,
)

_MAX_SHORT_TEXT: Final = 48
MAX_TEXT: Final = 127
_MAX_ELEMENTS: Final = 6
_COLUMNS: Final = 1
_I64: Final = 6
_BYTE_ARRAY: Final = 6  # number of the physical type
NUMBER_PATTERN: Final = rb"[\x80-\xff]{0,9}+[\x00-\x7f]"
#: values that are skipped before a pattern is compiled
_SKIPPED_FIRST: Final = 100
Matcher = Callable[[bytes, int], "re.Match[bytes] | None"]


class LateMatcher:
    """Matches nothing until it has been asked a hundred times; compiles its pattern then.

    ``make_pattern`` returns the pattern. Threads may share a matcher: only one of them compiles.
    """

    def __init__(self, make_pattern: Callable[[], bytes]) -> None:
        self._make_pattern, self._asked = make_pattern, 0
        self._guard = threading.Lock()
        self._compiled: Matcher | None = None

    def __call__(self, data: bytes, at: int) -> re.Match[bytes] | None:
        """Return the match at an offset, or None: then the caller parses field by field."""
        if self._compiled is not None:
            return self._compiled(data, at)
        self._asked += 1  # a count that a race loses delays the compiling by one
        return self.compile()(data, at) if self._asked > _SKIPPED_FIRST else None

    def compile(self) -> Matcher:
        """Return a matcher that matches from now on."""
        with self._guard:
            if self._compiled is None:
                self._compiled = re.compile(self._make_pattern(), re.DOTALL).match
            return self._compiled


def split_row_group(data: bytes, at: int) -> tuple[int, tuple[int, ...]]:
    """Return where a row group ends and where its column chunks begin.

    ``at``: offset of the row group. Raises MalformedError.
    """
    number, kind, start = read_field(data, at, 0)
    if (number, kind) != (_COLUMNS, LIST):
        raise MalformedError("a row group has no columns")
    size, element, at = read_list_header(data, start)
    if size and element != STRUCT:
        raise MalformedError("the columns of a row group are not structs")
    chunk, rest = _row_group_matchers()
    starts = []
    for _ in range(size):
        starts.append(at)
        match = chunk(data, at)
        at = skip_struct(data, at) if match is None else match.end()
    match = rest(data, at)
    end = skip_struct(data, at, last=_COLUMNS) if match is None else match.end()
    return end, tuple(starts)


def read_pair_key(data: bytes, at: int) -> tuple[bytes, int]:
    """Return the key of the key-value pair at an offset, and where its value begins."""
    match = _pair_key_matcher()(data, at)
    if match is None:
        raise MalformedError("a key-value pair lacks a key or a value, or its key is too long")
    return match[1][1:], match.end()


@cache
def _row_group_matchers() -> tuple[LateMatcher, LateMatcher]:
    """Return matchers of a column chunk, and of the fields after all chunks."""
    return LateMatcher(_chunk_pattern), LateMatcher(_rest_pattern)


def _chunk_pattern() -> bytes:
    """Return the pattern of a struct of metadata that has structs and lists of statistics."""
    leaf = struct_pattern(
        field_pattern(BINARY) + text_pattern(MAX_TEXT), field_pattern(LIST) + number_list_pattern()
    )
    inner = struct_pattern(
        field_pattern(BINARY) + text_pattern(_MAX_SHORT_TEXT),
        field_pattern(STRUCT) + leaf,
        field_pattern(LIST) + list_pattern(),
    )
    return struct_pattern(field_pattern(STRUCT) + inner)


def _rest_pattern() -> bytes:
    """Return the pattern of numbers and the list of sorting columns."""
    return struct_pattern(field_pattern(LIST) + elements_pattern(STRUCT, struct_pattern()))


@cache
def _pair_key_matcher() -> Matcher:
    return re.compile(rb"\x18(%b)\x18" % text_pattern(MAX_TEXT), re.DOTALL).match


def struct_pattern(*more: bytes) -> bytes:
    """Return the pattern of a struct whose fields are numbers, booleans or ``more``."""
    return rb"(?:%b)*+\x00" % either_pattern(
        field_pattern(*INTEGERS) + NUMBER_PATTERN, field_pattern(*BOOLEANS), *more
    )


def field_pattern(*kinds: int) -> bytes:
    """Return the pattern of the first byte of a field of one of these kinds."""
    heads = (rb"\x%02x" % (step << 4 | kind) for step in range(1, LONG_FORM + 1) for kind in kinds)
    return rb"[%b]" % b"".join(heads)


def text_pattern(most: int) -> bytes:
    """Return the pattern of a text with at most ``most`` bytes."""
    return either_pattern(*(sized_text_pattern(size) for size in range(most + 1)))


def sized_text_pattern(size: int) -> bytes:
    """Return the pattern of a text with exactly ``size`` bytes, at most ``MAX_TEXT``."""
    return rb"\x%02x.{%d}" % (size, size)


def number_list_pattern() -> bytes:
    """Return the pattern of a list of numbers, or of an empty list."""
    return either_pattern(
        rb"[\x00-\x0f]", *(elements_pattern(kind, NUMBER_PATTERN) for kind in sorted(INTEGERS))
    )


def list_pattern() -> bytes:
    """Return the pattern of a list of numbers, of short texts or of structs of numbers."""
    return either_pattern(
        number_list_pattern(),
        elements_pattern(BINARY, text_pattern(_MAX_SHORT_TEXT)),
        elements_pattern(STRUCT, struct_pattern()),
    )


def elements_pattern(kind: int, pattern: bytes) -> bytes:
    """Return the pattern of a list with one to six elements of one kind."""
    sizes = range(1, _MAX_ELEMENTS + 1)
    return either_pattern(
        *(rb"\x%02x%b" % (n << 4 | kind, rb"(?:%b){%d}" % (pattern, n)) for n in sizes)
    )


def either_pattern(*patterns: bytes) -> bytes:
    """Return the pattern of alternatives; after one has matched, no other is tried."""
    return rb"(?>%b)" % b"|".join(patterns)


@cache
def match_usual_chunk(physical: int, length: int | None, levels: tuple[int, int]) -> LateMatcher:
    """Return a matcher of column chunks in the form that writers usually write.

    ``physical``: number of the column's physical type. ``length``: bytes of a bound, None if it
    varies. ``levels``: the greatest repetition level and the greatest definition level.
    """
    return LateMatcher(partial(_usual_chunk_pattern, physical, length, levels))


def _usual_chunk_pattern(physical: int, length: int | None, levels: tuple[int, int]) -> bytes:
    number = field_pattern(*INTEGERS) + NUMBER_PATTERN
    plain = either_pattern(number, field_pattern(LIST) + list_pattern())
    bound = text_pattern(MAX_TEXT) if length is None else sized_text_pattern(length)
    meta = rb"\x15%b(?:%b)*+(?:[\x1c\x2c\x3c]%b)?+(?:%b)*+(?:%b%b\x00)?+\x00" % (
        re.escape(encode_varint(2 * physical)),
        plain,
        struct_pattern(field_pattern(BINARY) + bound),
        plain,
        field_pattern(STRUCT),
        _usual_sizes_pattern(physical, levels),
    )
    return rb"(?:%b)*+%b%b(?:%b)*+\x00" % (number, field_pattern(STRUCT), meta, number)


def _usual_sizes_pattern(physical: int, levels: tuple[int, int]) -> bytes:
    """Return the pattern of size statistics: text bytes, then the histograms of both levels."""
    repetition, definition = (_histogram_pattern(level + 1) for level in levels)
    alternatives = [
        rb"\x29%b\x19%b" % (repetition, definition),
        rb"\x29" + repetition,
        rb"\x39" + definition,
    ]
    if physical == _BYTE_ARRAY:
        count = rb"\x16" + NUMBER_PATTERN
        alternatives += [
            rb"%b\x19%b\x19%b" % (count, repetition, definition),
            rb"%b\x19%b" % (count, repetition),
            rb"%b\x29%b" % (count, definition),
            count,
        ]
    return rb"(?:%b|)" % b"|".join(alternatives)


def _histogram_pattern(size: int) -> bytes:
    """Return the pattern of a list of ``size`` numbers, or of an empty list."""
    nothing = rb"[\x00-\x0f]"
    if size >= LONG_FORM:
        return nothing
    numbers = rb"\x%02x(?:%b){%d}" % (size << 4 | _I64, NUMBER_PATTERN, size)
    return either_pattern(nothing, numbers)
