"""``pytest --update-cases`` replaces expected results with actual ones; review the diff."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest

from reconciler.planners.cluster import notes
from tests.golden import Golden

#: how long an example takes tells what else the machine does, and nothing about the law
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--update-cases", action="store_true", help="rewrite what cases expect")


@pytest.fixture(scope="session", autouse=True)
def _scaled_sizes() -> Iterator[None]:
    """Let plans make tiny files: tables of tests are small, and so are the sizes they declare."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(notes, "LEAST_OUTPUT_BYTES", 0)
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(updates=bool(request.config.getoption("--update-cases")))
