"""Read and skip values of Thrift's compact protocol, as far as Parquet footers need it. No I/O.

Every byte is parsed, so bytes inside a text are never mistaken for a field.
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
LONG_FORM: Final = 15  # as a list size: the size follows; as a field step: the greatest step
_BITS: Final = 7
_MAX_BYTES: Final = 10
_WIDEST: Final = 64
_MAX_DEPTH: Final = 16


class MalformedError(ValueError):
    """The bytes are not a valid value, or use a feature that Parquet footers do not use."""


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return an unsigned number and the offset of its end."""
    number = 0
    for nth in range(_MAX_BYTES):
        byte = data[at + nth] if at + nth < len(data) else None
        if byte is None:
            break
        number |= (byte & 0x7F) << (_BITS * nth)
        if byte < 0x80:  # noqa: PLR2004 (the highest bit says that more bytes follow)
            if number >> _WIDEST:
                raise MalformedError("a number exceeds 64 bits")
            return number, at + nth + 1
    raise MalformedError("a number is cut off")


def decode_zigzag(number: int) -> int:
    """Return the signed number that a zigzag-encoded number stands for."""
    return (number >> 1) ^ -(number & 1)


def encode_varint(number: int) -> bytes:
    r"""Encode an unsigned number.

    >>> encode_varint(300), read_varint(encode_varint(300), 0)
    (b'\xac\x02', (300, 2))
    """
    encoded = bytearray()
    while number > 0x7F:  # noqa: PLR2004
        encoded.append(number & 0x7F | 0x80)
        number >>= _BITS
    encoded.append(number)
    return bytes(encoded)


def encode_list_header(kind: int, size: int) -> bytes:
    """Encode the bytes before the elements of a list."""
    return (
        bytes([size << 4 | kind])
        if size < LONG_FORM
        else bytes([0xF0 | kind]) + encode_varint(size)
    )


def read_field(data: bytes, at: int, last: int) -> tuple[int, int, int]:
    """Return the number, the kind and the value's offset of the field after field ``last``.

    The kind is STOP at the end of the struct. Raises MalformedError for a field number that is not
    encoded as a step from the last one.
    """
    if at >= len(data):
        raise MalformedError("a struct is cut off")
    head = data[at]
    if head == STOP:
        return last, STOP, at + 1
    if not head >> 4:
        raise MalformedError("a field is out of order")
    return last + (head >> 4), head & 0xF, at + 1


def read_list_header(data: bytes, at: int) -> tuple[int, int, int]:
    """Return the size of a list, the kind of its elements and the offset of the first one."""
    if at >= len(data):
        raise MalformedError("a list is cut off")
    head = data[at]
    size, at = (head >> 4, at + 1) if head >> 4 < LONG_FORM else read_varint(data, at + 1)
    return size, head & 0xF, at


def read_binary(data: bytes, at: int) -> tuple[int, int]:
    """Return where the bytes of a text begin and end; the end may lie beyond the data."""
    length, at = read_varint(data, at)
    return at, at + length


def skip_value(data: bytes, at: int, kind: int, depth: int = _MAX_DEPTH) -> int:
    """Return where a value of a kind ends."""
    if not depth:
        raise MalformedError("structs are nested too deeply")
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
        raise MalformedError(f"a value has the unknown kind {kind}")
    if end > len(data):
        raise MalformedError("a value is cut off")
    return end


def skip_struct(data: bytes, at: int, depth: int = _MAX_DEPTH, *, last: int = 0) -> int:
    """Return where a struct ends; its next field begins at ``at`` and comes after ``last``."""
    while True:
        last, kind, at = read_field(data, at, last)
        if kind == STOP:
            return at
        at = skip_field(data, at, kind, depth - 1)


def skip_field(data: bytes, at: int, kind: int, depth: int = _MAX_DEPTH) -> int:
    """Return where the value of a field ends; a boolean is part of the field's first byte."""
    return at if kind in BOOLEANS else skip_value(data, at, kind, depth)
