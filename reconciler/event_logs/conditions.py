"""Parse the conditions in Spark's physical plans into predicates; pure.

Plans write values without quotes, so a text may be read in several ways. All ways are tried: a
condition that has none, or two with different meanings, is unknown, and so is one that was
shortened. Expressions that a predicate cannot have are Unknown parts of it.
Source: toString of Spark's predicates (And, Or, Not, EqualTo, In, InSet, Like, StartsWith, …).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Final

from reconciler.event_logs.literals import (
    UnknownValueError,
    is_text,
    parse_list_literal,
    parse_literal,
)
from reconciler.event_logs.read_schema import ColumnType, find_type
from reconciler.index.predicates.syntax import (
    And,
    Cast,
    Column,
    Compare,
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
from reconciler.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

_ATTRIBUTE: Final = re.compile(r"([\w$@:-]+)#[0-9]+(L?)((?:\.[^\W\d]\w*)*)(?![\w.])")
_COLUMN_ID: Final = re.compile(r"#[0-9]")
_CAST: Final = re.compile(r" as ([a-z_]+(?:\([0-9]+,[0-9]+\))?)\)")
_SIGN: Final = re.compile(r" (<=>|<=|>=|=|<|>) ")
_NULL_TESTS: Final = ("isnotnull(", "isnull(")
#: functions of texts, and the pattern that a value becomes
_TEXT_TESTS: Final = {"StartsWith(": "{}%", "EndsWith(": "%{}", "Contains(": "%{}%"}
_WORDS: Final = (" AND ", " OR ")
#: what Spark writes in place of what it leaves out
_SHORTENED: Final = "..."
#: longer conditions are unknown
_MAX_LENGTH: Final = 100_000
_MAX_DEPTH: Final = 150
_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
#: comparisons that a value is tried to stand before
_MAX_SIGNS: Final = 5
#: ends that a value is tried with
_MAX_ENDS: Final = 40
#: predicates of one part that are followed up; two make a condition unknown
_MAX_WAYS: Final = 2


class UnknownConditionError(Exception):
    """It is not certain what the text means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionContext:
    """What the texts of a scan's conditions leave out: types of columns, zone of timestamps."""

    types: Mapping[str, ColumnType]
    zone: ZoneInfo | None = None


def parse_condition(text: str, context: ConditionContext) -> Predicate:
    """Return the predicate of the condition of a Filter. Raises UnknownConditionError.

    >>> context = ConditionContext(types={"name": "string", "id": "bigint"})
    >>> parse_condition("((name#3 = it's) AND (id#4L > 7))", context).parts[0].right.value
    "it's"
    """
    (predicate,) = _parse(text, context, is_list=False)
    return predicate


def parse_condition_list(text: str, context: ConditionContext) -> tuple[Predicate, ...]:
    """Return the predicates of a list in brackets, which all hold. Raises UnknownConditionError.

    >>> parse_condition_list("[isnotnull(a#1)]", ConditionContext(types={}))
    (Not(operand=IsNull(operand=Column(parts=('a',)))),)
    """
    if text == "[]":
        return ()
    if not (text.startswith("[") and text.endswith("]")):
        raise UnknownConditionError
    return _parse(text[1:-1], context, is_list=True)


def _parse(text: str, context: ConditionContext, *, is_list: bool) -> tuple[Predicate, ...]:
    if _SHORTENED in text or "(redacted)" in text or len(text) > _MAX_LENGTH:
        raise UnknownConditionError
    try:
        ways = _Parser(text, context).find_lists(is_list=is_list)
    except RecursionError:
        raise UnknownConditionError from None
    if len(ways) != 1:
        raise UnknownConditionError
    return ways[0]


_Ways = dict[int, list[Predicate]]


