from __future__ import annotations

from decimal import Decimal

import pytest

from reconciler.index.predicates.parse import parse
from reconciler.index.predicates.syntax import (
    And,
    Cast,
    Column,
    ColumnSum,
    Compare,
    In,
    IsNull,
    Like,
    Literal,
    LiteralKind,
    Not,
    Or,
    Sign,
    Strict,
    Unknown,
)

A, B, C = (Column(parts=(name,)) for name in "abc")
NULL = Literal(kind=LiteralKind.NULL)
TRUE = Literal(kind=LiteralKind.BOOLEAN, value=True)


def whole(value):
    return Literal(kind=LiteralKind.INTEGER, value=value)


def is_one(column=A):
    return Compare(left=column, sign=Sign.EQUAL, right=whole(1))


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("a < 1", Sign.BELOW),
        ("1 > a", Sign.BELOW),
        ("a <= 1", Sign.AT_MOST),
        ("1 >= a", Sign.AT_MOST),
        ("a == 1", Sign.EQUAL),
        ("1 = a", Sign.EQUAL),
        ("a <=> 1", Sign.SAME),
        ("1 <= a", Sign.AT_LEAST),
        ("a > 1", Sign.ABOVE),
    ],
)
def test_comparison_has_its_column_on_the_left(text, sign):

    assert Compare(left=A, sign=sign, right=whole(1)) == parse(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", whole(1)),
        ("-9223372036854775808", whole(-(2**63))),
        ("9223372036854775808", Literal(kind=LiteralKind.DECIMAL, value=Decimal(2**63))),
        ("- 12Y", whole(-12)),
        ("3S", whole(3)),
        ("4l", whole(4)),
        ("1.50", Literal(kind=LiteralKind.DECIMAL, value=Decimal("1.50"))),
        (
            "-12345678901234567890123456789.012345678",
            Literal(
                kind=LiteralKind.DECIMAL, value=Decimal("-12345678901234567890123456789.012345678")
            ),
        ),
        ("1.0BD", Literal(kind=LiteralKind.DECIMAL, value=Decimal("1.0"))),
        (".5e1", Literal(kind=LiteralKind.DOUBLE, value=5.0)),
        ("1D", Literal(kind=LiteralKind.DOUBLE, value=1.0)),
        ("0.1f", Literal(kind=LiteralKind.FLOAT, value=0.10000000149011612)),
        ("true", Literal(kind=LiteralKind.BOOLEAN, value=True)),
        ("NULL", NULL),
        ("x'0aFF'", Literal(kind=LiteralKind.BINARY, value=b"\x0a\xff")),
        ("DATE '2024-01-01'", Literal(kind=LiteralKind.DATE, value="2024-01-01")),
        ("timestamp_ltz '2024-01-01'", Literal(kind=LiteralKind.TIMESTAMP, value="2024-01-01")),
        ("Timestamp_NTZ'2024-01-01'", Literal(kind=LiteralKind.TIMESTAMP_NTZ, value="2024-01-01")),
        ("cast('2024-01-01' as date)", Literal(kind=LiteralKind.DATE, value="2024-01-01")),
        ("(1)", whole(1)),
    ],
)
def test_literal_has_the_type_of_its_spelling(text, value):

    assert Compare(left=A, sign=Sign.EQUAL, right=value) == parse(f"a = {text}")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"'it\'s'", "it's"),
        (r"'a\\b'", "a\\b"),
        (r"'\%\_'", r"\%\_"),
        (r"'\n\t\0\Z\q'", "\n\t\0\x1aq"),
        (r"'\u00e9\101\U0001f600'", "éA\U0001f600"),
        (r"'\ud83d\ude00'", "\U0001f600"),
        ("'a\nb'", "a\nb"),
    ],
)
def test_text_is_unescaped_like_in_spark(text, value):

    assert value == parse(f"a = {text}").right.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"r'\'", "\\"),
        (r"R'\n\101\u00e9\%'", r"\n\101\u00e9\%"),
        ("""r"it's" """, "it's"),
        ("r''", ""),
    ],
)
def test_raw_text_is_not_unescaped(text, value):
    found = parse(f"a = {text}").right

    assert (value, False) == (found.value, found.is_double_quoted)


def test_raw_text_that_ends_in_a_backslash_ends_there():
    x = Literal(kind=LiteralKind.STRING, value="' OR b = 1 OR c = r'")
    expected = Or(parts=(
        Compare(left=A, sign=Sign.EQUAL, right=Literal(kind=LiteralKind.STRING, value="\\")),
        is_one(B),
        Compare(left=C, sign=Sign.EQUAL, right=Literal(kind=LiteralKind.STRING, value="\\")),
    ))  # fmt: skip

    assert expected == parse(r"a = r'\' OR b = 1 OR c = r'\'")
    assert Compare(left=A, sign=Sign.EQUAL, right=x) == parse(r"a = '\' OR b = 1 OR c = r\''")


