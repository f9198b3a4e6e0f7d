"""Which tests run: ``./ci/test`` proves every fact once, ``./ci/test --all`` runs every case.

``ALL_TESTS=1`` in the environment is what ``--all`` sets. Without it, tests marked ``long`` are
left out unless the command line names them by their id.

    @pytest.mark.parametrize("name", [*COVERING, *map(long, OTHERS)])
    ROUNDS = rounds("ROUNDS", few=3, many=12)
"""

from __future__ import annotations

import os
from typing import Any, Final

import pytest

EVERY_CASE: Final = os.environ.get("ALL_TESTS", "") == "1"


def long(*values: Any) -> Any:
    """Return a parameter set that only ``./ci/test --all`` runs."""
    return pytest.param(*values, marks=pytest.mark.long)


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
        items[:] = [item for item in items if item not in set(left_out)]
