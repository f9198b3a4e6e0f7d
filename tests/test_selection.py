"""What `./ci/test` leaves to `./ci/test --all` is nothing that no other case has."""

from __future__ import annotations

from itertools import combinations, product

from tests.oracle.prepared_tables import KINDS, TableKind
from tests.selection import EVERY_CASE, cover_pairs, take_turn, take_turns


def is_long(case):
    return any(mark.name == "long" for mark in getattr(case, "marks", ()))


def values(case):
    return tuple(getattr(case, "values", case))


def kept(cases):
    return [values(case) for case in cases if not is_long(case)]


def pairs(cases):
    return {pair for case in cases for pair in combinations(enumerate(case), 2)}


def test_the_cases_that_stay_have_every_two_values_together():
    every = list(product("abc", "xy", "123"))
    cases = cover_pairs(every)

    assert every == list(map(values, cases))
    assert pairs(every) == pairs(kept(cases))
    assert 9 == len(kept(cases))


def test_every_release_cleans_tables_of_both_types_with_each_layout():
    found = [
        kind for (kind,) in kept(cover_pairs([(kind,) for kind in KINDS], TableKind.list_values))
    ]
    told = [kind.list_values() for kind in found]

    assert pairs(kind.list_values() for kind in KINDS) == pairs(told)


def test_every_turn_takes_other_values_and_all_take_each():
    turns = [take_turn(range(7), of=3, turn=turn) for turn in range(3)]

    if EVERY_CASE:
        assert [list(range(7))] * 3 == turns
    else:
        assert [[0, 3, 6], [1, 4], [2, 5]] == turns


def test_values_that_take_turns_are_all_there():
    cases = take_turns(range(5), "ab")

    assert list(product(range(5), "ab")) == list(map(values, cases))
    assert [(0, "a"), (1, "b"), (2, "a"), (3, "b"), (4, "a")] == kept(cases)
