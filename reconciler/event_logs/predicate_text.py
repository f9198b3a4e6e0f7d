"""Write predicates as SQL, and their shapes, in which values are question marks; pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Final, assert_never

from reconciler.index.predicates.syntax import (
    And,
    Cast,
    Column,
    ColumnSum,
    Compare,
    In,
    IsNull,
    Like,
    Literal,
    LiteralKind,
    Not,
    Operand,
    Or,
    Predicate,
    Sign,
    Strict,
    Unknown,
)

_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED: Final = frozenset(
    {"and", "or", "not", "between", "in", "like", "ilike", "rlike", "regexp", "is", "null"}
    | {"true", "false", "case", "when", "then", "else", "end", "exists", "interval", "any"}
    | {"some", "all", "escape", "distinct", "from", "div", "cast", "try_cast", "select", "x"}
    | {"current_date", "current_timestamp", "current_user", "localtimestamp", "date"}
    | {"timestamp", "timestamp_ntz", "timestamp_ltz"}
)
_ESCAPES: Final = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_TIME_WORDS: Final = {
    LiteralKind.DATE: "date",
    LiteralKind.TIMESTAMP: "timestamp",
    LiteralKind.TIMESTAMP_NTZ: "timestamp_ntz",
}
_WriteLiteral = Callable[[Literal], str]


def write_predicate(predicate: Predicate) -> str:
    r"""Return a predicate as SQL that parses to an equal one.

    >>> a, name = Column(parts=("a",)), Column(parts=("s", "full name"))
    >>> one = Literal(kind=LiteralKind.INTEGER, value=1)
    >>> text = Literal(kind=LiteralKind.STRING, value="it's")
    >>> write_predicate(Or(parts=(Compare(left=a, sign=Sign.ABOVE, right=one),
    ...                           Not(operand=In(operand=name, values=(text, text))))))
    "a > 1 or s.`full name` not in ('it\\'s', 'it\\'s')"
    """
    return _write(predicate, write_literal, is_shape=False)


def write_shape(predicate: Predicate) -> str:
    """Return a predicate with a question mark for each value, and one for each list.

    >>> a = Column(parts=("a",))
    >>> one = Literal(kind=LiteralKind.INTEGER, value=1)
    >>> write_shape(In(operand=a, values=(one, one)))
    'a in (?)'
    """
    return _write(predicate, lambda _: "?", is_shape=True)


def _write_pattern(pattern: Literal, literal: _WriteLiteral, *, is_shape: bool) -> str:
    """Return the pattern of a LIKE; a shape shows at which ends it is open."""
    if not is_shape:
        return literal(pattern)
    text = str(pattern.value)
    ends = text[1:].endswith("%") and not text.endswith("\\%")
    return f"'{'%' * text.startswith('%')}?{'%' * ends}'"


def write_literal(literal: Literal) -> str:  # noqa: PLR0911 (a case for each kind)
    """Return a literal as SQL of the same type.

    >>> write_literal(Literal(kind=LiteralKind.DOUBLE, value=1500.0))
    '1500.0D'
    """
    value = literal.value
    match literal.kind:
        case LiteralKind.NULL:
            return "null"
        case LiteralKind.BOOLEAN:
            return "true" if value else "false"
        case LiteralKind.INTEGER:
            return str(value)
        case LiteralKind.DECIMAL:
            return _write_decimal(value)
        case LiteralKind.FLOAT | LiteralKind.DOUBLE:
            return _write_double(value, literal.kind)
        case LiteralKind.STRING:
            return _quote(str(value))
        case LiteralKind.BINARY:
            return f"X'{value.hex().upper() if isinstance(value, bytes) else ''}'"
        case LiteralKind.DATE | LiteralKind.TIMESTAMP | LiteralKind.TIMESTAMP_NTZ:
            text = str(value)
            return f"{_TIME_WORDS[literal.kind]} '{text}'"
        case _:
            assert_never(literal.kind)


def list_literals(predicate: Predicate) -> Iterator[tuple[Literal, ...]]:
    """Yield the values of each comparison, in order; those of a list together."""
    match predicate:
        case And(parts=parts) | Or(parts=parts):
            for part in parts:
                yield from list_literals(part)
        case Not(operand=operand):
            yield from list_literals(operand)
        case Compare(right=right):
            yield (right,)
        case In(values=values):
            yield values
        case Like(pattern=pattern):
            yield (pattern,)
        case _:
            return


def _write(  # noqa: C901, PLR0911 (a case for each kind of predicate)
    predicate: Predicate, literal: _WriteLiteral, *, is_shape: bool
) -> str:
    def write(part: Predicate) -> str:
        return _write(part, literal, is_shape=is_shape)

    match predicate:
        case Or(parts=parts):
            return " or ".join(_enclose(part, write) for part in parts)
        case And(parts=parts):
            return " and ".join(_list_conjuncts(parts, write, literal))
        case Not(operand=operand):
            return _write_negation(operand, write, literal, is_shape=is_shape)
        case Compare(left=left, sign=sign, right=right):
            return f"{_write_operand(left)} {sign.value} {literal(right)}"
        case In():
            return _write_list(predicate, "in", literal, is_shape=is_shape)
        case IsNull(operand=operand):
            return f"{_write_operand(operand)} is null"
        case Like(operand=operand, pattern=pattern):
            shown = _write_pattern(pattern, literal, is_shape=is_shape)
            return f"{_write_operand(operand)} like {shown}"
        case Literal():
            return literal(predicate)
        case Column() | Cast() | ColumnSum():
            return _write_operand(predicate)
        case Strict() | Unknown():
            raise ValueError("the predicate has a part that is not known")
        case _:
            assert_never(predicate)


def _write_negation(
    operand: Predicate, write: Callable[[Predicate], str], literal: _WriteLiteral, *, is_shape: bool
) -> str:
    match operand:
        case IsNull(operand=column):
            return f"{_write_operand(column)} is not null"
        case In():
            return _write_list(operand, "not in", literal, is_shape=is_shape)
        case Like(operand=column, pattern=pattern):
            shown = _write_pattern(pattern, literal, is_shape=is_shape)
            return f"{_write_operand(column)} not like {shown}"
        case Compare(left=left, sign=Sign.EQUAL, right=right):
            return f"{_write_operand(left)} <> {literal(right)}"
        case Column():
            return f"not {_write_operand(operand)}"
        case _:
            return f"not ({write(operand)})"


def _write_list(found: In, word: str, literal: _WriteLiteral, *, is_shape: bool) -> str:
    values = "?" if is_shape else ", ".join(map(literal, found.values))
    return f"{_write_operand(found.operand)} {word} ({values})"


def _enclose(part: Predicate, write: Callable[[Predicate], str]) -> str:
    return f"({write(part)})" if isinstance(part, And | Or) else write(part)


def _list_conjuncts(
    parts: Iterable[Predicate], write: Callable[[Predicate], str], literal: _WriteLiteral
) -> Iterator[str]:
    """Yield the parts of an AND; two bounds of a column in sequence become a BETWEEN."""
    waiting = list(parts)
    while waiting:
        part = waiting.pop(0)
        if isinstance(part, Compare) and part.sign is Sign.AT_LEAST and waiting:
            other = waiting[0]
            if isinstance(other, Compare) and (other.left, other.sign) == (part.left, Sign.AT_MOST):
                waiting.pop(0)
                bounds = f"{literal(part.right)} and {literal(other.right)}"
                yield f"{_write_operand(part.left)} between {bounds}"
                continue
        yield _enclose(part, write)


def _write_operand(operand: Operand) -> str:
    match operand:
        case Column(parts=parts):
            return ".".join(map(quote_name, parts))
        case Cast(operand=inner, to=to):
            return f"cast({_write_operand(inner)} as {to})"
        case ColumnSum():
            raise ValueError("the predicate has a sum")
        case _:
            assert_never(operand)


def quote_name(name: str) -> str:
    """Return a part of a column's name, quoted where Spark needs it.

    >>> quote_name("customer"), quote_name("full name"), quote_name("date")
    ('customer', '`full name`', '`date`')
    """
    if _PLAIN_NAME.fullmatch(name) and name.lower() not in _RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"


def _quote(text: str) -> str:
    r"""Return a text as a literal of SQL.

    >>> _quote("it's 5 \\ 2\n")
    "'it\\'s 5 \\\\ 2\\n'"
    """
    return "'" + "".join(map(_escape, text)) + "'"


def _escape(sign: str) -> str:
    if sign in _ESCAPES:
        return _ESCAPES[sign]
    if sign.isprintable():
        return sign
    code = ord(sign)
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"  # noqa: PLR2004


def _write_decimal(value: object) -> str:
    assert isinstance(value, Decimal)
    text = f"{value:f}"
    return text if "." in text else f"{text}BD"


def _write_double(value: object, kind: LiteralKind) -> str:
    assert isinstance(value, float)
    if math.isnan(value) or math.isinf(value):
        name = "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
        return f"cast('{name}' as {kind.value})"
    return f"{value!r}{'F' if kind is LiteralKind.FLOAT else 'D'}"
