from __future__ import annotations

from random import Random

import pytest

from reconciler.index.predicates.grammar import find_condition_problem
from tests.oracle.random_predicates import COLUMNS, EVERY, Predicates
from tests.selection import examples
from tests.sql_conditions import LITERALS, VALUES, make_condition


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("zip = = 3", "unexpected = at character 7"),
        ("==== 42", "unexpected == at character 1"),
        ("select zip from t", "unexpected zip at character 8; write only what follows WHERE"),
        ("where x = 1", "unexpected x at character 7; write only what follows WHERE"),
        ("limit 10", "unexpected 10 at character 7; write only what follows WHERE"),
        ("a = 1 order by a", "unexpected order at character 7"),
        ("a b", "unexpected b at character 3"),
        ("a = 1;", "unexpected ; at character 6"),
        ("", "it is empty at character 1"),
        (" \n", "it is empty at character 1"),
        ("-- nothing", "it is empty at character 11"),
        ("city = 'Rome", "the quote ' is not closed at character 8"),
        ("`city = 1", "the backtick ` is not closed at character 1"),
        ("(a = 1", "the ( is not closed at character 1"),
        ("a = 1)", "nothing opens the ) at character 6"),
        ("a = [1)", "nothing opens the ) at character 7"),
        ("a = 1 and", "it ends too early at character 10"),
        ("a between 1", "it ends too early at character 12"),
        ("a in ()", "unexpected ) at character 7"),
        ("a in (1,, 2)", "unexpected , at character 9"),
        ("a in 3", "unexpected 3 at character 6"),
        ("a is missing", "unexpected missing at character 6"),
        ("a # 1", "the character # is only allowed in quotes at character 3"),
        ("größe > 1", "the character ö is only allowed in quotes at character 3"),
        ("a\u0085= 1", "the character U+0085 is only allowed in quotes at character 2"),
        ("case when a then 1", "it ends too early at character 19"),
        ("/* one */ a = = 1", "unexpected = at character 15"),
    ],
)
def test_what_spark_cannot_parse_is_named_with_its_character(text, problem):
    found = find_condition_problem(text)

    assert found is not None
    assert found.endswith(f"is not an SQL condition: {problem}")


@pytest.mark.parametrize(
    "form", [*VALUES, "and OR or", "- !", ": ! like !", "a = 1 /* b /* c */ */", "${x} =", "a /* b"]
)
def test_forms_of_spark_are_no_errors(form):
    assert find_condition_problem(form.replace("{v}", "a").replace("{c}", "b = 1")) is None


@pytest.mark.parametrize(
    "form", ["1.\u017f = 1", "!1.\u0131 like a", "1.\u017fa = 1", "1\u017f.x = 1"]
)
def test_letters_that_spark_reads_as_i_and_s_are_those_after_a_point_too(form):
    assert find_condition_problem(form) is None


def test_random_conditions_of_the_grammar_are_no_errors():
    chance = Random("grammar")
    asked = [make_condition(chance, depth=number % 4) for number in range(examples(200, many=9000))]
    asked += [f"x = {literal}" for literal in (*EVERY, *LITERALS)]
    asked += Predicates(chance, tuple(COLUMNS)).make(examples(60, many=3000))

    assert {} == {text: said for text in asked if (said := find_condition_problem(text))}


def test_a_condition_too_deep_or_too_long_to_check_passes():
    assert find_condition_problem("(" * 500 + "a = =" + ")" * 500) is None
    assert find_condition_problem(" or ".join(["a = 1"] * 5000) + " or = =") is None
