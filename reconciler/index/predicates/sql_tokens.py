"""Split a Spark SQL text into the tokens of Spark's own lexer, and pair its parentheses.

Unlike ``tokens``, which stops at what it cannot evaluate, this knows every token of Spark.
Source: SqlBaseLexer.g4 of Spark 3.5; the longest token wins. What only Spark 4 knows is a token
too: more signs, and more spaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.lazy_dataclass import dataclass

#: Spark reads \u0131 and \u017f as I and S
_TOKENS: Final = re.compile(
    r"""(?P<text>[rR](?:'[^']*'|"[^"]*")|'(?:[^'\\]|\\.)*')
    | (?P<double>"(?:[^"\\]|\\.)*")
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<number>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?(?:[fFdD]|[bB][dD])?(?![A-Za-z0-9_\u0131\u017f])
        | \d+[eE][+-]\d+(?:[fFdD]|[bB][dD])?)
    | (?P<word>[A-Za-z0-9_\u0131\u017f]+)
    | (?P<sign><=>|>>>|<=|>=|<>|!=|!<|!>|==|=>|->|\|\||::|<<|>>|[-+*/%<>=(),!|&^~:\[\]?.;])""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_WHOLE_NUMBER: Final = re.compile(
    r"\d+(?:[lLsSyY\u017f]|[fFdD]|[bB][dD])?|\d+[eE]\d+(?:[fFdD]|[bB][dD])?", re.ASCII
)
_SPACES: Final = r"[ \r\n\t\f\v\u00a0\u1680\u2000-\u200a\u2028\u202f\u205f\u3000]+"
_SPACE: Final = re.compile(_SPACES + r"|--(?:\\\n|[^\r\n])*\r?\n?")
_PAIRS: Final = {"(": ")", "[": "]"}
_QUOTES: Final = {"'": "quote", '"': "quote", "`": "backtick"}


class WrongTokenError(Exception):
    """A text that has no tokens of Spark. ``at``: offset of what is wrong."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message, at)
        self.message, self.at = message, at


class UnknownTokensError(Exception):
    """It is uncertain which tokens Spark sees in a text."""


@dataclass(frozen=True, slots=True)
class SqlToken:
    """A token. ``kind``: word, quoted (a name), text, double, number or sign."""

    kind: str
    text: str
    begin: int


def split_sql(sql: str) -> list[SqlToken]:
    """Return the tokens of a text without comments.

    Raises WrongTokenError where Spark knows no token, UnknownTokensError for comments in comments.

    >>> [token.text for token in split_sql("a.b>=1.5e3 -- half")]
    ['a', '.', 'b', '>=', '1.5e3']
    """
    tokens, at = [], 0
    while (at := _skip_space(sql, at)) < len(sql):
        match = _TOKENS.match(sql, at)
        if match is None or match.lastgroup is None:
            raise WrongTokenError(_describe_unknown(sql[at]), at)
        kind = match.lastgroup
        if kind == "word" and _WHOLE_NUMBER.fullmatch(match[0]):
            kind = "number"
        tokens.append(SqlToken(kind, match[0], at))
        at = match.end()
    return tokens


def _skip_space(sql: str, at: int) -> int:
    """Return the offset after spaces and comments."""
    while True:
        if match := _SPACE.match(sql, at):
            at = match.end()
        elif sql.startswith("/*", at) and not sql.startswith("/*+", at):
            end = sql.find("*/", at + 2)
            if end < 0 or "/*" in sql[at + 2 : end]:
                raise UnknownTokensError
            at = end + 2
        else:
            return at


def _describe_unknown(character: str) -> str:
    if character in _QUOTES:
        return f"the {_QUOTES[character]} {character} is not closed"
    if character.isprintable():
        return f"the character {character} is only allowed in quotes"
    return f"the character U+{ord(character):04X} is only allowed in quotes"


def match_parentheses(tokens: Sequence[SqlToken]) -> dict[int, int]:
    """Return the index of each closing parenthesis and bracket by that of its opening one.

    Raises WrongTokenError for one without a partner.
    """
    pairs, opened = {}, list[int]()
    for index, token in enumerate(tokens):
        if token.kind != "sign":
            continue
        if token.text in _PAIRS:
            opened.append(index)
        elif token.text in _PAIRS.values():
            if not opened or _PAIRS[tokens[opened[-1]].text] != token.text:
                raise WrongTokenError(f"nothing opens the {token.text}", token.begin)
            pairs[opened.pop()] = index
    if opened:
        first = tokens[opened[0]]
        raise WrongTokenError(f"the {first.text} is not closed", first.begin)
    return pairs


def list_token_words(token: SqlToken) -> Iterator[str]:
    """Yield by what a rule of the grammar may name a token: its kinds, its text as a keyword."""
    match token.kind:
        case "word":
            yield from ("NAME", token.text.upper())
        case "quoted":
            yield "NAME"
        case "double":  # a session may read it as a name
            yield from ("NAME", "TEXT")
        case "sign" if token.text == "!":  # another spelling of the keyword NOT
            yield from ("NAME", "NOT")
        case "sign":
            yield f"'{token.text}'"
        case kind:
            yield kind.upper()
