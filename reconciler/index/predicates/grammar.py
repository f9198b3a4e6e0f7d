"""Check the grammar of a Spark SQL condition without Spark, and find where it is wrong.

Whatever Spark's parser takes as a condition passes. Spark lets nearly every keyword be a name, so
``and OR or`` is a condition; therefore a rule yields all ends that a part may have. Of subqueries,
types and arguments with keywords of their own only the parentheses are checked.
Source: the rule booleanExpression of SqlBaseParser.g4 of Spark 3.5, without left recursion.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import cache
from typing import Final

from reconciler.errors import quote_value
from reconciler.index.predicates.sql_tokens import (
    SqlToken,
    UnknownTokensError,
    WrongTokenError,
    list_token_words,
    match_parentheses,
    split_sql,
)
from reconciler.lazy_dataclass import dataclass

#: longer conditions are not checked
_MAX_TOKENS: Final = 1000
#: deeper conditions are not checked, because each level needs frames of Python's stack
_MAX_DEPTH: Final = 12
_NESTING_WORDS: Final = frozenset({"CASE", "'->'"})
_QUERY_WORDS: Final = frozenset(
    {"SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE", "'('"}
)
_STATEMENT_WORDS: Final = frozenset(
    {"select", "where", "filter", "having", "from", "order", "limit", "with"}
)
#: A quoted sign or a word in capitals is a token, another word is a rule. GROUP is whatever is in
#: parentheses, QUERY a group that begins like a query.
_RULES: Final = {
    "condition": "boolean END_OF_TEXT",
    "expression": "named END_OF_TEXT",
    "boolean": "NOT* simple ((AND | OR) NOT* simple)*",
    "simple": "value predicate?",
    "predicate": "NOT? positive | IS NOT? truth",
    "positive": "BETWEEN value AND value | IN ('(' list ')' | QUERY) | (RLIKE | REGEXP) value"
    " | like value (ESCAPE TEXT)? | like (ANY | SOME | ALL) '(' list? ')'",
    "like": "LIKE | ILIKE",
    "truth": "NULL | TRUE | FALSE | UNKNOWN | DISTINCT FROM value",
    "value": "sign* primary (operator sign* primary)*",
    "sign": "'-' | '+' | '~'",
    "operator": "comparison | '*' | '/' | '%' | DIV | '+' | '-' | '||' | '&' | '^' | '|' | '<<'"
    " | '>>' | '>>>'",
    "comparison": "'=' | '==' | '<>' | '!=' | '<' | '<=' | '!>' | '>' | '>=' | '!<' | '<=>'",
    "primary": "atom ('.' NAME | '.' '*' | '[' value ']' | '::' type | COLLATE NAME)*",
    "atom": "literal | case | cast | call | lambda | parentheses | NAME | '*'",
    "literal": "NUMBER | TEXT+ | time_type TEXT | interval | '?' | ':' NAME",
    "time_type": "DATE | TIMESTAMP | TIMESTAMP_LTZ | TIMESTAMP_NTZ | TIME | INTERVAL | X",
    "interval": "INTERVAL (('+' | '-')? (NUMBER | TEXT) NAME)+ (TO NAME)?",
    "case": "CASE boolean? (WHEN boolean THEN boolean)+ (ELSE boolean)? END",
    "cast": "(CAST | TRY_CAST) '(' boolean AS type ')'",
    "type": "(NAME | NUMBER | TEXT | '<' | '>' | '<>' | '>>' | '>>>' | ',' | ':' | GROUP)+",
    "call": "special_name GROUP over* | NAME ('.' NAME)* '(' arguments? ')' over*"
    " | IDENTIFIER GROUP '(' arguments? ')' over* | STRUCT '(' (named (',' named)*)? ')'",
    "special_name": "EXTRACT | TRIM | SUBSTR | SUBSTRING | OVERLAY | POSITION | FIRST | LAST"
    " | ANY_VALUE | EXISTS",
    "arguments": "(DISTINCT | ALL)? argument (',' argument)*",
    "argument": "NAME '=>' boolean | boolean",
    "over": "WITHIN NAME GROUP | FILTER GROUP | (IGNORE | RESPECT) NULLS | OVER (NAME | GROUP)",
    "lambda": "(NAME | '(' NAME (',' NAME)* ')') '->' boolean",
    "parentheses": "'(' boolean ')' | '(' named (',' named)+ ')' | QUERY",
    "named": "boolean (AS? (NAME | GROUP))?",
    "list": "boolean (',' boolean)*",
}
_NOWHERE: Final[frozenset[int]] = frozenset()
_RULE_TOKENS: Final = re.compile(r"'[^']+'|\w+|[()|*+?]")


def find_condition_problem(text: str, *, may_have_alias: bool = False) -> str | None:
    """Return what is wrong with the grammar of a condition, with the character; None for nothing.

    A condition that passes may still be wrong in ways that only Spark knows. ``may_have_alias``:
    take a name after it, as Spark's filter of a DataFrame does and WHERE does not.

    >>> find_condition_problem("zip = = 3")
    "'zip = = 3' is not an SQL condition: unexpected = at character 7"
    >>> find_condition_problem("zip = 3 AND city IN ('Rome', 'Oslo')")
    """
    if "${" in text:  # Spark first replaces this with the value of a setting
        return None
    try:
        tokens = split_sql(text)
        rule = "expression" if may_have_alias else "condition"
        problem = _find_unexpected(tokens, match_parentheses(tokens), text, rule)
    except UnknownTokensError:
        return None
    except WrongTokenError as error:
        problem = (error.message, error.at)
    if problem is None:
        return None
    message = f"{quote_value(text)} is not an SQL condition: {problem[0]}"
    begins = text.split(maxsplit=1)[0].lower() if text.strip() else ""
    hint = "; write only what follows WHERE" if begins in _STATEMENT_WORDS else ""
    return f"{message} at character {problem[1] + 1}{hint}"


def _find_unexpected(
    tokens: Sequence[SqlToken], pairs: dict[int, int], text: str, rule: str
) -> tuple[str, int] | None:
    """Return the first token that no rule accepts, described, and its offset."""
    words = [frozenset(list_token_words(token)) for token in tokens]
    if len(words) > _MAX_TOKENS or _measure_depth(words) > _MAX_DEPTH:
        return None
    matcher = _Matcher([*words, frozenset({"END_OF_TEXT"})], pairs)
    if matcher.find_ends(_Node("rule", rule), 0):
        return None
    if matcher.farthest == len(tokens):
        return ("it ends too early" if tokens else "it is empty"), len(text.rstrip())
    token = tokens[matcher.farthest]
    return f"unexpected {token.text}", token.begin


def _measure_depth(words: Sequence[frozenset[str]]) -> int:
    """Return how deep parentheses, and words that nest without them, lie in each other at most."""
    depth = deepest = nesting = 0
    for word in words:
        depth += bool(word & {"'('", "'['"}) - bool(word & {"')'", "']'"})
        nesting += bool(word & _NESTING_WORDS)
        deepest = max(deepest, depth)
    return deepest + nesting


@dataclass(frozen=True, slots=True, eq=False)
class _Node:
    """A part of a rule. ``kind``: rule, token, all, one, or a sign of repetition."""

    kind: str
    word: str = ""
    parts: tuple[_Node, ...] = ()


@dataclass(slots=True)
class _Matcher:
    """Matches rules with tokens.

    ``words``: what each token may stand for. ``farthest``: the last token that some rule needed
    to be another one.
    """

    words: Sequence[frozenset[str]]
    pairs: dict[int, int]
    farthest: int = 0
    _known: dict[tuple[str, int], frozenset[int]] = field(default_factory=dict)

    def find_ends(self, node: _Node, at: int) -> frozenset[int]:
        """Return the indices at which a part of the grammar that begins at ``at`` may end."""
        match node.kind:
            case "rule":
                if (node.word, at) not in self._known:
                    self._known[node.word, at] = self.find_ends(_load_rule(node.word), at)
                return self._known[node.word, at]
            case "token":
                return self._take(node.word, at)
            case "all":
                ends = frozenset({at})
                for part in node.parts:
                    ends = self._extend(part, ends)
                return ends
            case "one":
                parts = [part for part in node.parts if self._may_begin(part, at)]
                if len(parts) == 1:
                    return self.find_ends(parts[0], at)
                return _NOWHERE.union(*[self.find_ends(part, at) for part in parts])
            case sign:
                return self._repeat(node.parts[0], at, sign)

    def _may_begin(self, node: _Node, at: int) -> bool:
        """False if no token here can begin a part; this alone makes long conditions fast."""
        firsts = _find_firsts(node)
        if firsts is None or not firsts.isdisjoint(self.words[at]):
            return True
        self.farthest = max(self.farthest, at)
        return False

    def _extend(self, part: _Node, starts: frozenset[int]) -> frozenset[int]:
        if len(starts) == 1:  # as nearly always
            (start,) = starts
            return self.find_ends(part, start)
        return _NOWHERE.union(*[self.find_ends(part, start) for start in starts])

    def _repeat(self, part: _Node, at: int, sign: str) -> frozenset[int]:
        first = self.find_ends(part, at) if self._may_begin(part, at) else _NOWHERE
        ends, new = first, first if sign != "?" else _NOWHERE
        while new:
            new = self._extend(part, new) - ends
            ends |= new
        return ends if sign == "+" else ends | {at}

    def _take(self, word: str, at: int) -> frozenset[int]:
        words = self.words[at]
        if word in words:
            return frozenset({at + 1})
        if word == "GROUP" and "'('" in words:
            return frozenset({self.pairs[at] + 1})
        if word == "QUERY" and "'('" in words and self.words[at + 1] & _QUERY_WORDS:
            return frozenset({self.pairs[at] + 1})
        self.farthest = max(self.farthest, at)
        return _NOWHERE


@cache
def _find_firsts(node: _Node) -> frozenset[str] | None:
    """Return the words that can begin a part of the grammar; None if it may be empty."""
    match node.kind:
        case "token":
            return frozenset({"'('"} if node.word in ("GROUP", "QUERY") else {node.word})
        case "?" | "*":
            return None
        case "all":
            return _find_sequence_firsts(node.parts)
        case "rule":
            parts: tuple[_Node, ...] = (_load_rule(node.word),)
        case _:
            parts = node.parts
    firsts = [_find_firsts(part) for part in parts]
    known = [words for words in firsts if words is not None]
    return frozenset().union(*known) if len(known) == len(firsts) else None


def _find_sequence_firsts(parts: Iterable[_Node]) -> frozenset[str] | None:
    found: frozenset[str] = frozenset()
    for part in parts:
        is_optional = part.kind in ("?", "*")
        words = _find_firsts(part.parts[0] if is_optional else part)
        if words is None:
            return None
        found |= words
        if not is_optional:
            return found
    return None


@cache
def _load_rule(name: str) -> _Node:
    return _read_choice(_RULE_TOKENS.findall(_RULES[name]))


def _read_choice(words: list[str]) -> _Node:
    """Read alternatives up to a closing parenthesis, and take their words from the list."""
    choices: list[_Node] = []
    parts: list[_Node] = []
    while words and words[0] != ")":
        word = words.pop(0)
        if word == "|":
            choices.append(_Node("all", parts=tuple(parts)))
            parts = []
            continue
        if word == "(":
            part = _read_choice(words)
            words.pop(0)
        else:
            part = _Node("rule" if word in _RULES else "token", word)
        if words and words[0] in ("?", "*", "+"):
            part = _Node(words.pop(0), parts=(part,))
        parts.append(part)
    return _Node("one", parts=(*choices, _Node("all", parts=tuple(parts))))
