"""Recognise conditions that certainly are what Spark takes after WHERE, in a tenth of the time.

Most are columns that are compared with numbers and texts. ``grammar`` says so too, at length.
"""

from __future__ import annotations

import re
from typing import Final

#: words that may be more than the name of a column, there or in some release of Spark
_OTHER_WORDS: Final = frozenset({
    "all", "and", "anti", "any", "between", "case", "cast", "collate", "cross", "date",
    "distinct", "div", "else", "end", "escape", "except", "exists", "extract", "false",
    "filter", "first", "for", "from", "full", "group", "having", "identifier", "ignore",
    "ilike", "in", "inner", "intersect", "interval", "is", "join", "last", "lateral", "left",
    "like", "limit", "minus", "natural", "not", "null", "nulls", "on", "or", "order", "over",
    "overlay", "position", "qualify", "recursive", "regexp", "respect", "right", "rlike",
    "select", "semi", "setminus", "some", "struct", "substr", "substring", "then", "time",
    "timestamp", "timestamp_ltz", "timestamp_ntz", "to", "trim", "true", "try_cast", "union",
    "unknown", "using", "values", "when", "where", "with", "within", "x",
})  # fmt: skip
_NAME: Final = r"[a-z_][a-z0-9_]*"
_LITERAL: Final = r"(?:-?[0-9]{1,9}(?:\.[0-9]{1,9})?|'[^'\\]*')"
_FLAGS: Final = re.ASCII | re.IGNORECASE
_COMPARISON: Final = re.compile(
    rf"({_NAME}(?:\.{_NAME})*)(?: *(?:=|<=?|>=?|!=|<>) *{_LITERAL}"
    rf"| +between +{_LITERAL} +and +{_LITERAL}"
    rf"| +in *\( *{_LITERAL}(?: *, *{_LITERAL})* *\))",
    _FLAGS,
)
_LINK: Final = re.compile(r" +(?:and|or) +", _FLAGS)


def has_plain_comparisons(text: str) -> bool:
    """Return whether a text is nothing but comparisons of columns with literals, and AND and OR.

    >>> has_plain_comparisons("a.b >= -1.5 AND city IN ('Rome', 'Oslo')")
    True
    >>> has_plain_comparisons("lower(city) = 'rome'"), has_plain_comparisons("a = = 1")
    (False, False)
    """
    at = 0
    while (found := _COMPARISON.match(text, at)) is not None:
        if not _OTHER_WORDS.isdisjoint(found[1].lower().split(".")):
            return False
        if found.end() == len(text):
            return "${" not in text  # Spark first replaces this with the value of a setting
        link = _LINK.match(text, found.end())
        if link is None:
            return False
        at = link.end()
    return False
