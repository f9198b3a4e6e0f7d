"""The parser of Spark SQL predicates, by recursive descent.

Anything that is not understood, up to the next AND, OR or closing parenthesis of its own depth, is
one Unknown; where even that end is in doubt the whole predicate is. Errors of syntax are Unknown
too: Spark reports them.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Final

from reconciler.predicates.arithmetic import (
    Expression,
    Opaque,
    compared,
    negated,
    opaque,
    strict,
    summed,
)
from reconciler.predicates.functions import KNOWN, called
from reconciler.predicates.syntax import (
    And,
    Cast,
    Column,
    In,
    IsNull,
    Kind,
    Like,
    Literal,
    Not,
    Or,
    Predicate,
    Sign,
    Unknown,
)
from reconciler.predicates.tokens import NotPlainError, Token, bytes_of, number_of, text_of, tokens

_SIGNS: Final = {"==": "=", "<>": "!=", "!=": "!="} | {sign.value: sign.value for sign in Sign}
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
_FLOATING: Final = {"double": Kind.DOUBLE, "float": Kind.FLOAT}
_DOUBLES: Final = {"nan": "nan", "infinity": "inf", "-infinity": "-inf"}
#: what cannot be the name of a column without quotes, here
_RESERVED: Final = frozenset(
    {"and", "or", "not", "between", "in", "like", "ilike", "rlike", "regexp", "is", "null"}
    | {"true", "false", "case", "when", "then", "else", "end", "exists", "interval", "any"}
    | {"some", "all", "escape", "distinct", "from", "div", "cast", "try_cast", "select"}
    | {"current_date", "current_timestamp", "current_user", "localtimestamp"}
)
_CALLED: Final = KNOWN | {"cast"}
#: parentheses and negations within each other
_DEEPEST: Final = 60
#: of a number in the name of a type
_MOST_DIGITS: Final = 2


def parse(where: str) -> Predicate:
    """What a predicate says; whatever isn't understood is Unknown.

    >>> parse("5 < a.b OR hash(c) = 1")
    Or(parts=(Compare(left=Column(parts=('a', 'b')), sign=<Sign.ABOVE: '>'>, \
right=Literal(kind=<Kind.INTEGER: 'integer'>, value=5, is_double_quoted=False)), \
Unknown(text='hash(c) = 1')))
    """
    if "${" in where:  # Spark puts a setting's value there first, inside of texts too
        return Unknown(text=where)
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
            start = self._at
            self._at += 1
            inside = self.any_of()
            self._expect(")")
            if self._is_boundary:
                return inside
            self._at = start  # the beginning of a value
        found = self._operand()
        if not self._is_boundary:
            return self._said_of(found)
        if not isinstance(found, Opaque):
            return found
        if found.says is None:
            raise NotPlainError
        return found.says

    def _said_of(self, left: Expression) -> Predicate:
        """What follows an operand."""
        sign = _SIGNS.get(self.next.text) if self.next.kind == "sign" else None
        if sign is not None:
            self._at += 1
            return compared(left, sign, self._operand())
        if self._take("is"):
            return self._is(left)
        is_not = self._take("not")
        found = self._listed_or_like(left)
        return Not(of=found) if is_not else found

    def _is(self, of: Expression) -> Predicate:
        if isinstance(of, Literal | Opaque):
            raise NotPlainError
        is_not = self._take("not")
        found: Predicate
        if self._take("null", "unknown"):
            found = IsNull(of=of)
        elif self._take("distinct"):
            self._expect("from")
            found = Not(of=compared(of, "<=>", self._operand()))
        elif self.next.word in ("true", "false"):
            found = compared(of, "<=>", self._operand())
        else:
            raise NotPlainError
        return Not(of=found) if is_not else found

    def _listed_or_like(self, left: Expression) -> Predicate:
        if self._take("between"):
            low = self._operand()
            self._expect("and")
            high = self._operand()
            return And(parts=(compared(left, ">=", low), compared(left, "<=", high)))
        if isinstance(left, Literal):
            raise NotPlainError
        if self._take("in"):
            values = self._list()
            return strict(left, *values) if isinstance(left, Opaque) else In(of=left, values=values)
        if self._take("ilike", "rlike", "regexp"):
            return strict(left, self._operand())
        self._expect("like")
        pattern, escape = self._operand(), "\\"
        if self._take("escape"):
            escape = self._escape()
        if isinstance(left, Opaque):
            return strict(left, pattern)
        if not isinstance(pattern, Literal):
            raise NotPlainError
        return Like(of=left, pattern=pattern, escape=escape)

    def _escape(self) -> str:
        found = self._operand()
        if isinstance(found, Literal) and isinstance(found.value, str) and len(found.value) == 1:
            return found.value
        raise NotPlainError

    def _list(self) -> tuple[Literal, ...]:
        found = self._elements()
        values = tuple(value for value in found if isinstance(value, Literal))
        if len(values) < len(found):
            raise NotPlainError
        return values

    def _elements(self) -> tuple[Expression, ...]:
        self._expect("(")
        found = [self._element()]
        while self._take(","):
            found.append(self._element())
        self._expect(")")
        return tuple(found)

    def _element(self) -> Expression:
        """Of a list, which may be long: most are single words."""
        return self._primary() if self._peek(1).word in (",", ")") else self._operand()

    def _operand(self) -> Expression:
        """A value: of all operators these bind least."""
        if self._depth > _DEEPEST:
            raise NotPlainError
        self._depth += 1
        found = self._sum()
        while self._take("&", "^", "|"):
            found = opaque(found, self._sum())
        self._depth -= 1
        return found

    def _sum(self) -> Expression:
        found = self._product()
        while (sign := self.next.word) in ("+", "-", "||"):
            self._at += 1
            found = summed(found, sign, self._product())
        return found

    def _product(self) -> Expression:
        found = self._signed()
        while self._take("*", "/", "%", "div"):
            found = opaque(found, self._signed())
        return found

    def _signed(self) -> Expression:
        if self.next.word not in ("-", "+", "~"):
            return self._primary()
        if self.next.word == "-" and self._peek(1).kind == "number":
            self._at += 2
            return number_of(self._peek(-1).text, is_negative=True)
        sign = self.next.word
        self._at += 1
        found = self._primary()
        return negated(found) if sign == "-" else opaque(found)

    def _primary(self) -> Expression:
        if self._take("("):
            found = self._operand()
            self._expect(")")
            return found
        if self._peek(1).word == "(" and self.next.word in _CALLED:
            return self._called()
        token, following = self.next, self._peek(1)
        if token.kind == "name" and following.kind == "text":
            self._at += 2
            return self._typed(token.word, following)
        self._at += 1
        if token.kind == "text" and following.kind != "text":  # two in a row are one
            return text_of(token.text)
        if token.kind == "number":
            return number_of(token.text)
        if token.kind != "name" or token.word in _RESERVED - _CONSTANTS.keys():
            raise NotPlainError
        return _CONSTANTS.get(token.word) or Column(parts=token.parts)

    def _typed(self, word: str, text: Token) -> Literal:
        """DATE '…' and the like."""
        if self.next.kind == "text":
            raise NotPlainError
        if word == "x":
            return bytes_of(text.text)
        if word not in _TIMES:
            raise NotPlainError
        return Literal(kind=_TIMES[word], value=text_of(text.text).value)

    def _called(self) -> Expression:
        self._at += 1
        name = self._peek(-1).word
        return self._cast() if name == "cast" else called(name, self._elements())

    def _cast(self) -> Expression:
        self._expect("(")
        of = self._operand()
        self._expect("as")
        kind = self._type()
        self._expect(")")
        if isinstance(of, Literal):
            return _cast_literal(of, kind)
        return Cast(of=of, to=kind) if isinstance(of, Column | Cast) else opaque(of)

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
        if token.kind != "number" or len(token.text) > _MOST_DIGITS or not token.text.isdigit():
            raise NotPlainError
        return token.text


def _cast_literal(of: Literal, kind: str) -> Literal | Opaque:
    """A literal as another type, where that is sure; a null that has a type gives it to a list."""
    value = of.value
    if of.kind is Kind.NULL:
        return Opaque(columns=(), is_null=True)
    match of.kind:
        case Kind.STRING if kind == "string":
            return of
        case Kind.STRING if kind in _TIMES:
            return Literal(kind=_TIMES[kind], value=value)
        case Kind.STRING if kind in _FLOATING and str(value).lower() in _DOUBLES:
            return Literal(kind=_FLOATING[kind], value=float(_DOUBLES[str(value).lower()]))
        case Kind.INTEGER if kind in _WIDTHS and isinstance(value, int):
            half = 1 << (_WIDTHS[kind] - 1)
            if -half <= value < half:
                return replace(of, bits=_WIDTHS[kind])
        case Kind.INTEGER | Kind.DECIMAL | Kind.DOUBLE if kind == "double":
            if isinstance(value, (int, float, Decimal)):
                return Literal(kind=Kind.DOUBLE, value=float(value))
        case _:
            pass
    raise NotPlainError
