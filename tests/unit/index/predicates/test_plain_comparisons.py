from __future__ import annotations

from random import Random

import pytest

from reconciler.index.predicates.grammar import find_condition_problem
from reconciler.index.predicates.plain_comparisons import has_plain_comparisons
from reconciler.index.predicates.where_rules import find_where_problem
from tests.selection import examples

#: parts of comparisons, and what may stand in their place by a slip
NAMES = ("a", "b.c", "min", "date", "x", "not", "ordered_at", "null", "a.is", "`a`", "")
LITERALS = ("1", "-2.5", "'x'", "''", "'it''s'", "null", "?", "'${k}'", "1e3", "b", "(1)")
FORMS = (
    "{n} = {v}", "{n}<={v}", "{n} <> {v}", "{n} == {v}", "{n} between {v} and {v}", "{n} IN ({v})",
    "{n} in({v}, {v})", "{n} in {v}", "{n} between {v}", "not {n} = {v}", "{n} is {v}", "{n}({v})",
)  # fmt: skip
LINKS = (" and ", " OR ", " or  ", "and", " ", ", ")


def make_condition(chance):
    """Return up to three comparisons, each part of which may be wrong."""
    text = ""
    for _ in range(chance.randrange(1, 4)):
        form = chance.choice(FORMS).replace("{n}", chance.choice(NAMES))
        while "{v}" in form:
            form = form.replace("{v}", chance.choice(LITERALS), 1)
        text += (chance.choice(LINKS) if text else "") + form
    return text


@pytest.mark.parametrize(
    "text",
    [
        "a = 1",
        "a.b>=-1.5",
        "ordered_at between 1 and 2 and status = 'paid'",
        "city IN ('Rome','Oslo') OR inner_city <> ''",
    ],
)
def test_comparisons_of_columns_with_literals_are_plain(text):
    assert has_plain_comparisons(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a = = 1",
        "a = b",
        "a = 1 and",
        "a = 1and b = 2",
        "a = 1 b = 2",
        "min (1)",  # an aggregate, and no column m in a list
        "date = 1",
        "a.not = 1",
        "a = 'x",
        r"a = 'x\'",
        "a = '${v}'",
        "größe = 1",
        "a = 1;",
        "a = 1 -- why",
    ],
)
def test_anything_else_is_not(text):
    assert not has_plain_comparisons(text)


def test_what_is_plain_is_a_condition_by_the_whole_grammar_too():
    chance = Random("plain")
    asked = {make_condition(chance) for _ in range(examples(10_000, many=200_000))}
    plain = {text for text in asked if has_plain_comparisons(text)}

    assert 50 < len(plain) < len(asked) / 2
    assert {} == {text: said for text in plain if (said := find_condition_problem(text))}
    assert {} == {text: said for text in plain if (said := find_where_problem(text))}
