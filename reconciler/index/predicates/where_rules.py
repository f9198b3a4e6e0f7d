"""Check what Spark parses and refuses after WHERE: aggregates, windows and parameters.

Only what is certain is refused: a function that is not Spark's own passes, and subqueries are not
looked at. Source: the groups agg_funcs and window_funcs of FunctionRegistry of Spark 3.5; newer
functions may be the session's own there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from reconciler.errors import quote_value
from reconciler.index.predicates.grammar import find_condition_problem
from reconciler.index.predicates.sql_tokens import (
    SqlToken,
    UnknownTokensError,
    match_parentheses,
    split_sql,
)

AGGREGATES: Final = frozenset({
    "any", "any_value", "approx_count_distinct", "approx_percentile", "array_agg", "avg",
    "bit_and", "bit_or", "bit_xor", "bitmap_construct_agg", "bitmap_or_agg", "bool_and",
    "bool_or", "collect_list", "collect_set", "corr", "count", "count_if", "count_min_sketch",
    "covar_pop", "covar_samp", "every", "first", "first_value", "grouping", "grouping_id",
    "histogram_numeric", "hll_sketch_agg", "hll_union_agg", "kurtosis", "last", "last_value",
    "max", "max_by", "mean", "median", "min", "min_by", "mode", "percentile",
    "percentile_approx", "percentile_cont", "percentile_disc", "regr_avgx", "regr_avgy",
    "regr_count", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy",
    "skewness", "some", "std", "stddev", "stddev_pop", "stddev_samp", "sum", "try_avg",
    "try_sum", "var_pop", "var_samp", "variance",
})  # fmt: skip
WINDOW_FUNCTIONS: Final = frozenset({
    "cume_dist", "dense_rank", "lag", "lead", "nth_value", "ntile", "percent_rank", "rank",
    "row_number",
})  # fmt: skip
_QUERY_WORDS: Final = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE"})
_LIKE: Final = frozenset({"LIKE", "ILIKE"})


def find_where_problem(text: str, *, may_have_alias: bool = False) -> str | None:
    """Return why Spark refuses a text after WHERE, with the character; None if that is not certain.

    ``may_have_alias`` is that of ``find_condition_problem``.

    >>> find_where_problem("id = 1 AND count(*) > 1")
    "'id = 1 AND count(*) > 1': WHERE allows no aggregate: count() at character 12"
    >>> find_where_problem("customer_id = :p")
    "'customer_id = :p': the parameter :p has no value at character 15; write the value"
    """
    if problem := find_condition_problem(text, may_have_alias=may_have_alias):
        return problem
    if "${" in text:
        return None
    try:
        tokens = split_sql(text)
    except UnknownTokensError:
        return None
    found = next(_find_forbidden(tokens, match_parentheses(tokens)), None)
    return None if found is None else f"{quote_value(text)}: {found}"


def _find_forbidden(tokens: Sequence[SqlToken], pairs: Mapping[int, int]) -> Iterator[str]:
    at = 0
    while at < len(tokens):
        if _is_query(tokens, at):
            at = pairs[at]
        elif problem := _describe_forbidden(tokens, at):
            yield problem
        at += 1


def _is_query(tokens: Sequence[SqlToken], at: int) -> bool:
    """Return whether a parenthesis may open a query; every other one in it may then, too."""
    start = at
    while at < len(tokens) and tokens[at].text == "(":
        at += 1
    return at > start and at < len(tokens) and _word(tokens, at) in _QUERY_WORDS


def _describe_forbidden(tokens: Sequence[SqlToken], at: int) -> str | None:
    found = _describe_call(tokens, at) or _describe_parameter(tokens, at)
    return found and found.replace("{place}", f"at character {tokens[at].begin + 1}")


def _describe_parameter(tokens: Sequence[SqlToken], at: int) -> str | None:
    name = tokens[at].text
    if tokens[at].kind != "sign" or name not in ("?", ":"):
        return None
    if name == ":":
        if _text(tokens, at - 2) in ("<", ","):  # the type of a field: struct<a:int, b:int>
            return None
        name = f":{_text(tokens, at + 1)}"
    return f"the parameter {name} has no value {{place}}; write the value"


def _describe_call(tokens: Sequence[SqlToken], at: int) -> str | None:
    name, before = tokens[at].text, _text(tokens, at - 1)
    if tokens[at].kind != "word" or _text(tokens, at + 1) != "(" or before == ".":
        return None
    if name.upper() == "OVER" and before == ")":
        return f"WHERE allows no window: {name} (…) {{place}}"
    if name.lower() in WINDOW_FUNCTIONS:
        return f"WHERE allows no window function: {name}() {{place}}"
    if name.lower() in AGGREGATES and _word(tokens, at - 1) not in _LIKE:
        return f"WHERE allows no aggregate: {name}() {{place}}"
    return None


def _text(tokens: Sequence[SqlToken], at: int) -> str:
    return tokens[at].text if 0 <= at < len(tokens) else ""


def _word(tokens: Sequence[SqlToken], at: int) -> str:
    return tokens[at].text.upper() if 0 <= at < len(tokens) and tokens[at].kind == "word" else ""
