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
BOOLEANS: Final = frozenset({1, 2})
INTEGERS: Final = frozenset({4, 5, 6})
_FIXED: Final = {_BYTE: 1, _DOUBLE: 8}
LONG_FORM: Final = 15  # in place of a size: it follows; and the greatest step to the next field
_BITS: Final = 7
_MOST_BYTES: Final = 10
_WIDEST: Final = 64
_MOST_DEPTH: Final = 16


class MalformedError(ValueError):
    """Bytes that are no such value, or are of a kind that footers have not."""


def read_varint(data: bytes, at: int) -> tuple[int, int]:
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


def decode_zigzag(number: int) -> int:
    """The signed number that an unsigned one stands for."""
    return (number >> 1) ^ -(number & 1)


def encode_varint(number: int) -> bytes:
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


def encode_list_header(kind: int, size: int) -> bytes:
    """What stands before a list's elements."""
    return (
        bytes([size << 4 | kind])
        if size < LONG_FORM
        else bytes([0xF0 | kind]) + encode_varint(size)
    )


def read_field(data: bytes, at: int, last: int) -> tuple[int, int, int]:
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


def read_list_header(data: bytes, at: int) -> tuple[int, int, int]:
    """Of a list: how many elements, of what kind, and where they begin."""
    if at >= len(data):
        raise MalformedError("a list does not begin")
    head = data[at]
    size, at = (head >> 4, at + 1) if head >> 4 < LONG_FORM else read_varint(data, at + 1)
    return size, head & 0xF, at


def read_binary(data: bytes, at: int) -> tuple[int, int]:
    """Where the bytes of a text begin and end; the end may lie beyond the data."""
    length, at = read_varint(data, at)
    return at, at + length


def skip_value(data: bytes, at: int, kind: int, depth: int = _MOST_DEPTH) -> int:
    """Where a value of such a kind ends."""
    if not depth:
        raise MalformedError("structs in structs without end")
    if kind in INTEGERS:
        end = read_varint(data, at)[1]
    elif kind in _FIXED:
        end = at + _FIXED[kind]
    elif kind == BINARY:
        end = read_binary(data, at)[1]
    elif kind in {LIST, _SET}:
        size, element, end = read_list_header(data, at)
        if element in BOOLEANS:
            end += size
        else:
            for _ in range(size):
                end = skip_value(data, end, element, depth - 1)
    elif kind == STRUCT:
        end = skip_struct(data, at, depth)
    else:
        raise MalformedError(f"a value of kind {kind}")
    if end > len(data):
        raise MalformedError("a value does not end")
    return end


def skip_struct(data: bytes, at: int, depth: int = _MOST_DEPTH, *, last: int = 0) -> int:
    """Where a struct ends, given where its next field begins, which comes after ``last``."""
    while True:
        last, kind, at = read_field(data, at, last)
        if kind == STOP:
            return at
        at = skip_field(data, at, kind, depth - 1)


def skip_field(data: bytes, at: int, kind: int, depth: int = _MOST_DEPTH) -> int:
    """Where the value of a field ends; truth values are in the field's own first byte."""
    return at if kind in BOOLEANS else skip_value(data, at, kind, depth)
