"""``pytest --update-cases`` takes what is found for what is expected; read the diff."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--update-cases", action="store_true", help="rewrite what cases expect")


class Golden:
    """Compares text with a file, or writes the file where that was asked for."""

    def __init__(self, *, updates: bool) -> None:
        self.updates = updates

    def expected(self, path: Path, found: str) -> str:
        if self.updates:
            path.parent.mkdir(exist_ok=True)
            path.write_text(found, encoding="utf-8")
        return path.read_text(encoding="utf-8")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(updates=bool(request.config.getoption("--update-cases")))
