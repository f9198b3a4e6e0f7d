"""Functions of Spark by name, where no session has put its own in their place.

Sources: Spark's FunctionRegistry; those listed are null for a null in any of their arguments
(StartsWith, Substring and the like are null-safe binary and ternary expressions), which holds of
few others: coalesce, concat_ws and hash answer for nulls.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from reconciler.predicates.arithmetic import Expression, is_null, opaque, strict, summed
from reconciler.predicates.syntax import Cast, Column, Kind, Like, Literal, Predicate
from reconciler.predicates.tokens import NotPlainError, tokens

_TRUTHS: Final = frozenset({"startswith", "endswith", "contains"})
_DAYS: Final = {"date_add": "+", "date_sub": "-"}
#: those of which anything is known
KNOWN: Final = (
    _TRUTHS
    | _DAYS.keys()
    | {"to_date", "year", "month", "day", "dayofmonth", "abs", "round", "floor", "ceil"}
    | {"length", "char_length", "character_length", "upper", "ucase", "lower", "lcase"}
    | {"trim", "ltrim", "rtrim", "substring", "substr"}
)
_NULL: Final = Literal(kind=Kind.NULL)
_SPECIAL: Final = re.compile(r"[\\%_]")


def called(name: str, of: Sequence[Expression]) -> Expression:
    """What a function of ``KNOWN`` makes of at least one argument.

    ``date_add(d, 1)`` is ``d + 1`` and ``to_date(t)`` is ``cast(t as date)``. Raises NotPlainError
    where nothing is sure.

    >>> called("date_sub", [Column(parts=("d",)), Literal(kind=Kind.INTEGER, value=1, bits=32)])
    Sum(of=Column(parts=('d',)), times=1, plus=-1, bits=32)
    """
    first = of[0]
    if isinstance(first, Column | Cast):
        if name in _DAYS and len(of) == 2:  # noqa: PLR2004 - a day and a number
            return summed(first, _DAYS[name], of[1])
        if name == "to_date" and len(of) == 1:
            return Cast(of=first, to="date")
    found = opaque(*of)
    if not found.columns and not found.is_null:
        raise NotPlainError
    return replace(found, says=_truth(name, of)) if name in _TRUTHS else found


def functions_in(where: str) -> tuple[str, ...]:
    """The functions of ``KNOWN`` that a predicate calls by name, sorted, in lower case.

    >>> functions_in("NOT StartsWith(a, 'length(b)') OR f(c) = 1")
    ('startswith',)
    """
    try:
        words = [token.word for token in tokens(where)]
    except NotPlainError:
        return ()  # nothing of it is understood
    named = {word for word, following in pairwise(words) if following == "("}
    return tuple(sorted(named & KNOWN))


def _truth(name: str, of: Sequence[Expression]) -> Predicate:
    """What a text that is looked for in another says of rows."""
    if any(map(is_null, of)):
        return _NULL
    match name, *of:
        case "startswith", Column() | Cast() as subject, Literal(kind=Kind.STRING) as begin:
            if not begin.is_double_quoted:  # else a session may take it for a column
                return _beginning(subject, str(begin.value))
        case _:
            pass
    return strict(*of)


def _beginning(of: Column | Cast, begin: str) -> Like:
    pattern = _SPECIAL.sub(r"\\\g<0>", begin) + "%"
    return Like(of=of, pattern=Literal(kind=Kind.STRING, value=pattern))
