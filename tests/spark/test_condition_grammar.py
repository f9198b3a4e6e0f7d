"""Spark's own parser as the judge of lint: no condition that it takes is an error.

``CONDITIONS_PARSED=100000`` tries so many.
"""

from __future__ import annotations

import os
from random import Random

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from reconciler.index.predicates.grammar import find_condition_problem
from reconciler.index.predicates.where_rules import AGGREGATES, WINDOW_FUNCTIONS
from tests.oracle.random_predicates import COLUMNS, EVERY, Predicates
from tests.selection import rounds
from tests.spark.frames import PYSPARK
from tests.sql_conditions import (
    FORBIDDEN_AFTER_WHERE,
    TAKEN_AFTER_WHERE,
    break_condition,
    make_condition,
)

PARSED = rounds("CONDITIONS_PARSED", few=300, many=60_000)
SEED = os.environ.get("CONDITIONS_SEED", "1")
pytestmark = PYSPARK
#: a name after a condition is one in a list of columns, but none after WHERE
NAMED = ("Alias", "MultiAlias")


def is_condition(parser, text, names=NAMED):
    """True if Spark's parser takes a text as a condition."""
    try:
        return parser.parseExpression(text).getClass().getSimpleName() not in names
    except (PySparkException, Py4JJavaError):
        return False


def random_texts():
    chance = Random(SEED)
    for number in range(PARSED):
        text = make_condition(chance, depth=number % 4)
        for _ in range(chance.choice((0, 1, 1, 2, 3))):
            text = break_condition(chance, text)
        yield text


def test_no_condition_that_spark_parses_is_an_error_and_few_others_pass(spark):
    parser = spark._jsparkSession.sessionState().sqlParser()
    taken, refused, missed, wrong = 0, 0, [], []
    for text in random_texts():
        problem = find_condition_problem(text)
        if is_condition(parser, text):
            taken += 1
            wrong += [] if problem is None else [problem]
        elif "${" not in text:
            refused += 1
            missed += [text] if problem is None else []
        if problem and is_condition(parser, text, names=()):
            aliased = find_condition_problem(text, may_have_alias=True)
            wrong += [] if aliased is None else [aliased]

    assert [] == wrong
    assert taken > PARSED / 5
    assert refused > PARSED / 5
    assert len(missed) < refused / 8, missed[:20]


def test_conditions_of_the_oracle_are_no_errors(spark):
    parser = spark._jsparkSession.sessionState().sqlParser()
    asked = [f"x = {literal}" for literal in EVERY]
    asked += Predicates(Random(SEED), tuple(COLUMNS)).make(PARSED // 10)
    problems = {text: problem for text in asked if (problem := find_condition_problem(text))}

    assert {} == {text: said for text, said in problems.items() if is_condition(parser, text)}


def test_what_is_forbidden_after_where_is_what_spark_refuses_there(spark):
    frame = spark.sql("select 1 a, 'x' b, array(1) c")
    for text in TAKEN_AFTER_WHERE:
        frame.filter(text)
    for text in FORBIDDEN_AFTER_WHERE:
        with pytest.raises(PySparkException):
            frame.filter(text)


def test_aggregates_and_window_functions_are_those_of_spark(spark):
    registry = spark._jsparkSession.sessionState().functionRegistry()
    names = registry.listFunction()
    found = {"agg_funcs": set(), "window_funcs": set()}
    for name in map(names.apply, range(names.size())):
        found.get(registry.lookupFunction(name).get().getGroup(), set()).add(name.funcName())

    # these two are in the grammar, and not in the registry
    known = found["agg_funcs"] | {"percentile_cont", "percentile_disc"}
    assert known >= AGGREGATES
    assert found["window_funcs"] >= WINDOW_FUNCTIONS
    if spark.version.startswith("3.5."):  # later releases have more, and sessions of 3.5 their own
        assert known == AGGREGATES
        assert found["window_funcs"] == WINDOW_FUNCTIONS
