"""Thrift's compact protocol as far as footers need it: where a value ends. Pure.

Nothing is guessed: every byte on the way is accounted for, so bytes that look like something else
inside a text are only text.
Source: thrift-compact-protocol.md; parquet.thrift for what a row group looks like.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Final

STOP: Final = 0
BINARY: Final = 8
LIST: Final = 9
STRUCT: Final = 12
_TRUE, _FALSE, _BYTE, _DOUBLE, _SET = 1, 2, 3, 7, 10
_WHOLE: Final = frozenset({4, 5, 6})
_FIXED: Final = {_BYTE: 1, _DOUBLE: 8}
_LONG: Final = 15  # in place of a size: it follows; and the greatest step to the next field
_BITS: Final = 7
_MOST_BYTES: Final = 10
_WIDEST: Final = 64
_MOST_DEPTH: Final = 16


class MalformedError(ValueError):
    """Bytes that are no such value, or are of a kind that footers have not."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned number, and where it ends."""
    found = 0
    for nth in range(_MOST_BYTES):
        byte = data[at + nth] if at + nth < len(data) else None
        if byte is None:
            break
        found |= (byte & 0x7F) << (_BITS * nth)
        if byte < 0x80:  # noqa: PLR2004 (the bit that says that more follows)
            if found >> _WIDEST:
                raise MalformedError("a number of more than 64 bits")
            return found, at + nth + 1
    raise MalformedError("a number does not end")


def unzigzag(number: int) -> int:
    """The signed number that an unsigned one stands for."""
    return (number >> 1) ^ -(number & 1)


def as_varint(number: int) -> bytes:
    r"""An unsigned number as it is written.

    >>> as_varint(300), varint(as_varint(300), 0)
    (b'\xac\x02', (300, 2))
    """
    found = bytearray()
    while number > 0x7F:  # noqa: PLR2004
        found.append(number & 0x7F | 0x80)
        number >>= _BITS
    found.append(number)
    return bytes(found)


def as_list(kind: int, size: int) -> bytes:
    """What stands before a list's elements."""
    return bytes([size << 4 | kind]) if size < _LONG else bytes([0xF0 | kind]) + as_varint(size)


def field(data: bytes, at: int, last: int) -> tuple[int, int, int]:
    """The next field of a struct, whose last one was ``last``: its number, kind and value's place.

    The kind is STOP at the struct's end. Numbers that are not written as a step are refused.
    """
    if at >= len(data):
        raise MalformedError("a struct does not end")
    head = data[at]
    if head == STOP:
        return last, STOP, at + 1
    if not head >> 4:
        raise MalformedError("a field that comes out of turn")
    return last + (head >> 4), head & 0xF, at + 1


def listed(data: bytes, at: int) -> tuple[int, int, int]:
    """Of a list: how many elements, of what kind, and where they begin."""
    if at >= len(data):
        raise MalformedError("a list does not begin")
    head = data[at]
    size, at = (head >> 4, at + 1) if head >> 4 < _LONG else varint(data, at + 1)
    return size, head & 0xF, at


def binary(data: bytes, at: int) -> tuple[int, int]:
    """Where the bytes of a text begin and end; the end may lie beyond the data."""
    length, at = varint(data, at)
    return at, at + length


def skip(data: bytes, at: int, kind: int, depth: int = _MOST_DEPTH) -> int:
    """Where a value of such a kind ends."""
    if not depth:
        raise MalformedError("structs in structs without end")
    if kind in _WHOLE:
        end = varint(data, at)[1]
    elif kind in _FIXED:
        end = at + _FIXED[kind]
    elif kind == BINARY:
        end = binary(data, at)[1]
    elif kind in {LIST, _SET}:
        size, element, end = listed(data, at)
        if element in {_TRUE, _FALSE}:
            end += size
        else:
            for _ in range(size):
                end = skip(data, end, element, depth - 1)
    elif kind == STRUCT:
        end = fields(data, at, depth)
    else:
        raise MalformedError(f"a value of kind {kind}")
    if end > len(data):
        raise MalformedError("a value does not end")
    return end


