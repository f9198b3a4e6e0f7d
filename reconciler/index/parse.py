"""The parser of Spark SQL predicates, by recursive descent.

Anything that is not understood, up to the next AND, OR or closing parenthesis of its own depth, is
one Unknown; where even that end is in doubt the whole predicate is. Errors of syntax are Unknown
too: Spark reports them.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from reconciler.index.syntax import (
    And,
    Cast,
    Column,
    Compare,
    In,
    IsNull,
    Kind,
    Like,
    Literal,
    Not,
    Operand,
    Or,
    Predicate,
    Sign,
    Unknown,
)
from reconciler.index.tokens import NotPlainError, Token, bytes_of, number_of, text_of, tokens

_SIGNS: Final = {"==": "=", "<>": "!=", "!=": "!="} | {sign.value: sign.value for sign in Sign}
_FLIPPED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_TIMES: Final = {
    "date": Kind.DATE,
    "timestamp": Kind.TIMESTAMP,
    "timestamp_ltz": Kind.TIMESTAMP,
    "timestamp_ntz": Kind.TIMESTAMP_NTZ,
}
_CONSTANTS: Final = {
    "true": Literal(kind=Kind.BOOLEAN, value=True),
    "false": Literal(kind=Kind.BOOLEAN, value=False),
    "null": Literal(kind=Kind.NULL),
}
_WIDTHS: Final = {"tinyint": 8, "byte": 8, "smallint": 16, "short": 16, "int": 32, "integer": 32,
                  "bigint": 64, "long": 64}  # fmt: skip
_DOUBLES: Final = {"nan": "nan", "infinity": "inf", "-infinity": "-inf"}
#: what cannot be the name of a column without quotes, here
_RESERVED: Final = frozenset(
    {"and", "or", "not", "between", "in", "like", "ilike", "rlike", "regexp", "is", "null"}
    | {"true", "false", "case", "when", "then", "else", "end", "exists", "interval", "any"}
    | {"some", "all", "escape", "distinct", "from", "div", "cast", "try_cast", "select"}
    | {"current_date", "current_timestamp", "current_user", "localtimestamp"}
)
#: parentheses and negations within each other
_DEEPEST: Final = 60


def parse(where: str) -> Predicate:
    """What a predicate says; whatever isn't understood is Unknown.

    >>> parse("5 < a.b OR length(c) = 1")
    Or(parts=(Compare(left=Column(parts=('a', 'b')), sign=<Sign.ABOVE: '>'>, \
right=Literal(kind=<Kind.INTEGER: 'integer'>, value=5, is_double_quoted=False)), \
Unknown(text='length(c) = 1')))
    """
    try:
        parser = _Parser(where)
        found = parser.any_of()
        is_whole = parser.next.kind == "end"
    except NotPlainError:
        is_whole = False
    return found if is_whole else Unknown(text=where)


class _Parser:
    def __init__(self, where: str) -> None:
        self._where, self._at, self._depth = where, 0, 0
        self._tokens = list(tokens(where))
        self._end = Token(kind="end", text="", begin=len(where), end=len(where))

    @property
    def next(self) -> Token:
        return self._peek(0)

    def _peek(self, ahead: int) -> Token:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else self._end

    def _take(self, *words: str) -> bool:
        found = self.next.word in words
        self._at += found
        return found

    def _expect(self, word: str) -> None:
        if not self._take(word):
            raise NotPlainError

    @property
    def _is_boundary(self) -> bool:
        return self.next.kind == "end" or self.next.word in ("and", "or", ")")

    def any_of(self) -> Predicate:
        parts = [self._all_of()]
        while self._take("or"):
            parts.append(self._all_of())
        return parts[0] if len(parts) == 1 else Or(parts=tuple(parts))

    def _all_of(self) -> Predicate:
        parts = [self._one()]
        while self._take("and"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else And(parts=tuple(parts))

    def _one(self) -> Predicate:
        start, depth = self._at, self._depth
        if depth > _DEEPEST:
            raise NotPlainError
        self._depth += 1
        try:
            found = Not(of=self._one()) if self._take("not", "!") else self._plain()
        except NotPlainError:
            found = None
        self._depth = depth
        if found is not None and self._is_boundary:
            return found
        self._at = start
        return self._skipped()

    def _skipped(self) -> Unknown:
        """All up to the next AND, OR or closing parenthesis; the AND of a BETWEEN is none."""
        begin, depth, betweens, end = self.next.begin, 0, 0, self.next.begin
        while self.next.kind != "end":
            word = self.next.word
            if depth == 0:
                if word in ("or", ")") or (word == "and" and not betweens):
                    break
                betweens += (word == "between") - (word == "and")
            if word in ("case", "end"):
                raise NotPlainError
            depth += (word in ("(", "[")) - (word in (")", "]"))
            end = self.next.end
            self._at += 1
        return Unknown(text=self._where[begin:end])

    def _plain(self) -> Predicate:
        if self.next.word == "(":
            self._at += 1
            found = self.any_of()
            self._expect(")")
            if self._is_boundary:
                return found
            if not isinstance(found, (Column, Cast, Literal)):
                raise NotPlainError
            return self._said_of(found)
        found = self._operand()
        return found if self._is_boundary else self._said_of(found)

    def _said_of(self, left: Operand | Literal) -> Predicate:
        """What follows an operand."""
        sign = _SIGNS.get(self.next.text) if self.next.kind == "sign" else None
        if sign is not None:
            self._at += 1
            return self._compared(left, sign, self._operand())
        if self._take("is"):
            return self._is(left)
        is_not = self._take("not")
        found = self._listed_or_like(left)
        return Not(of=found) if is_not else found

    def _compared(self, left: Operand | Literal, sign: str, right: Operand | Literal) -> Predicate:
        if isinstance(left, Literal):
            left, right, sign = right, left, _FLIPPED.get(sign, sign)
        if isinstance(left, Literal) or not isinstance(right, Literal):
            raise NotPlainError
        if sign == "!=":
            return Not(of=Compare(left=left, sign=Sign.EQUAL, right=right))
        return Compare(left=left, sign=Sign(sign), right=right)

    def _is(self, of: Operand | Literal) -> Predicate:
        if isinstance(of, Literal):
            raise NotPlainError
        is_not = self._take("not")
        found: Predicate
        if self._take("null", "unknown"):
            found = IsNull(of=of)
        elif self._take("distinct"):
            self._expect("from")
            found = Not(of=self._compared(of, "<=>", self._operand()))
        elif self.next.word in ("true", "false"):
            found = self._compared(of, "<=>", self._operand())
        else:
            raise NotPlainError
        return Not(of=found) if is_not else found

    def _listed_or_like(self, left: Operand | Literal) -> Predicate:
        if self._take("between"):
            low = self._operand()
            self._expect("and")
            high = self._operand()
            return And(parts=(self._compared(left, ">=", low), self._compared(left, "<=", high)))
        if isinstance(left, Literal):
            raise NotPlainError
        if self._take("in"):
            return In(of=left, values=self._list())
        self._expect("like")
        pattern, escape = self._operand(), "\\"
        if self._take("escape"):
            escape = self._escape()
        if not isinstance(pattern, Literal):
            raise NotPlainError
        return Like(of=left, pattern=pattern, escape=escape)

    def _escape(self) -> str:
        found = self._operand()
        if isinstance(found, Literal) and isinstance(found.value, str) and len(found.value) == 1:
            return found.value
        raise NotPlainError

    def _list(self) -> tuple[Literal, ...]:
        self._expect("(")
        found = [self._operand()]
        while self._take(","):
            found.append(self._operand())
        self._expect(")")
        values = tuple(value for value in found if isinstance(value, Literal))
        if len(values) < len(found):
            raise NotPlainError
        return values

    def _operand(self) -> Operand | Literal:
        if self._take("("):
            found = self._operand()
            self._expect(")")
            return found
        if self.next.word == "cast" and self._peek(1).word == "(":
            return self._cast()
        token, following = self.next, self._peek(1)
        if token.kind == "name" and following.kind == "text":
            self._at += 2
            return self._typed(token.word, following)
        self._at += 1
        if token.kind == "text" and following.kind != "text":  # two in a row are one
            return text_of(token.text)
        if token.kind != "name":
            return self._number(token)
        if token.word in _RESERVED - _CONSTANTS.keys():
            raise NotPlainError
        return _CONSTANTS.get(token.word) or Column(parts=token.parts)

    def _number(self, token: Token) -> Literal:
        is_negative = token.word == "-"
        if is_negative:
            token = self.next
            self._at += 1
        if token.kind != "number":
            raise NotPlainError
        return number_of(token.text, is_negative=is_negative)

    def _typed(self, word: str, text: Token) -> Literal:
        """DATE '…' and the like."""
        if self.next.kind == "text":
            raise NotPlainError
        if word == "x":
            return bytes_of(text.text)
        if word not in _TIMES:
            raise NotPlainError
        return Literal(kind=_TIMES[word], value=text_of(text.text).value)

    def _cast(self) -> Operand | Literal:
        self._at += 2
        of = self._operand()
        self._expect("as")
        kind = self._type()
        self._expect(")")
        return _cast_literal(of, kind) if isinstance(of, Literal) else Cast(of=of, to=kind)

    def _type(self) -> str:
        found = self.next.word
        if self.next.kind != "name":
            raise NotPlainError
        self._at += 1
        if not self._take("("):
            return found
        parts = [self._digits()]
        while self._take(","):
            parts.append(self._digits())
        self._expect(")")
        return f"{found}({','.join(parts)})"

    def _digits(self) -> str:
        token = self.next
        self._at += 1
        if not token.text.isdecimal():
            raise NotPlainError
        return token.text


def _cast_literal(of: Literal, kind: str) -> Literal:
    """A literal as another type, where that is sure."""
    value = of.value
    if of.kind is Kind.NULL:
        return of
    match of.kind:
        case Kind.STRING if kind == "string":
            return of
        case Kind.STRING if kind in _TIMES:
            return Literal(kind=_TIMES[kind], value=value)
        case Kind.STRING if kind == "double" and str(value).lower() in _DOUBLES:
            return Literal(kind=Kind.DOUBLE, value=float(_DOUBLES[str(value).lower()]))
        case Kind.INTEGER if kind in _WIDTHS and isinstance(value, int):
            half = 1 << (_WIDTHS[kind] - 1)
            if -half <= value < half:
                return of
        case Kind.INTEGER | Kind.DECIMAL | Kind.DOUBLE if kind == "double":
            if isinstance(value, (int, float, Decimal)):
                return Literal(kind=Kind.DOUBLE, value=float(value))
        case _:
            pass
    raise NotPlainError