@dataclass(slots=True)
class _Parser:
    """Finds every way to read a condition; what was found from a position is kept."""

    text: str
    context: ConditionContext
    _known: dict[int, _Ways] = field(default_factory=dict)
    _lists: dict[int, list[tuple[Predicate, ...]]] = field(default_factory=dict)
    _depth: int = 0

    def find_lists(self, *, is_list: bool) -> list[tuple[Predicate, ...]]:
        """Return the ways to read the whole text, at most two."""
        if is_list:
            return self._find_rest(0)
        return [(way,) for way in self._find(0).get(len(self.text), ())]

    def _find_rest(self, at: int) -> list[tuple[Predicate, ...]]:
        if at in self._lists:
            return self._lists[at]
        self._enter()
        found: list[tuple[Predicate, ...]] = []
        for end, ways in self._find(at).items():
            if end == len(self.text):
                found += [(way,) for way in ways]
            elif self.text.startswith(", ", end):
                rests = self._find_rest(end + 2)
                found += [(way, *rest) for way in ways for rest in rests]
        self._depth -= 1
        self._lists[at] = found[:_MAX_WAYS]
        return self._lists[at]

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise UnknownConditionError

    def _find(self, at: int) -> _Ways:
        """Return the predicates that may begin at a position, by their ends."""
        if at in self._known:
            return self._known[at]
        self._enter()
        found: _Ways = {}
        for end, predicate in self._list_predicates(at):
            ways = found.setdefault(end, [])
            if predicate not in ways and len(ways) < _MAX_WAYS:
                ways.append(predicate)
        self._depth -= 1
        if not found:
            end = self._find_unknown_end(at)
            unknown = self.text[at:end]
            if _COLUMN_ID.search(unknown) and unknown.count("(") == unknown.count(")"):
                found = {end: [Unknown(text=unknown)]}
        self._known[at] = found
        return found

    def _list_predicates(self, at: int) -> Iterator[tuple[int, Predicate]]:
        text = self.text
        if text.startswith("NOT ", at):
            for end, ways in self._find(at + len("NOT ")).items():
                yield from ((end, Not(operand=way)) for way in ways)
        elif text.startswith("(", at):
            yield from self._list_comparisons(at + 1)
            yield from self._list_turned_comparisons(at + 1)
            yield from self._list_pairs(at + 1)
        else:
            yield from self._list_tests(at)

    def _list_pairs(self, at: int) -> Iterator[tuple[int, Predicate]]:
        """Yield what follows a parenthesis if it is two predicates."""
        for middle, lefts in self._find(at).items():
            word = next((word for word in _WORDS if self.text.startswith(word, middle)), None)
            if word is None:
                continue
            kind = And if word == _WORDS[0] else Or
            for end, rights in self._find(middle + len(word)).items():
                if self.text.startswith(")", end):
                    for left in lefts:
                        yield from ((end + 1, kind(parts=(left, right))) for right in rights)

    def _list_comparisons(self, at: int) -> Iterator[tuple[int, Predicate]]:
        """Yield what follows a parenthesis if it compares an operand with a value."""
        operand = self._find_operand(at)
        if operand is None:
            return
        end, left, kind = operand
        sign = _SIGN.match(self.text, end)
        if sign is None:
            return
        begin = sign.end()
        for end in self._list_ends(begin, (")",)):
            value = self._parse_value(self.text[begin:end], kind)
            if value is not None:
                yield end + 1, Compare(left=left, sign=Sign(sign[1]), right=value)
            if not is_text(kind):
                return

    def _list_turned_comparisons(self, at: int) -> Iterator[tuple[int, Predicate]]:
        """Yield what follows a parenthesis if it compares a value with an operand."""
        for nth, sign in enumerate(_SIGN.finditer(self.text, at)):
            if nth >= _MAX_SIGNS:
                return
            operand = self._find_operand(sign.end())
            if operand is not None and self.text.startswith(")", operand[0]):
                value = self._parse_value(self.text[at : sign.start()], operand[2])
                if value is not None:
                    turned = _TURNED.get(sign[1], sign[1])
                    yield operand[0] + 1, Compare(left=operand[1], sign=Sign(turned), right=value)

    def _parse_value(self, text: str, kind: str | None) -> Literal | None:
        try:
            return parse_literal(text, kind, self.context.zone)
        except UnknownValueError:
            return None

    def _list_tests(self, at: int) -> Iterator[tuple[int, Predicate]]:
        """Yield tests of one operand that no parenthesis encloses."""
        text = self.text
        for name in _NULL_TESTS:
            if text.startswith(name, at):
                operand = self._find_operand(at + len(name))
                if operand is not None and text.startswith(")", operand[0]):
                    test = IsNull(operand=operand[1])
                    yield operand[0] + 1, Not(operand=test) if name == _NULL_TESTS[0] else test
                return
        for name, pattern in _TEXT_TESTS.items():
            if text.startswith(name, at):
                yield from self._list_text_tests(at + len(name), pattern)
                return
        operand = self._find_operand(at)
        if operand is not None:
            yield from self._list_operand_tests(*operand)

    def _list_text_tests(self, at: int, pattern: str) -> Iterator[tuple[int, Predicate]]:
        operand = self._find_operand(at)
        if operand is None or operand[2] != "string" or not self.text.startswith(", ", operand[0]):
            return
        begin = operand[0] + 2
        for end in self._list_ends(begin, (")",)):
            value = self._parse_value(self.text[begin:end], "string")
            if value is not None:
                escaped = re.sub(r"([\\%_])", r"\\\1", str(value.value))
                like = Literal(kind=LiteralKind.STRING, value=pattern.format(escaped))
                yield end + 1, Like(operand=operand[1], pattern=like)

    def _list_operand_tests(
        self, end: int, operand: Column | Cast, kind: str | None
    ) -> Iterator[tuple[int, Predicate]]:
        text = self.text
        if text.startswith(" IN (", end):
            begin = end + len(" IN (")
            for stop in self._list_ends(begin, (")",)):
                yield from self._make_list(operand, kind, text[begin:stop].split(","), stop + 1)
        elif text.startswith(" INSET ", end):
            begin = end + len(" INSET ")
            for stop in self._list_ends(begin, (*_WORDS, ")", ", "), to_end=True):
                yield from self._make_list(operand, kind, text[begin:stop].split(", "), stop)
        elif text.startswith(" LIKE ", end) and kind == "string":
            begin = end + len(" LIKE ")
            for stop in self._list_ends(begin, (*_WORDS, ")", ", "), to_end=True):
                pattern = text[begin:stop]
                value = None if " ESCAPE '" in pattern else self._parse_value(pattern, "string")
                if value is not None:
                    yield stop, Like(operand=operand, pattern=value)
        elif kind == "boolean" and isinstance(operand, Column):
            yield end, operand

    def _make_list(
        self, operand: Column | Cast, kind: str | None, texts: list[str], end: int
    ) -> Iterator[tuple[int, Predicate]]:
        """Yield the list of values, unless a text in it may be a part of one."""
        if is_text(kind) and any(not text or text != text.strip() for text in texts):
            return
        try:
            values = tuple(parse_list_literal(text, kind, self.context.zone) for text in texts)
        except UnknownValueError:
            return
        if len(values) > 1:
            yield end, In(operand=operand, values=values)

    def _find_operand(self, at: int) -> tuple[int, Column | Cast, str | None] | None:
        """Return the end of a column or a cast column, itself, and its type."""
        if self.text.startswith("cast(", at):
            inner = self._find_operand(at + len("cast("))
            match = inner and _CAST.match(self.text, inner[0])
            if not inner or not match:
                return None
            return match.end(), Cast(operand=inner[1], to=match[1]), match[1]
        match = _ATTRIBUTE.match(self.text, at)
        if match is None:
            return None
        parts = (match[1], *match[3].split(".")[1:])
        kind = find_type(self.context.types, parts, is_long=bool(match[2]))
        return match.end(), Column(parts=parts), kind

    def _list_ends(
        self, begin: int, signs: tuple[str, ...], *, to_end: bool = False
    ) -> Iterator[int]:
        """Yield the positions where a value that begins at one may end, ascending."""
        pattern = "|".join(re.escape(sign) for sign in signs)
        matches = re.finditer(f"(?={pattern})", self.text[begin:])
        for nth, match in enumerate(matches):
            if nth >= _MAX_ENDS:
                break
            yield begin + match.start()
        if to_end:
            yield len(self.text)

    def _find_unknown_end(self, at: int) -> int:
        """Return the end of an expression by its parentheses and the words around it."""
        depth, end = 0, at
        while end < len(self.text):
            sign = self.text[end]
            if depth == 0 and end > at and self._is_boundary(end):
                return end
            if depth == 0 and sign in ")]":
                return end
            depth += (sign in "([") - (sign in ")]")
            end += 1
        return end

    def _is_boundary(self, at: int) -> bool:
        return self.text.startswith((*_WORDS, ", ", ")"), at)
