"""Which tests run: ``./ci/test`` proves every fact once, ``./ci/test --all`` runs every case.

``ALL_TESTS=1`` in the environment is what ``--all`` sets. Without it, tests marked ``long`` are
left out unless the command line names them by their id.

    @pytest.mark.parametrize("name", [*COVERING, *map(long, OTHERS)])
    @pytest.mark.parametrize(("version", "kind", "state"), cover_pairs(product(A, B, C)))
    LAW = settings(max_examples=examples(20, many=100))
    ROUNDS = rounds("ROUNDS", few=3, many=12)
    for call in take_turn(calls, of=3, turn=version):
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any, Final

import pytest

EVERY_CASE: Final = os.environ.get("ALL_TESTS", "") == "1"


def long(*values: Any) -> Any:
    """Return a parameter set that only ``./ci/test --all`` runs."""
    return pytest.param(*values, marks=pytest.mark.long)


def cover_pairs(
    cases: Iterable[tuple[Any, ...]], values: Callable[..., tuple[object, ...]] | None = None
) -> list[Any]:
    """Return all cases; those without a pair of values that others lack are long.

    ``values``: gives a case's values from its arguments, by default these. They are compared as
    text. Of equally good cases the first is taken.
    """
    listed = list(cases)
    told = [values(*case) if values else case for case in listed]
    pairs = [set(combinations(enumerate(map(str, one)), 2)) for one in told]
    missing: set[object] = set().union(*pairs)
    taken = set()
    while missing:
        best = max(range(len(listed)), key=lambda at: len(pairs[at] & missing))
        taken.add(best)
        missing -= pairs[best]
    return [pytest.param(*case) if at in taken else long(*case) for at, case in enumerate(listed)]


def take_turns(first: Iterable[Any], second: Sequence[Any]) -> list[Any]:
    """Return all pairs of two lists; the first list's values take turns with the second's.

    The other pairs are long. The first list is the longer one, so that each value is there.
    """
    return [
        (one, other) if number % len(second) == at else long(one, other)
        for number, one in enumerate(first)
        for at, other in enumerate(second)
    ]


def take_turn(listed: Iterable[Any], *, of: int, turn: int = 0) -> list[Any]:
    """Return every ``of``-th value, beginning with that at ``turn``; all under ``--all``."""
    return list(listed) if EVERY_CASE else list(listed)[turn % of :: of]


def examples(few: int, *, many: int) -> int:
    """Return how many examples a law is tried with."""
    return many if EVERY_CASE else few


def rounds(variable: str, *, few: int, many: int) -> int:
    """Return how many random rounds to run: the variable's value if set, else by the selection."""
    return int(os.environ.get(variable, examples(few, many=many)))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave long tests out."""
    if EVERY_CASE:
        return
    left_out = [
        item for item in items if item.get_closest_marker("long") and item.nodeid not in config.args
    ]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]
