"""Conditions of Spark's plans: what is certain becomes a predicate, what is not is unknown."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from reconciler.event_logs.conditions import (
    ConditionContext,
    UnknownConditionError,
    parse_condition,
    parse_condition_list,
)
from reconciler.event_logs.normal_form import make_shape_key, simplify
from reconciler.event_logs.predicate_text import write_predicate
from reconciler.event_logs.read_schema import find_type, parse_read_schema

TYPES = parse_read_schema(
    "struct<id:bigint,customer:int,name:string,city:string,amount:decimal(10,2),at:timestamp,"
    "local:timestamp_ntz,flag:boolean,b:binary,s:struct<a:int,Full:string>>"
)
CONTEXT = ConditionContext(types=TYPES, zone=ZoneInfo("Europe/Berlin"))


def read(text: str) -> str:
    known = simplify([parse_condition(text, CONTEXT)])
    return "" if known is None else write_predicate(known)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(isnotnull(customer#1) AND (customer#1 = 42))", "customer = 42"),
        ("(5 < id#2L)", "id > 5"),
        ("(name#3 = a) AND (b) AND (c) = d)", "name = 'a) AND (b) AND (c) = d'"),
        ("(name#3 = )", "name = ''"),
        ("(name#3 =  a )", "name = ' a '"),
        ("(StartsWith(name#3, 5%_\\) AND flag#4)", "name like '5\\\\%\\\\_\\\\\\\\%' and flag"),
        ("Contains(name#3, a, b)", "name like '%a, b%'"),
        ("NOT customer#1 INSET 1, 2, 3", "customer not in (1, 2, 3)"),
        ("(customer#1 INSET 1, 2 OR (id#2L = 3))", "customer in (1, 2) or id = 3"),
        ("customer#1 IN (1,null)", "customer in (1, null)"),
        ("(s#5.a = 3)", "s.a = 3"),
        ("(s#5.full = x)", "s.full = 'x'"),
        ("(cast(customer#1 as bigint) > 5000000000)", "cast(customer as bigint) > 5000000000"),
        ("(amount#6 = 1E+3)", "amount = 1000BD"),
        ("(at#7 = 2026-07-01 12:00:00.5)", "at = timestamp '2026-07-01 10:00:00.5Z'"),
        ("(local#8 < 2026-07-01 12:00:00)", "local < timestamp_ntz '2026-07-01 12:00:00'"),
        ("(b#9 = 0x00FF)", "b = X'00FF'"),
        ("(region#10 = eu, west)", "region = 'eu, west'"),
        ("(unknown#11L = 7)", "unknown = 7"),
        ("((upper(name#3) = X) AND (id#2L = 3))", "id = 3"),
        ("((upper(name#3) = X) OR (id#2L = 3))", ""),
        ("(name#3 = city#12)", ""),
        ("(name#3 = Subquery subquery#9, [id=#12])", ""),
        ("((id#2L % 7) = 3)", ""),
        ("(name#3 IN (a,b, c) AND (id#2L = 3))", "id = 3"),
        ("name#3 IN (a,null)", ""),
        ("isnotnull(customer#1)", ""),
        ("(_hoodie_commit_time#1 = 2026)", ""),
        ("((customer#1 = 1) OR ((customer#1 = 2) AND NOT (id#2L <=> 4)))",
         "customer = 1 or (customer = 2 and not (id <=> 4))"),
    ],
)  # fmt: skip
def test_a_condition_becomes_the_predicate_that_was_asked(text, expected):

    assert expected == read(text)


@pytest.mark.parametrize(
    "text",
    [
        "(name#3 = shortened...)",
        "(customer#1 = 4",
        "(name#3 = city())",
        "name#3 IN (a,b), c)",
        "(name#3 = *********(redacted))",
        "(name#3 LIKE  OR  AND (id#2L > 6))",  # the pattern is empty, or it is " OR "
        "((name#3 = a) OR (name#3 = b)) AND (id#2L = 3)",
        "... 3 more fields",
        "(" * 10_000,
        "NOT " * 10_000 + "flag#4",
        "",
    ],
)
def test_a_condition_that_is_not_certain_is_unknown(text):
    with pytest.raises(UnknownConditionError):
        parse_condition(text, CONTEXT)


def test_a_value_that_may_be_a_column_is_no_value():
    (known,) = parse_condition_list("[(name#3 = a), (name#3 = b#4)]", CONTEXT)[:1]

    assert "name = 'a'" == write_predicate(known)
    assert "" == read("(name#3 = b#4)")


def test_a_timestamp_is_unknown_without_a_zone_and_in_an_hour_that_a_zone_has_twice():
    no_zone = ConditionContext(types=TYPES)
    for text, context in (
        ("(at#7 = 2026-07-01 12:00:00)", no_zone),
        ("(at#7 = 2026-10-25 02:30:00)", CONTEXT),
        ("(at#7 = 0001-01-01 00:00:00)", CONTEXT),
    ):
        assert simplify([parse_condition(text, context)]) is None


def test_a_long_condition_is_read_in_no_time():
    text = "isnotnull(name#3)"
    for nth in range(60):
        text = f"({text} AND NOT (name#3 = {'x' * 50}{nth}))"
    deep = read(text)

    assert 60 == deep.count("<>")
    assert parse_condition_list(f"[name#3 INSET {', '.join(map(str, range(5000)))}]", CONTEXT)


def test_queries_that_differ_in_values_and_order_have_one_shape():
    texts = (
        "((customer#1 = 4) AND (id#2L > 7))",
        "((id#2L > 1) AND (customer#1 = 2))",
        "(customer#1 IN (1,2) AND (id#2L > 7))",
    )
    keys = [make_shape_key(parse_condition(text, CONTEXT)) for text in texts]

    assert keys[0] == keys[1]
    assert keys[0] != keys[2]


def test_a_schema_that_was_shortened_tells_no_types():
    assert {} == parse_read_schema("struct<id:bigint,na...")
    assert {} == parse_read_schema("")
    assert {} == parse_read_schema("struct<" * 1000)
    assert "int" == find_type(TYPES, ("S", "A"), is_long=False)
    assert find_type(TYPES, ("s", "none"), is_long=False) is None
