"""Drills sync thousands of small files, but do not test whether a disk keeps what was synced."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="session")
def _quickly(without_syncing):
    pass
