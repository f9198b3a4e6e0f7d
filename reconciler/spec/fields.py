"""The vocabulary a spec's grammar is written in: kinds of values, fields and blocks of fields.

One table of fields is read three ways: to check what people wrote (reading), to publish a JSON
Schema (schema), and to recognise a field by one of its other names (names).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Check = Callable[[str], str | None]
"""What is wrong with a text, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Text that is not empty. ``pattern`` and ``says`` go together: a rule and its words."""

    pattern: str | None = None
    says: str = ""
    check: Check | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words. ``refused`` are words that mean something and are not built yet."""

    words: tuple[str, ...]
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A whole number in a range; ``why`` explains the lower end."""

    least: int = 0
    most: int = 2**31 - 1
    why: str = ""
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """Any finite number in a range."""

    least: float
    most: float | None = None


@dataclass(frozen=True, slots=True)
class WholeOf:
    """One of a few whole numbers."""

    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Bytes: an integer, or text with a unit."""

    least: int = 1


@dataclass(frozen=True, slots=True)
class Duration:
    """Seconds: text with a unit."""


@dataclass(frozen=True, slots=True)
class Percent:
    """A share of 1: text with a percent sign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOf:
    """A list. ``unique`` is "items", or the field of its blocks that no two may share."""

    item: Kind
    least: int = 0
    unique: str | None = None


@dataclass(frozen=True, slots=True)
class TextMap:
    """Text by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOf:
    """Values by name; ``name`` is what a name must be."""

    name: Text
    item: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Settings of another program: text by name, or ``{fromEnv: VARIABLE}`` where the text is.

    A name that sounds like a credential's takes only the latter. Names start with ``prefix``.
    """

    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Anything:
    """A mapping that is not looked into."""


@dataclass(frozen=True, slots=True)
class Field:
    """A named place in a block; ``says`` is a sentence for the reader of the schema.

    ``default`` is what an absent field means, for that reader too; the model applies it.
    """

    name: str
    kind: Kind
    says: str
    required: bool = False
    default: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A mapping with known fields. ``exclusive`` fields replace each other when blocks merge.

    ``instead`` is what to do about a field that belongs to another kind of document.
    """

    fields: tuple[Field, ...]
    exclusive: frozenset[str] = frozenset()
    instead: str = ""

    def field(self, name: str) -> Field | None:
        return next((field for field in self.fields if field.name == name), None)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordOr:
    """One word, or a block with at least one field."""

    word: str
    block: Block


@dataclass(frozen=True, slots=True, kw_only=True)
class TextOr:
    """A text, or a block with at least one field."""

    text: Text
    block: Block


Kind = (
    Text
    | Choice
    | Whole
    | Number
    | WholeOf
    | Flag
    | Size
    | Duration
    | Percent
    | ListOf
    | TextMap
    | MapOf
    | Options
    | Anything
    | Block
    | WordOr
    | TextOr
)