@pytest.mark.parametrize(
    "text",
    [
        "1 = 1.0",
        "'a' = 'a'",
        "NULL <=> NULL",
        "a = 'it''s'",  # Spark 3 and 4 differ
        "a = 'x' 'y'",
        r"a = '\ud83d'",
        "a = r'x' 'y'",
        "a = 1e99999999999999999999",
        "a = 1e-99999999999999999999D",
        "a = 1e99999999999999999999BD",
        f"a = cast(1 as decimal({'9' * 5000}))",
        f"cast(a as decimal({'9' * 5000})) = 1",
        "a IN (1, cast(NULL as string))",
        "a = 1000Y",
        "a = x'123'",
        "a = INTERVAL '1' DAY",
        "f(a) = 1",
        "a[0] = 1",
        "a <=> b",
        "a * 2 <=> 1",
        "a = 1 + 1",
        "a * 2 = 9223372036854775808",
        "a * 2 IS NULL",
        "a * 2",
        "f(a) + 1 = 2",
        "a * f(b) = 2",
        "d + interval 1 day = '2024-01-01'",
        "(" * 2000 + "a",
        "a = " + "(" * 2000 + "1",
        "a LIKE ANY ('x', 'y')",
        "a LIKE b",
        "a IN (SELECT 1)",
        "a IN (1, b)",
        "(a, b) IN ((1, 2))",
        "a = 1 = 2",
        "a = 1 IS NULL",
        "a = 1 b",
        "case when a then b end",
        "a = cast('x' as int)",
        "a = 1 -- b",
        "a = 1 /* b */",
        "a =",
        "(a = 1",
        "a = 1)",
        "",
    ],
)
def test_unsupported_syntax_is_unknown(text):

    assert Unknown(text=text) == parse(text)


def test_precedence_of_or_and_and_not():
    expected = Or(parts=(And(parts=(is_one(A), Not(operand=is_one(B)))), is_one(C)))

    assert expected == parse("a = 1 AND NOT b = 1 OR c = 1")
    assert expected == parse("((a=1) and !(b=1)) or (c=1)")


def test_and_of_an_unknown_between_does_not_end_it():
    text = "f(a) BETWEEN (b AND c) AND c"

    assert And(parts=(Unknown(text=text), is_one(B))) == parse(f"{text} AND b = 1")


def test_predicate_with_a_comment_is_unknown():

    assert Unknown(text="a = 1 -- no\nAND b = 1") == parse("a = 1 -- no\nAND b = 1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a != 1", Not(operand=is_one())),
        ("a <> 1", Not(operand=is_one())),
        ("a IN (1, null)", In(operand=A, values=(whole(1), NULL))),
        ("a NOT IN (1)", Not(operand=In(operand=A, values=(whole(1),)))),
        ("a IS NULL", IsNull(operand=A)),
        ("a IS NOT NULL", Not(operand=IsNull(operand=A))),
        ("a IS DISTINCT FROM NULL", Not(operand=Compare(left=A, sign=Sign.SAME, right=NULL))),
        ("a IS NOT DISTINCT FROM 1",
         Not(operand=Not(operand=Compare(left=A, sign=Sign.SAME, right=whole(1))))),
        ("a IS NOT TRUE",
         Not(operand=Compare(left=A, sign=Sign.SAME, right=TRUE))),
        ("a LIKE 'x%'", Like(operand=A, pattern=Literal(kind=LiteralKind.STRING, value="x%"))),
        ("a NOT LIKE '/%' ESCAPE '/'",
         Not(operand=Like(
             operand=A, pattern=Literal(kind=LiteralKind.STRING, value="/%"), escape="/"))),
        ("a BETWEEN 1 AND 2", And(parts=(
            Compare(left=A, sign=Sign.AT_LEAST, right=whole(1)),
            Compare(left=A, sign=Sign.AT_MOST, right=whole(2))))),
        ("1 BETWEEN a AND b", And(parts=(
            Compare(left=A, sign=Sign.AT_MOST, right=whole(1)),
            Compare(left=B, sign=Sign.AT_LEAST, right=whole(1))))),
        ("CAST(a AS Decimal(10, 2)) = 1", is_one(Cast(operand=A, to="decimal(10,2)"))),
        ("`a``b.c`.D = 1", is_one(Column(parts=("a`b.c", "D")))),
        ("date = 1", is_one(Column(parts=("date",)))),
        ("a", A),
        ("null", NULL),
    ],
)  # fmt: skip
def test_supported_predicates_are_parsed(text, expected):

    assert expected == parse(text)


@pytest.mark.parametrize("text", ["(" * 3000, "NOT " * 3000 + "a", "(" * 99 + "a" + ")" * 99])
def test_too_deep_nesting_is_unknown(text):
    found = parse(text)
    while isinstance(found, Not):
        found = found.operand

    assert isinstance(found, Unknown)


