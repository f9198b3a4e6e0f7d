"""Thrift's compact protocol as far as footers need it: where a value ends. Pure.

Nothing is guessed: every byte on the way is accounted for, so bytes that look like something else
inside a text are only text.
Source: thrift-compact-protocol.md.
"""

from __future__ import annotations

from typing import Final

STOP: Final = 0
BINARY: Final = 8
LIST: Final = 9
STRUCT: Final = 12
_BYTE, _DOUBLE, _SET = 3, 7, 10
TRUTHS: Final = frozenset({1, 2})
WHOLE: Final = frozenset({4, 5, 6})
_FIXED: Final = {_BYTE: 1, _DOUBLE: 8}
LONG: Final = 15  # in place of a size: it follows; and the greatest step to the next field
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
    return bytes([size << 4 | kind]) if size < LONG else bytes([0xF0 | kind]) + as_varint(size)


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
    size, at = (head >> 4, at + 1) if head >> 4 < LONG else varint(data, at + 1)
    return size, head & 0xF, at


def binary(data: bytes, at: int) -> tuple[int, int]:
    """Where the bytes of a text begin and end; the end may lie beyond the data."""
    length, at = varint(data, at)
    return at, at + length


def skip(data: bytes, at: int, kind: int, depth: int = _MOST_DEPTH) -> int:
    """Where a value of such a kind ends."""
    if not depth:
        raise MalformedError("structs in structs without end")
    if kind in WHOLE:
        end = varint(data, at)[1]
    elif kind in _FIXED:
        end = at + _FIXED[kind]
    elif kind == BINARY:
        end = binary(data, at)[1]
    elif kind in {LIST, _SET}:
        size, element, end = listed(data, at)
        if element in TRUTHS:
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


def fields(data: bytes, at: int, depth: int = _MOST_DEPTH, *, last: int = 0) -> int:
    """Where a struct ends, given where its next field begins, which comes after ``last``."""
    while True:
        last, kind, at = field(data, at, last)
        if kind == STOP:
            return at
        at = after(data, at, kind, depth - 1)


def after(data: bytes, at: int, kind: int, depth: int = _MOST_DEPTH) -> int:
    """Where the value of a field ends; truth values are in the field's own first byte."""
    return at if kind in TRUTHS else skip(data, at, kind, depth)
