"""Split a Spark SQL expression into tokens and parse the values of its literals."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Final

from reconciler.index.predicates.syntax import Literal, LiteralKind
from reconciler.lazy_dataclass import dataclass

_TOKENS: Final = re.compile(
    r"""\s*(?:
    (?P<comment>--|/\*)
    | (?P<text>[rR](?:'[^']*'|"[^"]*")|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:[bB][dD]|[lLsSyYdDfF])?(?![\w.]))
    | (?P<name>(?:`(?:[^`]|``)+`|[A-Za-z_]\w*)(?:\.(?:`(?:[^`]|``)+`|[A-Za-z_]\w*))*)
    | (?P<sign><=>|<=|>=|<>|!=|==|->|\|\||[-+*/%<>=(),!|&^~:\[\]?.])
    )""",
    re.VERBOSE | re.DOTALL,
)
_PARTS: Final = re.compile(r"`((?:[^`]|``)+)`|(\w+)")
_NUMBER: Final = re.compile(r"(?P<plain>[\d.]+)(?P<exponent>[eE][+-]?\d+)?(?P<suffix>[a-zA-Z]*)\Z")
_ESCAPE: Final = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", re.DOTALL
)
_ESCAPED: Final = {
    "0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_",
}  # fmt: skip
_INT: Final = 32
_LONG: Final = 64
_WIDTHS: Final = {"y": 8, "s": 16, "l": _LONG}
#: the most digits of a decimal
MAX_DIGITS: Final = 38
_LARGEST_FLOAT: Final = 3.4028234663852886e38


class UnknownSyntaxError(Exception):
    """The parser does not understand this syntax."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token. ``kind``: text, number, name, sign or end. ``begin``, ``end``: its offsets."""

    kind: str
    text: str
    begin: int
    end: int

    @property
    def word(self) -> str:
        """A sign, or a name in lower case; empty for texts and numbers."""
        return self.text.lower() if self.kind in ("name", "sign") else ""

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of a name with dots, unquoted."""
        matches = _PARTS.finditer(self.text)
        return tuple(m[1].replace("``", "`") if m[1] else m[2] for m in matches)


def split_tokens(where: str) -> Iterator[Token]:
    """Yield the tokens of an expression; raises UnknownSyntaxError for comments and other text."""
    at, where = 0, where.rstrip()
    while at < len(where):
        match = _TOKENS.match(where, at)
        if match is None or match.lastgroup is None or match.lastgroup == "comment":
            raise UnknownSyntaxError
        kind = match.lastgroup
        at = match.end()
        yield Token(kind=kind, text=match[kind], begin=match.start(kind), end=at)


def parse_text(token: str) -> Literal:
    r"""Return the literal of a quoted text; raises UnknownSyntaxError for half a surrogate pair.

    >>> parse_text(r"'a\tb\%\u00e9'").value, parse_text(r"r'a\tb'").value
    ('a\tb\\%é', 'a\\tb')
    """
    is_raw = token[0] in "rR"
    text = token[2:-1] if is_raw else _ESCAPE.sub(_unescape, token[1:-1])
    try:
        value = text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise UnknownSyntaxError from None
    return Literal(kind=LiteralKind.STRING, value=value, is_double_quoted=token[0] == '"')


def _unescape(match: re.Match[str]) -> str:
    short, long, octal, other = match.groups()
    if short or long:
        code = int(short or long, 16)
        if code > 0x10FFFF:  # noqa: PLR2004 - the last code point
            raise UnknownSyntaxError
        return chr(code)
    return chr(int(octal, 8)) if octal else _ESCAPED.get(other, other)


def parse_bytes(token: str) -> Literal:
    """Return the literal of X'…'; ``token``: the quoted digits."""
    digits = token[1:-1]
    if len(digits) % 2 or not re.fullmatch("[0-9a-fA-F]*", digits):
        raise UnknownSyntaxError
    return Literal(kind=LiteralKind.BINARY, value=bytes.fromhex(digits))


def parse_number(token: str, *, is_negative: bool = False) -> Literal:
    """Return the literal of a number, in the type that its spelling implies.

    >>> [parse_number(t).kind.value for t in ("1", "1.5", "1e3", "7L", "1.0BD", "2F", "1D")]
    ['integer', 'decimal', 'double', 'integer', 'decimal', 'float', 'double']
    """
    match = _NUMBER.match(token)
    if match is None:
        raise UnknownSyntaxError
    try:
        number = Decimal(match["plain"] + (match["exponent"] or ""))
    except InvalidOperation:  # the exponent is too large
        raise UnknownSyntaxError from None
    number = number.copy_negate() if is_negative else number
    suffix = match["suffix"].lower()
    is_whole = match["plain"].isdigit() and not match["exponent"]
    if suffix == "f":
        return _make_float(float(number))
    if suffix == "d" or (match["exponent"] and not suffix):
        if math.isinf(float(number)):
            raise UnknownSyntaxError
        return Literal(kind=LiteralKind.DOUBLE, value=float(number))
    if suffix in _WIDTHS or (is_whole and not suffix and _fits_bits(number, _LONG)):
        bits = _WIDTHS.get(suffix) or (_INT if _fits_bits(number, _INT) else _LONG)
        if not is_whole or not _fits_bits(number, bits):
            raise UnknownSyntaxError
        return Literal(kind=LiteralKind.INTEGER, value=int(number), bits=bits)
    _, digits, exponent = number.as_tuple()
    if not -MAX_DIGITS <= int(exponent) <= 0 or len(digits) > MAX_DIGITS:
        raise UnknownSyntaxError
    return Literal(kind=LiteralKind.DECIMAL, value=number)


def _fits_bits(number: Decimal, bits: int) -> bool:
    return -(1 << (bits - 1)) <= number < 1 << (bits - 1)


def _make_float(value: float) -> Literal:
    """Return a float literal; raises UnknownSyntaxError if rounding twice may differ from Java.

    Java rounds the text to a float once; here it was rounded to a double first.
    """
    import numpy as np  # noqa: PLC0415 - few predicates hold floats

    if abs(value) > _LARGEST_FLOAT:
        raise UnknownSyntaxError
    near = np.float32(value)
    for side in (np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))):
        if (float(near) + float(side)) / 2 == value != float(near):
            raise UnknownSyntaxError
    return Literal(kind=LiteralKind.FLOAT, value=float(near))
