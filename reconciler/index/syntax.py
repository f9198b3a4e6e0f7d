"""Spark SQL predicates as values: what is understood of them, and the text of what isn't.

Sources: Spark's SqlBaseParser.g4 and AstBuilder, for Spark's default settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import Enum


class Kind(Enum):
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
    """A value; ``is_double_quoted`` text is the name of a column where a session says so."""

    kind: Kind
    value: bool | int | float | Decimal | str | bytes | None = None
    is_double_quoted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column by its parts, unquoted and as spelled; a field of a struct has more than one."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """A column as another type, by its name in lower case, ``decimal(10,2)``."""

    of: Column | Cast
    to: str


Operand = Column | Cast


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
Predicate = Compare | In | IsNull | Like | And | Or | Not | Literal | Column | Cast | Unknown
