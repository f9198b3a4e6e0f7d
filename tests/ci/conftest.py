"""Pipelines run commands by the hundred: forks of a process that has been started already."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import warm
from tests.ci.lake import REAL, Lake, make_lake
from tests.ci.pipelines import Pipelines


@pytest.fixture
def forge() -> Iterator[Pipelines]:
    with Pipelines() as standing:
        yield standing


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return make_lake(tmp_path)


@pytest.fixture(scope="session")
def warm_program() -> Iterator[Path]:
    with warm.serving() as program:
        yield program


@pytest.fixture(autouse=True)
def _quick_command(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """``RECONCILER`` is a quick program; a test that uses ``installed`` runs the installed one."""
    if "installed" not in request.fixturenames:
        monkeypatch.setitem(REAL, "RECONCILER", str(request.getfixturevalue("warm_program")))


@pytest.fixture
def installed() -> None:
    """Every command of the test is the installed program, from its start to its end."""