def fields(data: bytes, at: int, depth: int = _MOST_DEPTH) -> int:
    """Where a struct ends, given where its first field begins."""
    last = 0
    while True:
        last, kind, at = field(data, at, last)
        if kind == STOP:
            return at
        if kind not in {_TRUE, _FALSE}:
            at = skip(data, at, kind, depth - 1)


# --- row groups, quickly -------------------------------------------------------------------------
# In Python it takes half a millisecond to skip a row group, so the usual ones are walked by a
# regular expression of the same grammar, less deep and with shorter texts. Every alternative begins
# with another byte, and what has matched is never tried again (possessive), so there is one way to
# match at most. What does not match is left to ``fields``.

_SHORT: Final = 48
_LONGER: Final = 127
#: an expression is made for each count of columns
_MOST_COLUMNS: Final = 2000
_NUMBER: Final = rb"[\x80-\xff]{0,9}+[\x00-\x7f]"
_Match = Callable[[bytes, int], "re.Match[bytes] | None"]


def row_group(data: bytes, at: int) -> int:
    """Where a row group ends, given where it begins."""
    number, kind, start = field(data, at, 0)
    if (number, kind) == (1, LIST):
        size, element, start = listed(data, start)
        if element == STRUCT and size <= _MOST_COLUMNS:
            found = _row_group_of(size)(data, start)
            if found is not None:
                return found.end()
    return fields(data, at)


def key_of_pair(data: bytes, at: int) -> tuple[bytes, int]:
    """The key of a pair that begins here, and where the text begins that is its value."""
    found = _key_of_pair()(data, at)
    if found is None:
        raise MalformedError("a pair without key or value, or with a long key")
    return found[1][1:], found.end()


@cache
def _row_group_of(columns: int) -> _Match:
    """So many column chunks, and what follows them: numbers, and which columns are sorted.

    A chunk has a struct in it, and in that one are structs and lists of statistics.
    """
    leaf = _struct(_of(BINARY) + _text(_LONGER), _of(LIST) + _numbers())
    inner = _struct(
        _of(BINARY) + _text(_SHORT),
        _of(STRUCT) + leaf,
        _of(LIST)
        + _either(_numbers(), _elements(BINARY, _text(_SHORT)), _elements(STRUCT, _struct())),
    )
    chunk = _struct(_of(STRUCT) + inner)
    rest = _struct(_of(LIST) + _elements(STRUCT, _struct()))
    return re.compile(rb"(?>%b){%d}%b" % (chunk, columns, rest), re.DOTALL).match


@cache
def _key_of_pair() -> _Match:
    return re.compile(rb"\x18(%b)\x18" % _text(_LONGER), re.DOTALL).match


def _struct(*more: bytes) -> bytes:
    """Fields that are numbers or truth values or ``more``, and the end."""
    return rb"(?:%b)*+\x00" % _either(_of(*_WHOLE) + _NUMBER, _of(_TRUE, _FALSE), *more)


def _of(*kinds: int) -> bytes:
    """The first byte of a field of such a kind, in its turn."""
    found = (rb"\x%02x" % (step << 4 | kind) for step in range(1, _LONG + 1) for kind in kinds)
    return rb"[%b]" % b"".join(found)


def _text(most: int) -> bytes:
    """A text of at most so many bytes."""
    return _either(*(rb"\x%02x.{%d}" % (size, size) for size in range(most + 1)))


def _numbers() -> bytes:
    """A list of numbers, or of nothing."""
    return _either(rb"[\x00-\x0f]", *(_elements(kind, _NUMBER) for kind in sorted(_WHOLE)))


def _elements(kind: int, pattern: bytes, most: int = 6) -> bytes:
    """A list of at most so many elements of one kind, and one at least."""
    sizes = range(1, most + 1)
    return _either(*(rb"\x%02x%b" % (n << 4 | kind, rb"(?:%b){%d}" % (pattern, n)) for n in sizes))


def _either(*patterns: bytes) -> bytes:
    return rb"(?>%b)" % b"|".join(patterns)
