"""``pytest --update-cases`` replaces expected results with actual ones; review the diff."""

from __future__ import annotations

from typing import Any

import pytest

from tests.golden import Golden


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--update-cases", action="store_true", help="rewrite what cases expect")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(updates=bool(request.config.getoption("--update-cases")))
