"""Spark SQL predicates as values: what is understood of them, and the text of what isn't.

Sources: Spark's SqlBaseParser.g4 and AstBuilder, for Spark's default settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import assert_never


class LiteralKind(Enum):
    """The type of a literal. Days and times are kept as text: what they mean hangs on the zone."""

    NULL = "null"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "float"
    DOUBLE = "double"
    STRING = "string"
    BINARY = "binary"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"


class Sign(Enum):
    """How a column is compared with a literal; to differ is the negation of to equal."""

    BELOW = "<"
    AT_MOST = "<="
    EQUAL = "="
    SAME = "<=>"
    AT_LEAST = ">="
    ABOVE = ">"


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """A value; ``is_double_quoted`` text is the name of a column where a session says so.

    ``bits``: of whole numbers, how many Spark keeps it in, 0 where that is not sure.
    """

    kind: LiteralKind
    value: bool | int | float | Decimal | str | bytes | None = None
    is_double_quoted: bool = False
    bits: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column by its parts, unquoted and as spelled; a field of a struct has more than one."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """A column as another type, by its name in lower case, ``decimal(10,2)``."""

    of: Column | Cast
    to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSum:
    """``times`` (1 or -1) times a column plus a whole number that Spark keeps in so many bits.

    ``bits``: 0 where nothing is added.
    """

    of: Column | Cast
    times: int
    plus: int
    bits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Strict:
    """A comparison of what is null where one of some columns is; more is not understood of it."""

    columns: tuple[Column, ...]


Operand = Column | Cast | ColumnSum


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare:
    """The column is on the left, wherever it was written."""

    left: Operand
    sign: Sign
    right: Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class In:
    of: Operand
    values: tuple[Literal, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IsNull:
    of: Operand


@dataclass(frozen=True, slots=True, kw_only=True)
class Like:
    of: Operand
    pattern: Literal
    escape: str = "\\"


@dataclass(frozen=True, slots=True, kw_only=True)
class And:
    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Or:
    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Not:
    of: Predicate


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Something that is not understood, or no SQL at all."""

    text: str


#: a bare column or literal stands for its truth value
Predicate = (
    Compare
    | In
    | IsNull
    | Like
    | And
    | Or
    | Not
    | Literal
    | Column
    | Cast
    | ColumnSum
    | Strict
    | Unknown
)


def find_columns(predicate: Predicate) -> Iterator[Column]:
    """The columns of what is understood of a predicate, as they are written."""
    match predicate:
        case And(parts=parts) | Or(parts=parts):
            for part in parts:
                yield from find_columns(part)
        case Compare(left=of) | In(of=of) | IsNull(of=of) | Like(of=of):
            yield from find_columns(of)
        case Not(of=of):
            yield from find_columns(of)
        case Cast(of=of) | ColumnSum(of=of):
            yield from find_columns(of)
        case Column():
            yield predicate
        case Strict(columns=columns):
            yield from columns
        case Literal() | Unknown():
            return
        case _:
            assert_never(predicate)
