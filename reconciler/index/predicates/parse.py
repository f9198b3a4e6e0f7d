"""Parse Spark SQL predicates by recursive descent.

A part that the parser does not understand becomes one Unknown, up to the next AND, OR or closing
parenthesis of its own depth. If that end is uncertain, the whole predicate is Unknown. Syntax
errors are Unknown too, because Spark reports them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Final, TypeVar

from reconciler.index.predicates.arithmetic import (
    Expression,
    Opaque,
    make_comparison,
    make_opaque,
    make_strict,
    make_sum,
    negate,
)
from reconciler.index.predicates.functions import KNOWN_FUNCTIONS, apply_function
from reconciler.index.predicates.syntax import (
    INTEGER_BITS,
    NULL,
    And,
    Cast,
    Column,
    In,
    IsNull,
    Like,
    Literal,
    LiteralKind,
    Not,
    Or,
    Predicate,
    Sign,
    Unknown,
)
from reconciler.index.predicates.tokens import (
    Token,
    UnknownSyntaxError,
    parse_bytes,
    parse_number,
    parse_text,
    split_tokens,
)

_Part = TypeVar("_Part")
_SIGNS: Final = {"==": "=", "<>": "!=", "!=": "!="} | {sign.value: sign.value for sign in Sign}
_TIMES: Final = {
    "date": LiteralKind.DATE,
    "timestamp": LiteralKind.TIMESTAMP,
    "timestamp_ltz": LiteralKind.TIMESTAMP,
    "timestamp_ntz": LiteralKind.TIMESTAMP_NTZ,
}
_CONSTANTS: Final = {
    "true": Literal(kind=LiteralKind.BOOLEAN, value=True),
    "false": Literal(kind=LiteralKind.BOOLEAN, value=False),
    "null": NULL,
}
_FLOATING: Final = {"double": LiteralKind.DOUBLE, "float": LiteralKind.FLOAT}
_DOUBLES: Final = {"nan": "nan", "infinity": "inf", "-infinity": "-inf"}
#: words that this parser does not accept as unquoted column names
_RESERVED: Final = frozenset(
    {"and", "or", "not", "between", "in", "like", "ilike", "rlike", "regexp", "is", "null"}
    | {"true", "false", "case", "when", "then", "else", "end", "exists", "interval", "any"}
    | {"some", "all", "escape", "distinct", "from", "div", "cast", "try_cast", "select"}
    | {"current_date", "current_timestamp", "current_user", "localtimestamp"}
)
#: operators of values, from those that bind least to those that bind most
_OPERATORS: Final = (("&", "^", "|"), ("+", "-", "||"), ("*", "/", "%", "div"))
_CALLABLE: Final = KNOWN_FUNCTIONS | {"cast"}
#: the deepest nesting of parentheses and negations
_MAX_DEPTH: Final = 60
#: digits of a number in the name of a type
_MAX_TYPE_DIGITS: Final = 2


def parse(where: str) -> Predicate:
    """Return the parsed predicate; parts that the parser does not understand are Unknown.

    >>> parse("5 < a.b OR hash(c) = 1")
    Or(parts=(Compare(left=Column(parts=('a', 'b')), sign=<Sign.ABOVE: '>'>, \
right=Literal(kind=<LiteralKind.INTEGER: 'integer'>, value=5, is_double_quoted=False)), \
Unknown(text='hash(c) = 1')))
    """
    if "${" in where:  # Spark first replaces this with the value of a setting, inside texts too
        return Unknown(text=where)
    try:
        parser = _Parser(where)
        predicate = parser.parse_or()
        is_whole = parser.next.kind == "end"
    except UnknownSyntaxError:
        is_whole = False
    return predicate if is_whole else Unknown(text=where)


class _Parser:
    def __init__(self, where: str) -> None:
        self._where, self._at, self._depth = where, 0, 0
        self._tokens = list(split_tokens(where))
        self._end = Token(kind="end", text="", begin=len(where), end=len(where))

    @property
    def next(self) -> Token:
        return self._peek(0)

    def _peek(self, ahead: int) -> Token:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else self._end

    def _take(self, *words: str) -> bool:
        is_next = self.next.word in words
        self._at += is_next
        return is_next

    def _expect(self, word: str) -> None:
        if not self._take(word):
            raise UnknownSyntaxError

    @property
    def _is_boundary(self) -> bool:
        return self.next.kind == "end" or self.next.word in ("and", "or", ")")

    def parse_or(self) -> Predicate:
        parts = self._parse_separated("or", self._parse_and)
        return parts[0] if len(parts) == 1 else Or(parts=parts)

    def _parse_and(self) -> Predicate:
        parts = self._parse_separated("and", self._parse_term)
        return parts[0] if len(parts) == 1 else And(parts=parts)

    def _parse_separated(self, word: str, parse_part: Callable[[], _Part]) -> tuple[_Part, ...]:
        parts = [parse_part()]
        while self._take(word):
            parts.append(parse_part())
        return tuple(parts)

    def _parse_term(self) -> Predicate:
        start, depth = self._at, self._depth
        if depth > _MAX_DEPTH:
            raise UnknownSyntaxError
        self._depth += 1
        try:
            is_not = self._take("not", "!")
            term = Not(operand=self._parse_term()) if is_not else self._parse_plain()
        except UnknownSyntaxError:
            term = None
        self._depth = depth
        if term is not None and self._is_boundary:
            return term
        self._at = start
        return self._skip_unknown()

    def _skip_unknown(self) -> Unknown:
        """Skip to the next AND, OR or closing parenthesis, but not to the AND of a BETWEEN."""
        begin, depth, betweens, end = self.next.begin, 0, 0, self.next.begin
        while self.next.kind != "end":
            word = self.next.word
            if depth == 0:
                if word in ("or", ")") or (word == "and" and not betweens):
                    break
                betweens += (word == "between") - (word == "and")
            if word in ("case", "end"):
                raise UnknownSyntaxError
            depth += (word in ("(", "[")) - (word in (")", "]"))
            end = self.next.end
            self._at += 1
        return Unknown(text=self._where[begin:end])

    def _parse_plain(self) -> Predicate:
        if self.next.word == "(":
            start = self._at
            self._at += 1
            inside = self.parse_or()
            self._expect(")")
            if self._is_boundary:
                return inside
            self._at = start  # the parenthesis begins a value
        operand = self._parse_operand()
        if not self._is_boundary:
            return self._parse_comparison(operand)
        if not isinstance(operand, Opaque):
            return operand
        if operand.predicate is None and not operand.is_null:
            raise UnknownSyntaxError
        return operand.predicate or NULL

    def _parse_comparison(self, left: Expression) -> Predicate:
        """Parse the comparison that follows an operand."""
        sign = _SIGNS.get(self.next.text) if self.next.kind == "sign" else None
        if sign is not None:
            self._at += 1
            return make_comparison(left, sign, self._parse_operand())
        if self._take("is"):
            return self._parse_is(left)
        is_not = self._take("not")
        comparison = self._parse_in_or_like(left)
        return Not(operand=comparison) if is_not else comparison

    def _parse_is(self, operand: Expression) -> Predicate:
        if isinstance(operand, Literal | Opaque):
            raise UnknownSyntaxError
        is_not = self._take("not")
        test: Predicate
        if self._take("null", "unknown"):
            test = IsNull(operand=operand)
        elif self._take("distinct"):
            self._expect("from")
            test = Not(operand=make_comparison(operand, "<=>", self._parse_operand()))
        elif self.next.word in ("true", "false"):
            test = make_comparison(operand, "<=>", self._parse_operand())
        else:
            raise UnknownSyntaxError
        return Not(operand=test) if is_not else test

    def _parse_in_or_like(self, left: Expression) -> Predicate:
        if self._take("between"):
            low = self._parse_operand()
            self._expect("and")
            high = self._parse_operand()
            return And(parts=(make_comparison(left, ">=", low), make_comparison(left, "<=", high)))
        if isinstance(left, Literal):
            raise UnknownSyntaxError
        if self._take("in"):
            elements = self._parse_elements()
            values = tuple(value for value in elements if isinstance(value, Literal))
            if len(values) < len(elements):
                raise UnknownSyntaxError
            if isinstance(left, Opaque):
                return make_strict(left, *values)
            return In(operand=left, values=values)
        if self._take("ilike", "rlike", "regexp"):
            return make_strict(left, self._parse_operand())
        self._expect("like")
        pattern, escape = self._parse_operand(), "\\"
        if self._take("escape"):
            escape = self._parse_escape()
        if isinstance(left, Opaque):
            return make_strict(left, pattern)
        if not isinstance(pattern, Literal):
            raise UnknownSyntaxError
        return Like(operand=left, pattern=pattern, escape=escape)

    def _parse_escape(self) -> str:
        escape = self._parse_operand()
        if isinstance(escape, Literal) and isinstance(escape.value, str) and len(escape.value) == 1:
            return escape.value
        raise UnknownSyntaxError

    def _parse_elements(self) -> tuple[Expression, ...]:
        self._expect("(")
        elements = self._parse_separated(",", self._parse_element)
        self._expect(")")
        return elements

    def _parse_element(self) -> Expression:
        """Parse an element of a list; lists may be long, and most elements are single words."""
        return self._parse_primary() if self._peek(1).word in (",", ")") else self._parse_operand()

    def _parse_operand(self) -> Expression:
        """Parse a value."""
        if self._depth > _MAX_DEPTH:
            raise UnknownSyntaxError
        self._depth += 1
        value = self._parse_operators(_OPERATORS)
        self._depth -= 1
        return value

    def _parse_operators(self, levels: tuple[tuple[str, ...], ...]) -> Expression:
        """Parse a value with operators of the given levels."""
        if not levels:
            return self._parse_signed()
        value = self._parse_operators(levels[1:])
        while (sign := self.next.word) in levels[0]:
            self._at += 1
            right = self._parse_operators(levels[1:])
            is_sum = sign in ("+", "-")
            value = make_sum(value, sign, right) if is_sum else make_opaque(value, right)
        return value

    def _parse_signed(self) -> Expression:
        if self.next.word not in ("-", "+", "~"):
            return self._parse_primary()
        if self.next.word == "-" and self._peek(1).kind == "number":
            self._at += 2
            return parse_number(self._peek(-1).text, is_negative=True)
        sign = self.next.word
        self._at += 1
        value = self._parse_primary()
        return negate(value) if sign == "-" else make_opaque(value)

    def _parse_primary(self) -> Expression:
        if self._take("("):
            value = self._parse_operand()
            self._expect(")")
            return value
        if self._peek(1).word == "(" and self.next.word in _CALLABLE:
            return self._parse_call()
        token, following = self.next, self._peek(1)
        if token.kind == "name" and following.kind == "text":
            self._at += 2
            return self._parse_typed_literal(token.word, following)
        self._at += 1
        if token.kind == "text" and following.kind != "text":  # adjacent texts are one literal
            return parse_text(token.text)
        if token.kind == "number":
            return parse_number(token.text)
        if token.kind != "name" or token.word in _RESERVED - _CONSTANTS.keys():
            raise UnknownSyntaxError
        return _CONSTANTS.get(token.word) or Column(parts=token.parts)

    def _parse_typed_literal(self, word: str, text: Token) -> Literal:
        """Parse a literal such as DATE '…'."""
        if self.next.kind == "text":
            raise UnknownSyntaxError
        if word == "x":
            return parse_bytes(text.text)
        if word not in _TIMES:
            raise UnknownSyntaxError
        return Literal(kind=_TIMES[word], value=parse_text(text.text).value)

    def _parse_call(self) -> Expression:
        self._at += 1
        name = self._peek(-1).word
        is_cast = name == "cast"
        return self._parse_cast() if is_cast else apply_function(name, self._parse_elements())

    def _parse_cast(self) -> Expression:
        self._expect("(")
        operand = self._parse_operand()
        self._expect("as")
        kind = self._parse_type()
        self._expect(")")
        if isinstance(operand, Literal):
            return _cast_literal(operand, kind)
        if isinstance(operand, Column | Cast):
            return Cast(operand=operand, to=kind)
        return make_opaque(operand)

    def _parse_type(self) -> str:
        name = self.next.word
        if self.next.kind != "name":
            raise UnknownSyntaxError
        self._at += 1
        if not self._take("("):
            return name
        parts = self._parse_separated(",", self._parse_digits)
        self._expect(")")
        return f"{name}({','.join(parts)})"

    def _parse_digits(self) -> str:
        token = self.next
        self._at += 1
        if token.kind != "number" or len(token.text) > _MAX_TYPE_DIGITS or not token.text.isdigit():
            raise UnknownSyntaxError
        return token.text


def _cast_literal(literal: Literal, kind: str) -> Literal | Opaque:
    """Return a literal cast to another type; a typed null is opaque, as it types a whole list.

    Raises UnknownSyntaxError if the result is uncertain.
    """
    value = literal.value
    if literal.kind is LiteralKind.NULL:
        return Opaque(columns=(), is_null=True)
    match literal.kind:
        case LiteralKind.STRING if kind == "string":
            return literal
        case LiteralKind.STRING if kind in _TIMES:
            return Literal(kind=_TIMES[kind], value=value)
        case LiteralKind.STRING if kind in _FLOATING and str(value).lower() in _DOUBLES:
            return Literal(kind=_FLOATING[kind], value=float(_DOUBLES[str(value).lower()]))
        case LiteralKind.INTEGER if kind in INTEGER_BITS and isinstance(value, int):
            bits = INTEGER_BITS[kind]
            if -(1 << (bits - 1)) <= value < 1 << (bits - 1):
                return replace(literal, bits=bits)
        case LiteralKind.INTEGER | LiteralKind.DECIMAL | LiteralKind.DOUBLE if kind == "double":
            if isinstance(value, (int, float, Decimal)):
                return Literal(kind=LiteralKind.DOUBLE, value=float(value))
        case _:
            pass
    raise UnknownSyntaxError
