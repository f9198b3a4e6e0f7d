"""What a query's SQL predicate bounds: ranges of columns, where it is made of plain comparisons.

Understood are comparisons of a column with a literal, BETWEEN, IN, LIKE with a leading text, AND,
OR and parentheses. Anything else bounds nothing, so what is read stays a superset of the rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

Literal = str | int | Decimal | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Values from ``low`` to ``high``, both included unless said; None is no bound."""

    low: Literal | None = None
    high: Literal | None = None
    above: bool = False
    below: bool = False


#: ranges of one column that hold together; by the column's name in lower case
Box = Mapping[str, tuple[Range, ...]]

#: alternatives of one query; more are taken for no bound at all
MOST_BOXES: Final = 64

_TOKENS: Final = re.compile(
    r"""\s*(?:
    (?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[lLsSyYdDfF]?(?:[bB][dD])?)
    | (?P<name>(?:`[^`]+`|[^\W\d]\w*)(?:\.(?:`[^`]+`|[^\W\d]\w*))*)
    | (?P<sign><=>|<=|>=|<>|!=|==|[-+*/%<>=(),!|&^~:\[\]?.;])
    )""",
    re.VERBOSE,
)
_FLIPPED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "==": "=", "<=>": "="}
_ANYTHING: Final[tuple[Box, ...]] = ({},)
_HIGHEST: Final = "\U0010ffff"
_WORDS: Final = frozenset({"and", "or", "not", "between", "in", "like", "is", "null", "true"})


class _NotPlainError(Exception):
    """Here is something that is not understood."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    kind: str
    text: str

    @property
    def word(self) -> str:
        return self.text.lower() if self.kind in ("name", "sign") else ""


def boxes_of(where: str) -> tuple[Box, ...]:
    """The alternatives of a predicate; a row that it is true for is in one of them.

    >>> boxes_of("a = 1 and b < 2")
    ({'a': (Range(low=1, high=1, above=False, below=False),), \
'b': (Range(low=None, high=2, above=False, below=True),)},)
    >>> boxes_of("f(a) > 1")
    ({},)
    """
    try:
        parser = _Parser(list(_tokens(where)))
        found = parser.any_of()
    except _NotPlainError:
        return _ANYTHING
    return found if parser.at_end else _ANYTHING


def _tokens(where: str) -> Iterator[_Token]:
    at, where = 0, where.strip()
    while at < len(where):
        match = _TOKENS.match(where, at)
        if match is None:
            raise _NotPlainError
        at = match.end()
        yield _Token(kind=str(match.lastgroup), text=match[str(match.lastgroup)])


def _both(left: Sequence[Box], right: Sequence[Box]) -> tuple[Box, ...]:
    if len(left) * len(right) > MOST_BOXES:
        return tuple(left)
    return tuple(
        {**one, **{name: one.get(name, ()) + ranges for name, ranges in other.items()}}
        for one in left
        for other in right
    )


class _Parser:
    """By recursive descent; an AND keeps what is understood on either side."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens, self._at = tokens, 0

    @property
    def at_end(self) -> bool:
        return self._at == len(self._tokens)

    @property
    def _next(self) -> _Token:
        return _Token(kind="end", text="") if self.at_end else self._tokens[self._at]

    def _take(self, *words: str) -> bool:
        found = self._next.word in words
        self._at += found
        return found

    def any_of(self) -> tuple[Box, ...]:
        found = self._all_of()
        while self._take("or"):
            found += self._all_of()
        return found if len(found) <= MOST_BOXES and all(found) else _ANYTHING

    def _all_of(self) -> tuple[Box, ...]:
        found = self._one()
        while self._take("and"):
            found = _both(found, self._one())
        return found

    def _one(self) -> tuple[Box, ...]:
        start = self._at
        try:
            found = self._parenthesised() if self._take("(") else self._comparison()
        except _NotPlainError:
            found = None
        if found is not None and (self.at_end or self._next.word in ("and", "or", ")")):
            return found
        self._at = start
        self._skip()
        return _ANYTHING

    def _skip(self) -> None:
        """Past what is not understood, to the next AND or OR of the same depth."""
        depth, is_between = 0, False
        while not self.at_end:
            word = self._next.word
            if depth == 0 and (word in ("or", ")") or (word == "and" and not is_between)):
                return
            if word in ("case", "end"):
                raise _NotPlainError
            depth += (word == "(") - (word == ")")
            is_between = word == "between" or (is_between and word != "and")
            self._at += 1

    def _parenthesised(self) -> tuple[Box, ...]:
        found = self.any_of()
        if not self._take(")"):
            raise _NotPlainError
        return found

    def _comparison(self) -> tuple[Box, ...]:
        if self._next.kind != "name" or self._is_typed_literal():
            value = self._literal()
            sign = self._sign()
            return self._bounded(self._column(), _FLIPPED[sign], value)
        column = self._column()
        if self._take("between"):
            low = self._literal()
            if not self._take("and"):
                raise _NotPlainError
            return ({column: (Range(low=low, high=self._literal()),)},)
        if self._take("in"):
            return tuple({column: (Range(low=v, high=v),)} for v in self._list())
        if self._take("like"):
            return self._prefix(column)
        sign = self._sign()
        return self._bounded(column, "=" if sign in ("==", "<=>") else sign, self._literal())

    def _bounded(self, column: str, sign: str, value: Literal) -> tuple[Box, ...]:
        match sign[0]:
            case "=":
                found = Range(low=value, high=value)
            case "<":
                found = Range(high=value, below=sign == "<")
            case _:
                found = Range(low=value, above=sign == ">")
        return ({column: (found,)},)

    def _prefix(self, column: str) -> tuple[Box, ...]:
        pattern = self._literal()
        known = re.match(r"[^%_\\]*", str(pattern))
        begin = known[0] if known else ""
        if not isinstance(pattern, str) or not begin:
            raise _NotPlainError
        if begin == pattern:
            return ({column: (Range(low=begin, high=begin),)},)
        return ({column: (Range(low=begin, high=begin + _HIGHEST),)},)

    def _sign(self) -> str:
        sign = self._next.text
        if self._next.kind != "sign" or sign not in _FLIPPED:
            raise _NotPlainError
        self._at += 1
        return sign

    def _column(self) -> str:
        token = self._next
        if token.kind != "name" or token.word in _WORDS:
            raise _NotPlainError
        self._at += 1
        return token.text.replace("`", "").lower()

    def _list(self) -> list[Literal]:
        if not self._take("("):
            raise _NotPlainError
        found = [self._literal()]
        while self._take(","):
            found.append(self._literal())
        if not self._take(")"):
            raise _NotPlainError
        return found

    def _is_typed_literal(self) -> bool:
        following = self._tokens[self._at + 1 : self._at + 2]
        is_dated = self._next.word in ("date", "timestamp", "timestamp_ntz", "timestamp_ltz")
        is_typed = is_dated and bool(following) and following[0].kind == "text"
        return is_typed or self._next.word in ("true", "false")

    def _literal(self) -> Literal:
        if self._take("true"):
            return True
        if self._take("false"):
            return False
        self._at += self._is_typed_literal()
        is_negative = self._take("-")
        token = self._next
        self._at += 1
        if token.kind == "text" and not is_negative:
            quote = token.text[0]
            inside = token.text[1:-1].replace(quote * 2, quote)
            return re.sub(r"\\([^%_])", r"\1", inside)
        if token.kind != "number":
            raise _NotPlainError
        number = Decimal(token.text.rstrip("lLsSyYdDfFbB"))
        number = -number if is_negative else number
        return int(number) if number == number.to_integral_value() else number
