"""Drills sync thousands of small files; whether a disk keeps its promises is not what they ask."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="session")
def _quickly(without_syncing):
    pass