def a_sum(times, plus, bits):
    return Compare(
        left=ColumnSum(operand=A, times=times, plus=plus, bits=bits),
        sign=Sign.EQUAL,
        right=Literal(kind=LiteralKind.INTEGER, value=6),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + 1 = 6", a_sum(1, 1, 32)),
        ("6 = 1Y + a", a_sum(1, 1, 8)),
        ("a - 1L = 6", a_sum(1, -1, 64)),
        ("a - -1 = 6", a_sum(1, 1, 32)),
        ("a + 2147483648 = 6", a_sum(1, 1 << 31, 64)),
        ("2 - a = 6", a_sum(-1, 2, 32)),
        ("-a = 6", a_sum(-1, 0, 0)),
        ("(a + cast(1 as bigint)) = 6", a_sum(1, 1, 64)),
        ("((a) + 1) = (6)", a_sum(1, 1, 32)),
    ],
)
def test_column_plus_integer_is_a_sum(text, expected):

    assert expected == parse(text)
    assert expected.left.bits == parse(text).left.bits


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("a = b", (A, B)),
        ("a * -1 <= -2", (A,)),
        ("a * 2 + b / 3 > 1 - c", (A, B, C)),
        ("(a + 1) * 2 = 6", (A,)),
        ("a + 1 + 1 = 6", (A,)),
        ("a || 'x' = 'yx'", (A,)),
        ("a div 2 | 1 = 6", (A,)),
        ("~a = 6", (A,)),
        ("a + 1.5 = 6", (A,)),
        ("cast(a * 2 as string) = '6'", (A,)),
        ("a % 2 IN (0, NULL)", (A,)),
        ("a || b LIKE 'x%'", (A, B)),
        ("a ILIKE 'x%'", (A,)),
        ("a RLIKE b", (A, B)),
        ("contains(a, 'x')", (A,)),
        ("endswith(a, b)", (A, B)),
        ("startswith('xyz', a)", (A,)),
        ("startswith(upper(a), 'X')", (A,)),
        ("startswith(a, X'61')", (A,)),
        ('startswith(a, "b")', (A,)),
        ("contains(a, 'x') = true", (A,)),
        ("Length ( a ) > 1", (A,)),
        ("substring(a, b, 2) IN ('x', NULL)", (A, B)),
        ("trim(a) LIKE 'x%'", (A,)),
        ("date_add(a, b) = c", (A, B, C)),
    ],
)
def test_other_arithmetic_and_functions_are_null_with_their_columns(text, columns):

    assert Strict(columns=columns) == parse(text)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("startswith(a, 'x')", "a LIKE 'x%'"),
        ("NOT STARTSWITH(a, '')", "a NOT LIKE '%'"),
        ("(startswith (cast(a as string), '\U0001f600'))", "cast(a as string) LIKE '\U0001f600%'"),
        (r"startswith(a, '5\%_') AND b", r"a LIKE r'5\\\%\_%' AND b"),
        ("date_add(a, 1) = 6", "a + 1 = 6"),
        ("date_sub(a, 7S) = 6", "a - 7S = 6"),
        ("to_date(a) = DATE '2024-01-01'", "cast(a as date) = DATE '2024-01-01'"),
        ("contains(a, NULL)", "NULL"),
        ("startswith(a, cast(NULL as string)) OR b", "NULL OR b"),
    ],
)
def test_functions_that_equal_operators_are_parsed_like_them(text, same):

    assert parse(same) == parse(text)
    assert "Unknown" not in repr(parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "`startswith`(a, 'x')",
        "mine.startswith(a, 'x')",
        "startswith(a, hash(b))",
        "startswith('xy', 'x')",
        "startswith(a)(b)",
        "startswith()",
        "startswith(left => a, right => 'x')",
        "contains(DISTINCT a, 'x')",
        "contains(a, 'x') IS NULL",
        "contains(a, 'x') <=> true",
        "upper(a)",
        "coalesce(a, 'x') = 'y'",
        "concat_ws(a, 'x') = 'y'",
        "trim(BOTH 'x' FROM a) = 'y'",
        "length(a) = 9223372036854775808",
    ],
)
def test_functions_with_a_result_for_nulls_are_unknown(text):

    assert Unknown(text=text) == parse(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 = 1", True),
        ("1 != 1L", False),
        ("2 <=> 1", False),
        ("-1 < 0", True),
        ("0 BETWEEN 0 AND 1", And(parts=(TRUE, TRUE))),
        ("true <= FALSE", False),
        ("1 = NULL", None),
        ("cast(NULL as int) > 1", None),
    ],
)
def test_comparison_without_columns_is_a_literal(text, value):
    kind = LiteralKind.NULL if value is None else LiteralKind.BOOLEAN
    expected = value if isinstance(value, And) else Literal(kind=kind, value=value)

    assert expected == parse(text)
    assert And(parts=(A, Not(operand=expected))) == parse(f"a AND NOT ({text})")


@pytest.mark.parametrize("text", ["cast(NULL as boolean)", "(cast(NULL as boolean))", "- NULL"])
def test_typed_null_is_null(text):

    assert NULL == parse(text)
    assert Or(parts=(NULL, is_one())) == parse(f"{text} OR a = 1")


def test_arithmetic_with_null_is_null():

    assert (
        Literal(kind=LiteralKind.NULL)
        == parse("a + cast(NULL as int) = 1")
        == parse("a * 2 = NULL")
    )
