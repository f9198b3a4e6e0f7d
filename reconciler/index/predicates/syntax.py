"""The syntax tree of Spark SQL predicates; unknown parts are kept as text.

Sources: Spark's SqlBaseParser.g4 and AstBuilder, for Spark's default settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from decimal import Decimal
from enum import Enum
from typing import Final

from reconciler.lazy_dataclass import dataclass

#: bits of Spark's types of whole numbers
INTEGER_BITS: Final = {"tinyint": 8, "byte": 8, "smallint": 16, "short": 16, "int": 32,
                       "integer": 32, "bigint": 64, "long": 64}  # fmt: skip


class LiteralKind(Enum):
    """The type of a literal. Dates and times stay text, because they depend on the time zone."""

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
    """A comparison operator; "not equal" is the negation of EQUAL."""

    BELOW = "<"
    AT_MOST = "<="
    EQUAL = "="
    SAME = "<=>"
    AT_LEAST = ">="
    ABOVE = ">"


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """A literal value.

    ``is_double_quoted``: a session setting may make this text a column name. ``bits``: the bits in
    which Spark keeps a whole number, 0 if uncertain.
    """

    kind: LiteralKind
    value: bool | int | float | Decimal | str | bytes | None = None
    is_double_quoted: bool = False
    bits: int = field(default=0, compare=False, repr=False)


NULL: Final = Literal(kind=LiteralKind.NULL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column name in parts, unquoted and as spelled; a struct field has several parts."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """A column cast to a type, named in lower case: ``decimal(10,2)``."""

    operand: Column | Cast
    to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSum:
    """``times`` (1 or -1) times a column, plus a whole number.

    ``bits``: the bits in which Spark keeps the whole number, 0 if nothing is added.
    """

    operand: Column | Cast
    times: int
    plus: int
    bits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Strict:
    """A comparison that is null if one of its columns is; nothing else is known of it."""

    columns: tuple[Column, ...]


Operand = Column | Cast | ColumnSum


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare:
    """A comparison with the column on the left, wherever it was written."""

    left: Operand
    sign: Sign
    right: Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class In:
    operand: Operand
    values: tuple[Literal, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IsNull:
    operand: Operand


@dataclass(frozen=True, slots=True, kw_only=True)
class Like:
    operand: Operand
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
    operand: Predicate


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A part that the parser does not understand, or that is not valid SQL."""

    text: str


#: a predicate about columns, without inner predicates; a bare column is one by its boolean value
Leaf = Compare | In | IsNull | Like | Column | Cast | ColumnSum | Strict | Unknown
Predicate = Leaf | And | Or | Not | Literal


def find_columns(predicate: Predicate) -> Iterator[Column]:
    """Yield the columns of the known parts of a predicate, as they are spelled."""
    match predicate:
        case Column():
            yield predicate
        case Strict(columns=columns):
            yield from columns
        case And(parts=parts) | Or(parts=parts):
            for part in parts:
                yield from find_columns(part)
        case Compare(left=operand):
            yield from find_columns(operand)
        case Literal() | Unknown():
            return
        case _:
            yield from find_columns(predicate.operand)
