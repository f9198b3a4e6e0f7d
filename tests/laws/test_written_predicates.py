"""A predicate that was written as SQL parses to itself."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.event_logs.normal_form import flatten, make_shape_key
from reconciler.event_logs.predicate_text import write_predicate, write_shape
from reconciler.index.predicates.parse import parse
from reconciler.index.predicates.syntax import (
    And,
    Cast,
    Column,
    Compare,
    In,
    IsNull,
    Like,
    Literal,
    LiteralKind,
    Not,
    Or,
    Sign,
)
from tests.selection import examples

LAW = settings(max_examples=examples(40, many=3000), deadline=None)
NAMES = st.sampled_from(["id", "full name", "date", "s`x", "größe", "and", "X", "a-b", "7a"])
COLUMNS = st.lists(NAMES, min_size=1, max_size=2).map(lambda parts: Column(parts=tuple(parts)))
OPERANDS = st.one_of(COLUMNS, st.builds(Cast, operand=COLUMNS, to=st.just("decimal(10,2)")))


def make(kind: LiteralKind, values):
    return values.map(lambda value: Literal(kind=kind, value=value))


TEXTS = make(LiteralKind.STRING, st.text(st.characters(exclude_categories=("Cs",)), max_size=8))
LITERALS = st.one_of(
    make(LiteralKind.INTEGER, st.integers(-(1 << 63), (1 << 63) - 1)),
    make(LiteralKind.DECIMAL, st.decimals(-1000, 1000, places=3)),
    make(LiteralKind.DECIMAL, st.sampled_from([Decimal("1E+3"), Decimal("0E-18"), Decimal(7)])),
    make(LiteralKind.DOUBLE, st.floats(allow_nan=False)),
    make(LiteralKind.BOOLEAN, st.booleans()),
    make(LiteralKind.BINARY, st.binary(max_size=4)),
    make(LiteralKind.DATE, st.just("2026-01-05")),
    make(LiteralKind.TIMESTAMP, st.just("2026-01-05 10:00:00.5Z")),
    TEXTS,
    TEXTS,
)
LEAVES = st.one_of(
    st.builds(Compare, left=OPERANDS, sign=st.sampled_from(Sign), right=LITERALS),
    st.builds(In, operand=OPERANDS, values=st.lists(LITERALS, min_size=1, max_size=3).map(tuple)),
    st.builds(IsNull, operand=OPERANDS),
    st.builds(Like, operand=OPERANDS, pattern=TEXTS),
    COLUMNS,
)
PREDICATES = st.recursive(
    LEAVES,
    lambda parts: st.one_of(
        st.builds(And, parts=st.lists(parts, min_size=2, max_size=3).map(tuple)),
        st.builds(Or, parts=st.lists(parts, min_size=2, max_size=3).map(tuple)),
        st.builds(Not, operand=parts),
    ),
    max_leaves=6,
)


@LAW
@given(PREDICATES)
def test_a_written_predicate_parses_to_itself(predicate):
    known = flatten(predicate)
    again = flatten(parse(write_predicate(known)))

    assert known == again, write_predicate(known)
    assert make_shape_key(known) == make_shape_key(again)
    assert write_shape(known) == write_shape(again)
