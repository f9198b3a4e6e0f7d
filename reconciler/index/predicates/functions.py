"""Apply Spark functions by name, unless a session has replaced them.

All functions listed here are null if one of their arguments is (StartsWith, Substring and the like
are null-intolerant expressions). Others return a result for nulls: coalesce, concat_ws, hash.
Source: Spark's FunctionRegistry.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from reconciler.index.predicates.arithmetic import (
    Expression,
    is_null,
    make_opaque,
    make_strict,
    make_sum,
)
from reconciler.index.predicates.syntax import (
    NULL,
    Cast,
    Column,
    Like,
    Literal,
    LiteralKind,
    Predicate,
)
from reconciler.index.predicates.tokens import UnknownSyntaxError, split_tokens

_TEXT_SEARCHES: Final = frozenset({"startswith", "endswith", "contains"})
_DATE_SHIFTS: Final = {"date_add": "+", "date_sub": "-"}
#: all supported functions
KNOWN_FUNCTIONS: Final = (
    _TEXT_SEARCHES
    | _DATE_SHIFTS.keys()
    | {"to_date", "year", "month", "day", "dayofmonth", "abs", "round", "floor", "ceil"}
    | {"length", "char_length", "character_length", "upper", "ucase", "lower", "lcase"}
    | {"trim", "ltrim", "rtrim", "substring", "substr"}
)
_SPECIAL: Final = re.compile(r"[\\%_]")


def apply_function(name: str, arguments: Sequence[Expression]) -> Expression:
    """Return the expression of a function in ``KNOWN_FUNCTIONS`` with at least one argument.

    ``date_add(d, 1)`` is ``d + 1`` and ``to_date(t)`` is ``cast(t as date)``. Raises
    UnknownSyntaxError if its result is uncertain.

    >>> one = Literal(kind=LiteralKind.INTEGER, value=1, bits=32)
    >>> apply_function("date_sub", [Column(parts=("d",)), one])
    ColumnSum(operand=Column(parts=('d',)), times=1, plus=-1, bits=32)
    """
    first = arguments[0]
    if isinstance(first, Column | Cast):
        if name in _DATE_SHIFTS and len(arguments) == 2:  # noqa: PLR2004 - a day and a number
            return make_sum(first, _DATE_SHIFTS[name], arguments[1])
        if name == "to_date" and len(arguments) == 1:
            return Cast(operand=first, to="date")
    value = make_opaque(*arguments)
    if not value.columns and not value.is_null:
        raise UnknownSyntaxError
    if name in _TEXT_SEARCHES:
        return replace(value, predicate=_text_search(name, arguments))
    return value


def find_functions(where: str) -> tuple[str, ...]:
    """Return the functions of ``KNOWN_FUNCTIONS`` that a predicate calls, sorted, in lower case.

    >>> find_functions("NOT StartsWith(a, 'length(b)') OR f(c) = 1")
    ('startswith',)
    """
    try:
        words = [token.word for token in split_tokens(where)]
    except UnknownSyntaxError:
        return ()  # the whole predicate is unknown
    named = {word for word, following in pairwise(words) if following == "("}
    return tuple(sorted(named & KNOWN_FUNCTIONS))


def _text_search(name: str, arguments: Sequence[Expression]) -> Predicate:
    """Return the predicate of a search for one text in another."""
    if any(map(is_null, arguments)):
        return NULL
    match name, *arguments:
        case "startswith", Column() | Cast() as subject, Literal(kind=LiteralKind.STRING) as begin:
            if not begin.is_double_quoted:  # a session may read double quotes as a column name
                pattern = _SPECIAL.sub(r"\\\g<0>", str(begin.value)) + "%"
                return Like(operand=subject, pattern=replace(begin, value=pattern))
        case _:
            pass
    return make_strict(*arguments)
